// Many random words of one key, LANES at a time.
#pragma once

#include <cstring>

#include "simd.h"
#include "threefry.h"

namespace paritylab::PARITYLAB_ISA {

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
