// From the linear layer's z to the output f, and from the loss's slope back to g = d loss / d z.
#pragma once

#include <algorithm>
#include <vector>

#include "activations.h"
#include "parameters.h"

namespace paritylab::PARITYLAB_ISA {

// A block of samples, and what the network makes of them.
template <class L>
struct Samples {
    static constexpr int REGISTERS_OF_LABELS = L::BLOCK / L::PACKED;
    typename L::Inputs inputs;
    int first = 0;  // of the batch
    int count = 0;
    // All of one output, then all of the next.
    std::vector<vf> y, f;
    std::vector<vf> slope;  // d loss / d f, over the batch size
    vf share{};            // one over the batch size, each run's own
    bool even = true;      // whether all samples count in all runs
    vu counted{};          // otherwise how many do

    explicit Samples(const Config& config)
        : inputs(config),
          y(config.outputs * REGISTERS_OF_LABELS),
          f(y.size()),
          slope(y.size()) {}

    vf* y_of(int output) { return &y[output * REGISTERS_OF_LABELS]; }
    vf* f_of(int output) { return &f[output * REGISTERS_OF_LABELS]; }
    vf* slope_of(int output) { return &slope[output * REGISTERS_OF_LABELS]; }
    const vf* y_of(int output) const { return &y[output * REGISTERS_OF_LABELS]; }
    const vf* f_of(int output) const { return &f[output * REGISTERS_OF_LABELS]; }
};

// A block on its way through the layer.
template <class L>
struct Block : Samples<L> {
    size_t most;        // samples it has room for
    std::vector<vf> z;  // tile after tile, each [sample][unit]; the way back overwrites it with g

    explicit Block(const Config& config)
        : Samples<L>(config),
          most(std::min<int64_t>(L::BLOCK, std::max({int64_t{config.batch}, config.eval_size, config.sample}))),
          z(L::vectors(config.width) * most) {}

    vf* tile(const Tile& t) { return &z[t.first * most]; }
};

// mlp: f = c + sum_i u_i sigma(z_i)
template <int SAMPLES, class L, class Act>
void mlp_forward_samples(const Act& act, const std::vector<Tile>& tiles, const Registers<L>& theta, Block<L>& block,
                         int first) {
    for (; first + SAMPLES <= block.count; first += SAMPLES) {
        vf sum[SAMPLES][L::PARTIAL_SUMS]{};
        for (const Tile& tile : tiles) {
            const vf* z = block.tile(tile) + first * tile.units;
            for (int i = 0; i < tile.units; ++i) {
                const vf u = theta.u[tile.first + i];
                const int part = (tile.first + i) % L::PARTIAL_SUMS;
                for (int s = 0; s < SAMPLES; ++s) {
                    sum[s][part] = fma(u, act.value(z[s * tile.units + i]), sum[s][part]);
                }
            }
        }
        for (int s = 0; s < SAMPLES; ++s) block.f[first + s] = theta.c[0] + L::sum(sum[s]);
    }
    if constexpr (SAMPLES > 1) mlp_forward_samples<1>(act, tiles, theta, block, first);
}

template <class L, class Act>
void mlp_forward(const Act& act, const std::vector<Tile>& tiles, const Registers<L>& theta, Block<L>& block) {
    // Four sums at a time: one would wait for its own result.
    mlp_forward_samples<SMALL && L::PARTIAL_SUMS >= 4 ? 1 : 4>(act, tiles, theta, block, 0);
}

template <class L, class Act>
void mlp_backward(const Act& act, const std::vector<Tile>& tiles, const Registers<L>& theta, Block<L>& block,
                  Registers<L>& gradient) {
    for (const Tile& tile : tiles) {
        for (int i = 0; i < tile.units; ++i) {
            vf* z = block.tile(tile) + i;
            const vf u = theta.u[tile.first + i];
            vf sum_b = gradient.b[tile.first + i];
            vf sum_u = gradient.u[tile.first + i];
            for (int s = 0; s < block.count; ++s, z += tile.units) {
                const vf slope = block.slope[s];
                const vf g = act.chain(*z, slope * u);
                sum_u = fma(slope, act.value(*z), sum_u);
                sum_b += g;
                *z = g;
            }
            gradient.b[tile.first + i] = sum_b;
            gradient.u[tile.first + i] = sum_u;
        }
    }
    for (int s = 0; s < block.count; ++s) gradient.c[0] += block.slope[s];
}

// neuron: f = sigma(z_0)
template <class L, class Act>
void neuron_forward(const Act& act, Block<L>& block) {
    for (int s = 0; s < block.count; ++s) block.f[s] = act.value(block.z[s]);
}

template <class L, class Act>
void neuron_backward(const Act& act, Block<L>& block, Registers<L>& gradient) {
    for (int s = 0; s < block.count; ++s) {
        block.z[s] = act.chain(block.z[s], block.slope[s]);
        gradient.b[0] += block.z[s];
    }
}

// polynet: f = prod_i z_i
template <class L>
void polynet_forward(const std::vector<Tile>& tiles, Block<L>& block) {
    for (int s = 0; s < block.count; ++s) {
        vf product = broadcast(1.0f);
        for (const Tile& tile : tiles) {
            for (int i = 0; i < tile.units; ++i) product *= block.tile(tile)[s * tile.units + i];
        }
        block.f[s] = product;
    }
}

// d f / d z_i is the product of the other z: of those after it, left in `after`, and of those before, kept in `before`.
template <class L>
void polynet_backward(const std::vector<Tile>& tiles, Block<L>& block, std::vector<vf>& after,
                      Registers<L>& gradient) {
    for (int s = 0; s < block.count; ++s) {
        vf product = broadcast(1.0f);
        for (auto tile = tiles.rbegin(); tile != tiles.rend(); ++tile) {
            for (int i = tile->units; i-- > 0;) {
                after[tile->first + i] = product;
                product *= block.tile(*tile)[s * tile->units + i];
            }
        }
        vf before = block.slope[s];
        for (const Tile& tile : tiles) {
            for (int i = 0; i < tile.units; ++i) {
                vf& z = block.tile(tile)[s * tile.units + i];
                const vf g = before * after[tile.first + i];
                before *= z;
                z = g;
                gradient.b[tile.first + i] += g;
            }
        }
    }
}

}  // namespace paritylab::PARITYLAB_ISA
