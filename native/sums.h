// Sums of weights times signs, for a register of samples at a time: five inputs are one look-up.
//
// Units go in pairs, whose weights lie side by side: [input][unit]. Of five inputs the first four are taken relative to the
// fifth, which is their sign; what they add to z is then one of sixteen numbers, and a register of 512 bits holds eight of
// them for both units. Two such registers are made with a few additions, and each sample of each unit takes its number by
// one permutation. The order of the sums is the same everywhere, and so is every rounding (a product with a sign is exact):
//     t = x4 w4, t += x0 w0, t += x1 w1, t += x2 w2, t += x3 w3, z += t.
// Without permutations of whole registers (NEON, SSE2, WebAssembly) just that is computed.
#pragma once

#include <type_traits>

#include "simd.h"
#include "threefry.h"

namespace paritylab::PARITYLAB_ISA {

inline constexpr int FIVE = 5;
inline constexpr int THIRTY = 30;  // inputs of a word of six fives

#if defined(__AVX512F__)

inline constexpr int TOGETHER_PAIRS = 5;    // of units, whose sums are kept in registers: they share what samples say
inline constexpr int TOGETHER_SAMPLES = 2;  // registers of samples, which share the tables

// What the thirty inputs of a word say, in each lane of a sample.
struct Thirty {
    vu even, odd, signs;
    static constexpr uint32_t FIFTHS = 0x21084210u, BELOW = FIFTHS | 0x80000000u;

    PARITYLAB_INLINE explicit Thirty(vu bits) : signs(bits) {
        const vu fifths = bits & FIFTHS, relative = bits ^ (fifths - (fifths >> 4));
        even = relative & ~BELOW, odd = relative | BELOW;  // the bit below each four, turned round: which unit of the pair
    }
};

struct Five {
    vu even, odd;  // where to look, for either unit of a pair
    vf sign;

    Five() = default;
    template <int FIRST>
    PARITYLAB_INLINE Five(const Thirty& word, std::integral_constant<int, FIRST>)
        : even(rotate_left<(33 - FIRST) % 32>(word.even)),
          odd(rotate_left<(33 - FIRST) % 32>(word.odd)),
          sign(sign_of(word.signs << (27 - FIRST))) {}
};

// A broadcast from memory of its own costs a shuffle, of which permutations need all; one inside an operation is free.
// Compilers choose otherwise.
PARITYLAB_INLINE vf flipped(vu flips, const float* pair) {
    typedef uint64_t __attribute__((may_alias)) two;
    vf flipped;
    asm("vpxorq %2%{1to8%}, %1, %0" : "=v"(flipped) : "v"(flips), "m"(*reinterpret_cast<const two*>(pair)));
    return flipped;
}
PARITYLAB_INLINE vf broadcast_from(const float& x) {
    vf all;
    asm("vpxord %2%{1to16%}, %1, %0" : "=v"(all) : "v"(vf{}), "m"(x));
    return all;
}
PARITYLAB_INLINE vf fma_from(const float& a, vf b, vf c) {
    asm("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(c) : "v"(b), "m"(a));
    return c;
}

// What five inputs add to a pair of units, for each pattern.
class PairTable {
public:
    PARITYLAB_INLINE explicit PairTable(const float* w) {
        vf t = flipped(vu{}, w + 8);
        t = flipped(flips(0), w) + t;
        t = flipped(flips(1), w + 2) + t;
        t = flipped(flips(2), w + 4) + t;
        const vf last = flipped(vu{}, w + 6);
        plus_ = t + last, minus_ = t - last;
    }
    PARITYLAB_INLINE vf add(const Five& x, int unit, vf z) const {
        const vu place = unit == 0 ? x.even : x.odd;
        return fma(x.sign, _mm512_permutex2var_ps(plus_, (__m512i)place, minus_), z);
    }

private:
    // Lane l has unit l mod 2 and pattern l div 2.
    static vu flips(int input) { return ((iota() >> (input + 1)) & 1u) << 31; }

    vf plus_, minus_;
};

#elif defined(__AVX2__)

inline constexpr int TOGETHER_PAIRS = 1;
inline constexpr int TOGETHER_SAMPLES = 4;

struct Thirty {
    vu relative, signs;
    PARITYLAB_INLINE explicit Thirty(vu bits) : signs(bits) {
        const vu fifths = bits & 0x21084210u;
        relative = bits ^ (fifths - (fifths >> 4));
    }
};

struct Five {
    vu place;
    vf fourth, sign;

    Five() = default;
    template <int FIRST>
    PARITYLAB_INLINE Five(const Thirty& word, std::integral_constant<int, FIRST>)
        : place(word.relative >> FIRST), fourth(sign_of(word.relative << (28 - FIRST))), sign(sign_of(word.signs << (27 - FIRST))) {}
};

PARITYLAB_INLINE vf broadcast_from(const float& x) { return broadcast(x); }
PARITYLAB_INLINE vf fma_from(const float& a, vf b, vf c) { return fma(broadcast(a), b, c); }

// A register has eight numbers: the fourth input is added behind the look-up.
class PairTable {
public:
    PARITYLAB_INLINE explicit PairTable(const float* w) {
        for (int unit = 0; unit < 2; ++unit) {
            vf& t = sums_[unit] = broadcast(w[8 + unit]);
            for (int i = 0; i < 3; ++i) t = (vf)(flips(i) ^ (vu)broadcast(w[2 * i + unit])) + t;
            fourth_[unit] = broadcast(w[6 + unit]);
        }
    }
    PARITYLAB_INLINE vf add(const Five& x, int unit, vf z) const {
        const vf three = _mm256_permutevar8x32_ps(sums_[unit], (__m256i)x.place);
        return fma(x.sign, fma(x.fourth, fourth_[unit], three), z);
    }

private:
    static vu flips(int input) { return ((iota() >> input) & 1u) << 31; }

    vf sums_[2], fourth_[2];
};

#else

inline constexpr int TOGETHER_PAIRS = 1;
inline constexpr int TOGETHER_SAMPLES = 4;

struct Thirty {
    vu signs;
    PARITYLAB_INLINE explicit Thirty(vu bits) : signs(bits) {}
};

struct Five {
    vf x[FIVE];

    Five() = default;
    template <int FIRST>
    PARITYLAB_INLINE Five(const Thirty& word, std::integral_constant<int, FIRST>) {
        for (int i = 0; i < FIVE; ++i) x[i] = sign_of(word.signs << (31 - FIRST - i));
    }
};

PARITYLAB_INLINE vf broadcast_from(const float& x) { return broadcast(x); }
PARITYLAB_INLINE vf fma_from(const float& a, vf b, vf c) { return fma(broadcast(a), b, c); }

class PairTable {
public:
    PARITYLAB_INLINE explicit PairTable(const float* w) : w_(w) {}
    PARITYLAB_INLINE vf add(const Five& x, int unit, vf z) const {
        vf t = x.x[4] * w_[8 + unit];
        for (int i = 0; i < 4; ++i) t = fma(x.x[i], broadcast(w_[2 * i + unit]), t);
        return z + t;
    }

private:
    const float* w_;
};

#endif

// Adds five inputs to z of PAIRS pairs of units, for SAMPLES registers of samples; x is what these say of the inputs. A pair's
// weights are `stride` numbers behind those of the one before.
template <int PAIRS, int SAMPLES, class Stride>
PARITYLAB_INLINE void add_five(const Five (&x)[SAMPLES], const float* w, Stride stride, vf (&z)[PAIRS][2][SAMPLES]) {
#pragma GCC unroll 16
    for (int p = 0; p < PAIRS; ++p) {
        const PairTable table(w + p * stride);
#pragma GCC unroll 16
        for (int unit = 0; unit < 2; ++unit) {
#pragma GCC unroll 16
            for (int r = 0; r < SAMPLES; ++r) z[p][unit][r] = table.add(x[r], unit, z[p][unit][r]);
        }
    }
}

// Calls work(number) for the fives of thirty inputs, numbers being constants.
template <class Work>
PARITYLAB_INLINE void each_of_six(Work&& work) {
    work(std::integral_constant<int, 0>{}), work(std::integral_constant<int, 1>{}), work(std::integral_constant<int, 2>{});
    work(std::integral_constant<int, 3>{}), work(std::integral_constant<int, 4>{}), work(std::integral_constant<int, 5>{});
}

// The same for all inputs: five(i, r) is what inputs 5 i to 5 i + 4 of register r say. Six fives, as a constant, are unrolled.
template <int PAIRS, int SAMPLES, class Fives, class Count, class Stride>
PARITYLAB_INLINE void add_fives(const Fives& five, Count fives, const float* w, Stride stride, vf (&z)[PAIRS][2][SAMPLES]) {
    const auto add = [&](auto i) __attribute__((always_inline)) {
        Five x[SAMPLES];
#pragma GCC unroll 16
        for (int r = 0; r < SAMPLES; ++r) x[r] = five(i, r);
        add_five(x, w + 2 * FIVE * i, stride, z);
    };
    if constexpr (std::is_same_v<Count, int>) {
        for (int i = 0; i < fives; ++i) add(i);
    } else {
        each_of_six(add);
    }
}

}  // namespace paritylab::PARITYLAB_ISA
