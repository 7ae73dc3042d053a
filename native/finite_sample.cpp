#include "finite_sample.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace paritylab {

FiniteSample::FiniteSample(const Config& config, const Run& run, DrawWords draw_words)
    : words_(config.words()),
      bits_(static_cast<size_t>(config.sample) * words_),
      labels_(config.sample),
      draw_words_(draw_words),
      order_key_(run.stream(Stream::order)),
      permutation_(config.replacement ? 0 : config.sample) {
    const Key<uint32_t> key = run.stream(Stream::sample);
    const Key<uint32_t> input_key = fold_in(key, 0u);
    const Key<uint32_t> flip_key = fold_in(key, 1u);
    draw_words(input_key, static_cast<uint32_t>(bits_.size()), bits_.data());
    for (uint32_t i = 0; i < size(); ++i) {
        int ones = 0;
        for (int w = 0; w < words_; ++w) ones += std::popcount(inputs(i)[w] & run.mask[w]);
        const bool flipped = run.flip != 0 && random_bits(flip_key, i) < run.flip;
        labels_[i] = (ones % 2 == 1) != flipped ? -1.0f : 1.0f;
    }
}

// With the index in the low half, sorting the pairs is a stable sort by the random word. Random words fall evenly into
// buckets by their leading bits; with two to four in each, little is left to the insertion sort.
void FiniteSample::shuffle(int64_t pass) {
    start_ = pass * size();
    words_drawn_.resize(size());
    draw_words_(fold_in(order_key_, static_cast<uint32_t>(pass)), size(), words_drawn_.data());
    const int bits = std::max(1, static_cast<int>(std::bit_width(size())) - 2);
    bucket_ends_.assign(size_t{1} << bits, 0);
    for (uint32_t word : words_drawn_) ++bucket_ends_[word >> (32 - bits)];
    std::partial_sum(bucket_ends_.begin(), bucket_ends_.end(), bucket_ends_.begin());
    for (uint32_t i = size(); i-- > 0;) {
        const uint32_t word = words_drawn_[i];
        permutation_[--bucket_ends_[word >> (32 - bits)]] = uint64_t{word} << 32 | i;
    }
    for (size_t i = 1; i < permutation_.size(); ++i) {
        const uint64_t pair = permutation_[i];
        size_t at = i;
        for (; at > 0 && permutation_[at - 1] > pair; --at) permutation_[at] = permutation_[at - 1];
        permutation_[at] = pair;
    }
}

}  // namespace paritylab
