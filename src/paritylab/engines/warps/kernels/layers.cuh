// What the kernels of deep MLPs, deep.cuh and large.cuh, call things. Layer -1 is the inputs, layer LAYERS the head.
constexpr int INPUTS = N;  // biases are added to the sums
constexpr int BLOCKS = WORDS;
constexpr int SUBSETS = (BATCH + AT_ONCE - 1) / AT_ONCE;  // the batch passes AT_ONCE samples at a time
constexpr int SAMPLE_TILES = AT_ONCE / 8;
constexpr int THREADS = 32 * TEAM;  // of a team
constexpr int LAYERS = SIZES - 2, TOP = LAYERS - 1;  // hidden ones, from 0
constexpr bool HAS_SLOPES = Act::kind != MASK;  // otherwise the activation's value tells its slope

DEVICE constexpr int units_of(int layer) { return (int)sizes(1 + layer); }

// The params, or as much of anything that there is once for each of them; the output's bias is in every thread.
struct Network {
    float* at;
    float c;
};
struct Memory {
    Network number[MEMORIES > 0 ? MEMORIES : 1];
};
constexpr int LAST = MEMORIES > 1 ? 1 : 0;  // the second number, or the first where there is none
struct Hidden {};
struct Gradient {
    float c;
    bool begun;  // some samples have been added
};

struct alignas(8) Pair {
    float first, second;
};
DEVICE Pair pair_at(const float* at) { return *(const Pair*)at; }

struct alignas(16) Quad {
    float of[4];
};
DEVICE Quad quad_at(const float* at) { return *(const Quad*)at; }

DEVICE int thread_of_team() { return threadIdx.x % THREADS; }
DEVICE int warp_of_team() { return threadIdx.x / 32 % TEAM; }

DEVICE void finish(Gradient&, const Network&, float) {}
DEVICE void forget_splits(Network&) {}
