// The samples a group trains on and is judged on.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "examples.h"
#include "finite_sample.h"
#include "heads.h"
#include "samples.h"
#include "shuffle.h"
#include "stages.h"
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
    explicit Batches(const Config& config) : config_(config), stages_(config), mask_(config.words()) {
        if (!config.problem) return;
        examples_.emplace(*config.problem);
        for (int count : config.problem->target.counted) all_count_ &= count >= config.batch;
    }

    void put(int slot, const Run& run) {
        data_.set(slot, run.stream(Stream::data));
        labels_.set(slot, run.stream(Stream::labels));
        evaluation_.set(slot, run.stream(Stream::evaluation));
        order_.set(slot, run.stream(Stream::order));
        evaluation_known_ = false;
        stages_.put(slot, run);
        for (int w = 0; w < config_.words(); ++w) L::set(mask_[w], slot, run.mask[w]);
        if (config_.sample > 0) sample_[slot] = std::make_shared<FiniteSample>(config_, run, draw_sample);
        ahead_.first = ahead_.end = 0;
        words_ahead_.drawn = false;
    }

    // What a run is judged on and its sample, of another group's slot: it is not trained here.
    template <class M>
    void borrow(const Batches<M>& from, int slot) {
        const int lane = M::place(0, slot).lane;
        evaluation_.set(0, {from.evaluation_.now.a[lane], from.evaluation_.now.b[lane]});
        for (int w = 0; w < config_.words(); ++w) L::set(mask_[w], 0, from.mask_[w][lane]);
        sample_[0] = from.sample_[slot];
        evaluation_known_ = false;
    }

    void remove(int slot) {
        stages_.remove(slot);
        sample_[slot].reset();
        whole_.clear();
    }

    // The next batch is that of these steps: each run's own count, as a stream number and in full. Returns how many
    // examples it has, in the run that has most.
    int start(vu stream_step, const int64_t (&step)[L::SLOTS]) {
        stages_.at(step);
        std::copy_n(step, L::SLOTS, step_);
        make_keys(stream_step);
        return stages_.examples();
    }

    // Samples [first, first + count) of the batch.
    void train(Samples<L>& block, int first, int count) {
        block.count = count;
        stages_.tell(block, first);
        if (config_.sample > 0) return from_sample(block, first);
        if (examples_) {
            examples_->template put<L>(block, step_keys_.data, first, stages_.standing(), mask_.data(), config_.outputs, false);
        } else if constexpr (std::is_same_v<L, SamplesInLanes>) {
            block.inputs.draw(step_keys_.data, first, count, mask_.data(), block.y.data(), two_steps());
        } else {
            block.inputs.draw(step_keys_.data, first, count, mask_.data(), block.y.data());
        }
        if (!stages_.any_flips()) return;
        vu words[L::BLOCK / L::PACKED];
        for (int j = 0; j < config_.outputs; ++j) {
            L::draw_words(step_keys_.labels, first, count, words, config_.outputs, j);
            vf* y = block.y_of(j);
            for (int r = 0; r * L::PACKED < count; ++r) y[r] = select(words[r] < stages_.flip(), -y[r], y[r]);
        }
    }

    // Samples [first, first + count) of each run's evaluation sample, with the true labels.
    void evaluation(Samples<L>& block, vu step, int64_t first, int count) {
        if (!evaluation_known_ || (config_.eval_fresh && first == 0)) {
            step_keys_.evaluation = fold_in(evaluation_.now, config_.eval_fresh ? step : vu{});
            evaluation_known_ = true, first_.clear();
        }
        block.count = count;
        const auto from = static_cast<uint32_t>(first);
        if constexpr (std::is_same_v<L, SamplesInLanes>) {
            if (!examples_ && first + count <= WORD) return first_evaluation(block, from);
        }
        if (!examples_) return block.inputs.draw(step_keys_.evaluation, from, count, mask_.data(), block.y.data());
        examples_->template put<L>(block, step_keys_.evaluation, from, examples_->evaluation(), mask_.data(), config_.outputs, true);
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
    template <class M>
    friend class Batches;

    // Of the first 32, which are all that most checks look at: they are drawn once.
    void first_evaluation(Samples<L>& block, uint32_t from) {
        if (first_.empty()) {
            first_.emplace_back(config_);
            first_[0].inputs.draw(step_keys_.evaluation, 0, WORD, mask_.data(), first_[0].y.data());
        }
        block.inputs.copy_first(first_[0].inputs, static_cast<int>(from));
        std::copy_n(&first_[0].y[from / LANES], REGISTERS_OF_WORD - from / LANES, block.y.data());
    }

    // Once for all blocks of a step.
    void make_keys(vu step) {
        if (config_.sample > 0) {
            if (config_.replacement) step_keys_.data = fold_in(order_.now, step);
            return;
        }
        step_keys_.data = L::SLOTS == 1 ? key_ahead(step[0]) : fold_in(data_.now, step);
        if (stages_.any_flips()) step_keys_.labels = fold_in(labels_.now, step);
    }

    // Of one run, the keys of LANES steps at once.
    Key<vu> key_ahead(uint32_t step) {
        if (step < ahead_.first || step >= ahead_.end) {
            const Key<vu> keys = fold_in(data_.now, broadcast(step) + iota());
            std::memcpy(ahead_.a, &keys.a, sizeof keys.a);
            std::memcpy(ahead_.b, &keys.b, sizeof keys.b);
            ahead_.first = step, ahead_.end = uint64_t{step} + LANES;
        }
        return {broadcast(ahead_.a[step - ahead_.first]), broadcast(ahead_.b[step - ahead_.first])};
    }

    // Of two steps in turn, the words of both if their keys are known and there are few.
    SamplesInLanes::Ahead* two_steps() {
        const uint64_t next = static_cast<uint32_t>(step_[0]) + uint64_t{1};
        const bool drawn = words_ahead_.drawn && words_ahead_of_ == static_cast<uint64_t>(step_[0]);
        words_ahead_.drawn = drawn;
        if (config_.batch > 32 || (!drawn && next >= ahead_.end)) return nullptr;
        if (!drawn) words_ahead_.next = {ahead_.a[next - ahead_.first], ahead_.b[next - ahead_.first]}, words_ahead_of_ = next;
        return &words_ahead_;
    }

    void from_sample(Samples<L>& block, int first) {
        if constexpr (L::PACKED > 1) {
            if (whole_sample()) return from_whole(block, first);
        }
        vu words[L::BLOCK / L::PACKED];
        if (config_.replacement) L::draw_words(step_keys_.data, first, block.count, words);
        for (int slot = 0; slot < L::SLOTS; ++slot) {
            if (!sample_[slot]) continue;
            if (!config_.replacement) {
                in_order(block, slot, first);
                continue;
            }
            const uint32_t size = sample_[slot]->size();
            for (int s = 0; s < block.count; ++s) put(block, slot, s, L::get(words, s, slot) % size);
        }
    }

    // Whether the batch is all examples in some order, which does not matter then.
    bool whole_sample() const {
        return all_count_ && !config_.replacement && config_.batch == config_.sample && stages_.examples() == config_.batch;
    }

    // As they were drawn; what becomes of their inputs is kept.
    void from_whole(Samples<L>& block, int first) {
        if (whole_.empty()) {
            for (int64_t from = 0; from < config_.sample; from += L::BLOCK) {
                whole_.push_back(std::make_unique<Samples<L>>(config_));
                sample(*whole_.back(), from, static_cast<int>(std::min<int64_t>(L::BLOCK, config_.sample - from)));
            }
        }
        const Samples<L>& kept = *whole_[first / L::BLOCK];
        block.inputs.copy(kept.inputs, block.count);
        block.y = kept.y;
    }

    void in_order(Samples<L>& block, int slot, int first) {
        for (int s = 0; s < block.count;) {
            const auto next = sample_[slot]->from(place(step_[slot], first + s), shuffle_);
            const int end = static_cast<int>(std::min<int64_t>(block.count, s + next.size()));
            for (const int from = s; s < end; ++s) put(block, slot, s, next[s - from]);
        }
    }

    // Of example i of a step's batch in the endless concatenation of permutations.
    int64_t place(int64_t step, int i) const {
        if (!config_.short_last) return step * config_.batch + i;
        const int64_t batches = (config_.sample + config_.batch - 1) / config_.batch;
        return step / batches * config_.sample + std::min(step % batches * config_.batch + i, config_.sample - 1);
    }

    void put(Samples<L>& block, int slot, int s, uint32_t index) {
        block.inputs.put(slot, s, sample_[slot]->inputs(index));
        for (int j = 0; j < config_.outputs; ++j) L::put(block.y_of(j), s, slot, sample_[slot]->label(index, j));
    }

    const Config& config_;
    Keys<L> data_, labels_, evaluation_, order_;
    Stages<L> stages_;
    std::vector<vu> mask_;
    std::optional<Examples> examples_;  // none: parities of uniform inputs
    bool all_count_ = true;  // whether all outputs count in all examples of a batch
    std::shared_ptr<FiniteSample> sample_[L::SLOTS];
    std::vector<std::unique_ptr<Samples<L>>> whole_;  // the sample of the only slot, in blocks
    Shuffler shuffle_;
    int64_t step_[L::SLOTS]{};  // that of the batch
    struct {
        uint64_t first, end;
        uint32_t a[LANES], b[LANES];
    } ahead_{};  // keys of steps from first on
    SamplesInLanes::Ahead words_ahead_{};
    uint64_t words_ahead_of_ = 0;  // which step
    bool evaluation_known_ = false;   // the keys of what is judged
    std::vector<Samples<L>> first_;  // the first of those, or none
    struct {
        Key<vu> data, labels, evaluation;
    } step_keys_{};
};

}  // namespace paritylab::PARITYLAB_ISA
