// Runs CUDA kernels on a CPU, for tests: the threads of a block are fibers, and whatever exchanges something between
// lanes waits until all lanes of the warp (or block) have come to the same line. Blocks run one after the other.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#ifndef __x86_64__
#include <ucontext.h>
#endif

#define __device__
#define __global__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __restrict__
#define __shared__ static

namespace emulator {

struct Dim {
    unsigned x = 0, y = 0, z = 0;
};

constexpr int MOST_THREADS = 1024, STACK = 1 << 17;

// Lanes that wait for each other. `line` is where the first of them came to wait.
struct Meeting {
    int members = 0, arrived = 0, line = 0;
    uint64_t number = 0;
};

struct Warp {
    Meeting meeting;
    uint64_t values[2][32];                      // what each lane brought; the meetings alternate between two
    float a[2][16][16], b[2][8][16];             // the factors of a matrix product, b by columns
};

// Four floats on their way, of a group that was closed after so many others.
struct Sent {
    float* to;
    const float* from;
    int group;
};

struct Fiber {
#ifdef __x86_64__
    void* stack_pointer;
#else
    ucontext_t context;
#endif
    char* stack = nullptr;
    bool ended = false;
    const Meeting* waits = nullptr;
    uint64_t waits_beyond = 0;
    std::vector<Sent> sent;                      // to shared memory, and not waited for
    int groups = 0;
    Dim thread;
};

inline Fiber fibers[MOST_THREADS], scheduler;
inline Fiber* current = nullptr;
inline Warp warps[MOST_THREADS / 32];
inline Meeting block_meeting;
inline int votes[2];
inline Dim block_index, block_size, grid_size;
inline void (*body)();
inline const char* failure = nullptr;
inline float* shared_memory = nullptr;

#ifdef __x86_64__
extern "C" void emulator_switch(void** from, void* to) __attribute__((visibility("hidden")));
asm(R"(
.text
.hidden emulator_switch
.globl emulator_switch
.type emulator_switch, @function
emulator_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
)");
inline void change(Fiber& from, Fiber& to) { emulator_switch(&from.stack_pointer, to.stack_pointer); }
#else
inline void change(Fiber& from, Fiber& to) { swapcontext(&from.context, &to.context); }
#endif

inline void leave() {
    change(*current, scheduler);
}

inline void run_fiber() {
    body();
    current->ended = true;
    leave();
}

inline void prepare(Fiber& fiber) {
    if (!fiber.stack) fiber.stack = static_cast<char*>(malloc(STACK));
    fiber.ended = false;
    fiber.waits = nullptr;
    fiber.sent.clear(), fiber.groups = 0;
#ifdef __x86_64__
    void** top = reinterpret_cast<void**>((reinterpret_cast<uintptr_t>(fiber.stack) + STACK) & ~uintptr_t{15});
    *--top = nullptr;                                    // keeps the stack aligned as after a call
    *--top = reinterpret_cast<void*>(&run_fiber);        // where the first switch returns to
    for (int i = 0; i < 6; ++i) *--top = nullptr;        // the registers it restores
    fiber.stack_pointer = top;
#else
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack;
    fiber.context.uc_stack.ss_size = STACK;
    makecontext(&fiber.context, run_fiber, 0);
#endif
}

// Waits for the others; returns the number of this meeting.
inline uint64_t meet(Meeting& meeting, int line) {
    const uint64_t number = meeting.number;
    if (meeting.arrived == 0) meeting.line = line;
    if (meeting.line != line) {
        static char text[100];
        snprintf(text, sizeof text, "lanes diverge: some wait at line %d, some at line %d", meeting.line, line);
        failure = text;
        leave();
    }
    if (++meeting.arrived == meeting.members) {
        meeting.arrived = 0;
        ++meeting.number;
        return number;
    }
    current->waits = &meeting;
    current->waits_beyond = number;
    leave();
    return number;
}

inline Warp& my_warp() { return warps[current->thread.x / 32]; }
inline int my_lane() { return current->thread.x % 32; }

inline uint64_t* exchange(uint64_t value, unsigned mask, int line) {
    if (mask != 0xffffffffu) failure = "a mask that is not the whole warp", leave();
    Warp& warp = my_warp();
    warp.values[warp.meeting.number & 1][my_lane()] = value;
    return warp.values[meet(warp.meeting, line) & 1];
}

template <class T>
inline uint64_t to_word(T value) {
    uint64_t word = 0;
    memcpy(&word, &value, sizeof value);
    return word;
}
template <class T>
inline T from_word(uint64_t word) {
    T value;
    memcpy(&value, &word, sizeof value);
    return value;
}

// One launch; null, or what went wrong.
inline const char* launch(int blocks, int threads, float* shared, void (*kernel)()) {
    body = kernel;
    failure = nullptr;
    shared_memory = shared;
    block_size.x = threads, grid_size.x = blocks;
    for (int block = 0; block < blocks; ++block) {
        block_index.x = block;
        for (int i = 0; i < threads; ++i) prepare(fibers[i]), fibers[i].thread.x = i;
        for (int w = 0; w < threads / 32; ++w) warps[w].meeting = Meeting{32};
        block_meeting = Meeting{threads};
        votes[0] = votes[1] = 0;
        for (int left = threads; left > 0;) {
            bool moved = false;
            for (int i = 0; i < threads; ++i) {
                Fiber& fiber = fibers[i];
                if (fiber.ended || (fiber.waits && fiber.waits->number == fiber.waits_beyond)) continue;
                fiber.waits = nullptr;
                current = &fiber;
                change(scheduler, fiber);
                if (failure) return failure;
                moved = true;
                left -= fiber.ended;
            }
            if (!moved) return "lanes wait for others that never come";
        }
    }
    return nullptr;
}

inline float from_bf16(uint32_t half) { return from_word<float>(uint64_t{half & 0xffffu} << 16); }

}  // namespace emulator

#define threadIdx (emulator::current->thread)
#define blockIdx emulator::block_index
#define blockDim emulator::block_size
#define gridDim emulator::grid_size

template <class T>
inline T __shfl_sync(unsigned mask, T value, int source, int line = __builtin_LINE()) {
    return emulator::from_word<T>(emulator::exchange(emulator::to_word(value), mask, line)[source & 31]);
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int distance, int line = __builtin_LINE()) {
    const int lane = emulator::my_lane();
    return emulator::from_word<T>(emulator::exchange(emulator::to_word(value), mask, line)[lane ^ distance]);
}
inline unsigned __ballot_sync(unsigned mask, bool vote, int line = __builtin_LINE()) {
    const uint64_t* all = emulator::exchange(vote, mask, line);
    unsigned result = 0;
    for (int i = 0; i < 32; ++i) result |= unsigned(all[i]) << i;
    return result;
}
inline bool __any_sync(unsigned mask, bool vote, int line = __builtin_LINE()) {
    return __ballot_sync(mask, vote, line) != 0;
}
inline bool __all_sync(unsigned mask, bool vote, int line = __builtin_LINE()) {
    return __ballot_sync(mask, vote, line) == 0xffffffffu;
}
inline void __syncwarp(unsigned mask = 0xffffffffu, int line = __builtin_LINE()) { emulator::exchange(0, mask, line); }
inline void __syncthreads(int line = __builtin_LINE()) { emulator::meet(emulator::block_meeting, line); }
inline int __syncthreads_or(int vote, int line = __builtin_LINE()) {
    int& now = emulator::votes[emulator::block_meeting.number & 1];
    if (emulator::block_meeting.arrived == 0) now = 0;
    now |= vote != 0;
    return emulator::votes[emulator::meet(emulator::block_meeting, line) & 1];
}
inline unsigned atomicAdd(unsigned* at, unsigned amount) {
    const unsigned before = *at;
    *at += amount;
    return before;
}

inline unsigned atomicMax(unsigned* at, unsigned other) {
    const unsigned before = *at;
    if (other > before) *at = other;
    return before;
}

inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    shift &= 31;
    return shift ? (high << shift) | (low >> (32 - shift)) : high;
}
template <unsigned FACTOR>
inline unsigned long long mul_wide(unsigned x) {
    return static_cast<unsigned long long>(x) * FACTOR;
}
template <unsigned SELECTOR>
inline unsigned prmt(unsigned x, unsigned y) {
    const uint64_t bytes = uint64_t{y} << 32 | x;
    unsigned result = 0;
    for (int i = 0; i < 4; ++i) {
        const unsigned choice = SELECTOR >> (4 * i) & 15;
        unsigned byte = unsigned(bytes >> (8 * (choice & 7))) & 255;
        if (choice & 8) byte = byte & 128 ? 255 : 0;
        result |= byte << (8 * i);
    }
    return result;
}
inline unsigned turn_halves(unsigned x, int line = __builtin_LINE()) {
    const int lane = emulator::my_lane(), group = lane / 4, quad = lane % 4;
    const uint64_t* all = emulator::exchange(x, 0xffffffffu, line);
    const auto half = [&](int row) { return unsigned(all[4 * row + group / 2]) >> (16 * (group % 2)) & 0xffffu; };
    return half(2 * quad) | half(2 * quad + 1) << 16;
}
inline unsigned long long nanoseconds() {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline float __uint_as_float(unsigned x) { return emulator::from_word<float>(x); }
inline unsigned __float_as_uint(float x) { return unsigned(emulator::to_word(x)); }
inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
inline float max_nan(float a, float b) { return a != a || a > b ? a : b; }
inline float min_nan(float a, float b) { return a != a || a < b ? a : b; }
inline float approximate_root(float x) { return std::sqrt(x); }
inline float approximate_quotient(float x, float y) { return x / y; }
inline float sinpif(float x) { return float(std::sin(M_PI * std::fmod(double(x), 2.0))); }
inline float cospif(float x) { return float(std::cos(M_PI * std::fmod(double(x), 2.0))); }

// The half nearest to a float, the even one of two; and a half as a float.
inline unsigned to_half(float x) {
    const unsigned bits = __float_as_uint(x), sign = bits >> 16 & 0x8000u;
    const float size = std::fabs(x);
    if (x != x) return 0x7fffu;
    if (size >= 65520.0f) return sign | 0x7c00u;
    const int exponent = std::max(std::ilogb(std::max(size, 0x1p-24f)), -14);
    const unsigned steps = unsigned(std::nearbyint(std::ldexp(size, 10 - exponent)));  // 2048 goes on to the next exponent
    return sign | (unsigned(exponent + 14) * 1024 + steps);
}
inline float from_half(unsigned half) {
    const int exponent = half >> 10 & 31;
    const float steps = float(half & 1023u) + (exponent ? 1024.0f : 0.0f);
    float size = std::ldexp(steps, std::max(exponent, 1) - 25);
    if (exponent == 31) size = half & 1023u ? NAN : INFINITY;
    return half & 0x8000u ? -size : size;
}
inline unsigned to_halves(float low, float high) { return to_half(low) | to_half(high) << 16; }
inline float low_half(unsigned both) { return from_half(both & 0xffffu); }
inline float high_half(unsigned both) { return from_half(both >> 16); }

// Each lane brings where a row of 8 halves begins, of four matrices after each other.
template <bool TURNED>
inline void load_matrices(unsigned (&m)[4], const unsigned short* row, int line = __builtin_LINE()) {
    if (reinterpret_cast<uintptr_t>(row) % 16) emulator::failure = "a row of a matrix that is not aligned", emulator::leave();
    const int lane = emulator::my_lane(), group = lane / 4, pair = 2 * (lane % 4);
    const uint64_t* rows = emulator::exchange(reinterpret_cast<uintptr_t>(row), 0xffffffffu, line);
    for (int i = 0; i < 4; ++i) {
        const auto at = [&](int r, int c) { return unsigned(reinterpret_cast<const unsigned short*>(rows[8 * i + r])[c]); };
        m[i] = TURNED ? at(pair, group) | at(pair + 1, group) << 16 : at(group, pair) | at(group, pair + 1) << 16;
    }
}
inline float* in_device_memory(float* at) { return at; }

// What is sent arrives when it is waited for, as late as it may.
inline void send(float* to, const float* from) {
    if ((reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) % 16) {
        emulator::failure = "something sent that is not aligned", emulator::leave();
    }
    emulator::current->sent.push_back({to, from, emulator::current->groups});
}
inline void that_is_sent() { ++emulator::current->groups; }
template <int GROUPS>
inline void await_all_but() {
    emulator::Fiber& fiber = *emulator::current;
    const auto waiting = std::partition(fiber.sent.begin(), fiber.sent.end(),
                                        [&](const emulator::Sent& it) { return it.group >= fiber.groups - GROUPS; });
    std::for_each(waiting, fiber.sent.end(), [](const emulator::Sent& it) { std::memcpy(it.to, it.from, 16); });
    fiber.sent.erase(waiting, fiber.sent.end());
}

// D += A B with A 16 x 16 and B 16 x 8 of numbers of 16 bits: each lane brings and takes its documented fragments.
template <class Number>
inline void mma(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, const Number& number, int line) {
    using namespace emulator;
    Warp& warp = my_warp();
    const int lane = my_lane(), group = lane / 4, pair = 2 * (lane % 4);
    const int now = warp.meeting.number & 1;
    for (int half = 0; half < 2; ++half) {
        for (int r = 0; r < 4; ++r) {
            warp.a[now][group + 8 * (r & 1)][pair + half + 8 * (r >> 1)] = number(a[r] >> (16 * half) & 0xffffu);
        }
        warp.b[now][group][pair + half] = number(b0 >> (16 * half) & 0xffffu);
        warp.b[now][group][pair + half + 8] = number(b1 >> (16 * half) & 0xffffu);
    }
    exchange(0, 0xffffffffu, line);
    for (int c = 0; c < 4; ++c) {
        const float *row = warp.a[now][group + 8 * (c >> 1)], *column = warp.b[now][pair + (c & 1)];
        float sums[4] = {};
        for (int k = 0; k < 16; k += 4) {
            for (int i = 0; i < 4; ++i) sums[i] += row[k + i] * column[k + i];
        }
        d[c] += (sums[0] + sums[2]) + (sums[1] + sums[3]);
    }
}

inline void mma_bf16(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, int line = __builtin_LINE()) {
    mma(d, a, b0, b1, emulator::from_bf16, line);
}
inline void mma_f16(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, int line = __builtin_LINE()) {
    mma(d, a, b0, b1, from_half, line);
}

#define DYNAMIC_SHARED(name) float* name = emulator::shared_memory
