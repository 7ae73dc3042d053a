// Sums over inputs, looked up: the method of four Russians, for a tile of 16 or 32 units with ReLU.
//
// Inputs count as bits. Where they are signs, x = 1 - 2 bit: the weights are taken -2 times, and their sum is added once.
// The table has the sum of the weights of every pattern of every group of inputs. Forward, a sample's z is that of one
// row a group. Backward, a sample's slope is added, in the units that are active, to one row a group of a second table,
// whose rows are added up to the sums for each input; and the gradient of u is that of these sums with the weights, for
// with ReLU relu(z) = active z. The order of every sum is the same on all instruction sets.
//
// What binds on Zen 4, of a sample and 16 units: forward a load of 64 bytes a group (1 cycle), backward a load and a store
// (2 cycles). That is 15 cycles for five groups; a whole step takes 27 (benchmarks/tables.py).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "fold.h"
#include "groups.h"
#include "tiles.h"

namespace paritylab::PARITYLAB_ISA {

inline constexpr int TOGETHER = LANES / 4;  // samples whose sums fit into registers

// A weight as the table takes it.
inline vf as_bit(vf w, bool bits) { return bits ? w : -2.0f * w; }

// Every pattern is one without its last input, and that input.
template <int UNITS>
void make_table(const std::vector<InputGroup>& groups, bool bits, const vf* W, vf* table) {
    for (const InputGroup& group : groups) {
        const vf* w = W + group.first * UNITS;
        vf* rows = table + group.row * UNITS;
        for (int i = 0; group.one_on && i < group.inputs * UNITS; ++i) rows[i] = as_bit(w[i], bits);
        for (int u = 0; !group.one_on && u < UNITS; ++u) rows[u] = vf{};
        for (int i = 0; !group.one_on && i < group.inputs; ++i) {
            vf added[UNITS];
            for (int u = 0; u < UNITS; ++u) added[u] = as_bit(w[i * UNITS + u], bits);
            vf* to = rows + (UNITS << i);
            for (int p = 0; p < UNITS << i; p += UNITS) {
#pragma GCC unroll 8
                for (int u = 0; u < UNITS; ++u) to[p + u] = rows[p + u] + added[u];
            }
        }
    }
}

// What inputs add to z of samples from s on, by the table.
template <int UNITS, class Inputs>
struct LookUp {
    const Inputs& inputs;
    const vf* table;

    void operator()(int s, vf (&z)[TOGETHER][UNITS]) const {
        const size_t groups = inputs.groups().size();
        const uint16_t* rows = inputs.rows(s);
        for (size_t g = 0; g < groups; ++g) {
#pragma GCC unroll 4
            for (int k = 0; k < TOGETHER; ++k) {
                const vf* from = table + rows[k * groups + g] * UNITS;
#pragma GCC unroll 8
                for (int u = 0; u < UNITS; ++u) z[k][u] += from[u];
            }
        }
    }
};

// The same without a table, where few samples pass: row by row, as the table would be made.
template <int UNITS, class Inputs>
struct AddUp {
    const Inputs& inputs;
    const vf* W;
    bool bits;

    void operator()(int s, vf (&z)[TOGETHER][UNITS]) const {
        for (size_t g = 0; g < inputs.groups().size(); ++g) {
            for (int k = 0; k < TOGETHER; ++k) add(inputs.groups()[g], inputs.rows(s + k)[g], z[k]);
        }
    }

private:
    void add(const InputGroup& group, int row, vf (&z)[UNITS]) const {
        const uint32_t value = row - group.row, on = group.one_on ? 0 : value;
        vf sum[UNITS]{};
        if (group.one_on) {
            for (int u = 0; u < UNITS; ++u) sum[u] = as_bit(W[(group.first + value) * UNITS + u], bits);
        }
        for (uint32_t left = on; left != 0; left &= left - 1) {
            const vf* w = W + (group.first + std::countr_zero(left)) * UNITS;
            for (int u = 0; u < UNITS; ++u) sum[u] += as_bit(w[u], bits);
        }
        for (int u = 0; u < UNITS; ++u) z[u] += sum[u];
    }
};

// The output weights of a tile's units, and where their part of the outputs is added: those of output j are j strides on.
struct Heads {
    const vf* u;
    size_t stride_u;
    vf* f;
    size_t stride_f;
};

// Adds the tile's part of the outputs, LANES samples at a time, and says which units are active. How many outputs there
// are may be a constant.
template <int UNITS, class Add, class Count>
void forward_tables(const Add& add, int count, const vf* base, const Heads& heads, Count outputs, uint32_t* active) {
    constexpr int MOST = std::is_same_v<Count, int> ? MOST_OUTPUTS : 1;
    vf from[UNITS], weight[MOST][UNITS];
    for (int u = 0; u < UNITS; ++u) {
        from[u] = base[u];
        for (int j = 0; j < outputs; ++j) weight[j][u] = heads.u[j * heads.stride_u + u];
    }
    for (int first = 0; first < count; first += LANES) {
        vf parts[MOST][LANES * PARTS];
#pragma GCC unroll 4
        for (int i = 0; i < LANES; i += TOGETHER) {
            vf z[TOGETHER][UNITS];
#pragma GCC unroll 32
            for (int k = 0; k < TOGETHER * UNITS; ++k) z[k / UNITS][k % UNITS] = from[k % UNITS];
            add(first + i, z);
#pragma GCC unroll 4
            for (int k = 0; k < TOGETHER; ++k) {
                uint32_t on = 0;
#pragma GCC unroll 8
                for (int u = 0; u < UNITS; ++u) {
                    const vi off = z[k][u] <= 0.0f;  // not of NaN, which must be seen
                    on |= to_bits(~off) << u * LANES;
                    const vf h = select(off, vf{}, z[k][u]);
                    for (int j = 0; j < outputs; ++j) {
                        vf& part = parts[j][(i + k) * PARTS + u % PARTS];
                        part = u < PARTS ? weight[j][u] * h : fma(weight[j][u], h, part);
                    }
                }
                active[first + i + k] = on;
            }
        }
        for (int j = 0; j < outputs; ++j) heads.f[j * heads.stride_f + first / LANES] += fold(parts[j]);
    }
}

// Adds the slopes of samples, in their active units, to their rows: of so many samples, number i being sample(i).
template <int UNITS, class Inputs, class Sample>
void backward_tables(const Inputs& inputs, int count, Sample&& sample, const float* slopes, const uint32_t* active,
                     vf* sums) {
    const size_t groups = inputs.groups().size();
    for (int i = 0; i < count; ++i) {
        const int s = sample(i);
        const uint16_t* rows = inputs.rows(s);
        vf slope[UNITS];
#pragma GCC unroll 8
        for (int u = 0; u < UNITS; ++u) slope[u] = only(active[s] >> u * LANES, broadcast(slopes[s]));
        for (size_t g = 0; g < groups; ++g) {
            vf* to = sums + rows[g] * UNITS;
#pragma GCC unroll 8
            for (int u = 0; u < UNITS; ++u) to[u] += slope[u];
        }
    }
}

// From the rows of a group to the sums over samples in which an input is on, which go to its place in `by_input`. The
// first row of a group of patterns is that over all samples then.
template <int UNITS>
void add_up_rows(const InputGroup& group, vf* rows, vf* by_input) {
    vf* to = by_input + group.first * UNITS;
    if (group.one_on) {
        std::copy_n(rows, group.inputs * UNITS, to);
        return;
    }
    for (int i = group.inputs; i-- > 0;) {
        vf sum[UNITS]{};
        const vf* on = rows + (UNITS << i);
        for (int p = 0; p < UNITS << i; p += UNITS) {
#pragma GCC unroll 8
            for (int u = 0; u < UNITS; ++u) {
                sum[u] += on[p + u];
                rows[p + u] += on[p + u];
            }
        }
        for (int u = 0; u < UNITS; ++u) to[i * UNITS + u] = sum[u];
    }
}

// The sum over all samples, once the rows of a group are added up.
template <int UNITS>
void add_up_samples(const InputGroup& group, const vf* rows, vf (&all)[UNITS]) {
    const int count = group.one_on ? group.inputs : 1;
    for (int u = 0; u < UNITS; ++u) {
        all[u] = rows[u];
        for (int i = 1; i < count; ++i) all[u] += rows[i * UNITS + u];
    }
}

}  // namespace paritylab::PARITYLAB_ISA
