// Many dot products at once: sixteen partial sums each, folded in halves, the same way on every instruction set.
#pragma once

#include <utility>

#include "simd.h"

namespace paritylab::PARITYLAB_ISA {

inline constexpr int PARTS = 16 / LANES;  // registers that hold one product's sixteen partial sums

// In every run of 2 HALF lanes: the sums of a's halves, then the sums of b's.
template <int HALF>
PARITYLAB_INLINE vf fold_halves(vf a, vf b) {
    return [&]<int... I>(std::integer_sequence<int, I...>) {
        const auto from = [](int lane, int upper) {
            const int start = lane / (2 * HALF) * (2 * HALF);
            return start + lane % HALF + upper * HALF + (lane / HALF % 2) * LANES;
        };
        return __builtin_shufflevector(a, b, from(I, 0)...) + __builtin_shufflevector(a, b, from(I, 1)...);
    }(std::make_integer_sequence<int, LANES>{});
}

inline vf swap_halves(vf x) {
    return [&]<int... I>(std::integer_sequence<int, I...>) {
        return __builtin_shufflevector(x, x, (I ^ (LANES / 2))...);
    }(std::make_integer_sequence<int, LANES>{});
}

template <int HALF>
inline vf fold_rows(vf (&rows)[LANES]) {
    if constexpr (HALF == 0) {
        return rows[0];
    } else {
#pragma GCC unroll 16
        for (int i = 0; i < HALF; ++i) rows[i] = fold_halves<HALF>(rows[i], rows[i + HALF]);
        return fold_rows<HALF / 2>(rows);
    }
}

// Lane l is the sum of the sixteen parts of product l.
inline vf fold(const vf* parts) {
    vf rows[LANES];
#pragma GCC unroll 16
    for (int i = 0; i < LANES; ++i) {
        const vf* part = parts + i * PARTS;
        if constexpr (PARTS == 4) {
            rows[i] = (part[0] + part[2]) + (part[1] + part[3]);
        } else if constexpr (PARTS == 2) {
            rows[i] = part[0] + part[1];
        } else {
            rows[i] = part[0];
        }
    }
    return fold_rows<LANES / 2>(rows);
}

}  // namespace paritylab::PARITYLAB_ISA
