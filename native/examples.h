// Examples of a problem in the blocks of a layout, and in rows.
#pragma once

#include <bit>
#include <vector>

#include "config.h"
#include "source.h"
#include "stock.h"
#include "targets.h"

namespace paritylab::PARITYLAB_ISA {

class Examples {
public:
    explicit Examples(const Problem& problem) : problem_(problem), source_(problem), label_(problem), words_(problem.words) {
        evaluation_.parts.set(problem, {problem.evaluation_law});
    }

    // The inputs of examples `index`, which stay in words(), and their labels. Tasks come in turn, or as in training.
    vf draw(const Key<vu>& key, vu index, const Standing& standing, const vu* mask, bool in_turn) {
        source_.draw(key, index, standing, mask, words_.data());
        vu task{};
        const Target& target = problem_.target;
        if (target.tasks > 0) {
            task = in_turn || target.in_turn ? task_in_turn(target, index) : source_.task(key, index);
            set_controls(target, task, words_.data());
        }
        return label_(words_.data(), mask, task);
    }
    const vu* words() const { return words_.data(); }

    // Samples from `first` on of each run's key into a block.
    template <class L, class Block>
    void put(Block& block, const Key<vu>& key, uint32_t first, const Standing& standing, const vu* mask, bool in_turn) {
        for (int s = 0; s < block.count; s += L::EXAMPLES) {
            const vf y = draw(key, L::example_index(first + s), standing, mask, in_turn);
            block.inputs.put_drawn(s, block.count, words());
            L::spread(y, s, block.count, block.y);
        }
    }

    // Where inputs to be judged on come from.
    const Standing& evaluation() const { return evaluation_; }

private:
    const Problem& problem_;
    Source source_;
    Labels label_;
    std::vector<vu> words_;
    Standing evaluation_;
};

// The rows of a run's finite sample, with clean labels: see finite_sample.h.
inline void draw_sample(const Config& config, const Run& run, std::vector<uint32_t>& rows) {
    const int words = config.words();
    const Key<uint32_t> key = fold_in(run.stream(Stream::sample), 0u);
    const Key<vu> keys{broadcast(key.a), broadcast(key.b)};
    std::vector<vu> mask(words);
    for (int w = 0; w < words; ++w) mask[w] = broadcast(run.mask[w]);
    const Problem plain = parities(words);
    const Problem& problem = config.problem ? *config.problem : plain;
    Examples examples(problem);
    Standing standing;
    standing.parts.set(problem, {problem.law});
    uint32_t* row = rows.data();
    for (int64_t first = 0; first < config.sample; first += LANES) {
        const vf y = examples.draw(keys, broadcast(static_cast<uint32_t>(first)) + iota(), standing, mask.data(), false);
        for (int lane = 0; lane < LANES && first + lane < config.sample; ++lane) {
            for (int w = 0; w < words; ++w) *row++ = examples.words()[w][lane];
            *row++ = std::bit_cast<uint32_t>(float{y[lane]});
        }
    }
}

}  // namespace paritylab::PARITYLAB_ISA
