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

    // The inputs of examples `index`, which stay in words(). Tasks come in turn, or as in training.
    void draw(const Key<vu>& key, vu index, const Standing& standing, const vu* mask, bool in_turn) {
        source_.draw(key, index, standing, mask, words_.data());
        const Target& target = problem_.target;
        if (target.tasks > 0) {
            task_ = in_turn || target.in_turn ? task_in_turn(target, index) : source_.task(key, index);
            set_controls(target, task_, words_.data());
        }
    }
    // The labels of those that were drawn last.
    vf label(const vu* mask, int output) const { return label_(words_.data(), mask, task_, output); }
    const vu* words() const { return words_.data(); }

    // Samples from `first` on of each run's key into a block.
    template <class L, class Block>
    void put(Block& block, const Key<vu>& key, uint32_t first, const Standing& standing, const vu* mask, int outputs,
             bool in_turn) {
        for (int s = 0; s < block.count; s += L::EXAMPLES) {
            draw(key, L::example_index(first + s), standing, mask, in_turn);
            block.inputs.put_drawn(s, block.count, words());
            for (int j = 0; j < outputs; ++j) L::spread(label(mask, j), s, block.count, block.y_of(j));
        }
    }

    // Where inputs to be judged on come from.
    const Standing& evaluation() const { return evaluation_; }

private:
    const Problem& problem_;
    Source source_;
    Labels label_;
    std::vector<vu> words_;
    vu task_{};
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
    std::vector<vf> y(config.outputs);
    uint32_t* row = rows.data();
    for (int64_t first = 0; first < config.sample; first += LANES) {
        examples.draw(keys, broadcast(static_cast<uint32_t>(first)) + iota(), standing, mask.data(), false);
        for (int j = 0; j < config.outputs; ++j) y[j] = examples.label(mask.data(), j);
        for (int lane = 0; lane < LANES && first + lane < config.sample; ++lane) {
            for (int w = 0; w < words; ++w) *row++ = examples.words()[w][lane];
            for (const vf& labels : y) *row++ = std::bit_cast<uint32_t>(float{labels[lane]});
        }
    }
}

}  // namespace paritylab::PARITYLAB_ISA
