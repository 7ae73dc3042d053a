// Compiled once per instruction set; PARITYLAB_ISA is its name.
#include "deep_network.h"
#include "group.h"
#include "network.h"
#include "pair_network.h"
#include "peak.h"
#include "table_network.h"
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
            drawn.labels.push_back(L::PACKED == 1 ? block->y[s][lane] : block->y[s / L::PACKED][s % L::PACKED]);
            for (int w = 0; w < config.words(); ++w) {
                const int unused = std::max(0, (w + 1) * 32 - config.inputs);
                drawn.bits.push_back(block->inputs.bits(w, s, lane) & (~0u >> unused));
            }
        }
    }
    return drawn;
}

#define PARITYLAB_TEXT(x) #x
#define PARITYLAB_NAME(x) PARITYLAB_TEXT(x)

template <class Net>
std::unique_ptr<Group> trainer(const Config& config, Trace* trace) {
    return std::make_unique<Trainer<Net>>(config, trace);
}

Kernel kernel() {
    const auto make_group = [](const Config& config, Layout layout, Trace* trace) {
        switch (layout) {
            case Layout::lanes:
#if !defined(__wasm__)  // a page has neither inputs as bits nor tables: it is to be small
                if (config.bits) return trainer<Network<RunsInLanesReading<true>>>(config, trace);
#endif
                return trainer<Network<RunsInLanes>>(config, trace);
            case Layout::within: return trainer<Network<UnitsInLanes>>(config, trace);
            case Layout::deep: return trainer<DeepNetwork>(config, trace);
            case Layout::samples: return trainer<PairNetwork>(config, trace);
            case Layout::tables:
#if !defined(__wasm__)
                return trainer<TableNetwork>(config, trace);
#endif
                break;
        }
        return std::unique_ptr<Group>();
    };
#if defined(__wasm__)
    return {PARITYLAB_NAME(PARITYLAB_ISA), make_group, draw_words, nullptr, nullptr};
#else
    const auto draw_examples = [](const Config& config, Layout layout, const Run& run, int64_t step, bool evaluation) {
        const auto of = layout == Layout::lanes    ? examples_of<RunsInLanes>
                        : layout == Layout::within ? examples_of<UnitsInLanes>
                        : layout == Layout::samples ? examples_of<SamplesInLanes>
                        : layout == Layout::tables ? examples_of<UnitsByTable>
                                                   : examples_of<DeepUnits>;
        return of(config, run, step, evaluation);
    };
    return {PARITYLAB_NAME(PARITYLAB_ISA), make_group, draw_words, draw_examples, fma_flops};
#endif
}

}  // namespace paritylab::PARITYLAB_ISA
