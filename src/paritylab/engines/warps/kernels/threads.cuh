// One lane trains one network: PolyNets, and neurons and small MLPs with small batches. To evaluate one network on many
// inputs the warp works together, one input a lane; all lanes then read the same column, which is a broadcast.
constexpr int PATIENCE = 32;

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
        if (FUSED) move_and_forward(net, pending, x, z, f);
        else forward<SAMPLES>(net, x, z, f);
#pragma unroll
        for (int s = 0; s < SAMPLES; ++s) {
            if (FLIPS && random_bits(label_key, number[s]) < stage.flip) y[s] = -y[s];
            slope[s] = pass * SAMPLES + s < batch ? Loss::slope(f[s], y[s]) * pace.share : 0.0f;
        }
        backward<SAMPLES>({net, pass == 0, pass == PASSES - 1}, x, z, slope, pace);
        if (FUSED) postpone(pending, x, z, pace.hidden);
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

DEVICE bool screened_out(const Run& run, const float* net, bool asked) {
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
DEVICE Score evaluate_together(const Run& run, const Table& table, const float* columns, int owner, bool whole) {
    const Key key = from_lane(evaluation_key(run), owner);
    float* scores = table.scores + (size_t)__shfl_sync(ALL, run.row, owner) * SCORES;
    u32 mask[WORDS];
#pragma unroll
    for (int w = 0; w < WORDS; ++w) mask[w] = __shfl_sync(ALL, run.mask[w], owner);
    const float* net = columns + owner;
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
