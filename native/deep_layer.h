// One hidden layer of a deep network, for a block of 64 samples: the way forward and the way back touch only what is
// not zero, which with ReLU is half of it.
//
// The weights are cut into panels of at most MAX_GROUPS times 16 units, each [input][unit]. Forward, a sample's sums
// stay in registers while the rows of its non-zero inputs pass. Backward, one row of a panel and its gradient stay in
// registers while the samples pass in which its input is not zero: each load of their d loss / d z serves the row's
// gradient and the input's. The order of every sum is that of the inputs, or samples, or (in the input's gradient) the
// same on all instruction sets.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "fold.h"
#include "tiles.h"

namespace paritylab::PARITYLAB_ISA {

using DeepUnits = UnitsInLanesBy<64>;  // as many samples as a word has bits
inline constexpr int SAMPLES = DeepUnits::BLOCK;
inline constexpr int MAX_GROUPS = 6;  // 64 samples of a panel fit into the L1 cache, and so do 64 rows of it
inline constexpr int CHUNK = LANES == 16 ? MAX_GROUPS : LANES == 8 ? 3 : REGISTERS / 16;  // groups that fit into them
static_assert(SAMPLES == 64);

// Registers that 16 units at a time fill.
inline int whole_groups(int width) { return (width + 15) / 16 * PARTS; }

inline std::vector<Tile> plan_panels(int inputs, int width) {
    std::vector<Tile> panels;
    const int groups = whole_groups(width) / PARTS;
    const int count = (groups + MAX_GROUPS - 1) / MAX_GROUPS;
    for (int i = 0; i < count; ++i) {
        const int first = start_of_part(groups, count, i), next = start_of_part(groups, count, i + 1);
        panels.push_back({first * PARTS, (next - first) * PARTS, inputs});
    }
    return panels;
}

// What a layer sends up: a block's values, and which of them are not zero.
struct Signals {
    int stride;  // an odd number of cache lines, lest a unit's values of all samples share a few sets of the cache
    int words;
    std::vector<vf> values;           // [sample][unit]
    std::vector<uint64_t> by_sample;  // [64 units][sample]: a bit for each unit
    std::vector<uint64_t> by_unit;    // a bit for each sample

    explicit Signals(int width)
        : stride((width + 15) / 16 * 16 + ((width + 15) / 16 % 2 == 0 ? 16 : 0)),
          words((width + 63) / 64),
          values(static_cast<size_t>(stride) / LANES * SAMPLES),
          by_sample(static_cast<size_t>(words) * SAMPLES),
          by_unit(static_cast<size_t>(whole_groups(width)) * LANES) {}

    vf* row(int s) { return &values[static_cast<size_t>(s) * stride / LANES]; }
    const vf* row(int s) const { return &values[static_cast<size_t>(s) * stride / LANES]; }
    const float* row_values(int s) const { return reinterpret_cast<const float*>(row(s)); }
};

struct DeepLayer {
    int inputs, width;
    std::vector<Tile> panels;
    std::vector<vf> W, b;            // W panel after panel
    std::vector<vf> W_sums, b_sums;  // the batch's gradient so far; W's is empty where one block is a batch
    std::vector<vf> z;               // panel after panel, each [sample][unit]; then sigma'(z), then d loss / d z
    Signals out;

    DeepLayer(int fan_in, int units, bool one_block)
        : inputs(fan_in),
          width(units),
          panels(plan_panels(fan_in, units)),
          W(static_cast<size_t>(vectors()) * fan_in),
          b(vectors()),
          W_sums(one_block ? 0 : W.size()),
          b_sums(vectors()),
          z(static_cast<size_t>(vectors()) * SAMPLES),
          out(units) {}

    int vectors() const { return whole_groups(width); }
    size_t weights_at(const Tile& panel) const { return static_cast<size_t>(panel.first) * inputs; }
    size_t block_at(const Tile& panel) const { return static_cast<size_t>(panel.first) * SAMPLES; }
};

// Calls work(first, std::integral_constant<int, units>) for the chunks of a panel that fit into registers.
template <class Work>
inline void for_each_chunk(const Tile& panel, Work&& work) {
    for (int first = 0; first < panel.units; first += CHUNK * PARTS) {
        const int groups = std::min(CHUNK, (panel.units - first) / PARTS);
        [&]<int... G>(std::integer_sequence<int, G...>) {
            ((groups == G + 1 ? work(first, std::integral_constant<int, (G + 1) * PARTS>{}) : void()), ...);
        }(std::make_integer_sequence<int, CHUNK>{});
    }
}

// z = from + sum over the active inputs of x w
template <int UNITS>
inline void forward_chunk(uint64_t active, const float* x, const vf* w, int stride, const vf* from, vf* z) {
    vf sum[UNITS];
#pragma GCC unroll 16
    for (int u = 0; u < UNITS; ++u) sum[u] = from[u];
    for (; active != 0; active &= active - 1) {
        const int i = std::countr_zero(active);
        const vf xi = broadcast(x[i]);
        const vf* row = w + i * stride;
#pragma GCC unroll 16
        for (int u = 0; u < UNITS; ++u) sum[u] = fma(xi, row[u], sum[u]);
    }
#pragma GCC unroll 16
    for (int u = 0; u < UNITS; ++u) z[u] = sum[u];
}

inline void forward(DeepLayer& layer, const Signals& in, int count) {
    for (const Tile& panel : layer.panels) {
        vf* z = &layer.z[layer.block_at(panel)];
        for (int word = 0; word < in.words; ++word) {
            const vf* w = &layer.W[layer.weights_at(panel) + static_cast<size_t>(word) * 64 * panel.units];
            for_each_chunk(panel, [&](int first, auto units) {
                for (int s = 0; s < count; ++s) {
                    vf* sums = z + s * panel.units + first;
                    const vf* from = word == 0 ? &layer.b[panel.first + first] : sums;
                    forward_chunk<units>(in.by_sample[word * SAMPLES + s], in.row_values(s) + word * 64,
                                         w + first, panel.units, from, sums);
                }
            });
        }
    }
}

// From z to the signals, and to sigma'(z) in place of z.
template <class Act>
void activate(const Act& act, DeepLayer& layer, int count) {
    for (int word = 0; word < layer.out.words; ++word) std::fill_n(&layer.out.by_sample[word * SAMPLES], count, 0);
    for (const Tile& panel : layer.panels) {
        for (int u = 0; u < panel.units; ++u) {
            const int vector = panel.first + u;
            const vi valid = DeepUnits::valid(vector, layer.width);
            const int word = vector * LANES / 64, shift = vector * LANES % 64;
            vu seen[2]{};
            for (int s = 0; s < count; ++s) {
                vf& z = layer.z[layer.block_at(panel) + s * panel.units + u];
                const vf h = select(valid, act.value(z), vf{});
                z = select(valid, act.chain(z, broadcast(1.0f)), vf{});
                const vi active = (h != 0.0f) | (z != 0.0f);
                layer.out.row(s)[vector] = h;
                layer.out.by_sample[word * SAMPLES + s] |= uint64_t{to_bits(active)} << shift;
                seen[s / 32] |= (vu)active & (1u << s % 32);
            }
            for (int lane = 0; lane < LANES; ++lane) {
                layer.out.by_unit[vector * LANES + lane] = seen[0][lane] | uint64_t{seen[1][lane]} << 32;
            }
        }
    }
}

// Adds x g, over the active samples, to `sums`. With BACK, also adds g . w of the k-th of them to the parts k.
template <int UNITS, bool BACK>
inline void backward_chunk(uint64_t active, const float* x, int x_stride, const vf* g, int g_stride, const vf* w,
                           vf (&sums)[UNITS], vf* parts, bool fresh) {
    vf row[UNITS];
#pragma GCC unroll 16
    for (int u = 0; u < UNITS; ++u) row[u] = w[u];
    for (; active != 0; active &= active - 1) {
        const int s = std::countr_zero(active);
        const vf xs = broadcast(x[s * x_stride]);
        const vf* gs = g + s * g_stride;
        vf dot[PARTS]{};
        if (BACK && !fresh) {
#pragma GCC unroll 4
            for (int p = 0; p < PARTS; ++p) dot[p] = parts[p];
        }
#pragma GCC unroll 16
        for (int u = 0; u < UNITS; ++u) {
            const vf gu = gs[u];
            sums[u] = fma(xs, gu, sums[u]);
            if (BACK) dot[u % PARTS] = fma(gu, row[u], dot[u % PARTS]);
        }
        if (!BACK) continue;
#pragma GCC unroll 4
        for (int p = 0; p < PARTS; ++p) parts[p] = dot[p];
        parts += PARTS;
    }
}

}  // namespace paritylab::PARITYLAB_ISA
