// How one run does on inputs that it is judged on, or on its sample, whatever the layout it is trained in: samples in the lanes.
#pragma once

#include "batches.h"
#include "pair_network.h"
#include "scores.h"

namespace paritylab::PARITYLAB_ISA {

class Examiner {
public:
    Examiner(const Config& config, size_t tasks, bool skills)
        : network_(config), batches_(config), block_(config), scores_(config, tasks, skills) {}

    // The run that is examined from now on.
    template <class Net, class L>
    void look_at(Net& network, const Batches<L>& batches, int slot) {
        network_.load(network.get(slot));
        batches_.borrow(batches, slot);
        scores_.clear();
    }

    // Adds what it makes of samples [first, first + count) of those it is judged on.
    void evaluation(int64_t step, int64_t first, int count) {
        batches_.evaluation(block_, broadcast(static_cast<uint32_t>(step)), first, count);
        network_.look(block_);
        scores_.add(block_, first, scores_.tasks());
    }

    // The same of its finite sample.
    void sample(int64_t first, int count) {
        batches_.sample(block_, first, count);
        network_.look(block_);
        scores_.add(block_, first, 1);
    }

    void clear() { scores_.clear(); }
    const Scores<SamplesInLanes>& scores() const { return scores_; }

private:
    PairForward network_;
    Batches<SamplesInLanes> batches_;
    PairForward::Block block_;
    Scores<SamplesInLanes> scores_;
};

}  // namespace paritylab::PARITYLAB_ISA
