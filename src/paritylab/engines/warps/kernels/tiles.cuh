// A two-layer MLP (or a neuron, one whose u is 1) on tensor cores: its weights stay in registers from the first step to the last.
//
// Everything is computed transposed, units as rows: H (units x samples) = W (units x inputs) X, then the activation's
// way back D (units x samples), and dW (units x inputs) = D X'. W, H and D lie as the results of products and serve as
// left factors in place; X is bits, in both directions (fragments.cuh). Signs are exact in bfloat16 and W is split into
// three parts, so the products are those of FP32. The bias is the weight of an input that is always +1.
//
// A warp has TILES tiles of 16 units, a team TEAM warps; only the sums for f and the verdict pass between them.
//
// A step at N = 30, WIDTH = 10, BATCH = 32 takes about 430 instructions of a warp (compiled for sm_90): 76 for 32 words
// of threefry, 68 to make the factors X and X', 88 to split W, 66 for the activation and f, 70 for slopes, D and the
// small gradients, 34 for the update and 32 products (24 forward, 8 back), which is little work for tensor cores. A
// processor issues four instructions a cycle, logical ones at half that rate: at least 109 cycles a step.
constexpr int INPUTS = N + BIAS;  // with the one that is always read as 1
constexpr int BLOCKS = (INPUTS + 31) / 32;  // words, with the one that the bias may need for itself
constexpr SlopeKind KIND = Act::kind;
constexpr bool NEGATED = ACTIVATION == RELU;  // H of -X: its sign bit then says whether a unit is active, 0 included
constexpr int PARTS = KIND != GENERAL && Loss::unit ? 1 : 3;  // of the left factor on the way back
constexpr int SUBSETS = (BATCH + 31) / 32;  // the batch passes 32 samples at a time
constexpr int SAMPLE_TILES = BATCH > 16 ? 4 : 2;  // that hold samples at all

// Tiles of inputs in block w: tile m has bits 4 m ... 4 m + 3 and those 16 further. Loops over them go to 4, because
// the compiler keeps arrays in registers only if it can unroll every loop by itself.
DEVICE constexpr int input_tiles(int w) { return INPUTS - 32 * w >= 13 ? 4 : (INPUTS - 32 * w + 3) / 4; }

// The params, or as much of anything that there is once for each of them: gradients, what an optimiser keeps.
struct Network {
    float w[TILES][BLOCKS][4][4];  // [tile][block][tile of inputs] as D of fragments.cuh
    float u[TILES][2];             // rows g and g + 8, in all lanes of the quad
    float c;
    u32 ones;                      // ONES in a register: a logical instruction has one constant at most
};

// The place of w[tile][block][m][i].
DEVICE int unit_of(int tile, int row) { return 16 * ((threadIdx.x / 32 % TEAM) * TILES + tile) + group_id() + 8 * row; }
DEVICE int input_of(int block, int m, int e) { return 32 * block + 4 * m + quad_id() + 16 * e; }

// Calls work(weight, param's place) for every weight of this lane that exists.
template <class Some, class Work>
DEVICE void for_each_weight(Some& net, const Work& work) {
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) {
#pragma unroll
        for (int block = 0; block < BLOCKS; ++block) {
#pragma unroll
            for (int m = 0; m < 4; ++m) {
                if (m >= input_tiles(block)) continue;
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int unit = unit_of(tile, i / 2), input = input_of(block, m, i % 2);
                    if (unit < WIDTH && input < INPUTS) work(net.w[tile][block][m][i], input * WIDTH + unit);
                }
            }
        }
    }
}

DEVICE void load_network(Network& net, const float* params) {
    net = Network{};
    for_each_weight(net, [&](float& weight, int place) { weight = params[place]; });  // b follows w, as input N
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) {
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            const int unit = unit_of(tile, row);
            if (unit < WIDTH) net.u[tile][row] = SHALLOW ? 1.0f : params[AT_U + unit];
        }
    }
    if (HAS_C) net.c = params[AT_C];
    net.ones = params ? ONES : 0;  // always, but the compiler must not know
}

DEVICE void save_network(Network& net, float* params) {
    for_each_weight(net, [&](float& weight, int place) { params[place] = weight; });
    if (SHALLOW) return;
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) {
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            const int unit = unit_of(tile, row);
            if (unit < WIDTH && quad_id() == 0) params[AT_U + unit] = net.u[tile][row];
        }
    }
    if (HAS_C && threadIdx.x % (32 * TEAM) == 0) params[AT_C] = net.c;
}

// Keeps the compiler from holding the parts of all weights in registers while a network is evaluated; it has no room.
DEVICE void forget_splits(Network& net) {
#ifdef __CUDACC__
#pragma unroll
    for (int i = 0; i < (TILES * BLOCKS > 1 ? 16 * TILES * BLOCKS : 0); ++i) {
        float& weight = net.w[i / (16 * BLOCKS)][i / 16 % BLOCKS][i / 4 % 4][i % 4];
        asm volatile("" : "+f"(weight));
    }
#endif
}

// Whether all params of this lane are finite.
DEVICE bool is_finite(const Network& net) {
    float sum = net.c * 0.0f;
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) {
        sum += net.u[tile][0] * 0.0f + net.u[tile][1] * 0.0f;
#pragma unroll
        for (int block = 0; block < BLOCKS; ++block) {
#pragma unroll
            for (int m = 0; m < 4; ++m) {
                if (m >= input_tiles(block)) continue;
#pragma unroll
                for (int i = 0; i < 4; ++i) sum += net.w[tile][block][m][i] * 0.0f;
            }
        }
    }
    return sum == 0.0f;
}

// What the way back needs of the activation at H: H itself, or values and slopes where both are dear.
struct Hidden {
    float z[TILES][4][4];  // [tile][tile of samples]; values, if GENERAL; -H, if NEGATED
    float slope[KIND == GENERAL ? TILES : 1][4][4];
    u32 columns[BLOCKS][4];  // the inputs' words as `gather_words` leaves them
};

DEVICE float value_of(const Hidden& hidden, int tile, int m, int i) {
    const float z = hidden.z[tile][m][i];
    return KIND == GENERAL ? z : Act::value(NEGATED ? -z : z);
}

// A lane's share of f: the units of its warp, for the sample that it drew. `x` holds the words of that sample.
template <int M>
DEVICE float forward(const Network& net, const u32 (&x)[BLOCKS], Hidden& hidden) {
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) {
#pragma unroll
        for (int m = 0; m < M; ++m) {
#pragma unroll
            for (int i = 0; i < 4; ++i) hidden.z[tile][m][i] = 0.0f;
        }
    }
#pragma unroll
    for (int block = 0; block < BLOCKS; ++block) {
        u32(&columns)[4] = hidden.columns[block];
        if (block < WORDS || READS_BITS) gather_words(x[block], columns);
        else columns[0] = columns[1] = columns[2] = columns[3] = 0;  // there is nothing but the bias
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            if (2 * k >= input_tiles(block)) continue;
#pragma unroll
            for (int tile = 0; tile < TILES; ++tile) {
                u32 a[3][4];
#pragma unroll
                for (int r = 0; r < 4; ++r) {
                    u32 parts[3] = {};
                    const int from = 2 * k + r / 2;
                    if (from < input_tiles(block)) {
                        const float(&w)[4] = net.w[tile][block][from];
                        split(w[2 * (r % 2)], w[2 * (r % 2) + 1], parts);
                    }
                    a[0][r] = parts[0], a[1][r] = parts[1], a[2][r] = parts[2];
                }
#pragma unroll
                for (int part = 2; part >= 0; --part) {  // the small parts first
#pragma unroll
                    for (int m = 0; m < M; ++m) {
                        mma_bf16(hidden.z[tile][m], a[part], input_pair<NEGATED>(columns[m], 2 * k, net.ones),
                                 input_pair<NEGATED>(columns[m], 2 * k + 1, net.ones));
                    }
                }
            }
        }
    }
    float sums[8] = {};
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) {
#pragma unroll
        for (int m = 0; m < M; ++m) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                float& z = hidden.z[tile][m][i];
                if (KIND == GENERAL) hidden.slope[tile][m][i] = Act::slope(z), z = Act::value(z);
                sums[2 * m + i % 2] = fmaf(net.u[tile][i / 2], value_of(hidden, tile, m, i), sums[2 * m + i % 2]);
            }
        }
    }
    return scatter_sums(sums);
}
