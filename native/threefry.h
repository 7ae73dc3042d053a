// The counter-based random numbers of jax.random (threefry2x32, partitionable), for scalars and for SIMD words alike.
#pragma once

#include <cstdint>

#include "page.h"

namespace paritylab {

// Word is uint32_t, or a vector of them: one key and one counter per lane.
template <class Word>
struct Key {
    Word a, b;
};

template <int R, class Word>
inline Word rotate_left(Word x) {
    return (x << R) | (x >> (32 - R));
}

template <int R0, int R1, int R2, int R3, class Word>
inline void four_rounds(Word& x, Word& y) {
    x += y, y = rotate_left<R0>(y) ^ x;
    x += y, y = rotate_left<R1>(y) ^ x;
    x += y, y = rotate_left<R2>(y) ^ x;
    x += y, y = rotate_left<R3>(y) ^ x;
}

template <class Word>
PARITYLAB_ONCE Key<Word> threefry(Key<Word> key, Word x, Word y) {
    const Word third = key.a ^ key.b ^ 0x1BD11BDAu;
    x += key.a, y += key.b;
    four_rounds<13, 15, 26, 6>(x, y), x += key.b, y += third + 1u;
    four_rounds<17, 29, 16, 24>(x, y), x += third, y += key.a + 2u;
    four_rounds<13, 15, 26, 6>(x, y), x += key.a, y += key.b + 3u;
    four_rounds<17, 29, 16, 24>(x, y), x += key.b, y += third + 4u;
    four_rounds<13, 15, 26, 6>(x, y), x += third, y += key.a + 5u;
    return {x, y};
}

// jax.random.fold_in(key, data)
template <class Word>
inline Key<Word> fold_in(Key<Word> key, Word data) {
    return threefry(key, Word{}, data);
}

// Element `index` of jax.random.bits(key, shape), in row-major order.
template <class Word>
inline Word random_bits(Key<Word> key, Word index) {
    const Key<Word> out = threefry(key, Word{}, index);
    return out.a ^ out.b;
}

// Some build's fast jax.random.bits(key, (count,)).
using DrawWords = void (*)(Key<uint32_t> key, uint32_t count, uint32_t* out);

// What a run's key is folded with to get each of its independent streams.
enum class Stream : uint32_t { data = 1, labels = 2, evaluation = 3, sample = 4, order = 5, gradient_noise = 6 };

}  // namespace paritylab
