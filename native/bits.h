// Bits counted in lanes of 64. Compiled once per instruction set, as simd.h is.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#ifndef PARITYLAB_ISA
#error "PARITYLAB_ISA names the namespace of this instruction set"
#endif

namespace paritylab::PARITYLAB_ISA::supports {

#if defined(__AVX512VPOPCNTDQ__)
inline constexpr int LANES = 8;
#elif defined(__AVX2__)
inline constexpr int LANES = 4;
#else
inline constexpr int LANES = 2;
#endif

typedef int64_t vw __attribute__((vector_size(8 * LANES)));  // words, or counts
typedef int64_t vm __attribute__((vector_size(8 * LANES)));  // comparisons: -1 where true, 0 where false

inline vw load(const uint64_t* from) {
    vw words;
    std::memcpy(&words, from, sizeof words);
    return words;
}

inline vw popcount(vw words) {
#if defined(__AVX512VPOPCNTDQ__)
    return (vw)_mm512_popcnt_epi64((__m512i)words);
#elif defined(__AVX2__)
    // Of each half of a byte by a table; a sum of bytes with the absolute differences to 0 (Mula's).
    const __m256i table = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
                                           0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
    const __m256i half = _mm256_set1_epi8(15);
    const __m256i low = _mm256_shuffle_epi8(table, _mm256_and_si256((__m256i)words, half));
    const __m256i high = _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16((__m256i)words, 4), half));
    return (vw)_mm256_sad_epu8(_mm256_add_epi8(low, high), _mm256_setzero_si256());
#else
    for (int lane = 0; lane < LANES; ++lane) words[lane] = __builtin_popcountll(words[lane]);
    return words;
#endif
}

inline constexpr uint32_t ALL = (1u << LANES) - 1;

// Bit l says whether lane l lies between two bounds.
inline uint32_t between(vw counts, int64_t low, int64_t high) {
#if defined(__AVX512VPOPCNTDQ__)
    const __mmask8 above = _mm512_cmpgt_epi64_mask((__m512i)counts, _mm512_set1_epi64(low));
    return _mm512_mask_cmplt_epi64_mask(above, (__m512i)counts, _mm512_set1_epi64(high));
#else
    const vm found = (counts > low) & (counts < high);
#if defined(__AVX2__)
    return _mm256_movemask_pd((__m256d)found);
#else
    return (found[0] & 1) | (found[1] & 2);
#endif
#endif
}

}  // namespace paritylab::PARITYLAB_ISA::supports
