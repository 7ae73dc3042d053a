// Compiled once per instruction set; PARITYLAB_ISA is its name.
#include "deep_network.h"
#include "group.h"
#include "peak.h"
#include "trainer.h"
#include "words.h"

namespace paritylab::PARITYLAB_ISA {

#define PARITYLAB_TEXT(x) #x
#define PARITYLAB_NAME(x) PARITYLAB_TEXT(x)

Kernel kernel() {
    const auto make_group = [](const Config& config, Layout layout, Trace* trace) -> std::unique_ptr<Group> {
        if (layout == Layout::lanes) return std::make_unique<Trainer<Network<RunsInLanes>>>(config, trace);
        if (layout == Layout::within) return std::make_unique<Trainer<Network<UnitsInLanes>>>(config, trace);
        return std::make_unique<Trainer<DeepNetwork>>(config, trace);
    };
    return {PARITYLAB_NAME(PARITYLAB_ISA), make_group, draw_words, fma_flops};
}

}  // namespace paritylab::PARITYLAB_ISA
