// One lane trains one network: PolyNets, and neurons and small MLPs with small batches.
//
// The params of a warp's 32 networks lie in shared memory as [param][lane]: each lane reads and writes a column of its
// own, so nothing conflicts and nothing waits. To evaluate one network on many inputs the warp works together, one
// input a lane; all lanes then read the same column, which is a broadcast.
//
// A step of a network moves every weight from and to shared memory: SAMPLES samples of a batch go through at once, and
// PASSES times 3 N WIDTH accesses serve 2 N WIDTH BATCH multiply-adds. Larger batches add up their gradient in a second
// column below the first; what an optimiser keeps has columns below that.
constexpr int PASSES = (BATCH + SAMPLES - 1) / SAMPLES;
constexpr bool KEPT = PASSES > 1 || !PLAIN;  // there is a column for the gradient
constexpr int MEMORY = PARAMS * (KEPT ? 2 : 1);    // where the optimiser's begin
constexpr int COLUMN = MEMORY + PARAMS * MEMORIES;  // numbers of shared memory for each lane
constexpr int PATIENCE = 32;

// +1 or -1 where bit `bit` of the word is 0 or 1.
DEVICE float sign_at(u32 word, int bit) { return __uint_as_float(((word << (31 - bit)) & 0x80000000u) | 0x3f800000u); }

// Calls work(j, x_j of each sample) for every input j.
template <int S, class Work>
DEVICE void for_each_input(const u32 (&x)[S][WORDS], const Work& work) {
#pragma unroll
    for (int w = 0; w < WORDS; ++w) {
        constexpr int TOGETHER = 8;
#pragma unroll 1
        for (int base = 0; base < 32 && 32 * w + base < N; base += TOGETHER) {
#pragma unroll
            for (int k = 0; k < TOGETHER; ++k) {
                if (32 * w + base + k < N) {
                    float signs[S];
#pragma unroll
                    for (int s = 0; s < S; ++s) signs[s] = sign_at(x[s][w] >> base, k);
                    work(32 * w + base + k, signs);
                }
            }
        }
    }
}

// A step's update of w that is still to come, if FUSED: it is made on the next way forward, which has the weights in hand.
constexpr bool FUSED = (VARIANT & 64) != 0 && PASSES == 1 && PLAIN && !NOISY;
struct Pending {
    u32 x[SAMPLES][WORDS];
    float change[SAMPLES][WIDTH];  // the loss's slope in z, times minus the rate
    float keep;
};

// Makes what is pending and calls work(i, weight, x_j of each sample) with every weight that comes of it.
template <class Work>
DEVICE void for_each_moved(float* net, const Pending& pending, const u32 (&x)[SAMPLES][WORDS], const Work& work) {
    u32 both[2 * SAMPLES][WORDS];
#pragma unroll
    for (int i = 0; i < SAMPLES * WORDS; ++i) {
        both[i / WORDS][i % WORDS] = x[i / WORDS][i % WORDS];
        both[SAMPLES + i / WORDS][i % WORDS] = pending.x[i / WORDS][i % WORDS];
    }
    for_each_input<2 * SAMPLES>(both, [&](int j, const float (&signs)[2 * SAMPLES]) {
#pragma unroll
        for (int i = 0; i < WIDTH; ++i) {
            float& weight = net[(j * WIDTH + i) * 32];
            float now = DECAYS ? weight * pending.keep : weight;
#pragma unroll
            for (int s = 0; s < SAMPLES; ++s) now = fmaf(signs[SAMPLES + s], pending.change[s][i], now);
            weight = now;
            work(i, now, signs);
        }
    });
}

DEVICE void flush(float* net, const Pending& pending) {
    for_each_moved(net, pending, pending.x, [](int, float, const float (&)[2 * SAMPLES]) {});
}

// From inputs to pre-activations z and outputs f, with the network in column `net`.
template <int S>
DEVICE void forward(float* net, const u32 (&x)[S][WORDS], float (&z)[S][WIDTH], float (&f)[S],
                    const Pending* pending = nullptr) {
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) {
        const float b = BIAS ? net[(AT_B + i) * 32] : 0.0f;
#pragma unroll
        for (int s = 0; s < S; ++s) z[s][i] = b;
    }
    if constexpr (FUSED && S == SAMPLES) {
        if (pending) {
            for_each_moved(net, *pending, x, [&](int i, float weight, const float (&signs)[2 * S]) {
#pragma unroll
                for (int s = 0; s < S; ++s) z[s][i] = fmaf(signs[s], weight, z[s][i]);
            });
        }
    }
    if (!pending) for_each_input<S>(x, [&](int j, const float (&signs)[S]) {
#pragma unroll
        for (int i = 0; i < WIDTH; ++i) {
            const float weight = net[(j * WIDTH + i) * 32];
#pragma unroll
            for (int s = 0; s < S; ++s) z[s][i] = fmaf(signs[s], weight, z[s][i]);
        }
    });
#pragma unroll
    for (int s = 0; s < S; ++s) f[s] = FAMILY == POLYNET ? 1.0f : FAMILY == MLP && BIAS ? net[AT_C * 32] : 0.0f;
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) {
        const float u = FAMILY == MLP ? net[(AT_U + i) * 32] : 0.0f;
#pragma unroll
        for (int s = 0; s < S; ++s) {
            if (FAMILY == POLYNET) f[s] *= z[s][i];
            else if (FAMILY == NEURON) f[s] = Act::value(z[s][i]);
            else f[s] = fmaf(u, Act::value(z[s][i]), f[s]);
        }
    }
}

// A lane's column on the way back: adds to the gradient, and in the last pass of plain SGD moves the params.
struct Column {
    float* net;
    bool first, last;
};

DEVICE void put(const Column& column, int param, float gradient, Update update) {
    float* theta = column.net + param * 32;
    if (KEPT) {
        float* sum = theta + PARAMS * 32;
        gradient += column.first ? 0.0f : *sum;
        if (!PLAIN || !column.last) {
            *sum = gradient;
            return;
        }
    }
    *theta = move(*theta, gradient, update);
}

// From the loss's slopes in f (over the batch size) to the gradient; z is overwritten.
template <int S>
DEVICE void backward(const Column& column, const u32 (&x)[S][WORDS], float (&z)[S][WIDTH], const float (&slope)[S],
                     const Pace& pace) {
    if (FAMILY == POLYNET) {  // d f / d z_i is the product of those before it and of those after
#pragma unroll
        for (int s = 0; s < S; ++s) {
            float after[WIDTH], product = 1.0f, before = slope[s];
#pragma unroll
            for (int i = WIDTH; i-- > 0;) after[i] = product, product *= z[s][i];
#pragma unroll
            for (int i = 0; i < WIDTH; ++i) {
                const float g = before * after[i];
                before *= z[s][i];
                z[s][i] = g;
            }
        }
    } else {
#pragma unroll
        for (int i = 0; i < WIDTH; ++i) {
            const float u = FAMILY == MLP ? column.net[(AT_U + i) * 32] : 1.0f;
            float sum = 0.0f;
#pragma unroll
            for (int s = 0; s < S; ++s) {
                sum = fmaf(slope[s], Act::value(z[s][i]), sum);
                z[s][i] = slope[s] * u * Act::slope(z[s][i]);
            }
            if (FAMILY == MLP) put(column, AT_U + i, sum, pace.output);
        }
    }
    if (FAMILY == MLP && BIAS) {
        float sum = 0.0f;
#pragma unroll
        for (int s = 0; s < S; ++s) sum += slope[s];
        put(column, AT_C, sum, pace.output);
    }
    if (BIAS) {
#pragma unroll
        for (int i = 0; i < WIDTH; ++i) {
            float sum = 0.0f;
#pragma unroll
            for (int s = 0; s < S; ++s) sum += z[s][i];
            put(column, AT_B + i, sum, pace.hidden);
        }
    }
    if (!FUSED) for_each_input<S>(x, [&](int j, const float (&signs)[S]) {
#pragma unroll
        for (int i = 0; i < WIDTH; ++i) {
            float sum = 0.0f;
#pragma unroll
            for (int s = 0; s < S; ++s) sum = fmaf(signs[s], z[s][i], sum);
            put(column, j * WIDTH + i, sum, pace.hidden);
        }
    });
}

// Adds to every param of a column, or to its gradient, so much of a standard normal.
DEVICE void add_noise(float* net, Key root, float hidden, float output) {
    const Key leaves[4] = {fold_in(root, 0), fold_in(root, BIAS), fold_in(root, 2), fold_in(root, 1 + 2 * BIAS)};
#pragma unroll 1
    for (int p = 0; p < PARAMS; ++p) {  // the arrays are numbered b, w, c, u, or w, u where there are no biases
        const int leaf = p < AT_B ? 1 : p < AT_U ? 0 : p < AT_C ? 3 : 2;
        const int start = p < AT_B ? 0 : p < AT_U ? AT_B : p < AT_C ? AT_U : AT_C;
        const Key key = leaf == 0 ? leaves[0] : leaf == 1 ? leaves[1] : leaf == 2 ? leaves[2] : leaves[3];
        net[p * 32] = fmaf(p < AT_U ? hidden : output, random_normal(key, p - start), net[p * 32]);
    }
}

// Moves all params by the optimiser, once their gradient is complete.
DEVICE void move_all(float* net, Pace pace) {
    float* gradient = net + PARAMS * 32;
    if (CLIPS) {
        float squared = 0.0f;
#pragma unroll 4
        for (int p = 0; p < PARAMS; ++p) {
            const bool frozen = (p < AT_U ? RATE_HIDDEN : RATE_OUTPUT) == 0.0f;
            const float g = gradient[p * 32];
            if (!frozen) squared = fmaf(g, g, squared);
        }
        pace.scale = clipping(squared);
    }
#pragma unroll 4
    for (int p = 0; p < PARAMS; ++p) {
        float none = 0.0f, *theta = net + p * 32, *one = theta + MEMORY * 32, *two = one + PARAMS * 32;
        *theta = moved(*theta, gradient[p * 32], MEMORIES > 0 ? *one : none, MEMORIES > 1 ? *two : none, pace,
                       p < AT_U ? pace.hidden : pace.output);
    }
}

DEVICE void step(Run& run, const Table& table, Key data, Key labels, Place& at, const Scratch& scratch, float* net,
                 Pending& pending) {
    const Key own = IN_PASSES ? Key{0, 0} : fold_in(data, run.t), key = EXAMPLES > 0 ? run.sample : own;
    const Key label_key = !FLIPS ? Key{0, 0} : EXAMPLES > 0 ? run.sample_labels : fold_in(labels, run.t);
    prepare<1>(at, run.key, scratch, 0);
    const Stage stage = stage_at(run.t, run.flip);
    const int batch = batch_at(at, stage);
    const float lr = SCHEDULED ? run.lr * factor_at(table, run.t) : run.lr;
    Pace pace = make_pace(lr, batch);
    if (RULE == ADAM) pace.mean = correction(run.t, LOG_FIRST), pace.square = correction(run.t, LOG_SECOND);
#pragma unroll 1
    for (int pass = 0; pass < PASSES; ++pass) {
        u32 x[SAMPLES][WORDS], number[SAMPLES];
        float z[SAMPLES][WIDTH], f[SAMPLES], y[SAMPLES], slope[SAMPLES];
#pragma unroll
        for (int s = 0; s < SAMPLES; ++s) {
            const int place = pass * SAMPLES + s;
            number[s] = EXAMPLES > 0 ? example_of(at, scratch, own, place) : place;
            y[s] = draw(key, number[s], stage.standing, run.mask, false, x[s]);
        }
        forward<SAMPLES>(net, x, z, f, FUSED ? &pending : nullptr);
#pragma unroll
        for (int s = 0; s < SAMPLES; ++s) {
            if (FLIPS && random_bits(label_key, number[s]) < stage.flip) y[s] = -y[s];
            slope[s] = pass * SAMPLES + s < batch ? Loss::slope(f[s], y[s]) * pace.share : 0.0f;
        }
        backward<SAMPLES>({net, pass == 0, pass == PASSES - 1}, x, z, slope, pace);
        if (FUSED) {
#pragma unroll
            for (int s = 0; s < SAMPLES; ++s) {
#pragma unroll
                for (int w = 0; w < WORDS; ++w) pending.x[s][w] = x[s][w];
#pragma unroll
                for (int i = 0; i < WIDTH; ++i) pending.change[s][i] = -pace.hidden.rate * z[s][i];
            }
            pending.keep = pace.hidden.keep;
        }
    }
    const bool noisy = NOISY && run.noise != 0.0f;
    const Key noise = noisy ? fold_in(fold_in(run.key, NOISE), run.t) : Key{0, 0};
    if (!PLAIN && noisy) add_noise(net + PARAMS * 32, noise, run.noise, run.noise);
    if (!PLAIN) move_all(net, pace);
    if (PLAIN && noisy) add_noise(net, noise, -pace.hidden.rate * run.noise, -pace.output.rate * run.noise);
    next_place(at);
    ++run.t;
}

DEVICE bool is_finite(const float* net) {
    float sum = 0.0f;
#pragma unroll 4
    for (int p = 0; p < PARAMS; ++p) sum += net[p * 32] * 0.0f;
    return sum == 0.0f;
}

// More errors than allowed among the first inputs (of the first task that is judged): nearly every check of a run that is
// not solved ends here, where each lane looks at its own network.
constexpr int SCREEN = ALLOWED < 8 ? 8 + 2 * ALLOWED : 0;

DEVICE bool screened_out(const Run& run, float* net, bool asked) {
    const Key key = evaluation_key(run);
    int errors = 0;
#pragma unroll 1
    for (int s = SCREENED; s < SCREEN * GROUPS && s < EVAL_SIZE && __any_sync(ALL, asked && errors <= ALLOWED);
         s += GROUPS) {
        if (!asked) continue;
        u32 x[1][WORDS];
        float z[1][WIDTH], f[1];
        const float y = draw(key, s, evaluation_standing(), run.mask, true, x[0]);
        forward<1>(net, x, z, f);
        errors += !is_right(f[0], y);
    }
    return errors > ALLOWED;
}

DEVICE Key from_lane(Key key, int lane) { return {__shfl_sync(ALL, key.a, lane), __shfl_sync(ALL, key.b, lane)}; }

// The score of the network of lane `owner`, by the whole warp.
DEVICE Score evaluate_together(const Run& run, const Table& table, float* columns, int owner, bool whole) {
    const Key key = from_lane(evaluation_key(run), owner);
    float* scores = table.scores + (size_t)__shfl_sync(ALL, run.row, owner) * SCORES;
    u32 mask[WORDS];
#pragma unroll
    for (int w = 0; w < WORDS; ++w) mask[w] = __shfl_sync(ALL, run.mask[w], owner);
    float* net = columns + owner;
    const auto outputs = [&](Key from, u32 sample, const Standing& standing, bool in_turn, float& f, float& y) {
        u32 x[1][WORDS];
        float z[1][WIDTH], out[1];
        y = draw(from, sample, standing, mask, in_turn, x[0]);
        forward<1>(net, x, z, out);
        f = out[0];
    };
    const bool first = lane_id() == 0;
    Score score = evaluate(whole, scores, first, [&](u32 sample, float& f, float& y) {
        outputs(key, sample, evaluation_standing(), true, f, y);
    });
    if (TRAINED && whole) {
        const Key inputs = from_lane(run.sample, owner), labels = from_lane(run.sample_labels, owner);
        const u32 flip = __shfl_sync(ALL, run.flip, owner);
        const Score trained = score_group<1>(0, EXAMPLES, 0, true, [&](u32 sample, float& f, float& y) {
            outputs(inputs, sample, sample_standing(), false, f, y);
            if (FLIPS && random_bits(labels, sample) < flip) y = -y;
        });
        put_score(scores + SCORES - 2, trained, EXAMPLES, first);
    }
    score.loss = sum_over_warp(score.loss);
    return score;
}

DEVICE void save(const Run& run, const Table& table, const float* net, int status) {
    table.step[run.row] = run.t, table.streak[run.row] = run.streak, table.status[run.row] = status;
    float* params = table.params + (size_t)run.row * PARAMS;
    for (int p = 0; p < PARAMS; ++p) params[p] = net[p * 32];
    float* memory = table.memory + (size_t)run.row * (MEMORIES * PARAMS);
    for (int p = 0; p < MEMORIES * PARAMS; ++p) memory[p] = net[(MEMORY + p) * 32];
}

// Checks the runs that are due; those that end leave their lanes free.
DEVICE void check(Run& run, const Table& table, float* columns) {
    float* net = columns + lane_id();
    const bool asked = run.row >= 0 && due(run);
    const bool finite = !asked || is_finite(net);
    const bool finished = asked && (!finite || run.t == run.max_steps);
    Score score = {false, 0, 0.0};
    const bool out = screened_out(run, net, asked && !finished);
    u32 waiting = __ballot_sync(ALL, asked && !out);
    while (waiting) {
        const int owner = __ffs(waiting) - 1;
        const bool whole = __shfl_sync(ALL, (int)finished, owner);
        const Score found = evaluate_together(run, table, columns, owner, whole);
        if ((int)lane_id() == owner) score = found;
        waiting &= waiting - 1;
    }
    int status;
    if (asked && judge(run, score, finite, status)) {
        save(run, table, net, status);
        table.accuracy[run.row] = (float)((double)(EVAL_SIZE - score.errors) / EVAL_SIZE);
        table.loss[run.row] = (float)(score.loss / EVAL_SIZE);
        run.row = -1;
    }
    __syncwarp();
}

// Free lanes take the next rows; `dry` once there are none.
DEVICE void refill(Run& run, Place& at, const Table& table, const Launch& launch, float* net, bool& dry) {
    const u32 idle = __ballot_sync(ALL, run.row < 0), lane = lane_id();
    if (dry || !idle) return;
    u32 first = 0;
    if (lane == 0) first = atomicAdd(table.taken, (u32)__popc(idle));
    first = __shfl_sync(ALL, first, 0);
    const u32 place = first + __popc(idle & ((1u << lane) - 1));
    if (run.row < 0 && place < (u32)launch.count) {
        load_run(run, table, launch.order[place]);
        at = find_place(run.t);
        const float* params = table.params + (size_t)run.row * PARAMS;
        for (int p = 0; p < PARAMS; ++p) net[p * 32] = params[p];
        const float* memory = table.memory + (size_t)run.row * (MEMORIES * PARAMS);
        for (int p = 0; p < MEMORIES * PARAMS; ++p) net[(MEMORY + p) * 32] = memory[p];
    }
    dry = first + __popc(idle) >= (u32)launch.count;
    __syncwarp();
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, MIN_BLOCKS) train(const Table* rows, const int* order,
                                                                            int count, int microseconds, int quota) {
    DYNAMIC_SHARED(shared);
    const Table table = *rows;
    const Launch launch = {order, count, microseconds, quota, nanoseconds()};
    float* columns = shared + threadIdx.x / 32 * (COLUMN * 32);
    float* net = columns + lane_id();
    const Scratch scratch = scratch_of(table, blockIdx.x * (32 * WARPS) + threadIdx.x);
    Place at = {};
    Run run = {};
    run.row = -1;
    int phase = 0, counted = 0;
    bool dry = false;
    for (;;) {
        // Lanes keep their checks together: one that becomes free between two of them waits for the next.
        if (phase % EVAL_EVERY == 0 || EVAL_EVERY > PATIENCE) refill(run, at, table, launch, net, dry);
        if (run.row >= 0 && steps_with_factors(run, table) == 0) {
            save(run, table, net, ACTIVE);
            run.row = -1;
        }
        const int free = 32 - __popc(__ballot_sync(ALL, run.row >= 0));
        if (dry && lane_id() == 0) atomicAdd(table.idle, (u32)(free - counted));
        if (dry) counted = free;
        if (free == 32) {
            if (dry) return;
            phase = 0;
            continue;
        }
        int steps = run.row >= 0 ? min(steps_to_check(run), steps_with_factors(run, table)) : STRETCH;
#pragma unroll
        for (int d = 16; d > 0; d /= 2) steps = min(steps, __shfl_xor_sync(ALL, steps, d));
        steps = min(steps, STRETCH);
        if (run.row >= 0) {
            const Key data = fold_in(run.key, REPLACED ? ORDER : DATA);
            const Key labels = FLIPS ? fold_in(run.key, LABELS) : Key{0, 0};
            Pending pending = {};
            pending.keep = 1.0f;
#pragma unroll 1
            for (int i = 0; i < steps; ++i) step(run, table, data, labels, at, scratch, net, pending);
            if (FUSED) flush(net, pending);
        }
        __syncwarp();
        phase += steps;
        check(run, table, columns);
        const bool stop = __shfl_sync(ALL, (int)over(table, launch), 0);
        if (stop) {
            if (run.row >= 0) save(run, table, net, ACTIVE);
            return;
        }
    }
}
