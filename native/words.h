// Many random words of one key, LANES at a time.
#pragma once

#include <cstring>

#include "simd.h"
#include "threefry.h"

namespace paritylab::PARITYLAB_ISA {

// random_bits of several registers of indices, of which number i has the key of(i), number by number: one chain of rounds
// alone waits for its own results.
template <int COUNT, class KeyOf>
class Chains {
public:
    PARITYLAB_INLINE Chains(const KeyOf& of, vu (&index)[COUNT]) : of_(of), y_(index) {
#pragma GCC unroll 16
        for (int i = 0; i < COUNT; ++i) x_[i] = of_(i).a, y_[i] += of_(i).b, third_[i] = of_(i).a ^ of_(i).b ^ 0x1BD11BDAu;
    }

    PARITYLAB_INLINE void draw() {
        four<13, 15, 26, 6>(), inject<1>(), four<17, 29, 16, 24>(), inject<2>(), four<13, 15, 26, 6>(), inject<3>();
        four<17, 29, 16, 24>(), inject<4>(), four<13, 15, 26, 6>(), inject<5>();
#pragma GCC unroll 16
        for (int i = 0; i < COUNT; ++i) y_[i] ^= x_[i];
    }

private:
    template <int R0, int R1, int R2, int R3>
    PARITYLAB_INLINE void four() {
        one<R0>(), one<R1>(), one<R2>(), one<R3>();
    }
    template <int R>
    PARITYLAB_INLINE void one() {
#pragma GCC unroll 16
        for (int i = 0; i < COUNT; ++i) x_[i] += y_[i];
#pragma GCC unroll 16
        for (int i = 0; i < COUNT; ++i) y_[i] = rotate_left<R>(y_[i]) ^ x_[i];
    }
    template <int PLACE>
    PARITYLAB_INLINE vu part(int i) const {
        return PLACE % 3 == 0 ? of_(i).a : PLACE % 3 == 1 ? of_(i).b : third_[i];
    }
    template <uint32_t ROUND>
    PARITYLAB_INLINE void inject() {
#pragma GCC unroll 16
        for (int i = 0; i < COUNT; ++i) x_[i] += part<ROUND>(i), y_[i] += part<ROUND + 1>(i) + ROUND;
    }

    const KeyOf& of_;
    vu (&y_)[COUNT];
    vu x_[COUNT], third_[COUNT];
};

inline void draw_words(Key<uint32_t> key, uint32_t count, uint32_t* out) {
    const Key<vu> keys{broadcast(key.a), broadcast(key.b)};
    uint32_t first = 0;
    for (; count - first >= LANES; first += LANES) {
        const vu words = random_bits(keys, broadcast(first) + iota());
        std::memcpy(out + first, &words, sizeof words);
    }
    const vu words = random_bits(keys, broadcast(first) + iota());
    std::memcpy(out + first, &words, sizeof(uint32_t) * (count - first));
}

}  // namespace paritylab::PARITYLAB_ISA
