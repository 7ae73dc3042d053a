// Where each slot stands in its training: the law of its inputs, its label noise, how many examples of a batch count.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "config.h"
#include "source.h"
#include "stock.h"

namespace paritylab::PARITYLAB_ISA {

template <class L>
class Stages {
public:
    explicit Stages(const Config& config) : config_(config) {
        look_again();
        settle();
    }

    void put(int slot, const Run& run) {
        own_flip_[slot] = run.flip;
        active_[slot] = true;
        look_again();
    }
    void remove(int slot) {
        active_[slot] = false;
        look_again();
    }

    // Once a step, before its batch is drawn.
    void at(const int64_t (&step)[L::SLOTS]) {
        if (nothing_changes_) return;
        bool changed = changed_;
        for (int slot = 0; slot < L::SLOTS; ++slot) {
            if (!active_[slot] || (step[slot] < until_[slot] && !changed_)) continue;
            look_at(slot, step[slot]);
            changed = true;
        }
        if (config_.short_last) {
            for (int slot = 0; slot < L::SLOTS; ++slot) count_[slot] = left_of_pass(step[slot]);
            changed = true;
        }
        changed_ = false;
        if (changed) settle();
        if (standing_.moving) move(step);
        nothing_changes_ = (!config_.problem || config_.problem->stages.empty()) && !config_.short_last;
    }

    const Standing& standing() const { return standing_; }
    vu flip() const { return flip_; }
    bool any_flips() const { return any_flips_; }

    // The most that any slot's batch has.
    int examples() const { return examples_; }

    // What a block from `first` on is told of its batch.
    template <class Block>
    void tell(Block& block, int first) const {
        block.first = first;
        block.share = share_;
        block.even = even_;
        const vu from = broadcast(static_cast<uint32_t>(first));
        if (!even_) block.counted = select(counts_ > from, counts_ - from, vu{});
    }

private:
    void look_again() { nothing_changes_ = false, changed_ = true; }

    void look_at(int slot, int64_t step) {
        stage_[slot] = nullptr;
        until_[slot] = INT64_MAX;
        count_[slot] = config_.batch;
        if (!config_.problem) return;
        for (const Stage& stage : config_.problem->stages) {
            if (step >= stage.until) continue;
            stage_[slot] = &stage;
            until_[slot] = stage.until;
            count_[slot] = stage.batch;
            return;
        }
    }

    int left_of_pass(int64_t step) const {
        const int64_t batches = (config_.sample + config_.batch - 1) / config_.batch;
        return static_cast<int>(std::min<int64_t>(config_.sample - step % batches * config_.batch, config_.batch));
    }

    // What follows for all slots.
    void settle() {
        any_flips_ = false, standing_.moving = false, even_ = true;
        std::vector<int> laws;
        const auto use = [&](int law) {
            if (std::find(laws.begin(), laws.end(), law) == laws.end()) laws.push_back(law);
        };
        examples_ = 0;
        for (int slot = 0; slot < L::SLOTS; ++slot) {
            L::set(flip_, slot, 0u);
            if (!active_[slot]) continue;
            const Stage* stage = stage_[slot];
            const uint32_t flip = stage && stage->flip >= 0 ? static_cast<uint32_t>(stage->flip) : own_flip_[slot];
            L::set(flip_, slot, flip);
            any_flips_ |= flip != 0;
            even_ &= examples_ == 0 || count_[slot] == examples_;
            examples_ = std::max(examples_, count_[slot]);
            L::set(counts_, slot, static_cast<uint32_t>(count_[slot]));
            L::set(share_, slot, 1.0f / static_cast<float>(count_[slot]));
            if (!config_.problem) continue;
            const int law = stage ? stage->law : config_.problem->law, next = stage ? stage->next : law;
            use(law), use(next);
            L::set(standing_.law, slot, static_cast<uint32_t>(law));
            L::set(standing_.next, slot, static_cast<uint32_t>(next));
            L::set(standing_.moved, slot, 0u);
            standing_.moving |= next != law;
        }
        if (examples_ == 0) examples_ = config_.batch;
        if (config_.problem && laws != laws_) standing_.parts.set(*config_.problem, laws_ = laws);
    }

    // An input is of the next law where the high half of its word times the stage's length is below the steps done:
    // where its word is below a threshold.
    void move(const int64_t (&step)[L::SLOTS]) {
        for (int slot = 0; slot < L::SLOTS; ++slot) {
            const Stage* stage = active_[slot] ? stage_[slot] : nullptr;
            if (!stage || stage->next == stage->law) continue;
            const uint64_t done = step[slot] - stage->start, length = stage->until - stage->start;
            L::set(standing_.moved, slot, static_cast<uint32_t>(((done << 32) + length - 1) / length));
        }
    }

    const Config& config_;
    bool active_[L::SLOTS]{};
    uint32_t own_flip_[L::SLOTS]{};
    const Stage* stage_[L::SLOTS]{};  // null: after the last
    int64_t until_[L::SLOTS]{};
    int count_[L::SLOTS]{};
    bool changed_, nothing_changes_;

    Standing standing_;
    std::vector<int> laws_;
    vu flip_{}, counts_{};
    vf share_{};
    bool any_flips_ = false, even_ = true;
    int examples_ = 0;
};

}  // namespace paritylab::PARITYLAB_ISA
