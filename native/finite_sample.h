// A training sample drawn once, and the order in which a run goes through it.
#pragma once

#include <cstdint>
#include <vector>

#include "config.h"
#include "stock.h"

namespace paritylab {

class FiniteSample {
public:
    FiniteSample(const Config& config, const Run& run);

    uint32_t size() const { return static_cast<uint32_t>(labels_.size()); }
    const uint32_t* inputs(uint32_t index) const { return &bits_[static_cast<size_t>(index) * words_]; }
    float label(uint32_t index) const { return labels_[index]; }

    // The example at this place of the endless concatenation of permutations, one per pass.
    uint32_t in_order(int64_t position);

private:
    void shuffle(int64_t pass);

    int words_;
    std::vector<uint32_t> bits_;
    std::vector<float> labels_;
    Key<uint32_t> order_key_;
    int64_t pass_ = -1;
    std::vector<uint64_t> permutation_;  // (random word, index) pairs, sorted
};

}  // namespace paritylab
