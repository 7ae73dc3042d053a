// Searches in threads, and the choice of their instruction set.
#include "supports.h"
#include "threads.h"

namespace paritylab {

#if defined(__x86_64__)
namespace avx512 {
Searches searches();
}
namespace avx2 {
Searches searches();
}
#endif
namespace baseline {
Searches searches();
}

const std::vector<Searches>& supported_searches() {
    static const std::vector<Searches> all = [] {
        std::vector<Searches> found;
#if defined(__x86_64__)
        __builtin_cpu_init();
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512vpopcntdq") && __builtin_cpu_supports("popcnt")) {
            found.push_back(avx512::searches());
        }
        if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt")) found.push_back(avx2::searches());
#endif
        found.push_back(baseline::searches());
        return found;
    }();
    return all;
}

void Search::advance(int threads, Moment pause, Moment end) {
    const uint32_t most = hits_.errors;
    in_threads(std::max(threads, 1), [&](size_t) {
        Hits found(most);
        try {
            for (size_t task = next_++; task < tasks(); task = next_++) {
                run(task, found, end);
                if (std::chrono::steady_clock::now() >= pause) break;
            }
        } catch (const Cut&) {
            cut_ = true;
        }
        const std::lock_guard lock(mutex_);
        hits_.join(found);
    });
}

}  // namespace paritylab
