// What is learned, where it is not a parity of uniform inputs: laws of inputs, stages, a target. The words of
// setups/problems/draws.py, which says how inputs come from random numbers.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace paritylab {

inline constexpr int MOST_DIGITS = 16;
inline constexpr int MOST_TABLE_BITS = 20;

// Inputs that are drawn independently, after which some are multiplied by others.
struct Component {
    bool plain = false;            // uniform: the random words as they are
    int digits = 0;                // of its chances that are not all 0
    std::vector<uint32_t> planes;  // [digit][word]
    std::vector<uint32_t> always;  // [word]: inputs that are always -1
    std::vector<std::pair<uint32_t, uint32_t>> copies;  // (i, j): x_j is multiplied by x_i
};

struct Law {
    std::vector<uint32_t> cumulative;  // component c is chosen by a word of at least number c - 1
    std::vector<Component> components;
};

struct Stage {
    int64_t start, until;  // steps
    int law, next;         // while it lasts inputs move from one to the other; next == law: they do not
    int64_t flip;          // the threshold of label noise; -1: the run's own
    int batch;
};

enum class TargetKind { product, sum, table, tasks, outputs };

// Bits of one word, wherever they are the ones that matter.
struct MaskWord {
    int word;
    uint32_t bits;
};

struct Term {
    float coefficient;
    std::vector<MaskWord> mask;
};

// Neighbouring bits of one word that are neighbours in a table's index.
struct Field {
    int word, shift;
    uint32_t bits;
    int at;
};

struct Target {
    TargetKind kind = TargetKind::product;  // of each run's own mask
    float scale = 1;
    std::vector<Term> terms;
    bool sign = false;  // whether the target is the sum's sign
    std::vector<Field> fields;
    std::vector<uint32_t> table;  // a bit for each index, set where the value is -1
    int tasks = 0;
    bool in_turn = false;  // whether tasks come in turn in training too; or else they are drawn
    int controls = 0;      // the first so many inputs say which task it is
    std::vector<uint32_t> task_controls;  // [word][task]: those that are -1; empty: the one of the task's number
    std::vector<uint32_t> task_cumulative;
    std::vector<uint32_t> task_masks;   // [word][task]
    std::vector<int64_t> task_allowed;  // errors; -1: the task is not judged
    std::vector<uint32_t> output_masks;  // [word][output]: a parity for each output
    std::vector<int> counted;            // the first examples of a batch, in which the loss of each output counts
};

struct Problem {
    int words = 0;
    int stride = 0;  // random numbers of an example
    bool leaks = false;
    uint32_t leak = 0;  // all inputs of the support are equal where the upper 31 bits of a word are below this
    std::vector<Law> laws;
    int law = 0;  // after the last stage, and of a finite sample
    int evaluation_law = 0;
    std::vector<Stage> stages;
    Target target;

    // Numbers of the words of an example behind its inputs. A leaky parity has one that says whether it leaks.
    uint32_t component_word() const { return words; }
    uint32_t law_word() const { return words + 1; }
    uint32_t task_word() const { return words + 2; }
};

// Parities of uniform inputs.
inline Problem parities(int words) {
    Problem plain;
    plain.words = plain.stride = words;
    plain.laws.resize(1);
    plain.laws[0].components.resize(1);
    plain.laws[0].components[0].plain = true;
    return plain;
}

}  // namespace paritylab
