// Compiled once per instruction set; PARITYLAB_ISA is its name.
#include "supports.h"

#include "enumeration.h"
#include "meeting.h"

namespace paritylab::PARITYLAB_ISA {

#define PARITYLAB_TEXT(x) #x
#define PARITYLAB_NAME(x) PARITYLAB_TEXT(x)

int64_t count_words(int64_t times) {
    using namespace supports;
    constexpr int AT_ONCE = 4;
    alignas(64) uint64_t words[1024];
    for (uint64_t i = 0; i < 1024; ++i) words[i] = i * 0x9E3779B97F4A7C15u;
    vw sums[AT_ONCE]{};
    for (int64_t time = 0; time < times; ++time) {
        for (int j = 0; j < 1024; j += AT_ONCE * LANES) {
            for (int i = 0; i < AT_ONCE; ++i) sums[i] += popcount(load(words + j + i * LANES) ^ time);
        }
    }
    int64_t total = 0;
    for (const vw& sum : sums) {
        for (int lane = 0; lane < LANES; ++lane) total += sum[lane];
    }
    return total;
}

Searches searches() {
    const auto enumerate = [](Evidence evidence, int size, size_t first) -> std::unique_ptr<Search> {
        return std::make_unique<supports::Enumeration>(std::move(evidence), size, first);
    };
    const auto meet = [](Evidence evidence, int size, Keys keys) -> std::unique_ptr<Search> {
        if (size == 3) return std::make_unique<supports::Triples>(std::move(evidence), std::move(keys));
        return std::make_unique<supports::Quadruples>(std::move(evidence), std::move(keys));
    };
    return {PARITYLAB_NAME(PARITYLAB_ISA), enumerate, meet, count_words};
}

}  // namespace paritylab::PARITYLAB_ISA
