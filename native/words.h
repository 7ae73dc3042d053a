// Many random words of one key, LANES at a time.
#pragma once

#include <algorithm>
#include <cstring>

#include "simd.h"
#include "threefry.h"

namespace paritylab::PARITYLAB_ISA {

inline void draw_words(Key<uint32_t> key, uint32_t count, uint32_t* out) {
    const Key<vu> keys{broadcast(key.a), broadcast(key.b)};
    for (uint32_t left = count; left > 0;) {
        const vu words = random_bits(keys, broadcast(count - left) + iota());
        const uint32_t here = std::min<uint32_t>(LANES, left);
        std::memcpy(out + (count - left), &words, sizeof(uint32_t) * here);
        left -= here;
    }
}

}  // namespace paritylab::PARITYLAB_ISA
