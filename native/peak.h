// The yardstick: how many floating-point operations per second this core can do when nothing else is in the way.
#pragma once

#include <chrono>

#include "simd.h"

namespace paritylab::PARITYLAB_ISA {

inline double fma_flops(double seconds) {
    using Clock = std::chrono::steady_clock;
    constexpr int CHAINS = REGISTERS == 32 ? 20 : 10;  // more than latency times throughput, fewer than the registers
    constexpr int ROUNDS = 10000;
    const vf half = broadcast(0.5f);
    vf sums[CHAINS];
    for (int i = 0; i < CHAINS; ++i) sums[i] = broadcast(1.0f + i);
    double fmas = 0;
    const auto start = Clock::now();
    double elapsed;
    do {
        for (int round = 0; round < ROUNDS; ++round) {
#pragma GCC unroll 32
            for (int i = 0; i < CHAINS; ++i) sums[i] = fma(sums[i], half, half);
        }
        fmas += double(ROUNDS) * CHAINS * LANES;
        elapsed = std::chrono::duration<double>(Clock::now() - start).count();
    } while (elapsed < seconds);
    vf total{};
    for (const vf& sum : sums) total += sum;
    volatile float keep = total[0];  // or the compiler would see that nobody asks for the sums
    (void)keep;
    return 2 * fmas / elapsed;
}

}  // namespace paritylab::PARITYLAB_ISA
