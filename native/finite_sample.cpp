#include "finite_sample.h"

#include <algorithm>
#include <bit>

namespace paritylab {

FiniteSample::FiniteSample(const Config& config, const Run& run)
    : words_(config.words()),
      bits_(static_cast<size_t>(config.sample) * words_),
      labels_(config.sample),
      order_key_(run.stream(Stream::order)),
      permutation_(config.replacement ? 0 : config.sample) {
    const Key<uint32_t> key = run.stream(Stream::sample);
    const Key<uint32_t> input_key = fold_in(key, 0u);
    const Key<uint32_t> flip_key = fold_in(key, 1u);
    for (size_t e = 0; e < bits_.size(); ++e) bits_[e] = random_bits(input_key, static_cast<uint32_t>(e));
    for (uint32_t i = 0; i < size(); ++i) {
        int ones = 0;
        for (int w = 0; w < words_; ++w) ones += std::popcount(inputs(i)[w] & run.mask[w]);
        const bool flipped = run.flip != 0 && random_bits(flip_key, i) < run.flip;
        labels_[i] = (ones % 2 == 1) != flipped ? -1.0f : 1.0f;
    }
}

uint32_t FiniteSample::in_order(int64_t position) {
    const int64_t pass = position / size();
    if (pass != pass_) shuffle(pass);
    return static_cast<uint32_t>(permutation_[position % size()]);
}

void FiniteSample::shuffle(int64_t pass) {
    pass_ = pass;
    const Key<uint32_t> key = fold_in(order_key_, static_cast<uint32_t>(pass));
    // With the index in the low half, sorting the pairs is a stable sort by the random word.
    for (uint32_t i = 0; i < size(); ++i) permutation_[i] = uint64_t{random_bits(key, i)} << 32 | i;
    std::ranges::sort(permutation_);
}

}  // namespace paritylab
