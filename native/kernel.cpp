// Compiled once per instruction set; PARITYLAB_ISA is its name.
#include "deep_network.h"
#include "group.h"
#include "peak.h"
#include "trainer.h"
#include "words.h"

namespace paritylab::PARITYLAB_ISA {

// As the run would have them, in the last slot of a group.
template <class L>
DrawnExamples examples_of(const Config& config, const Run& run, int64_t step, bool evaluation) {
    const int slot = L::SLOTS - 1, lane = L::place(0, slot).lane;
    auto batches = std::make_unique<Batches<L>>(config);
    auto block = std::make_unique<Samples<L>>(config);
    batches->put(slot, run);
    int64_t steps[L::SLOTS]{};
    steps[slot] = step;
    const vu stream = broadcast(static_cast<uint32_t>(step));
    const int64_t size = evaluation ? config.eval_size : batches->start(stream, steps);
    DrawnExamples drawn;
    for (int64_t first = 0; first < size; first += L::BLOCK) {
        const int count = static_cast<int>(std::min<int64_t>(L::BLOCK, size - first));
        evaluation ? batches->evaluation(*block, stream, first, count) : batches->train(*block, static_cast<int>(first), count);
        for (int s = 0; s < count; ++s) {
            drawn.labels.push_back(block->y[s][lane]);
            for (int w = 0; w < config.words(); ++w) {
                uint32_t word = 0;
                const int bits = std::min(32, config.inputs - w * 32);
                for (int bit = 0; bit < bits; ++bit) word |= uint32_t{block->inputs.row(w, s)(bit)[lane] < 0} << bit;
                drawn.bits.push_back(word);
            }
        }
    }
    return drawn;
}

#define PARITYLAB_TEXT(x) #x
#define PARITYLAB_NAME(x) PARITYLAB_TEXT(x)

Kernel kernel() {
    const auto make_group = [](const Config& config, Layout layout, Trace* trace) -> std::unique_ptr<Group> {
        if (layout == Layout::lanes) return std::make_unique<Trainer<Network<RunsInLanes>>>(config, trace);
        if (layout == Layout::within) return std::make_unique<Trainer<Network<UnitsInLanes>>>(config, trace);
        return std::make_unique<Trainer<DeepNetwork>>(config, trace);
    };
    const auto draw_examples = [](const Config& config, Layout layout, const Run& run, int64_t step, bool evaluation) {
        const auto of = layout == Layout::lanes    ? examples_of<RunsInLanes>
                        : layout == Layout::within ? examples_of<UnitsInLanes>
                                                   : examples_of<DeepUnits>;
        return of(config, run, step, evaluation);
    };
    return {PARITYLAB_NAME(PARITYLAB_ISA), make_group, draw_words, draw_examples, fma_flops};
}

}  // namespace paritylab::PARITYLAB_ISA
