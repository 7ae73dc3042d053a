// Types, and what every kernel knows of its rows. The constants (N, WIDTH, BATCH, ...) come before: see plan.py.
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
#define DEVICE static __device__ __forceinline__
#ifdef __CUDACC__
#define DYNAMIC_SHARED(name) extern __shared__ __align__(16) float name[]
#endif

constexpr u32 ALL = 0xffffffffu;  // the lanes of a warp
constexpr int WORDS = (N + 31) / 32;
constexpr int ACTIVE = -1, SOLVED = 0, CENSORED = 1, DIVERGED = 2;
constexpr bool SHALLOW = FAMILY != MLP;  // no second layer

// Layer by layer, w[input][unit], then b if there are biases.
DEVICE constexpr int params_below(int layer) {
    int count = 0;
    for (int l = 0; l < layer; ++l) count += ((int)sizes(l) + BIAS) * (int)sizes(l + 1);
    return count;
}
constexpr int PARAMS = params_below(SIZES - 1);

// With one hidden layer: w, then b, u and c as far as there are any.
constexpr int AT_B = N * WIDTH, AT_U = AT_B + (BIAS ? WIDTH : 0), AT_C = AT_U + (SHALLOW ? 0 : WIDTH);
constexpr bool HAS_C = BIAS && !SHALLOW;

// The rows in device memory. `taken` counts those that teams have taken in this launch, `idle` the teams that found none
// left.
struct Table {
    float* params;
    float* memory;  // of the optimiser: MEMORIES numbers for each param, as [number][param]
    u32* key;
    float* lr;
    float* noise;
    u32* flip;
    u32* mask;
    int* max_steps;
    int* step;
    int* streak;
    int* status;
    float* accuracy;
    float* loss;
    const float* const* schedule;  // blocks of SCHEDULE_BLOCK factors; null: not here
    u64* order;    // of a finite sample: see samples.cuh
    u32* counts;
    float* scores;  // SCORES for each row: see runs.cuh
    float* room;    // of a team that has not enough on the chip: see large.cuh
    u32* taken;
    u32* idle;
};

// The `count` rows to train, in `order`, and how long: until `microseconds` are over, or `quota` teams idle. All teams stop
// at the same time, so that none runs alone on a processor at the end.
struct Launch {
    const int* order;
    int count, microseconds, quota;
    u64 begun;
};

// The larger and the smaller of two floats, NaN if either is; ftz, as CuPy compiles everything, so that signs are free.
#ifdef __CUDACC__
DEVICE float max_nan(float a, float b) {
    asm("max.NaN.ftz.f32 %0, %0, %1;" : "+f"(a) : "f"(b));
    return a;
}
DEVICE float min_nan(float a, float b) {
    asm("min.NaN.ftz.f32 %0, %0, %1;" : "+f"(a) : "f"(b));
    return a;
}
// To an ulp or two; nothing that is divided here is near the largest floats.
DEVICE float approximate_root(float x) {
    asm("sqrt.approx.ftz.f32 %0, %0;" : "+f"(x));
    return x;
}
DEVICE float approximate_quotient(float x, float y) {
    asm("div.approx.ftz.f32 %0, %0, %1;" : "+f"(x) : "f"(y));
    return x;
}
DEVICE u64 nanoseconds() {
    u64 now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    return now;
}
#endif

DEVICE u32 lane_id() { return threadIdx.x % 32; }
DEVICE bool over(const Table& table, const Launch& launch) {
    return *(volatile const u32*)table.idle >= (u32)launch.quota ||
           nanoseconds() - launch.begun >= 1000ull * launch.microseconds;
}
