// A deep MLP on tensor cores: its weights stay in shared memory from the first step to the last.
//
// A team of TEAM warps trains a network, 32 samples at a time. What is computed of a layer lies as [unit][sample]. With W
// as [input][unit] the three products of a layer are
//
//     forward   H (units x samples) = W' (units x inputs) H of the layer below
//     back      G of the layer below (inputs x samples) = W (inputs x units) G, times the activation's slopes
//     gradient  dW' (units x inputs) = G (units x samples) H' of the layer below
//
// each in pieces of DEEP_TILES times 16 rows and 32 columns (or 16), which the team's warps take in turns. A warp reads its
// factors from shared memory as it needs them and splits both into three bfloat16 parts, which lose nothing; of the nine
// products of parts those six count that are not below the rounding of float32. Signs are one part. The numbers of units are
// rounded up to whole pieces, the rest are zeros that nothing moves.
//
// Rows of W and of H are 4 mod 16 floats apart: what a warp reads of a fragment then lies in 32 banks.
constexpr bool KEPT = SUBSETS > 1 || !PLAIN;  // gradients, until they are complete
constexpr int ROW = 36;  // of samples
constexpr int ROWS = 16 * DEEP_TILES;  // of a piece

DEVICE constexpr int padded(int units) { return (units + ROWS - 1) / ROWS * ROWS; }
DEVICE constexpr int stride_of(int layer) { return padded(units_of(layer)) + 4; }

// Where a layer's weights and biases lie in the team's memory.
DEVICE constexpr int weights_at(int layer) {
    int at = 0;
    for (int l = 0; l < layer; ++l) at += padded(units_of(l - 1)) * stride_of(l) + BIAS * padded(units_of(l));
    return at;
}
DEVICE constexpr int biases_at(int layer) { return weights_at(layer) + padded(units_of(layer - 1)) * stride_of(layer); }
DEVICE int weight_at(int layer, int input, int unit) { return weights_at(layer) + input * stride_of(layer) + unit; }

// The team's memory: the params, their gradients and what an optimiser keeps (each as large), then what is known of the
// 32 samples: of each hidden layer the values, whose place their gradients take, and maybe the slopes; words of the inputs
// and slopes of the loss.
constexpr int HEAD_AT = weights_at(LAYERS), ALL_PARAMS = HEAD_AT + padded(WIDTH);
DEVICE constexpr int values_at(int layer) {
    int at = ALL_PARAMS * (1 + KEPT + MEMORIES);
    for (int l = 0; l < layer; ++l) at += padded(units_of(l)) * ROW;
    return at;
}
constexpr int VALUES = values_at(LAYERS) - values_at(0);
constexpr int WORDS_AT = values_at(LAYERS) + HAS_SLOPES * VALUES;
constexpr int LOSS_AT = WORDS_AT + 32 * WORDS, FLOATS = LOSS_AT + 32;
static_assert(4 * FLOATS == TEAM_BYTES, "plan.py counts otherwise");

DEVICE void settle(Network& net, Memory& memory, const Table&, size_t) {
    DYNAMIC_SHARED(shared);
    net.at = shared + threadIdx.x / THREADS * FLOATS;
#pragma unroll
    for (int k = 0; k < MEMORIES; ++k) memory.number[k].at = net.at + ALL_PARAMS * (1 + KEPT + k);
}

DEVICE void look_at(const Network&) {}  // products need to know nothing beforehand

// Whether all params of this thread are finite.
DEVICE bool is_finite(const Network& net) {
    float sum = net.c * 0.0f;
    for (int i = thread_of_team(); i < ALL_PARAMS; i += THREADS) sum += net.at[i] * 0.0f;
    return sum == 0.0f;
}

// Calls work(first row, first column) for this warp's share of the pieces of a result.
template <int ROWS_OF_ALL, int COLUMNS, int PIECE, class Work>
DEVICE void for_each_piece(const Work& work) {
    constexpr int DOWN = padded(ROWS_OF_ALL) / ROWS, ACROSS = COLUMNS / PIECE;
#pragma unroll 1
    for (int piece = warp_of_team(); piece < DOWN * ACROSS; piece += TEAM) {
        work(ROWS * (piece % DOWN), PIECE * (piece / DOWN));
    }
}

// Input `input` of a sample, from its words.
DEVICE float read(u32 word, int input) {
    const u32 bits = word >> (input % 32);
    return READS_BITS ? (float)(bits & 1u) : __uint_as_float(bits << 31 | 0x3f800000u);
}

template <int L>
DEVICE void forward_layer(const Network& net) {
    const float* w = net.at + weights_at(L);
    const u32* words = (const u32*)(net.at + WORDS_AT);
    float* values = net.at + values_at(L);
    for_each_piece<units_of(L), 32, 32>([&](int row, int) {
        Piece<4> piece;
        for_each_sum<4>(piece, [&](float& sum, int unit, int) { sum = BIAS ? net.at[biases_at(L) + row + unit] : 0.0f; });
        const auto left = [&](int unit, int k) {
            const float* at = w + k * stride_of(L) + row + unit;
            return Pair{at[0], at[stride_of(L)]};
        };
        constexpr int CHUNKS = padded(units_of(L - 1)) / 16;
        if constexpr (L == 0) {
            multiply<CHUNKS, 1>(piece, left, [&](int k, int sample) {
                const u32 word = words[k / 32 * 32 + sample];
                return Pair{read(word, k), read(word, k + 1)};
            });
        } else {
            multiply<CHUNKS, 3>(piece, left, [&](int k, int sample) {
                const float* at = net.at + values_at(L - 1) + k * ROW + sample;
                return Pair{at[0], at[ROW]};
            });
        }
        for_each_sum<4>(piece, [&](float sum, int unit, int sample) {
            float* value = values + (row + unit) * ROW + sample;
            *value = Act::value(sum);
            if (HAS_SLOPES) value[VALUES] = Act::slope(sum);
        });
    });
    meet<THREADS>();
    if constexpr (L < TOP) forward_layer<L + 1>(net);
}

// A lane's share of f: that of its warp's units, for the sample that it drew. `x` holds the words of that sample.
template <int M>
DEVICE float forward(const Network& net, const u32 (&x)[BLOCKS], Hidden&) {
    if (warp_of_team() == 0) {
#pragma unroll
        for (int w = 0; w < WORDS; ++w) ((u32*)(net.at + WORDS_AT))[32 * w + lane_id()] = x[w];
    }
    meet<THREADS>();
    forward_layer<0>(net);
    float sums[2] = {};
#pragma unroll 4
    for (int unit = warp_of_team(); unit < padded(WIDTH); unit += TEAM) {
        float& sum = sums[unit / TEAM % 2];
        sum = fmaf(net.at[HEAD_AT + unit], net.at[values_at(TOP) + unit * ROW + lane_id()], sum);
    }
    return sums[0] + sums[1];
}

// The activation's slope where its value is `at`.
DEVICE float slope_at(const float* at) { return HAS_SLOPES ? at[VALUES] : Act::slope(*at); }

// Adds to a gradient that is kept, or moves the param.
template <int L>
DEVICE void take(const Network& net, const Gradient& gradient, const Pace& pace, int at, float sum) {
    float& theta = net.at[at];
    if (KEPT) net.at[ALL_PARAMS + at] = gradient.begun ? net.at[ALL_PARAMS + at] + sum : sum;
    else theta = move(theta, sum, make_update(pace.lr, layer_rates(L)));
}

// From the slopes of the loss to the gradients of the last layer's sums; a thread has a unit, whose values they replace.
DEVICE void backward_head(const Network& net, const Gradient& gradient, const Pace& pace) {
    const float* slopes = net.at + LOSS_AT;
    for (int unit = thread_of_team(); unit < padded(WIDTH); unit += THREADS) {
        const float u = net.at[HEAD_AT + unit];
        float* values = net.at + values_at(TOP) + unit * ROW;
        float head = 0.0f, bias = 0.0f;
#pragma unroll
        for (int s = 0; s < 32; s += 4) {
            const Quad loss = *(const Quad*)(slopes + s), value = *(const Quad*)(values + s);
            Quad slope = value, back;
            if (HAS_SLOPES) slope = *(const Quad*)(values + VALUES + s);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                back.of[i] = loss.of[i] * u * (HAS_SLOPES ? slope.of[i] : Act::slope(slope.of[i]));
                head = fmaf(loss.of[i], value.of[i], head), bias += back.of[i];
            }
            *(Quad*)(values + s) = back;
        }
        if (unit >= WIDTH) continue;
        take<LAYERS>(net, gradient, pace, HEAD_AT + unit, head);
        if (BIAS) take<TOP>(net, gradient, pace, biases_at(TOP) + unit, bias);
    }
}

// This warp's pieces of what passes to the values of the layer below. They stay in registers until those values and the
// weights have served for the gradient of the weights.
template <int L>
struct Back {
    static constexpr int END = padded(units_of(L - 1)), PIECES = (END / ROWS + TEAM - 1) / TEAM;
    Piece<4> pieces[PIECES];
};

template <int L>
DEVICE void pass_back(const Network& net, Back<L>& back) {
#pragma unroll
    for (int i = 0; i < Back<L>::PIECES; ++i) {
        const int row = ROWS * (warp_of_team() + i * TEAM);
        if (row >= Back<L>::END) continue;
        back.pieces[i] = Piece<4>{};
        multiply<padded(units_of(L)) / 16, 3>(
            back.pieces[i],
            [&](int input, int k) { return pair_at(net.at + weights_at(L) + (row + input) * stride_of(L) + k); },
            [&](int k, int sample) {
                const float* at = net.at + values_at(L) + k * ROW + sample;
                return Pair{at[0], at[ROW]};
            });
    }
}

// From values to gradients of the sums, in place.
template <int L>
DEVICE void put_back(const Network& net, const Back<L>& back) {
#pragma unroll
    for (int i = 0; i < Back<L>::PIECES; ++i) {
        const int row = ROWS * (warp_of_team() + i * TEAM);
        if (row >= Back<L>::END) continue;
        for_each_sum<4>(back.pieces[i], [&](float sum, int unit, int sample) {
            float* at = net.at + values_at(L - 1) + (row + unit) * ROW + sample;
            *at = sum * slope_at(at);
        });
    }
}

// Gradients of a layer's weights.
template <int L>
DEVICE void take_weights(const Network& net, const Gradient& gradient, const Pace& pace) {
    constexpr int IN = units_of(L - 1), PIECE = padded(IN) % 32 == 0 ? 32 : 16;
    for_each_piece<units_of(L), padded(IN), PIECE>([&](int row, int column) {
        Piece<PIECE / 8> piece = {};
        const auto left = [&](int unit, int k) { return pair_at(net.at + values_at(L) + (row + unit) * ROW + k); };
        if constexpr (L == 0) {
            const u32* words = (const u32*)(net.at + WORDS_AT) + column / 32 * 32;
            multiply<2, 1>(piece, left, [&](int k, int input) {
                return Pair{read(words[k], column + input), read(words[k + 1], column + input)};
            });
        } else {
            multiply<2, 3>(piece, left, [&](int k, int input) {
                return pair_at(net.at + values_at(L - 1) + (column + input) * ROW + k);
            });
        }
        for_each_sum<PIECE / 8>(piece, [&](float sum, int unit, int input) {
            unit += row, input += column;
            if (unit >= units_of(L) || input >= IN) return;
            take<L>(net, gradient, pace, weights_at(L) + input * stride_of(L) + unit, sum);
        });
    });
}

template <int L>
DEVICE void backward_layer(const Network& net, const Gradient& gradient, const Pace& pace) {
    if constexpr (L == 0) {
        take_weights<0>(net, gradient, pace);
        meet<THREADS>();
    } else {
        Back<L> back;
        pass_back<L>(net, back);
        meet<THREADS>();
        take_weights<L>(net, gradient, pace);
        meet<THREADS>();
        put_back<L>(net, back);
        meet<THREADS>();
        for (int unit = thread_of_team(); unit < BIAS * units_of(L - 1); unit += THREADS) {
            float sum = 0.0f;
#pragma unroll
            for (int s = 0; s < 32; s += 4) {
                const Quad back = *(const Quad*)(net.at + values_at(L - 1) + unit * ROW + s);
                sum += (back.of[0] + back.of[2]) + (back.of[1] + back.of[3]);
            }
            take<L - 1>(net, gradient, pace, biases_at(L - 1) + unit, sum);
        }
        backward_layer<L - 1>(net, gradient, pace);
    }
}

// Adds 32 samples to the gradient; or if that is all of the batch, moves the params, the output's bias apart.
DEVICE void backward(const Network& net, Memory&, const Hidden&, float slope, Gradient& gradient, const Pace& pace) {
    slope *= pace.share;
    if (warp_of_team() == 0) net.at[LOSS_AT + lane_id()] = slope;
    gradient.c += sum_over_warp(slope);
    meet<THREADS>();
    backward_head(net, gradient, pace);
    meet<THREADS>();
    backward_layer<TOP>(net, gradient, pace);
    gradient.begun = true;
}
