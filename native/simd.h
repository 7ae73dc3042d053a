// One SIMD register of this build: LANES floats, or LANES 32-bit integers.
//
// This file is compiled once per instruction set, each time in its own namespace. Compiler vector types keep the code
// free of intrinsics, but for the fused multiply-add: the sources are built with -ffp-contract=off and say themselves
// where they fuse, so that no compiler chooses where to round, and AVX2, AVX-512 and NEON agree bit for bit.
#pragma once

#include <cstdint>

#include "page.h"

#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__wasm_simd128__)
#include <wasm_simd128.h>
#endif

#ifndef PARITYLAB_ISA
#error "PARITYLAB_ISA names the namespace of this instruction set"
#endif

// For what works on registers: called, it would have them stored and loaded again.
#define PARITYLAB_INLINE [[gnu::always_inline]] inline

namespace paritylab::PARITYLAB_ISA {

#if defined(__AVX512F__)
inline constexpr int LANES = 16;
#elif defined(__AVX2__)
inline constexpr int LANES = 8;
#else
inline constexpr int LANES = 4;
#endif

#if defined(__AVX512F__) || defined(__aarch64__)
inline constexpr int REGISTERS = 32;
#else
inline constexpr int REGISTERS = 16;
#endif

typedef float vf __attribute__((vector_size(4 * LANES)));
typedef uint32_t vu __attribute__((vector_size(4 * LANES)));
typedef int32_t vi __attribute__((vector_size(4 * LANES)));  // comparisons: -1 where true, 0 where false
typedef double vd __attribute__((vector_size(8 * LANES)));   // for long sums; two registers

inline vf broadcast(float x) { return x - vf{}; }  // not vf{} + x, which would lose the sign of -0
inline vu broadcast(uint32_t x) { return vu{} + x; }

// Two numbers in turn: one in even lanes, the other in odd ones.
inline vu broadcast_pair(const void* two) {
    typedef uint64_t vq __attribute__((vector_size(4 * LANES)));
    uint64_t both;
    __builtin_memcpy(&both, two, sizeof both);
    return (vu)(vq{} + both);
}

// 0, 1, 2, ...
inline vu iota() {
    vu v{};
    for (int lane = 0; lane < LANES; ++lane) v[lane] = lane;
    return v;
}

inline vf select(vi condition, vf yes, vf no) { return condition ? yes : no; }
inline vu select(vi condition, vu yes, vu no) { return condition ? yes : no; }

// These two keep NaN: a parameter that is not a number must not look like one. So do the processor's own, where x is second.
inline vf at_least(vf x, vf low) {
#if defined(__AVX512F__)
    return _mm512_max_ps(low, x);
#elif defined(__AVX2__)
    return _mm256_max_ps(low, x);
#else
    return select(x < low, low, x);
#endif
}
inline vf at_most(vf x, vf high) {
#if defined(__AVX512F__)
    return _mm512_min_ps(high, x);
#elif defined(__AVX2__)
    return _mm256_min_ps(high, x);
#else
    return select(x > high, high, x);
#endif
}

// Bit l says whether lane l of a comparison is true.
inline uint32_t to_bits(vi condition) {
#if defined(__AVX512F__)
    return _mm512_movepi32_mask((__m512i)condition);
#elif defined(__AVX2__)
    return _mm256_movemask_ps((__m256)condition);
#elif defined(__SSE2__)
    return _mm_movemask_ps((__m128)condition);
#elif defined(__aarch64__)
    return vaddvq_u32((uint32x4_t)((vu)condition & vu{1, 2, 4, 8}));
#elif defined(__wasm_simd128__)
    return wasm_i32x4_bitmask((v128_t)condition);
#else
    uint32_t bits = 0;
    for (int lane = 0; lane < LANES; ++lane) bits |= (condition[lane] & 1u) << lane;
    return bits;
#endif
}

// Bit l says whether lane l of a is less than that of b.
inline uint32_t less_bits(vf a, vf b) {
#if defined(__AVX512F__)
    return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
#else
    return to_bits(a < b);
#endif
}

// Of both units of a pair, for a few registers of 32 samples: those of the first unit, then those of the other.
template <int COUNT>
PARITYLAB_INLINE uint64_t positive_bits_of(const vf (&x)[2][COUNT]) {
#if defined(__AVX512F__)
    if constexpr (COUNT == 2) {
        const auto bits = [](vf z) __attribute__((always_inline)) { return _mm512_cmp_ps_mask(z, vf{}, _CMP_GT_OQ); };
        return _cvtmask64_u64(_mm512_kunpackd(_mm512_kunpackw(bits(x[1][1]), bits(x[1][0])), _mm512_kunpackw(bits(x[0][1]), bits(x[0][0]))));
    }
#endif
    uint64_t bits = 0;
#pragma GCC unroll 16
    for (int i = 0; i < 2 * COUNT; ++i) bits |= uint64_t{less_bits(vf{}, x[i / COUNT][i % COUNT])} << (i / COUNT * 32 + i % COUNT * LANES);
    return bits;
}

inline vf absolute(vf x) { return (vf)((vu)x & 0x7FFFFFFFu); }

// +1 or -1: the sign bit of `bits`, put on 1.
inline vf sign_of(vu bits) { return (vf)((bits & 0x80000000u) | 0x3F800000u); }

// 1 or 0: the sign bit of `bits`.
inline vf bit_of(vu bits) { return (vf)((vu)((vi)bits >> 31) & 0x3F800000u); }

// x in the lanes whose bits are set, 0 in the others: what to_bits says, the other way round.
inline vf only(uint32_t bits, vf x) {
#if defined(__AVX512F__)
    return _mm512_maskz_mov_ps(static_cast<__mmask16>(bits), x);
#else
    const vi there = (broadcast(bits) & (broadcast(1u) << iota())) != 0u;
    return (vf)((vu)there & (vu)x);
#endif
}

// Of each bit, what two of three say.
inline vu majority(vu a, vu b, vu c) {
#if defined(__AVX512F__)
    return (vu)_mm512_ternarylogic_epi32((__m512i)a, (__m512i)b, (__m512i)c, 0xE8);
#else
    return (a & b) | (c & (a | b));
#endif
}

// How many bits of each word are set.
inline vu popcount(vu x) {
#if defined(__AVX512VPOPCNTDQ__)
    return (vu)_mm512_popcnt_epi32((__m512i)x);
#elif defined(__AVX512F__) || defined(__AVX2__)
    // Of each half of a byte by a table, then the bytes of a word added up.
#if defined(__AVX512F__)
    const auto table = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
    const auto counted = [&](vu halves) { return _mm512_shuffle_epi8(table, (__m512i)(halves & 0x0F0F0F0Fu)); };
    const __m512i bytes = _mm512_add_epi8(counted(x), counted(x >> 4));
    return (vu)_mm512_madd_epi16(_mm512_maddubs_epi16(bytes, _mm512_set1_epi8(1)), _mm512_set1_epi16(1));
#else
    const auto table = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
    const auto counted = [&](vu halves) { return _mm256_shuffle_epi8(table, (__m256i)(halves & 0x0F0F0F0Fu)); };
    const __m256i bytes = _mm256_add_epi8(counted(x), counted(x >> 4));
    return (vu)_mm256_madd_epi16(_mm256_maddubs_epi16(bytes, _mm256_set1_epi8(1)), _mm256_set1_epi16(1));
#endif
#elif defined(__aarch64__)
    return (vu)vpaddlq_u16(vpaddlq_u8(vcntq_u8((uint8x16_t)x)));
#elif defined(__wasm_simd128__)
    return (vu)wasm_u32x4_extadd_pairwise_u16x8(wasm_u16x8_extadd_pairwise_u8x16(wasm_i8x16_popcnt((v128_t)x)));
#else
    x -= (x >> 1) & 0x55555555u;
    x = (x & 0x33333333u) + ((x >> 2) & 0x33333333u);
    x = (x + (x >> 4)) & 0x0F0F0F0Fu;
    x += x >> 8;
    return (x + (x >> 16)) & 63u;
#endif
}

// The parity of each word, in its sign bit.
inline vu parity_to_sign(vu x) {
#if defined(__AVX512VPOPCNTDQ__)
    return popcount(x) << 31;
#endif
    x ^= x << 16;
    x ^= x << 8;
    x ^= x << 4;
    x ^= x << 2;
    return x ^ (x << 1);
}

// a * b + c, rounded once wherever the machine can.
inline vf fma(vf a, vf b, vf c) {
#if defined(__AVX512F__)
    return _mm512_fmadd_ps(a, b, c);
#elif defined(__FMA__)
    return _mm256_fmadd_ps(a, b, c);
#elif defined(__aarch64__)
    return (vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#elif defined(__wasm_relaxed_simd__)
    return (vf)wasm_f32x4_relaxed_madd((v128_t)a, (v128_t)b, (v128_t)c);
#else
    return a * b + c;
#endif
}

inline vf square_root(vf x) {
    for (int lane = 0; lane < LANES; ++lane) x[lane] = __builtin_sqrtf(x[lane]);
    return x;
}

}  // namespace paritylab::PARITYLAB_ISA
