#include "problem_parts.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace paritylab {
namespace {

std::vector<uint32_t> to_vector(std::span<const uint32_t> words) { return {words.begin(), words.end()}; }

}  // namespace

Component component_of(bool plain, std::span<const uint32_t> planes, std::span<const uint32_t> always, Copies copies) {
    const size_t words = always.size();
    Component made{plain, 0, to_vector(planes), to_vector(always), std::move(copies)};
    while (!made.planes.empty() && made.planes.back() == 0) made.planes.pop_back();
    made.digits = static_cast<int>((made.planes.size() + words - 1) / words);
    made.planes.resize(made.digits * words);
    return made;
}

Term term_of(float coefficient, std::span<const uint32_t> mask) {
    Term term{coefficient, {}};
    for (size_t w = 0; w < mask.size(); ++w) {
        if (mask[w] != 0) term.mask.push_back({static_cast<int>(w), mask[w]});
    }
    return term;
}

std::vector<Field> fields_of(std::span<const int32_t> places) {
    std::vector<Field> fields;
    for (size_t i = 0; i < places.size(); ++i) {
        const bool next = i > 0 && places[i] == places[i - 1] + 1 && places[i] % 32 != 0;
        if (next) {
            fields.back().bits = 2 * fields.back().bits + 1;
        } else {
            fields.push_back({places[i] / 32, places[i] % 32, 1u, static_cast<int>(i)});
        }
    }
    return fields;
}

std::vector<uint32_t> by_word(std::span<const uint32_t> masks, size_t words) {
    std::vector<uint32_t> found;
    for (size_t w = 0; w < words; ++w) {
        for (size_t at = w; at < masks.size(); at += words) found.push_back(masks[at]);
    }
    return found;
}

void put_controls(Target& target, std::span<const uint32_t> masks, size_t words) {
    target.controls = masks.empty() ? target.tasks : 0;
    for (size_t i = 0; i < masks.size(); ++i) {
        const int last = masks[i] == 0 ? 0 : static_cast<int>(i % words) * 32 + std::bit_width(masks[i]);
        target.controls = std::max(target.controls, last);
    }
    target.task_controls = by_word(masks, words);
}

void add_stage(std::vector<Stage>& stages, int64_t until, int law, int next, int64_t flip, int batch) {
    stages.push_back({stages.empty() ? 0 : stages.back().until, until, law, next, flip, batch});
}

}  // namespace paritylab
