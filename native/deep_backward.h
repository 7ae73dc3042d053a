// The way back through a hidden layer, row by row.
#pragma once

#include "deep_layer.h"

namespace paritylab::PARITYLAB_ISA {

// Room for dot products, of weights with d loss / d z: those of one row in parts, and of each input their sums so far.
struct DeepScratch {
    std::vector<vf> parts, dots;

    explicit DeepScratch(int inputs)
        : parts(SAMPLES * PARTS), dots(static_cast<size_t>(inputs) * (SAMPLES / LANES)) {}
};

// Where the samples' d loss / d z of one unit are.
struct UnitColumn {
    float* first;
    int stride;
};

inline UnitColumn column_of(DeepLayer& layer, const Tile& panel, int unit) {
    return {reinterpret_cast<float*>(&layer.z[layer.block_at(panel)]) + (unit - panel.first * LANES),
            panel.units * LANES};
}

// The layer's z holds d loss / d z for the samples `going`. Adds the block to the gradient, or as the last of its batch
// moves the parameters. With BACK, turns z of the layer below from sigma' into d loss / d z.
template <bool BACK>
class DeepBackward {
public:
    DeepBackward(DeepLayer& layer, const Signals& in, uint64_t going, BatchPart part, const Update& update,
                 DeepScratch& scratch)
        : layer_(layer), in_(in), going_(going), part_(part), update_(update), scratch_(scratch) {}

    void operator()(DeepLayer* below) {
        for (const Tile& panel : layer_.panels) {
            size_t at = 0;  // the panel of the layer below
            for (int i = 0; i < layer_.inputs; ++i) {
                const uint64_t active = in_.by_unit[i] & going_;
                if (active == 0 && part_.first && part_.last && !update_.decays) continue;
                row(panel, i, active);
                if (!BACK) continue;
                vf* const here = &scratch_.dots[static_cast<size_t>(i) * (SAMPLES / LANES)];
                collect(std::popcount(active), panel.first == 0, here);
                if (&panel != &layer_.panels.back()) continue;
                while (i >= (below->panels[at].first + below->panels[at].units) * LANES) ++at;
                spread(active, reinterpret_cast<const float*>(here), column_of(*below, below->panels[at], i));
            }
        }
    }

private:
    void row(const Tile& panel, int i, uint64_t active) {
        const size_t at = layer_.weights_at(panel) + static_cast<size_t>(i) * panel.units;
        for_each_chunk(panel, [&](int first, auto units) {
            vf* w = &layer_.W[at + first];
            vf sums[units]{};
            if (!part_.first) {
                for (int u = 0; u < units; ++u) sums[u] = layer_.W_sums[at + first + u];
            }
            backward_chunk<units, BACK>(active, in_.row_values(0) + i, in_.stride, &layer_.z[layer_.block_at(panel) + first],
                                        panel.units, w, sums, scratch_.parts.data(), first == 0);
            for (int u = 0; u < units; ++u) {
                part_.last ? w[u] = update_(w[u], sums[u]) : layer_.W_sums[at + first + u] = sums[u];
            }
        });
    }

    void collect(int count, bool fresh, vf* dots) {
        for (int k = 0; k < count; k += LANES) {
            const vf sum = fold(&scratch_.parts[k * PARTS]);
            dots[k / LANES] = fresh ? sum : dots[k / LANES] + sum;
        }
    }

    void spread(uint64_t active, const float* dots, UnitColumn to) {
        for (; active != 0; active &= active - 1) to.first[std::countr_zero(active) * to.stride] *= *dots++;
    }

    DeepLayer& layer_;
    const Signals& in_;
    uint64_t going_;
    BatchPart part_;
    const Update& update_;
    DeepScratch& scratch_;
};

}  // namespace paritylab::PARITYLAB_ISA
