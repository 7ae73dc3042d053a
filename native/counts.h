// Counting bits in place of adding signs: the way back of units that are on or off, from slopes of one size.
//
// Where a unit's slope is that of the loss, times its output weight, wherever it is active (ReLU), and the loss's slope is
// +-1 or 0 (hinge, correlation, l1), the gradient of a weight is a whole number of times that output weight: of the samples
// in which the unit is active and the loss is not flat, how often the input equals the label less how often it does not. That
// is n - 2 popcount(active & (input ^ label)), exact, and without an order of sums.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "fold.h"
#include "samples.h"

namespace paritylab::PARITYLAB_ISA {

inline constexpr int OCTET = 8;            // inputs whose weights, of a pair of units, are sixteen numbers
inline constexpr int SETS = 16 / LANES;    // registers that hold those
inline constexpr int OCTETS_OF_WORD = WORD / OCTET;

#if !defined(__AVX2__)
// Of two words whose numbers differ by BY in a square of bits: what is on the wrong side of its diagonal.
template <int BY>
PARITYLAB_INLINE void exchange(vu& without, vu& with) {
    constexpr uint32_t KEEP = BY == 16 ? 0x0000FFFFu : BY == 8 ? 0x00FF00FFu : BY == 4 ? 0x0F0F0F0Fu : BY == 2 ? 0x33333333u : 0x55555555u;
    const vu t = ((without >> BY) ^ with) & KEEP;
    without ^= t << BY, with ^= t;
}
#endif

// From 32 inputs of 32 samples, a word for each sample, to a word for each input, twice: for either unit of a pair.
PARITYLAB_INLINE void turn(const vu* samples, uint32_t used, vu* inputs) {
#if defined(__AVX512VBMI__) && defined(__GFNI__)
    struct Places {
        alignas(64) uint8_t bytes[64], pairs[OCTETS_OF_WORD][64];
    };
    static constexpr Places places = [] {
        Places p{};
        // Squares of eight samples and eight inputs, each turned by one instruction.
        for (int square = 0; square < 8; ++square) {
            for (int s = 0; s < 8; ++s) p.bytes[square * 8 + 7 - s] = (8 * (square / 4) + s) * 4 + square % 4;
        }
        for (int octet = 0; octet < OCTETS_OF_WORD; ++octet) {
            for (int lane = 0; lane < LANES; ++lane) {
                for (int part = 0; part < 4; ++part) {  // of the 32 samples
                    p.pairs[octet][lane * 4 + part] = part / 2 * 64 + (part % 2 * 4 + octet) * 8 + lane / 2;
                }
            }
        }
        return p;
    }();
    __m512i squares[2];
    for (int r = 0; r < 2; ++r) {
        const __m512i gathered = _mm512_permutexvar_epi8(_mm512_load_si512(places.bytes), (__m512i)(samples[r] & used));
        squares[r] = _mm512_gf2p8affine_epi64_epi8(_mm512_set1_epi64(0x8040201008040201LL), gathered, 0);
    }
    for (int octet = 0; octet < OCTETS_OF_WORD; ++octet) {
        inputs[octet] = (vu)_mm512_permutex2var_epi8(squares[0], _mm512_load_si512(places.pairs[octet]), squares[1]);
    }
#elif defined(__AVX2__)
    uint32_t words[WORD];
    // The bytes of four samples side by side, then those of all 32; the top bits of 32 bytes are a word of one input.
    __m256i rows[4], pairs[4], bytes[4];
    const __m256i by_byte = _mm256_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, 0, 4, 8, 12, 1, 5, 9,
                                             13, 2, 6, 10, 14, 3, 7, 11, 15);
    for (int r = 0; r < 4; ++r) {
        __builtin_memcpy(&rows[r], reinterpret_cast<const char*>(samples) + 32 * r, 32);
        rows[r] = _mm256_shuffle_epi8(_mm256_and_si256(rows[r], _mm256_set1_epi32(static_cast<int>(used))), by_byte);
    }
    for (int r = 0; r < 4; r += 2) {
        pairs[r] = _mm256_unpacklo_epi32(rows[r], rows[r + 1]), pairs[r + 1] = _mm256_unpackhi_epi32(rows[r], rows[r + 1]);
    }
    for (int half = 0; half < 2; ++half) {
        bytes[2 * half] = _mm256_unpacklo_epi64(pairs[half], pairs[half + 2]);
        bytes[2 * half + 1] = _mm256_unpackhi_epi64(pairs[half], pairs[half + 2]);
    }
    for (int byte = 0; byte < 4; ++byte) {
        __m256i left = _mm256_permutevar8x32_epi32(bytes[byte], _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
        for (int bit = 8; bit-- > 0;) {
            words[8 * byte + bit] = static_cast<uint32_t>(_mm256_movemask_epi8(left));
            left = _mm256_add_epi8(left, left);
        }
    }
    for (int i = 0; i < WORD; ++i) {
        for (int unit = 0; unit < 2; ++unit) inputs[(2 * i + unit) / LANES][(2 * i + unit) % LANES] = words[i];
    }
#else
    vu a[8];
    for (int r = 0; r < 8; ++r) a[r] = samples[r] & used;
    for (int r = 0; r < 4; ++r) exchange<16>(a[r], a[r + 4]);
    for (int r = 0; r < 8; r += r % 2 == 1 ? 3 : 1) exchange<8>(a[r], a[r + 2]);
    for (int r = 0; r < 8; r += 2) {
        exchange<4>(a[r], a[r + 1]);
        vu low = __builtin_shufflevector(a[r], a[r + 1], 0, 1, 4, 5), high = __builtin_shufflevector(a[r], a[r + 1], 2, 3, 6, 7);
        exchange<2>(low, high);
        vu even = __builtin_shufflevector(low, high, 0, 4, 2, 6), odd = __builtin_shufflevector(low, high, 1, 5, 3, 7);
        exchange<1>(even, odd);
        vu* to = inputs + 2 * r;  // of these eight words
        to[0] = __builtin_shufflevector(even, odd, 0, 0, 4, 4), to[1] = __builtin_shufflevector(even, odd, 1, 1, 5, 5);
        to[2] = __builtin_shufflevector(even, odd, 2, 2, 6, 6), to[3] = __builtin_shufflevector(even, odd, 3, 3, 7, 7);
    }
#endif
}

// Adds lanes of equal parity, from those that are APART lanes from each other on.
template <int APART>
PARITYLAB_INLINE vf fold_lanes(vf sum) {
    if constexpr (APART < 2) {
        return sum;
    } else {
        return [&]<int... I>(std::integer_sequence<int, I...>) {
            return fold_lanes<APART / 2>(sum + __builtin_shufflevector(sum, sum, (I ^ APART)...));
        }(std::make_integer_sequence<int, LANES>{});
    }
}

// A sum over inputs for a pair of units: of sixteen chains, even and odd octets apart, so that none waits for itself.
struct PairSum {
    vf chains[2][SETS]{};

    // Of register i of a pair.
    PARITYLAB_INLINE void add(int i, vf a, vf b) {
        vf& chain = chains[i / SETS & 1][i % SETS];
        chain = fma(a, b, chain);
    }
    PARITYLAB_INLINE vf lanes() const {
        vf sums[SETS];
        for (int s = 0; s < SETS; ++s) sums[s] = chains[0][s] + chains[1][s];
        for (int half = SETS / 2; half > 0; half /= 2) {
            for (int s = 0; s < half; ++s) sums[s] += sums[s + half];
        }
        return sums[0];
    }
    // In even lanes that of one unit, in odd lanes that of the other.
    PARITYLAB_INLINE vf total() const { return fold_lanes<LANES / 2>(lanes()); }
    // The same of two pairs of units, the second in the upper half.
    PARITYLAB_INLINE static vf totals(const PairSum& a, const PairSum& b) {
        return fold_lanes<LANES / 4>(fold_halves<LANES / 2>(a.lanes(), b.lanes()));
    }
};

// What is counted of a block, 32 samples after the other: the inputs, turned; where the loss is flat, and which way it slopes;
// and in which samples the units of each pair are active.
class Counts {
    struct Slopes {
        uint32_t going[2], minus[2];  // a word of samples for either unit of a pair
    };

public:
    Counts(const Config& config, int pairs, int octets, int words_of_samples)
        : pairs_(pairs), words_(config.words()),
          used_of_last_(~0u >> (words_ * 32 - config.inputs)),
          stride_(static_cast<size_t>(std::max(octets, words_ * OCTETS_OF_WORD)) * SETS),
          inputs_(words_of_samples * stride_),
          slopes_(words_of_samples),
          active(static_cast<size_t>(words_of_samples) * pairs) {}

    // Of 32 samples from s on, before they go forward.
    void put(const SamplesInLanes::Inputs& inputs, int s) {
        vu* to = &inputs_[s / WORD * stride_];
        for (int word = 0; word < words_; ++word) {
            turn(inputs.word(s, word), word + 1 < words_ ? ~0u : used_of_last_, to + word * OCTETS_OF_WORD * SETS);
        }
    }

    // Of these, when they are back: in which the loss is not flat, and in which its slope is not -1.
    void put(int s, uint32_t going, uint32_t minus) { slopes_[s / WORD] = {{going, going}, {minus, minus}}; }

    // What is the same for all pairs of units.
    struct Block {
        const vu* inputs;
        const uint64_t* active;
        const Slopes* slopes;
        size_t stride;
        int pairs, words;  // of samples
    };
    Block block(int words) const { return {inputs_.data(), active.data(), slopes_.data(), stride_, pairs_, words}; }

    // Counts for REGISTERS of a pair, of which the first is number `first`: of unequal less that of equal inputs and labels.
    // The first word of samples has been compared already.
    template <int REGISTERS, bool ONE_WORD>
    PARITYLAB_INLINE static void count(const Block& b, const vu* compared, int pair, int first, vf (&counts)[REGISTERS]) {
        const vu on = broadcast_pair(b.active + pair) & broadcast_pair(b.slopes[0].going);
        vu all = popcount(on), unequal[REGISTERS];
#pragma GCC unroll 16
        for (int i = 0; i < REGISTERS; ++i) unequal[i] = popcount(compared[first + i] & on);
        if (!ONE_WORD) {
            for (int word = 1; word < b.words; ++word) {
                const vu minus = broadcast_pair(b.slopes[word].minus);
                const vu here = broadcast_pair(b.active + static_cast<size_t>(word) * b.pairs + pair) & broadcast_pair(b.slopes[word].going);
                const vu* inputs = b.inputs + word * b.stride + first;
                all += popcount(here);
#pragma GCC unroll 16
                for (int i = 0; i < REGISTERS; ++i) unequal[i] += popcount((inputs[i] ^ minus) & here);
            }
        }
        const vf less = -__builtin_convertvector((vi)all, vf);
#pragma GCC unroll 16
        for (int i = 0; i < REGISTERS; ++i) counts[i] = fma(broadcast(2.0f), __builtin_convertvector((vi)unequal[i], vf), less);
    }

private:
    int pairs_, words_;  // of inputs
    uint32_t used_of_last_;
    size_t stride_;
    std::vector<vu> inputs_;  // [32 samples][octet]; an input beyond the last is always +1
    std::vector<Slopes> slopes_;

public:
    std::vector<uint64_t> active;  // [32 samples][pair]: those of the even unit, then those of the odd one
};

}  // namespace paritylab::PARITYLAB_ISA
