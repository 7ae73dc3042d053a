// A training sample drawn once, and the order in which a run goes through it.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "config.h"
#include "stock.h"

namespace paritylab {

// Some build's drawing of a run's sample, with clean labels: rows of the words of the inputs and, behind them,
// the label of each output.
using DrawSample = void (*)(const Config& config, const Run& run, std::vector<uint32_t>& rows);

class FiniteSample {
public:
    FiniteSample(const Config& config, const Run& run, DrawSample draw);

    uint32_t size() const { return size_; }
    // The words of an example's inputs, and behind them its labels.
    const uint32_t* inputs(uint32_t index) const { return &rows_[static_cast<size_t>(index) * (words_ + outputs_)]; }
    float label(uint32_t index, int output) const { return std::bit_cast<float>(inputs(index)[words_ + output]); }

    // From this place of the endless concatenation of permutations, one for each pass, to the end of its pass.
    template <class Shuffler>
    std::span<const uint32_t> from(int64_t position, Shuffler& shuffle) {
        if (position < start_ || position >= start_ + size_) {
            const int64_t pass = position / size_;
            order_.resize(size_);
            shuffle(fold_in(order_key_, static_cast<uint32_t>(pass)), order_);
            start_ = pass * size_;
        }
        return std::span(order_).subspan(position - start_);
    }

private:
    uint32_t size_;
    int words_, outputs_;
    std::vector<uint32_t> rows_;
    Key<uint32_t> order_key_;
    int64_t start_ = INT64_MAX;    // the position at which the pass at hand begins
    std::vector<uint32_t> order_;  // of that pass
};

}  // namespace paritylab
