// The parameters of a group's runs, as registers.
#pragma once

#include <vector>

#include "stock.h"
#include "tiles.h"

namespace paritylab::PARITYLAB_ISA {

template <class L>
struct Registers {
    std::vector<vf> W;     // tile after tile, each [input][unit]
    std::vector<vf> b;     // one per register of the layer
    std::vector<vf> u;     // the same of each output, one after the other
    std::vector<vf> c;     // one per output

    explicit Registers(const Config& config, bool with_weights = true)
        : W(with_weights ? static_cast<size_t>(L::vectors(config.width)) * config.inputs : 0),
          b(L::vectors(config.width)),
          u(b.size() * config.outputs),
          c(config.outputs) {}

    // All of the slot's lanes, those that pad a register included: an infinity times their 0 would be NaN for ever.
    void clear(int slot) {
        for (std::vector<vf>* all : {&W, &b, &u, &c}) {
            for (vf& v : *all) L::set(v, slot, 0.0f);
        }
    }
};

// Calls work(input, unit, register, lane) for the weights of one slot that exist. Units and tiles follow one order.
template <class L, class Work>
void for_each_weight(const Config& config, const std::vector<Tile>& tiles, std::vector<vf>& W, int slot, Work&& work) {
    auto tile = tiles.begin();
    for (int unit = 0; unit < config.width; ++unit) {
        const Place place = L::place(unit, slot);
        while (place.vector >= tile->first + tile->units) ++tile;
        vf* w = &W[static_cast<size_t>(tile->first) * config.inputs + (place.vector - tile->first)];
        for (int j = 0; j < config.inputs; ++j) work(j, unit, w[j * tile->units], place.lane);
    }
}

template <class L>
void load(const Config& config, const std::vector<Tile>& tiles, const Parameters& from, int slot, Registers<L>& to) {
    for_each_weight<L>(config, tiles, to.W, slot, [&](int j, int unit, vf& w, int lane) {
        w[lane] = from.W[static_cast<size_t>(j) * config.width + unit];
    });
    for (int unit = 0; unit < config.width; ++unit) {
        const Place place = L::place(unit, slot);
        to.b[place.vector][place.lane] = from.b[unit];
        for (int j = 0; j < config.outputs; ++j) {
            to.u[j * to.b.size() + place.vector][place.lane] = from.u[unit * config.outputs + j];
        }
    }
    for (int j = 0; j < config.outputs; ++j) L::set(to.c[j], slot, from.c[j]);
}

template <class L>
Parameters save(const Config& config, const std::vector<Tile>& tiles, Registers<L>& from, int slot) {
    Parameters to;
    to.W.resize(static_cast<size_t>(config.inputs) * config.width);
    to.b.resize(config.width);
    to.u.resize(static_cast<size_t>(config.width) * config.outputs);
    for_each_weight<L>(config, tiles, from.W, slot, [&](int j, int unit, vf& w, int lane) {
        to.W[static_cast<size_t>(j) * config.width + unit] = w[lane];
    });
    for (int unit = 0; unit < config.width; ++unit) {
        const Place place = L::place(unit, slot);
        to.b[unit] = from.b[place.vector][place.lane];
        for (int j = 0; j < config.outputs; ++j) {
            to.u[unit * config.outputs + j] = from.u[j * from.b.size() + place.vector][place.lane];
        }
    }
    for (const vf& c : from.c) to.c.push_back(c[L::place(0, slot).lane]);
    return to;
}

// Where every parameter of a run is finite, 0; elsewhere NaN.
template <class L>
vf nan_unless_finite(const Registers<L>& registers) {
    vf sums[8]{};  // independent, or each addition would wait for the one before
    size_t i = 0;
    for (; i + 8 <= registers.W.size(); i += 8) {
        for (int k = 0; k < 8; ++k) sums[k] += registers.W[i + k] * 0.0f;
    }
    for (; i < registers.W.size(); ++i) sums[0] += registers.W[i] * 0.0f;
    for (const vf& b : registers.b) sums[1] += b * 0.0f;
    for (const vf& u : registers.u) sums[2] += u * 0.0f;
    vf partial[L::PARTIAL_SUMS]{};
    for (const vf& c : registers.c) partial[0] += c * 0.0f;
    for (const vf& sum : sums) partial[0] += sum;
    return L::sum(partial);
}

}  // namespace paritylab::PARITYLAB_ISA
