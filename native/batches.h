// The samples a group trains on and is judged on.
#pragma once

#include <memory>
#include <vector>

#include "finite_sample.h"
#include "heads.h"
#include "words.h"

namespace paritylab::PARITYLAB_ISA {

// One key per run.
template <class L>
struct Keys {
    Key<vu> now{};

    void set(int slot, Key<uint32_t> key) {
        L::set(now.a, slot, key.a);
        L::set(now.b, slot, key.b);
    }
};

template <class L>
class Batches {
public:
    explicit Batches(const Config& config) : config_(config), mask_(config.words()) {}

    void put(int slot, const Run& run) {
        data_.set(slot, run.stream(Stream::data));
        labels_.set(slot, run.stream(Stream::labels));
        evaluation_.set(slot, run.stream(Stream::evaluation));
        order_.set(slot, run.stream(Stream::order));
        L::set(flip_, slot, run.flip);
        look_for_flips();
        for (int w = 0; w < config_.words(); ++w) L::set(mask_[w], slot, run.mask[w]);
        if (config_.sample > 0) sample_[slot] = std::make_unique<FiniteSample>(config_, run, draw_words);
    }

    void remove(int slot) {
        L::set(flip_, slot, 0u);
        look_for_flips();
        sample_[slot].reset();
    }

    // Samples [first, first + count) of the batch of a step: each run's own count, as a stream number and in full.
    void train(Samples<L>& block, vu stream_step, const int64_t (&step)[L::SLOTS], int first, int count) {
        block.count = count;
        if (first == 0) make_keys(stream_step);
        if (config_.sample > 0) return from_sample(block, step, first);
        block.inputs.draw(step_keys_.data, first, count, mask_.data(), block.y);
        if (!any_flips_) return;
        vu words[L::BLOCK];
        L::draw_words(step_keys_.labels, first, count, words);
        for (int s = 0; s < count; ++s) block.y[s] = select(words[s] < flip_, -block.y[s], block.y[s]);
    }

    // Samples [first, first + count) of each run's evaluation sample, with the true labels.
    void evaluation(Samples<L>& block, vu step, int64_t first, int count) {
        if (first == 0) step_keys_.evaluation = fold_in(evaluation_.now, config_.eval_fresh ? step : vu{});
        block.count = count;
        block.inputs.draw(step_keys_.evaluation, static_cast<uint32_t>(first), count, mask_.data(), block.y);
    }

    // Examples [first, first + count) of each run's finite sample, with the labels it trains on.
    void sample(Samples<L>& block, int64_t first, int count) {
        block.count = count;
        for (int slot = 0; slot < L::SLOTS; ++slot) {
            if (!sample_[slot]) continue;
            for (int s = 0; s < count; ++s) put(block, slot, s, static_cast<uint32_t>(first + s));
        }
    }

private:
    // Once for all blocks of a step.
    void make_keys(vu step) {
        if (config_.sample > 0) {
            if (config_.replacement) step_keys_.data = fold_in(order_.now, step);
            return;
        }
        step_keys_.data = fold_in(data_.now, step);
        if (any_flips_) step_keys_.labels = fold_in(labels_.now, step);
    }

    void look_for_flips() {
        any_flips_ = false;
        for (int slot = 0; slot < L::SLOTS; ++slot) any_flips_ |= flip_[slot] != 0;
    }

    void from_sample(Samples<L>& block, const int64_t (&step)[L::SLOTS], int first) {
        vu words[L::BLOCK];
        if (config_.replacement) L::draw_words(step_keys_.data, first, block.count, words);
        for (int slot = 0; slot < L::SLOTS; ++slot) {
            FiniteSample* sample = sample_[slot].get();
            if (!sample) continue;
            for (int s = 0; s < block.count; ++s) {
                const uint32_t index = config_.replacement ? words[s][slot] % sample->size()
                                                           : sample->in_order(step[slot] * config_.batch + first + s);
                put(block, slot, s, index);
            }
        }
    }

    void put(Samples<L>& block, int slot, int s, uint32_t index) {
        block.inputs.put(slot, s, sample_[slot]->inputs(index));
        L::set(block.y[s], slot, sample_[slot]->label(index));
    }

    const Config& config_;
    Keys<L> data_, labels_, evaluation_, order_;
    vu flip_{};
    bool any_flips_ = false;
    std::vector<vu> mask_;
    std::unique_ptr<FiniteSample> sample_[L::SLOTS];
    struct {
        Key<vu> data, labels, evaluation;
    } step_keys_{};
};

}  // namespace paritylab::PARITYLAB_ISA
