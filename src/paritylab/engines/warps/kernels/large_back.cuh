// The way back of large.cuh: from the slopes of the loss to params that have moved.

// The activation's slope where its value is `at`.
DEVICE float slope_at(const float* at) { return HAS_SLOPES ? at[VALUES] : Act::slope(*at); }

// What there is of a param, or of four in a row, beside its value: its gradient so far, what an optimiser keeps of it.
template <class Number>
struct Beside {
    Number gradient, one, two;
};
template <class Number>
DEVICE Beside<Number> beside_at(const Network& net, const Memory& memory, int at) {
    Beside<Number> beside = {};
    if (KEPT) return beside.gradient = *(const Number*)(net.at + ALL_PARAMS + at), beside;
    if (MEMORIES > 0) beside.one = *(const Number*)(memory.number[0].at + at);
    if (MEMORIES > 1) beside.two = *(const Number*)(memory.number[LAST].at + at);
    return beside;
}
template <class Number>
DEVICE void put_beside(const Network& net, const Memory& memory, int at, const Beside<Number>& beside) {
    if (KEPT) return (void)(*(Number*)(net.at + ALL_PARAMS + at) = beside.gradient);
    if (MEMORIES > 0) *(Number*)(memory.number[0].at + at) = beside.one;
    if (MEMORIES > 1) *(Number*)(memory.number[LAST].at + at) = beside.two;
}

// Adds to a gradient that is kept, or moves the param.
template <int L>
DEVICE float taken(const Gradient& gradient, const Pace& pace, float theta, float sum, float& kept, float& one, float& two) {
    if (KEPT) return kept = gradient.begun ? kept + sum : sum, theta;
    return moved(theta, sum, one, MEMORIES > 1 ? two : one, pace, make_update(pace.lr, layer_rates(L)));
}

template <int L>
DEVICE void take(const Network& net, const Memory& memory, const Gradient& gradient, const Pace& pace, int at, float sum) {
    Beside<float> beside = beside_at<float>(net, memory, at);
    net.at[at] = taken<L>(gradient, pace, net.at[at], sum, beside.gradient, beside.one, beside.two);
    put_beside(net, memory, at, beside);
}

// From the slopes of the loss to the gradients of the last layer's sums; a warp has a unit, a lane samples of it.
DEVICE void backward_head(const Network& net, const Memory& memory, const Gradient& gradient, const Pace& pace) {
    u32 largest = 0;
#pragma unroll 1
    for (int unit = warp_of_team(); unit < WIDTH; unit += TEAM) {
        const float u = net.at[HEAD_AT + unit];
        float head = 0.0f, bias = 0.0f;
#pragma unroll
        for (int sample = lane_id(); sample < AT_ONCE; sample += 32) {
            float* value = net.at + values_at(TOP) + unit * AT_ONCE + sample;
            const float slope = small().slopes[sample], back = slope * u * slope_at(value);
            head = fmaf(slope, *value, head), bias += back;
            *value = back;
            largest = max(largest, magnitude(back));
        }
        head = sum_over_warp(head), bias = sum_over_warp(bias);
        if (lane_id() == 0) {
            take<LAYERS>(net, memory, gradient, pace, HEAD_AT + unit, head);
            if (BIAS) take<TOP>(net, memory, gradient, pace, biases_at(TOP) + unit, bias);
        }
        __syncwarp();
    }
    raise(&small().gradients[TOP], largest);
    meet<THREADS>();
}

// The factor H' of a warp's inputs in all samples, in parts: [part][tile of inputs][16 samples], as B of two columns of tiles.
template <int L>
struct Below {
    static constexpr int PARTS = L == 0 ? 1 : 2, CHUNKS = AT_ONCE / 16;
    u32 b[LARGE_TILES][CHUNKS][PARTS][4];
};

template <int L>
DEVICE void load_below(const Network& net, Below<L>& below, int row, float up) {
#pragma unroll
    for (int i = 0; i < LARGE_TILES * Below<L>::CHUNKS * 4; ++i) {
        const int tile = i / 4 / Below<L>::CHUNKS, chunk = i / 4 % Below<L>::CHUNKS;
        const int input = row + 16 * tile + 8 * (i % 4 / 2) + group_id(), sample = 16 * chunk + 8 * (i % 2) + 2 * quad_id();
        u32(&b)[Below<L>::PARTS][4] = below.b[tile][chunk];
        if constexpr (L == 0) {
            const u32* words = small().words[input / 32] + sample;
            b[0][i % 4] = input < N ? inputs_of(words[0], input % 32, words[1], input % 32) : 0;
        } else {
            const Pair x = pair_at(net.at + values_at(L - 1) + input * AT_ONCE + sample);
            split_halves(x.first, x.second, up, b[0][i % 4], b[1][i % 4]);
        }
    }
}

// Moves a tile of weights, of 16 units from `unit` on and 16 inputs, by its gradient; returns the largest of them after that.
template <int L>
DEVICE u32 take_tile(const Network& net, const Memory& memory, const Gradient& gradient, const Pace& pace, Tile tile, int unit,
                     int input, const float (&sum)[1][2][4], float down, float further_down) {
    const int first = weights_at(L) + TILE * tile_index(L, input, unit) + 4 * lane_id();
    Beside<Quad> beside[2] = {beside_at<Quad>(net, memory, first), beside_at<Quad>(net, memory, first + TILE / 2)};
    u32 largest = 0;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        Beside<Quad>& here = beside[half];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            float& weight = tile.half[half].of[i];
            const bool there = unit + group_id() + 8 * (i / 2) < units_of(L) &&
                               input + 8 * half + 2 * quad_id() + i % 2 < units_of(L - 1);
            if (ZERO_OVER_ZERO && !there) continue;
            weight = taken<L>(gradient, pace, weight, sum[0][half][i] * down * further_down, here.gradient.of[i],
                              here.one.of[i], here.two.of[i]);
            largest = max(largest, magnitude(weight));
        }
        put_beside(net, memory, first + TILE / 2 * half, here);
        if (!KEPT) *(Quad*)(net.at + first + TILE / 2 * half) = tile.half[half];
    }
    return largest;
}

// What has come back to a warp's inputs becomes the gradients of the layer below, and of its biases.
template <int L>
DEVICE void pass_back(const Network& net, const Memory& memory, const Gradient& gradient, const Pace& pace, int row,
                      const float (&back)[LARGE_TILES][SAMPLE_TILES][4], float down, float further_down) {
    u32 largest = 0;
#pragma unroll
    for (int r = 0; r < 2 * LARGE_TILES; ++r) {
        const int unit = row + 8 * r + group_id();
        float* values = net.at + values_at(L) + unit * AT_ONCE + 2 * quad_id();
        Pair slopes[SAMPLE_TILES];
#pragma unroll
        for (int m = 0; m < SAMPLE_TILES; ++m) slopes[m] = {slope_at(values + 8 * m), slope_at(values + 8 * m + 1)};
        float bias = 0.0f;
#pragma unroll
        for (int m = 0; m < SAMPLE_TILES; ++m) {
            const float* both = back[r / 2][m] + 2 * (r % 2);
            const Pair sums = {both[0] * down * further_down, both[1] * down * further_down};
            const Pair g = {sums.first * slopes[m].first, sums.second * slopes[m].second};
            *(Pair*)(values + 8 * m) = g;
            bias += g.first + g.second;
            largest = max(largest, max(magnitude(g.first), magnitude(g.second)));
        }
        bias = sum_over_quad(bias);
        if (BIAS && quad_id() == 0 && unit < units_of(L)) take<L>(net, memory, gradient, pace, biases_at(L) + unit, bias);
    }
    raise(&small().gradients[L], largest);
}

template <int L>
DEVICE void backward_layer(const Network& net, const Memory& memory, const Gradient& gradient, const Pace& pace) {
    constexpr int PIECES = padded(units_of(L - 1)) / ROWS, ACROSS = L == 0 && TEAM > PIECES ? TEAM / PIECES : 1;
    bring<L, SAMPLE_TILES>(net, small().gradients[L]);
    const Scale of_weights = scale_for(small().weights[L]);
    const Scale below_scale = L == 0 ? Scale{1.0f, 1.0f} : scale_for(small().values[L > 0 ? L - 1 : 0]);
    const float down = scale_for(small().gradients[L]).down;
    u32 largest = 0;
#pragma unroll 1
    for (int piece = warp_of_team(); piece < PIECES * ACROSS; piece += TEAM) {
        const int row = ROWS * (piece % PIECES);
        Below<L> below;
        load_below<L>(net, below, row, below_scale.up);
        float back[LARGE_TILES][SAMPLE_TILES][4] = {};
        const float* w = net.at + weights_at(L) + TILE * tile_index(L, row, 0);
        constexpr int STEP = 16 * ACROSS;
        const int from = 16 * (piece / PIECES);
        const auto send_for = [&](int turn) {
            const int unit = from + STEP * turn;
#pragma unroll
            for (int t = 0; t < (unit < padded(units_of(L)) ? LARGE_TILES : 0); ++t) {
                send_tile(tile_on_its_way(turn, t), w + TILE * tile_index(L, 16 * t, unit));
            }
            that_is_sent();
        };
#pragma unroll
        for (int turn = 0; turn < AHEAD; ++turn) send_for(turn);
#pragma unroll 1
        for (int turn = 0, unit = from; unit < padded(units_of(L)); ++turn, unit += STEP) {
            u32 a[2][LARGE_TILES][4];
            await_all_but<AHEAD - 1>();
#pragma unroll
            for (int t = 0; t < (L == 0 ? 0 : LARGE_TILES); ++t) {
                split_tile(tile_at(tile_on_its_way(turn, t)), of_weights.up, a[0][t], a[1][t]);
                turn_tile(a[0][t]), turn_tile(a[1][t]);
            }
#pragma unroll
            for (int m = 0; m < (L == 0 ? 0 : SAMPLE_TILES); m += 2) {
                u32 b[2][4];
                load_factor<true>(b[0], 0, unit, 8 * m), load_factor<true>(b[1], 1, unit, 8 * m);
                add_products(back, a, b, m);
            }
            float sum[LARGE_TILES][1][2][4] = {};
#pragma unroll
            for (int chunk = 0; chunk < AT_ONCE / 16; ++chunk) {
                u32 g[2][1][4];
                load_factor<false>(g[0][0], 0, unit, 16 * chunk), load_factor<false>(g[1][0], 1, unit, 16 * chunk);
#pragma unroll
                for (int t = 0; t < LARGE_TILES; ++t) add_products(sum[t], g, below.b[t][chunk], 0);
            }
#pragma unroll
            for (int t = 0; t < LARGE_TILES; ++t) {
                largest = max(largest, take_tile<L>(net, memory, gradient, pace, tile_at(tile_on_its_way(turn, t)), unit,
                                                    row + 16 * t, sum[t], down, below_scale.down));
            }
            send_for(turn + AHEAD);
        }
        if constexpr (L > 0) {
            __syncwarp();  // the values are read by all lanes before they are replaced
            pass_back<L - 1>(net, memory, gradient, pace, row, back, of_weights.down, down);
        }
    }
    raise(&small().moved[L], largest);
    meet<THREADS>();
    if constexpr (L > 0) backward_layer<L - 1>(net, memory, gradient, pace);
}

// Adds AT_ONCE samples to the gradient; or if that is all of the batch, moves the params, the output's bias apart.
DEVICE void backward(const Network& net, const Memory& memory, const Hidden&, float slope, Gradient& gradient,
                     const Pace& pace) {
    if (thread_of_team() < AT_ONCE) small().slopes[thread_of_team()] = slope * pace.share;
    meet<THREADS>();
    float sum = 0.0f;
#pragma unroll
    for (int sample = lane_id(); sample < AT_ONCE; sample += 32) sum += small().slopes[sample];
    gradient.c += sum_over_warp(sum);
    backward_head(net, memory, gradient, pace);
    backward_layer<TOP>(net, memory, gradient, pace);
    gradient.begun = true;
    if (KEPT) return;
    for (int l = thread_of_team(); l < LAYERS; l += THREADS) small().weights[l] = small().moved[l], small().moved[l] = 0;
    meet<THREADS>();
}
