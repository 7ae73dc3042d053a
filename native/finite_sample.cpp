#include "finite_sample.h"

namespace paritylab {

FiniteSample::FiniteSample(const Config& config, const Run& run, DrawSample draw)
    : size_(static_cast<uint32_t>(config.sample)),
      words_(config.words()),
      outputs_(config.outputs),
      rows_(static_cast<size_t>(config.sample) * (words_ + outputs_)),
      order_key_(run.stream(Stream::order)) {
    draw(config, run, rows_);
    const Key<uint32_t> flip_key = fold_in(run.stream(Stream::sample), 1u);
    const auto outputs = static_cast<uint32_t>(outputs_);
    for (uint32_t i = 0; run.flip != 0 && i < size_ * outputs; ++i) {
        if (random_bits(flip_key, i) >= run.flip) continue;
        uint32_t& label = rows_[static_cast<size_t>(i / outputs) * (words_ + outputs_) + words_ + i % outputs];
        label = std::bit_cast<uint32_t>(-std::bit_cast<float>(label));
    }
}

}  // namespace paritylab
