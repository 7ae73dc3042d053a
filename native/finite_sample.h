// A training sample drawn once, and the order in which a run goes through it.
#pragma once

#include <cstdint>
#include <vector>

#include "config.h"
#include "stock.h"

namespace paritylab {

class FiniteSample {
public:
    FiniteSample(const Config& config, const Run& run, DrawWords draw_words);

    uint32_t size() const { return static_cast<uint32_t>(labels_.size()); }
    const uint32_t* inputs(uint32_t index) const { return &bits_[static_cast<size_t>(index) * words_]; }
    float label(uint32_t index) const { return labels_[index]; }

    // The example at this place of the endless concatenation of permutations, one per pass.
    uint32_t in_order(int64_t position) {
        if (position < start_ || position >= start_ + size()) shuffle(position / size());
        return static_cast<uint32_t>(permutation_[position - start_]);
    }

private:
    void shuffle(int64_t pass);

    int words_;
    std::vector<uint32_t> bits_;
    std::vector<float> labels_;
    DrawWords draw_words_;
    Key<uint32_t> order_key_;
    int64_t start_ = INT64_MAX;          // the position at which the pass at hand begins
    std::vector<uint64_t> permutation_;  // (random word, index) pairs, sorted
    std::vector<uint32_t> words_drawn_, bucket_ends_;  // scratch
};

}  // namespace paritylab
