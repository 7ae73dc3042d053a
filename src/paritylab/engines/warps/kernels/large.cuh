// A deep MLP on tensor cores that is too large for shared memory: its weights pass through registers.
//
// A block of TEAM warps trains a network, AT_ONCE samples at a time. The three products of a layer are those of deep.cuh, in
// two parts of half precision (halves.cuh). Each has a factor that all warps share, what the layer below or above has of all
// samples; it is brought into shared memory, in parts. Of the weights a warp needs a share that no other warp needs; they
// pass through a few tiles of its own in shared memory, once on the way forward and once on the way back:
//
//     forward   a warp has rows of W' (units) and goes through the inputs
//     back      a warp has rows of W (inputs) and goes through the units: each tile is turned, to be a factor of what passes
//               back, and moved by its own gradient, whose other factor H' stays in registers
//
// Weights lie in tiles of 16 x 16, as lanes hold them. What samples have in each layer lies as [unit][sample]; the gradients
// of sums take the place of values. Both are in the team's room in device memory, of which the second-level cache holds what
// was just written. The numbers of units are rounded up to whole pieces of LARGE_TILES tiles, the rest are zeros.
constexpr bool KEPT = SUBSETS > 1 || FIRST_WHOLE;  // gradients, until they are complete
constexpr int ROWS = 16 * LARGE_TILES;  // of a piece

DEVICE constexpr int padded(int units) { return (units + ROWS - 1) / ROWS * ROWS; }
DEVICE constexpr int tiles_of(int layer) { return padded(units_of(layer)) / 16; }

// Where things are in the team's room.
DEVICE constexpr int weights_at(int layer) {
    int at = 0;
    for (int l = 0; l < layer; ++l) at += padded(units_of(l)) * (padded(units_of(l - 1)) + BIAS);
    return at;
}
DEVICE constexpr int biases_at(int layer) { return weights_at(layer) + padded(units_of(layer - 1)) * padded(units_of(layer)); }
DEVICE constexpr int tile_index(int layer, int input, int unit) { return unit / 16 * tiles_of(layer - 1) + input / 16; }
DEVICE int weight_at(int layer, int input, int unit) {
    return weights_at(layer) + TILE * tile_index(layer, input, unit) + place_in_tile(unit % 16, input % 16);
}
constexpr int HEAD_AT = weights_at(LAYERS), ALL_PARAMS = HEAD_AT + padded(WIDTH);
DEVICE constexpr int values_at(int layer) {
    int at = ALL_PARAMS * (1 + KEPT + MEMORIES);
    for (int l = 0; l < layer; ++l) at += padded(units_of(l)) * AT_ONCE;
    return at;
}
constexpr int VALUES = values_at(LAYERS) - values_at(0);
constexpr int FLOATS = values_at(LAYERS) + HAS_SLOPES * VALUES;
static_assert(FLOATS == TEAM_FLOATS, "large.py counts otherwise");

// In shared memory, beside the shared factor: the inputs' words, the slopes of the loss, and the largest number of each matrix
// (of the weights also that after the step).
struct Small {
    u32 words[WORDS][AT_ONCE];
    float slopes[AT_ONCE];
    u32 weights[LAYERS], moved[LAYERS], values[LAYERS], gradients[LAYERS];
};
DEVICE Small& small() {
    __shared__ Small here;
    return here;
}

// The shared factor: [part][unit][sample], in rows whose length keeps eight of them in different banks.
constexpr int ROW = AT_ONCE + 8;
DEVICE constexpr int widest(int layer = 0) {
    if (layer == LAYERS) return 0;
    return padded(units_of(layer)) > widest(layer + 1) ? padded(units_of(layer)) : widest(layer + 1);
}
constexpr int PART = widest() * ROW;
static_assert(4 * PART == FACTOR_BYTES, "large.py counts otherwise");
DEVICE u16* factor() {
    DYNAMIC_SHARED(shared);
    return (u16*)shared;
}

// A warp's tiles that are on their way from device memory, AHEAD of them by turns. A lane brings what it will take itself.
DEVICE float* tile_on_its_way(int turn, int tile) {
    DYNAMIC_SHARED(shared);
    return shared + FACTOR_BYTES / 4 + TILE * ((warp_of_team() * AHEAD + turn % AHEAD) * LARGE_TILES + tile);
}

// Part `part` of 16 x 16 numbers of the shared factor: as A, or TURNED as B of two columns of tiles.
template <bool TURNED>
DEVICE void load_factor(u32 (&m)[4], int part, int unit, int sample) {
    load_matrices<TURNED>(m, factor() + part * PART + (unit + lane_id() % 16) * ROW + sample + 8 * (lane_id() / 16));
}

DEVICE void settle(Network& net, Memory& memory, const Table& table, size_t team) {
    net.at = in_device_memory(table.room) + team * FLOATS;
#pragma unroll
    for (int k = 0; k < MEMORIES; ++k) memory.number[k].at = net.at + ALL_PARAMS * (1 + KEPT + k);
}

// Finds the largest weight of each layer.
DEVICE void look_at(const Network& net) {
    for (int l = thread_of_team(); l < LAYERS; l += THREADS) small().weights[l] = small().moved[l] = 0;
    meet<THREADS>();
#pragma unroll 1
    for (int l = 0; l < LAYERS; ++l) {
        u32 largest = 0;
        for (int i = weights_at(l) + thread_of_team(); i < biases_at(l); i += THREADS) {
            largest = max(largest, magnitude(net.at[i]));
        }
        raise(&small().weights[l], largest);
    }
    meet<THREADS>();
}

// Whether all params of this thread are finite, and all weights.
DEVICE bool is_finite(const Network& net) {
    float sum = net.c * 0.0f;
#pragma unroll 1
    for (int l = 0; l < LAYERS; ++l) {
        if (small().weights[l] >= 0x7f800000u) return false;
        for (int i = biases_at(l) + thread_of_team(); i < weights_at(l + 1); i += THREADS) sum += net.at[i] * 0.0f;
    }
    for (int i = HEAD_AT + thread_of_team(); i < ALL_PARAMS; i += THREADS) sum += net.at[i] * 0.0f;
    return sum == 0.0f;
}

// Brings what the first M tiles of samples have in a layer into shared memory.
template <int L, int M>
DEVICE void bring(const Network& net, u32 largest) {
    const float up = scale_for(largest).up;
    constexpr int QUADS = 2 * M;  // of a unit
    constexpr int ALL_QUADS = padded(units_of(L)) * QUADS, READ = 8;  // so many are read before the first is written
#pragma unroll 1
    for (int first = thread_of_team(); first < ALL_QUADS; first += READ * THREADS) {
        Quad x[READ];
#pragma unroll
        for (int k = 0; k < READ; ++k) {
            const int i = min(first + k * THREADS, ALL_QUADS - 1);
            x[k] = quad_at(net.at + values_at(L) + i / QUADS * AT_ONCE + 4 * (i % QUADS));
        }
#pragma unroll
        for (int k = 0; k < READ; ++k) {
            const int i = first + k * THREADS;
            if (i >= ALL_QUADS) break;
            u32* at = (u32*)(factor() + i / QUADS * ROW + 4 * (i % QUADS));
            split_halves(x[k].of[0], x[k].of[1], up, at[0], at[PART / 2]);
            split_halves(x[k].of[2], x[k].of[3], up, at[1], at[PART / 2 + 1]);
        }
    }
    meet<THREADS>();
}

// Two inputs or samples as halves, signs or bits: of one word the bits `bit` and `bit + 1`, of two the same bit.
constexpr u32 HALF_ONES = 0x3c003c00u;
DEVICE u32 inputs_of(u32 first, int bit, u32 second, int other) {
    const u32 low = first >> bit & 1u, high = second >> other & 1u;
    return READS_BITS ? (low | high << 16) * (HALF_ONES & 0xffffu) : low << 15 | high << 31 | HALF_ONES;
}

// Into how many groups of samples a product of few rows is cut, so that more warps have something to do.
DEVICE constexpr int groups_of(int down, int tiles) {
    return 2 * down <= TEAM && tiles >= 4 ? 2 * groups_of(2 * down, tiles / 2) : 1;
}

template <int L, int M>
DEVICE void forward_layer(const Network& net) {
    constexpr int DOWN = padded(units_of(L)) / ROWS, ACROSS = groups_of(DOWN, M), COLUMNS = M / ACROSS;
    constexpr int CHUNKS = tiles_of(L - 1), PARTS = L == 0 ? 1 : 2;
    if constexpr (L > 0) bring<L - 1, M>(net, small().values[L - 1]);
    const Scale of_weights = scale_for(small().weights[L]);
    const float down = L == 0 ? 1.0f : scale_for(small().values[L > 0 ? L - 1 : 0]).down;
#pragma unroll 1
    for (int piece = warp_of_team(); piece < DOWN * ACROSS; piece += TEAM) {
        const int row = ROWS * (piece % DOWN), column = 8 * COLUMNS * (piece / DOWN);
        float sum[LARGE_TILES][COLUMNS][4] = {};
        const float* w = net.at + weights_at(L) + TILE * tile_index(L, 0, row);
        const auto send_for = [&](int chunk) {
#pragma unroll
            for (int t = 0; t < (chunk < CHUNKS ? LARGE_TILES : 0); ++t) {
                send_tile(tile_on_its_way(chunk, t), w + TILE * (CHUNKS * t + chunk));
            }
            that_is_sent();
        };
#pragma unroll
        for (int chunk = 0; chunk < AHEAD; ++chunk) send_for(chunk);
#pragma unroll 1
        for (int chunk = 0; chunk < CHUNKS; ++chunk) {
            u32 a[2][LARGE_TILES][4];
            await_all_but<AHEAD - 1>();
#pragma unroll
            for (int t = 0; t < LARGE_TILES; ++t) {
                split_tile(tile_at(tile_on_its_way(chunk, t)), of_weights.up, a[0][t], a[1][t]);
            }
            send_for(chunk + AHEAD);
#pragma unroll
            for (int m = 0; m < COLUMNS; m += 2) {
                u32 b[PARTS][4];
                if constexpr (L == 0) {
                    const int input = 16 * chunk + 2 * quad_id(), sample = column + 8 * m + group_id();
#pragma unroll
                    for (int i = 0; i < 4; ++i) {
                        const u32 word = small().words[chunk / 2][sample + 8 * (i / 2)];
                        const int bit = (input + 8 * (i % 2)) % 32;
                        b[0][i] = inputs_of(word, bit, word, bit + 1);
                    }
                } else {
#pragma unroll
                    for (int part = 0; part < PARTS; ++part) load_factor<true>(b[part], part, 16 * chunk, column + 8 * m);
                }
                add_products(sum, a, b, m);
            }
        }
        float biases[2 * LARGE_TILES];
#pragma unroll
        for (int r = 0; r < 2 * LARGE_TILES; ++r) biases[r] = BIAS ? net.at[biases_at(L) + row + 8 * r + group_id()] : 0.0f;
        u32 largest = 0;
#pragma unroll
        for (int i = 0; i < 2 * LARGE_TILES * COLUMNS; ++i) {
            const int tile = i / (2 * COLUMNS), m = i / 2 % COLUMNS, unit = row + 16 * tile + group_id() + 8 * (i % 2);
            const float *both = sum[tile][m] + 2 * (i % 2), bias = biases[2 * tile + i % 2];
            const Pair z = {both[0] * of_weights.down * down + bias, both[1] * of_weights.down * down + bias};
            float* at = net.at + values_at(L) + unit * AT_ONCE + column + 8 * m + 2 * quad_id();
            const bool there = unit < units_of(L);
            const Pair value = {there ? Act::value(z.first) : 0.0f, there ? Act::value(z.second) : 0.0f};
            *(Pair*)at = value;
            if (HAS_SLOPES) *(Pair*)(at + VALUES) = Pair{Act::slope(z.first), Act::slope(z.second)};
            largest = max(largest, max(magnitude(value.first), magnitude(value.second)));
        }
        raise(&small().values[L], largest);
    }
    meet<THREADS>();
    if constexpr (L < TOP) forward_layer<L + 1, M>(net);
}

// A thread's share of f, for the sample that it drew. `x` holds the words of that sample.
template <int M>
DEVICE float forward(const Network& net, const u32 (&x)[BLOCKS], Hidden&) {
    constexpr int SAMPLES = 8 * M;
    const int sample = threadIdx.x % SAMPLES;
    if (thread_of_team() < SAMPLES) {
#pragma unroll
        for (int w = 0; w < WORDS; ++w) small().words[w][sample] = x[w];
    }
    for (int l = thread_of_team(); l < LAYERS; l += THREADS) small().values[l] = small().gradients[l] = 0;
    meet<THREADS>();
    forward_layer<0, M>(net);
    float sum = 0.0f;
#pragma unroll 4
    for (int unit = thread_of_team() / SAMPLES; unit < WIDTH; unit += THREADS / SAMPLES) {
        sum = fmaf(net.at[HEAD_AT + unit], net.at[values_at(TOP) + unit * AT_ONCE + sample], sum);
    }
    return sum;
}
