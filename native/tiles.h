// The linear layer, tile by tile: a tile's sums stay in registers while its inputs stream by.
//
// The layer is cut into tiles of at most L::MAX_UNITS registers, nearly equal, so that no width pays for a remainder.
// A tile's weights are contiguous, [input][unit], and are visited 32 inputs (one word) at a time: that much stays in
// the L1 cache while all samples of the block pass. Every sum is taken in the order of its inputs, or of its samples,
// whatever the size of the tile, so tile sizes are free to differ between instruction sets.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "config.h"
#include "layouts.h"

namespace paritylab::PARITYLAB_ISA {

// How many samples (forward) or inputs (backward) share a tile with this many units.
constexpr int rows_for(int units) {
    const int sums = REGISTERS == 32 ? 20 : 10;
    int rows = 16;
    while (rows * units > sums) rows /= 2;
    return rows;
}

struct Tile {
    int first, units;  // which registers of the layer
    int inputs;
};

// Where part i begins if `whole` things are cut into nearly equal parts; whole * i may need more than 32 bits.
inline int start_of_part(int whole, int parts, int i) { return static_cast<int>(int64_t{whole} * i / parts); }

template <class L>
std::vector<Tile> plan_tiles(const Config& config) {
    std::vector<Tile> tiles;
    const int wholes = L::vectors(config.width) / L::WHOLE, most = L::MAX_UNITS / L::WHOLE;
    const int count = (wholes + most - 1) / most;
    for (int i = 0; i < count; ++i) {
        const int first = start_of_part(wholes, count, i), next = start_of_part(wholes, count, i + 1);
        tiles.push_back({first * L::WHOLE, (next - first) * L::WHOLE, config.inputs});
    }
    return tiles;
}

// Calls work(std::integral_constant<int, units>): the run-time width becomes a compile-time one.
template <class L, class Work>
inline void with_units(int units, Work&& work) {
    [&]<int... U>(std::integer_sequence<int, U...>) {
        ((units == U + 1 ? work(std::integral_constant<int, U + 1>{}) : void()), ...);
    }(std::make_integer_sequence<int, L::MAX_UNITS>{});
}

// Calls work(word, number of its bits that are inputs) for each word of inputs.
template <class Work>
inline void for_each_word(const Tile& tile, Work&& work) {
    for (int word = 0; word * 32 < tile.inputs; ++word) work(word, std::min(tile.inputs - word * 32, 32));
}

// z = from + sum over the bits of x * w, for ROWS samples and UNITS units.
template <int ROWS, int UNITS, class Inputs>
inline void forward_tile(const Inputs& inputs, int word, int end, int sample, const vf* w, const vf* from,
                         int from_stride, vf* z) {
    vf sum[ROWS][UNITS];
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; ++r) {
#pragma GCC unroll 16
        for (int u = 0; u < UNITS; ++u) sum[r][u] = from[r * from_stride + u];
    }
    for (int bit = 0; bit < end; ++bit, w += UNITS) {
        vf x[ROWS];
#pragma GCC unroll 16
        for (int r = 0; r < ROWS; ++r) x[r] = inputs.row(word, sample + r)(bit);
#pragma GCC unroll 16
        for (int u = 0; u < UNITS; ++u) {
#pragma GCC unroll 16
            for (int r = 0; r < ROWS; ++r) sum[r][u] = fma(x[r], w[u], sum[r][u]);
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; ++r) {
#pragma GCC unroll 16
        for (int u = 0; u < UNITS; ++u) z[r * UNITS + u] = sum[r][u];
    }
}

template <int ROWS, int UNITS, class Inputs>
inline void forward_rows(const Inputs& inputs, int word, int end, int sample, int count, const vf* w,
                         const vf* bias, vf* z) {
    for (; sample + ROWS <= count; sample += ROWS) {
        vf* rows = z + sample * UNITS;
        forward_tile<ROWS, UNITS>(inputs, word, end, sample, w, bias ? bias : rows, bias ? 0 : UNITS, rows);
    }
    if constexpr (ROWS > 1) forward_rows<ROWS / 2, UNITS>(inputs, word, end, sample, count, w, bias, z);
}

// z[sample][unit] = bias + W x for `count` samples. W, bias and z are those of the tile.
template <class L>
void forward(const Tile& tile, const typename L::Inputs& inputs, int count, const vf* W, const vf* bias, vf* z) {
    with_units<L>(tile.units, [&](auto units) {
        const vf* start = bias;  // the first word starts from the bias, the others go on from z
        for_each_word(tile, [&](int word, int end) {
            const vf* w = W + word * 32 * units;
            forward_rows<rows_for(units), units>(inputs, word, end, 0, count, w, start, z);
            start = nullptr;
        });
    });
}

// How a layer's parameters move: theta <- keep theta - rate gradient.
struct Update {
    vf rate, keep;
    bool decays;
    vf operator()(vf theta, vf gradient) const {
        if (decays) theta *= keep;
        return fma(-rate, gradient, theta);
    }
};

inline Update make_update(const Config& config, vf lr, float layer_rate) {
    const vf rate = lr * layer_rate;
    const float plain = layer_rate != 0 ? config.decay_plain : 0.0f;
    return {rate, 1.0f - rate * config.decay_coupled - plain, config.decays()};
}

// Whether a block is the first, and the last, of its batch.
struct BatchPart {
    bool first, last;
};

// The sums over a block's samples of x g, for ROWS inputs and UNITS units. They start from `sums` unless this is the
// first block of the batch, and go back there unless it is the last: then they are the gradient and move the weights.
template <int ROWS, int UNITS, class Inputs>
inline void backward_tile(const Inputs& inputs, int word, int bit, int count, const vf* g, vf* w, vf* sums,
                          BatchPart part, const Update& update) {
    vf sum[ROWS * UNITS]{};
    if (!part.first) {
#pragma GCC unroll 32
        for (int i = 0; i < ROWS * UNITS; ++i) sum[i] = sums[i];
    }
    for (int s = 0; s < count; ++s, g += UNITS) {
        const auto row = inputs.row(word, s);
        vf x[ROWS];
#pragma GCC unroll 16
        for (int r = 0; r < ROWS; ++r) x[r] = row(bit + r);
#pragma GCC unroll 16
        for (int u = 0; u < UNITS; ++u) {
#pragma GCC unroll 16
            for (int r = 0; r < ROWS; ++r) sum[r * UNITS + u] = fma(x[r], g[u], sum[r * UNITS + u]);
        }
    }
    if (part.last) {
#pragma GCC unroll 32
        for (int i = 0; i < ROWS * UNITS; ++i) w[i] = update(w[i], sum[i]);
    } else {
#pragma GCC unroll 32
        for (int i = 0; i < ROWS * UNITS; ++i) sums[i] = sum[i];
    }
}

template <int ROWS, int UNITS, class Inputs>
inline void backward_rows(const Inputs& inputs, int word, int bit, int end, int count, const vf* g, vf* W, vf* sums,
                          BatchPart part, const Update& update) {
    for (; bit + ROWS <= end; bit += ROWS) {
        const int offset = (word * 32 + bit) * UNITS;
        backward_tile<ROWS, UNITS>(inputs, word, bit, count, g, W + offset, sums + offset, part, update);
    }
    if constexpr (ROWS > 1) {
        backward_rows<ROWS / 2, UNITS>(inputs, word, bit, end, count, g, W, sums, part, update);
    }
}

// The gradient of the tile's weights from g = d loss / d z, and their update. `sums` is used only between blocks.
template <class L>
void backward(const Tile& tile, const typename L::Inputs& inputs, int count, const vf* g, vf* W, vf* sums,
              BatchPart part, const Update& update) {
    with_units<L>(tile.units, [&](auto units) {
        for_each_word(tile, [&](int word, int end) {
            backward_rows<rows_for(units), units>(inputs, word, 0, end, count, g, W, sums, part, update);
        });
    });
}

// The same for a batch of one, where there is nothing to sum: W[j] <- keep W[j] + x_j (-rate g). With NEXT, the way
// forward of the next step's sample is made at once, from the weights as they pass: z = from + W next.
template <bool NEXT, bool DECAYS, int UNITS, class Row>
inline void single_tile(const Row& x, const Row& next, int end, const vf* g, vf* w, const Update& update,
                        const vf* from, vf* z) {
    vf move[UNITS], sum[UNITS];
#pragma GCC unroll 16
    for (int u = 0; u < UNITS; ++u) {
        move[u] = -update.rate * g[u];
        if (NEXT) sum[u] = from[u];
    }
    for (int bit = 0; bit < end; ++bit, w += UNITS) {
        const vf x_now = x(bit), x_next = next(bit);
#pragma GCC unroll 16
        for (int u = 0; u < UNITS; ++u) {
            w[u] = fma(x_now, move[u], DECAYS ? w[u] * update.keep : w[u]);
            if (NEXT) sum[u] = fma(x_next, w[u], sum[u]);
        }
    }
    if (!NEXT) return;
#pragma GCC unroll 16
    for (int u = 0; u < UNITS; ++u) z[u] = sum[u];
}

template <class L, bool NEXT>
void backward_single(const Tile& tile, const typename L::Inputs& inputs, const typename L::Inputs& next, const vf* g,
                     vf* W, const Update& update, const vf* bias, vf* z) {
    with_units<L>(tile.units, [&](auto units) {
        for_each_word(tile, [&](int word, int end) {
            const auto step = update.decays ? single_tile<NEXT, true, units, typename L::Inputs::Row>
                                            : single_tile<NEXT, false, units, typename L::Inputs::Row>;
            const vf* from = word == 0 ? bias : z;
            step(inputs.row(word, 0), next.row(word, 0), end, g, W + word * 32 * units, update, from, z);
        });
    });
}

}  // namespace paritylab::PARITYLAB_ISA
