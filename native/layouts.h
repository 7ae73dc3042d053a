// What the lanes of a register stand for: runs, or units of one run. The kernel is written once for both.
//
// A layout says how many runs a group holds (SLOTS), where a unit's parameters live (place), how lanes add up to one
// run's output (sum), how inputs are drawn and become numbers (Inputs), how many samples go through the network together
// (BLOCK), how many of them share a register of labels (PACKED), how wide a tile may be (MAX_UNITS, measured) and how
// many registers of it belong together (WHOLE).
// Per-run values, such as learning rates and keys, are registers too: one lane each, or the same value in all.
#pragma once

#include <vector>

#include "config.h"
#include "simd.h"
#include "threefry.h"

namespace paritylab::PARITYLAB_ISA {

// Where a unit's parameters are: which of the layer's registers, and which lane of it.
struct Place {
    int vector, lane;
};

// Small networks: lane l of every register belongs to the run in slot l. Inputs stay packed until they are used, as signs
// or as bits.
template <bool BITS>
struct RunsInLanesReading {
    static constexpr int SLOTS = LANES;
    static constexpr int BLOCK = 32;
    static constexpr int PACKED = 1;
    static constexpr int PARTIAL_SUMS = 1;
    static constexpr int WHOLE = 1;
    static constexpr int MAX_UNITS = REGISTERS == 32 ? 10 : 5;  // unpacking an x is dear: let many units share it

    static int vectors(int width) { return width; }
    static Place place(int unit, int slot) { return {unit, slot}; }
    static vi valid(int /*vector*/, int /*width*/) { return vi{} == 0; }
    static vu unit_index(int vector) { return broadcast(static_cast<uint32_t>(vector)); }
    static vf sum(const vf (&partial)[PARTIAL_SUMS]) { return partial[0]; }
    template <class Vector, class Value>
    static void set(Vector& v, int slot, Value value) {
        v[slot] = value;
    }
    // Of registers with a value for each sample, that of sample s.
    template <class Vector, class Value>
    static void put(Vector* all, int s, int slot, Value value) {
        set(all[s], slot, value);
    }
    static uint32_t get(const vu* all, int s, int slot) { return all[s][slot]; }

    // Examples are drawn one at a time, each run's own.
    static constexpr int EXAMPLES = 1;
    static vu example_index(uint32_t first) { return broadcast(first); }
    static void spread(vf value, int s, int /*count*/, vf* out) { out[s] = value; }

    // out[s] = word number `place` of the `each` words of example first + s, of each run's key
    static void draw_words(const Key<vu>& key, uint32_t first, int count, vu* out, uint32_t each = 1, uint32_t place = 0) {
        for (int s = 0; s < count; ++s) out[s] = random_bits(key, broadcast((first + s) * each + place));
    }

    class Inputs {
    public:
        explicit Inputs(const Config& config) : words_(config.words()), bits_(words_ * BLOCK) {}

        // Samples [first, first + count) of each run's key, and in y the parity over each run's mask.
        void draw(const Key<vu>& key, uint32_t first, int count, const vu* mask, vf* y) {
            for (int s = 0; s < count; ++s) {
                vu masked{};
                for (int w = 0; w < words_; ++w) {
                    const vu word = random_bits(key, broadcast((first + s) * words_ + w));
                    bits_[w * BLOCK + s] = word;
                    masked ^= word & mask[w];
                }
                y[s] = sign_of(parity_to_sign(masked));
            }
        }

        void put(int slot, int s, const uint32_t* words) {
            for (int w = 0; w < words_; ++w) bits_[w * BLOCK + s][slot] = words[w];
        }

        // Samples from s on, as they were drawn.
        void put_drawn(int s, int /*count*/, const vu* words) {
            for (int w = 0; w < words_; ++w) bits_[w * BLOCK + s] = words[w];
        }

        struct Row {
            vu word;
            vf operator()(int bit) const { return BITS ? bit_of(word << (31 - bit)) : sign_of(word << (31 - bit)); }
        };
        Row row(int word, int s) const { return {bits_[word * BLOCK + s]}; }
        uint32_t bits(int word, int s, int lane) const { return bits_[word * BLOCK + s][lane]; }

    private:
        int words_;
        std::vector<vu> bits_;
    };
};
using RunsInLanes = RunsInLanesReading<false>;

// Wide networks, of which a register's worth of copies would outgrow the cache: the lanes are neighbouring units of
// one run. Units that pad the last register have parameters that stay 0.
template <int SAMPLES>
struct UnitsInLanesBy {
    static constexpr int SLOTS = 1;
    static constexpr int BLOCK = SAMPLES;
    static constexpr int PACKED = 1;
    static constexpr int WHOLE = 1;
    static constexpr int PARTIAL_SUMS = 16 / LANES;  // sixteen sums on every instruction set, so that all agree
    static constexpr int MAX_UNITS = REGISTERS == 32 ? 5 : 3;  // an x costs one load, like a weight: square tiles

    static int vectors(int width) { return (width + LANES - 1) / LANES; }
    static Place place(int unit, int /*slot*/) { return {unit / LANES, unit % LANES}; }
    static vu unit_index(int vector) { return broadcast(static_cast<uint32_t>(vector * LANES)) + iota(); }
    static vi valid(int vector, int width) { return unit_index(vector) < static_cast<uint32_t>(width); }
    static vf sum(const vf (&partial)[PARTIAL_SUMS]) {
        float t[16];
        for (int i = 0; i < 16; ++i) t[i] = partial[i / LANES][i % LANES];
        for (int half = 8; half > 0; half /= 2) {
            for (int i = 0; i < half; ++i) t[i] += t[i + half];
        }
        return broadcast(t[0]);
    }
    template <class Vector, class Value>
    static void set(Vector& v, int /*slot*/, Value value) {
        v = value - Vector{};
    }
    template <class Vector, class Value>
    static void put(Vector* all, int s, int slot, Value value) {
        set(all[s], slot, value);
    }
    static uint32_t get(const vu* all, int s, int /*slot*/) { return all[s][0]; }

    // A register of examples is drawn at a time.
    static constexpr int EXAMPLES = LANES;
    static vu example_index(uint32_t first) { return broadcast(first) + iota(); }
    static void spread(vf values, int s0, int count, vf* out) {
        for (int s = s0; s < count && s < s0 + LANES; ++s) out[s] = broadcast(values[s - s0]);
    }

    static void draw_words(const Key<vu>& key, uint32_t first, int count, vu* out, uint32_t each = 1, uint32_t place = 0) {
        for (int s0 = 0; s0 < count; s0 += LANES) {
            const vu words = random_bits(key, (broadcast(first + s0) + iota()) * each + place);
            for (int s = s0; s < count && s < s0 + LANES; ++s) out[s] = broadcast(words[s - s0]);
        }
    }

    // Every register of a sample needs the same x_j, so the inputs are unpacked once, to be broadcast from memory.
    class Inputs {
    public:
        explicit Inputs(const Config& config)
            : words_(config.words()), on_(config.bits ? 1.0f : -1.0f), off_(config.bits ? 0.0f : 1.0f), x_(words_ * BLOCK * 32) {}

        void draw(const Key<vu>& key, uint32_t first, int count, const vu* mask, vf* y) {
            for (int s0 = 0; s0 < count; s0 += LANES) {
                const int chunk = count - s0 < LANES ? count - s0 : LANES;
                vu masked{};
                for (int w = 0; w < words_; ++w) {
                    const vu words = random_bits(key, (broadcast(first + s0) + iota()) * words_ + w);
                    masked ^= words & mask[w];
                    for (int i = 0; i < chunk; ++i) unpack(w, s0 + i, words[i]);
                }
                const vf signs = sign_of(parity_to_sign(masked));
                for (int i = 0; i < chunk; ++i) y[s0 + i] = broadcast(signs[i]);
            }
        }

        void put(int /*slot*/, int s, const uint32_t* words) {
            for (int w = 0; w < words_; ++w) unpack(w, s, words[w]);
        }

        void put_drawn(int s0, int count, const vu* words) {
            for (int w = 0; w < words_; ++w) {
                for (int s = s0; s < count && s < s0 + LANES; ++s) unpack(w, s, words[w][s - s0]);
            }
        }

        struct Row {
            const float* x;
            vf operator()(int bit) const { return broadcast(x[bit]); }
        };
        Row row(int word, int s) const { return {&x_[(word * BLOCK + s) * 32]}; }
        uint32_t bits(int word, int s, int /*lane*/) const {
            uint32_t found = 0;
            for (int bit = 0; bit < 32; ++bit) found |= uint32_t{row(word, s).x[bit] == on_} << bit;
            return found;
        }

    private:
        void unpack(int word, int s, uint32_t bits) {
            float* x = &x_[(word * BLOCK + s) * 32];
            for (int bit = 0; bit < 32; ++bit) x[bit] = (bits >> bit) & 1 ? on_ : off_;
        }

        int words_;
        float on_, off_;  // what an input of -1 is read as, and one of +1
        std::vector<float> x_;
    };
};
using UnitsInLanes = UnitsInLanesBy<SMALL ? 64 : 32>;  // on a page those of deep networks

}  // namespace paritylab::PARITYLAB_ISA
