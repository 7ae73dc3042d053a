// The layout of one run at a time whose samples are in the lanes: batches of some twenty and more, and what a run is judged on.
//
// Inputs stay packed, a word of 32 in each lane of a sample. They are unpacked twice: by fives for the way forward (sums.h)
// and, turned round, as a word for each input with a bit for each sample, for the way back (counts.h).
#pragma once

#include <algorithm>
#include <vector>

#include "config.h"
#include "layouts.h"
#include "sums.h"
#include "threefry.h"
#include "words.h"

namespace paritylab::PARITYLAB_ISA {

inline constexpr int WORD = 32;                        // samples whose bits are counted together
inline constexpr int REGISTERS_OF_WORD = WORD / LANES;  // of samples

// Where a register of labels, outputs and slopes has those of as many samples.
struct PackedSamples {
    static constexpr int PACKED = LANES;
    static constexpr int EXAMPLES = LANES;

    static vu example_index(uint32_t first) { return broadcast(first) + iota(); }
    template <class Vector, class Value>
    static void put(Vector* all, int s, int /*slot*/, Value value) {
        all[s / LANES][s % LANES] = value;
    }
    static uint32_t get(const vu* all, int s, int /*slot*/) { return all[s / LANES][s % LANES]; }
    static void spread(vf values, int s, int /*count*/, vf* out) { out[s / LANES] = values; }
    static void draw_words(const Key<vu>& key, uint32_t first, int count, vu* out, uint32_t each = 1, uint32_t place = 0) {
        for (int s = 0; s < count; s += LANES) {
            out[s / LANES] = random_bits(key, (broadcast(first + s) + iota()) * each + place);
        }
    }
};

struct SamplesInLanes : PackedSamples {
    static constexpr int SLOTS = 1;
    static constexpr int BLOCK = 1024;

    static Place place(int /*unit*/, int /*slot*/) { return {0, 0}; }
    template <class Vector, class Value>
    static void set(Vector& v, int /*slot*/, Value value) {
        v = value - Vector{};
    }

    // The words of the step after the one that is drawn, where a batch has 32 samples of one word at most.
    struct Ahead {
        Key<uint32_t> next;
        bool drawn = false;
        vu words[REGISTERS_OF_WORD];
    };

    class Inputs {
    public:
        explicit Inputs(const Config& config) : words_(config.words()), bits_(static_cast<size_t>(words_) * (BLOCK / LANES)) {}

        // Samples [first, first + count) of the key, and in y the parity over the mask. Those of the step after it may be drawn
        // beside them: a chain of rounds alone would wait for itself.
        PARITYLAB_INLINE void draw(const Key<vu>& key, uint32_t first, int count, const vu* mask, vf* y,
                  Ahead* ahead = nullptr) {
            if (!SMALL && ahead && words_ == 1) {
                draw_two(key, *ahead);
            } else {
                const int all = (count + WORD - 1) / WORD * REGISTERS_OF_WORD * words_;
                int i = 0;
                for (; i + 4 <= all; i += 4) draw_some<4>(key, first, i);
                if (REGISTERS_OF_WORD % 4 != 0 && i < all) draw_some<2>(key, first, i);
            }
            for (int s = 0; s < count; s += LANES) {
                vu masked = bits_[place(s, 0)] & mask[0];
                for (int w = 1; w < words_; ++w) masked ^= bits_[place(s, w)] & mask[w];
                y[s / LANES] = sign_of(parity_to_sign(masked));
            }
        }

        void put(int /*slot*/, int s, const uint32_t* words) {
            for (int w = 0; w < words_; ++w) bits_[place(s, w)][s % LANES] = words[w];
        }
        // Samples from s on, a register of them, as they were drawn.
        void put_drawn(int s, int /*count*/, const vu* words) {
            for (int w = 0; w < words_; ++w) bits_[place(s, w)] = words[w];
        }
        // All that there are, or those from one of the first 32 on.
        void copy(const Inputs& from, int count) { std::copy_n(from.bits_.begin(), place((count + WORD - 1) / WORD * WORD, 0), bits_.begin()); }
        void copy_first(const Inputs& from, int s) {
            for (int w = 0; w < words_; ++w) std::copy(&from.bits_[place(s, w)], &from.bits_[place(0, w + 1)], &bits_[place(0, w)]);
        }

        uint32_t bits(int word, int s, int /*lane*/) const { return bits_[place(s, word)][s % LANES]; }

        // Of 32 samples from s on, a register for each LANES of them.
        const vu* word(int s, int word) const { return &bits_[place(s, word)]; }

        // Bits 30 i to 30 i + 29 of register r of samples from s on.
        Thirty thirty(int s, int i, int r) const {
            const int word = THIRTY * i / 32, shift = THIRTY * i % 32;
            vu bits = bits_[place(s, word) + r] >> shift;
            if (shift > 2 && word + 1 < words_) bits |= bits_[place(s, word + 1) + r] << (32 - shift);
            return Thirty(bits);
        }

    private:
        size_t place(int s, int word) const {
            return (static_cast<size_t>(s / WORD) * words_ + word) * REGISTERS_OF_WORD + s % WORD / LANES;
        }

        // Registers i to i + COUNT - 1: one chain of rounds alone would wait for itself.
        template <int COUNT>
        PARITYLAB_ONCE void draw_some(const Key<vu>& key, uint32_t first, int i) {
            vu index[COUNT];
            for (int k = 0; k < COUNT; ++k) {
                const uint32_t r = (i + k) % REGISTERS_OF_WORD, word = (i + k) / REGISTERS_OF_WORD;
                const uint32_t sample = first + word / words_ * WORD + r * LANES;
                index[k] = (iota() + sample) * static_cast<uint32_t>(words_) + word % words_;
            }
            Chains([&](int) __attribute__((always_inline)) -> const Key<vu>& { return key; }, index).draw();
            std::copy_n(index, COUNT, &bits_[i]);
        }

        // Of 32 samples of this step and the next, which then are there already.
        PARITYLAB_INLINE void draw_two(const Key<vu>& key, Ahead& ahead) {
            constexpr int R = REGISTERS_OF_WORD;
            if (ahead.drawn) {
                std::copy_n(ahead.words, R, bits_.data());
            } else {
                const Key<vu> then{broadcast(ahead.next.a), broadcast(ahead.next.b)};
                vu both[2 * R];
                for (int i = 0; i < 2 * R; ++i) both[i] = iota() + static_cast<uint32_t>(i % R * LANES);
                Chains([&](int i) __attribute__((always_inline)) -> const Key<vu>& { return i < R ? key : then; }, both).draw();
                std::copy_n(both, R, bits_.data());
                std::copy_n(both + R, R, ahead.words);
            }
            ahead.drawn = !ahead.drawn;
        }

        int words_;
        std::vector<vu> bits_;  // [32 samples][word][register of samples]
    };
};

}  // namespace paritylab::PARITYLAB_ISA
