// The way back of tiles.cuh: from the slopes of the loss to params that have moved.

// The gradient of a batch as far as it is known: until it is finished, times the batch's size, and that of w lacks the
// factor u of its unit. If the batch passes at once, w moves as its gradient comes, which then needs no registers.
constexpr bool KEPT = SUBSETS > 1 || FIRST_WHOLE;
struct Gradient {
    float w[KEPT ? TILES : 1][BLOCKS][4][4];
    float u[TILES][2];
    float c;
};

// Shorter ways to the small gradients; networks of more than one tile are faster without. That of u is the sum of w times
// w's gradient: relu(h) is relu'(h) times w x. That of c is counted, by votes; the slope of L1 may be NaN, which has none.
constexpr bool ONE_TILE = TILES == 1 && TEAM == 1;
constexpr bool FROM_WEIGHTS = ONE_TILE && ACTIVATION == RELU && !KEPT && !SHALLOW;
constexpr bool COUNTED = ONE_TILE && HAS_C && Loss::unit && LOSS != L1;

// The slopes of the loss in f (a lane has that of its own sample) as each lane needs them.
struct Slopes {
    float g[8];         // of columns 8 m + 2q + e, at 2 m + e
    u32 pairs[PARTS][4];  // the same as bfloat16, in parts; not if GENERAL
};

DEVICE void spread(float slope, Slopes& slopes) {
    if (Loss::unit) {  // one part holds it: two lanes make a pair, which then travels as one word
        const u32 own = __float_as_uint(slope) >> 16, other = __shfl_xor_sync(ALL, own, 4);
        const u32 pair = lane_id() & 4 ? prmt<0x5410>(other, own) : prmt<0x5410>(own, other);
#pragma unroll
        for (int m = 0; m < 4; ++m) {
            const u32 both = __shfl_sync(ALL, pair, 8 * m + quad_id());
            slopes.g[2 * m] = __uint_as_float(both << 16), slopes.g[2 * m + 1] = __uint_as_float(both & 0xffff0000u);
            if (PARTS == 1) slopes.pairs[0][m] = both;
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) slopes.g[i] = __shfl_sync(ALL, slope, 4 * i + quad_id());
    if (KIND == GENERAL) return;
#pragma unroll
    for (int m = 0; m < 4; ++m) {
        u32 parts[3];
        split(slopes.g[2 * m], slopes.g[2 * m + 1], parts);
#pragma unroll
        for (int part = 0; part < PARTS; ++part) slopes.pairs[part][m] = parts[part];
    }
}

// Slope of the activation times slope of the loss, for the pair of samples of tile m in row 0 or 1 (g or g + 8).
DEVICE void left_factor(const Hidden& hidden, const Slopes& slopes, int tile, int m, int row, u32 (&parts)[3]) {
    const float low = hidden.z[tile][m][2 * row], high = hidden.z[tile][m][2 * row + 1];
    if (KIND == GENERAL) {
        const float(&slope)[4] = hidden.slope[tile][m];
        split(slopes.g[2 * m] * slope[2 * row], slopes.g[2 * m + 1] * slope[2 * row + 1], parts);
        return;
    }
    u32 mask;
    if (NEGATED) mask = sign_masks(low, high);
    else if (KIND == MASK) mask = sign_masks(0.0f - Act::slope(low), 0.0f - Act::slope(high));
    else mask = sign_masks(Act::slope(low), Act::slope(high)) & SIGNS;
#pragma unroll
    for (int part = 0; part < PARTS; ++part) {
        parts[part] = KIND == MASK ? slopes.pairs[part][m] & mask : slopes.pairs[part][m] ^ mask;
    }
}

// What the optimiser keeps; nothing that is ever read, if MEMORIES is 0.
struct Memory {
    Network number[MEMORIES > 0 ? MEMORIES : 1];
};
constexpr int LAST = MEMORIES > 1 ? 1 : 0;  // the second number, or the first where there is none

DEVICE void settle(Network&, Memory&, const Table&, size_t) {}  // all of it is in registers
DEVICE void look_at(const Network&) {}

// Moves the weights of one tile of inputs; the factor u of each unit must still be the old one.
DEVICE void move_weights(Network& net, Memory& memory, int tile, int block, int m, const float (&gradient)[4],
                         const Pace& pace) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        float& weight = net.w[tile][block][m][i];
        const float u = net.u[tile][i / 2];
        if (PLAIN) {
            const Update scaled = {pace.hidden.keep, pace.hidden.rate * pace.share * u};
            weight = move(weight, gradient[i], scaled);
        } else if (!ZERO_OVER_ZERO || (unit_of(tile, i / 2) < WIDTH && input_of(block, m, i % 2) < INPUTS)) {
            const float g = FIRST_WHOLE ? gradient[i] : gradient[i] * (pace.share * u);
            weight = moved(weight, g, memory.number[0].w[tile][block][m][i], memory.number[LAST].w[tile][block][m][i],
                           pace, pace.hidden);
        }
    }
}

// Adds 32 samples to the gradient.
DEVICE void backward(Network& net, Memory& memory, const Hidden& hidden, float slope, Gradient& gradient,
                     const Pace& pace) {
    constexpr int M = SAMPLE_TILES;
    Slopes slopes;
    spread(slope, slopes);
    u32 a[TILES][PARTS][M / 2][4];
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) {
#pragma unroll
        for (int m = 0; m < M; ++m) {
#pragma unroll
            for (int row = 0; row < 2; ++row) {
                u32 parts[3];
                left_factor(hidden, slopes, tile, m, row, parts);
#pragma unroll
                for (int part = 0; part < PARTS; ++part) a[tile][part][m / 2][2 * (m % 2) + row] = parts[part];
            }
#pragma unroll
            for (int i = 0; i < (FROM_WEIGHTS ? 0 : 4); ++i) {
                float& sum = gradient.u[tile][i / 2];
                sum = fmaf(slopes.g[2 * m + i % 2], value_of(hidden, tile, m, i), sum);
            }
        }
    }
#pragma unroll
    for (int i = 0; i < (COUNTED ? 0 : 2 * M); ++i) gradient.c += slopes.g[i];
    if (COUNTED) {
        const int more = __popc(__ballot_sync(ALL, slope > 0.0f)), less = __popc(__ballot_sync(ALL, slope < 0.0f));
        gradient.c += (float)(more - less);
    }
#pragma unroll
    for (int block = 0; block < BLOCKS; ++block) {
        u32 columns[4] = {};
        if (block < WORDS || READS_BITS) {
#pragma unroll
            for (int k = 0; k < M; ++k) columns[k] = turn_halves(hidden.columns[block][k]);
        }
#pragma unroll
        for (int m = 0; m < 4; ++m) {
            if (m >= input_tiles(block)) continue;
            const int input = 32 * block + 4 * m + group_id() / 2 + 16 * (group_id() & 1);
            const bool all = 32 * block + 16 + 4 * m + 4 <= INPUTS;
            const u32 ones = all || input < INPUTS ? net.ones : 0;  // zeros where there is no input
            u32 b[M];
#pragma unroll
            for (int k = 0; k < M; ++k) b[k] = input_pair<false>(columns[k], m, ones);
#pragma unroll
            for (int tile = 0; tile < TILES; ++tile) {
                float once[4] = {};
                float(&sum)[4] = KEPT ? gradient.w[KEPT ? tile : 0][block][m] : once;
#pragma unroll
                for (int k = 0; k < M / 2; ++k) {
#pragma unroll
                    for (int part = PARTS - 1; part >= 0; --part) {
                        mma_bf16(sum, a[tile][part][k], b[2 * k], b[2 * k + 1]);
                    }
                }
#pragma unroll
                for (int i = 0; i < (FROM_WEIGHTS ? 4 : 0); ++i) {
                    gradient.u[tile][i / 2] = fmaf(net.w[tile][block][m][i], sum[i], gradient.u[tile][i / 2]);
                }
                if (!KEPT) move_weights(net, memory, tile, block, m, sum, pace);
            }
        }
    }
}

// Once the whole batch has passed; w's gradient only if it has to be known as a whole.
DEVICE void finish(Gradient& gradient, const Network& net, float share) {
    gradient.c = (COUNTED ? gradient.c : sum_over_quad(gradient.c)) * share;
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) {
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            gradient.u[tile][row] = sum_over_quad(gradient.u[tile][row]) * share;
            const float factor = share * net.u[tile][row];
#pragma unroll
            for (int i = 0; i < (FIRST_WHOLE ? 8 * BLOCKS : 0); ++i) {
                gradient.w[KEPT ? tile : 0][i / 8][i / 2 % 4][2 * row + i % 2] *= factor;
            }
        }
    }
}

// A lane's share of the gradient's squared norm, frozen layers left out.
DEVICE float squared_norm(const Network&, const Gradient& gradient) {
    float sum = 0.0f;
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) {
#pragma unroll
        for (int i = 0; i < (RATE_HIDDEN != 0.0f ? 16 * BLOCKS : 0); ++i) {
            const float g = gradient.w[KEPT ? tile : 0][i / 16][i / 4 % 4][i % 4];
            sum = fmaf(g, g, sum);
        }
#pragma unroll
        for (int row = 0; row < (!SHALLOW && RATE_OUTPUT != 0.0f ? 2 : 0); ++row) {
            const float g = gradient.u[tile][row];
            if (unit_of(tile, row) < WIDTH && quad_id() == 0) sum = fmaf(g, g, sum);
        }
    }
    const bool counts_c = HAS_C && RATE_OUTPUT != 0.0f && threadIdx.x % (32 * TEAM) == 0;
    return counts_c ? fmaf(gradient.c, gradient.c, sum) : sum;
}

DEVICE void move_network(Network& net, Memory& memory, const Gradient& gradient, const Pace& pace) {
    Network &one = memory.number[0], &two = memory.number[LAST];
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) {
        if (KEPT) {
#pragma unroll
            for (int block = 0; block < BLOCKS; ++block) {
#pragma unroll
                for (int m = 0; m < 4; ++m) {
                    if (m >= input_tiles(block)) continue;
                    move_weights(net, memory, tile, block, m, gradient.w[KEPT ? tile : 0][block][m], pace);
                }
            }
        }
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            if (SHALLOW || unit_of(tile, row) >= WIDTH) continue;
            float& u = net.u[tile][row];
            u = moved(u, gradient.u[tile][row], one.u[tile][row], two.u[tile][row], pace, pace.output);
        }
    }
    if (HAS_C) net.c = moved(net.c, gradient.c, one.c, two.c, pace, pace.output);
}

// Adds to every param, or to its gradient, so much of a standard normal.
template <class Some>
DEVICE void add_noise(Some& net, Key root, float hidden, float output) {
    const Key b = fold_in(root, 0), w = fold_in(root, BIAS), c = fold_in(root, 2), u = fold_in(root, 1 + 2 * BIAS);
    for_each_weight(net, [&](float& weight, int place) {
        const Key key = place < AT_B ? w : b;
        weight = fmaf(hidden, random_normal(key, place < AT_B ? place : place - AT_B), weight);
    });
    if (SHALLOW) return;
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) {
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            const int unit = unit_of(tile, row);
            if (unit < WIDTH) net.u[tile][row] = fmaf(output, random_normal(u, unit), net.u[tile][row]);
        }
    }
    if (HAS_C) net.c = fmaf(output, random_normal(c, 0), net.c);
}

// Noise goes to the gradient, or where the gradient moves the weights as it comes, to them.
DEVICE void add_noise_before(const Network&, Gradient& gradient, Key root, float size) {
    if (!PLAIN) add_noise(gradient, root, size, size);
}
DEVICE void add_noise_after(Network& net, Key root, float size, const Pace& pace) {
    if (PLAIN) add_noise(net, root, -pace.hidden.rate * size, -pace.output.rate * size);
}
