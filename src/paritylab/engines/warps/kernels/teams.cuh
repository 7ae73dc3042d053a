// Teams of warps that train one network each: rows, samples, checks. A team is a warp, or a block of TEAM warps.

// The first that a team's warps have to tell each other; with one warp there is nothing to tell. M tiles of eight samples
// are one a lane of as many warps as that takes, and the same again in the next warps.
template <int M>
DEVICE float sum_over_team(float share, int& turn) {
    constexpr int GROUP = (M + 3) / 4;
    if (TEAM == 1) return share;
    __shared__ float shares[2][TEAM][32];  // in turns, so that one barrier is enough
    float(&now)[TEAM][32] = shares[turn];
    turn ^= 1;
    now[threadIdx.x / 32 % TEAM][lane_id()] = share;
    __syncthreads();
    float sum = 0.0f;
#pragma unroll
    for (int warp = 0; warp < TEAM; warp += GROUP) sum += now[warp + threadIdx.x / 32 % GROUP][lane_id()];
    return sum;
}

DEVICE bool any_in_team(bool vote) { return TEAM == 1 ? __any_sync(ALL, vote) : __syncthreads_or(vote) != 0; }

// What thread 0 of the team says, to all.
DEVICE int said_by_first(int value) {
    if (TEAM == 1) return __shfl_sync(ALL, value, 0);
    __shared__ int said;
    if (threadIdx.x == 0) said = value;
    __syncthreads();
    value = said;
    __syncthreads();
    return value;
}

// As many samples as pass at once: the words of this lane's own, the output for it and its label.
struct Samples {
    u32 x[BLOCKS];
    float f, y;
};

template <int M>
DEVICE void outputs(Samples& samples, const Network& net, Key key, u32 sample, const Standing& standing, bool in_turn,
                    const u32 (&mask)[WORDS], Hidden& hidden, int& turn) {
    u32 drawn[WORDS];
    samples.y = draw(key, sample, standing, mask, in_turn, drawn);
#pragma unroll
    for (int block = 0; block < BLOCKS; ++block) samples.x[block] = block < WORDS ? drawn[min(block, WORDS - 1)] : 0;
    if (INPUTS > N) {  // the input that is always read as 1
        u32& last = samples.x[BLOCKS - 1];
        last = READS_BITS ? last | 1u << (N % 32) : last & ~(1u << (N % 32));
    }
    samples.f = sum_over_team<M>(forward<M>(net, samples.x, hidden), turn) + net.c;
}

// What the next 32 steps need of the streams, a step in each lane.
struct Window {
    int first;
    Key data, labels;
    float factor;
    float mean, square;  // of Pace
    Stage stage;
};

DEVICE void open_window(Window& window, const Run& run, const Table& table) {
    const int t = run.t + lane_id();
    window.first = run.t;
    if (!IN_PASSES) window.data = fold_in(fold_in(run.key, REPLACED ? ORDER : DATA), t);
    if (FLIPS && EXAMPLES == 0) window.labels = fold_in(fold_in(run.key, LABELS), t);
    const bool known = SCHEDULED && t < run.max_steps && table.schedule[t / SCHEDULE_BLOCK];
    window.factor = known ? factor_at(table, t) : 0.0f;
    if (RULE == ADAM) window.mean = correction(t, LOG_FIRST), window.square = correction(t, LOG_SECOND);
    window.stage = stage_at(t, run.flip);
}

DEVICE Key from_lane(Key key, int lane) { return {__shfl_sync(ALL, key.a, lane), __shfl_sync(ALL, key.b, lane)}; }

DEVICE Stage from_lane(const Stage& stage, int lane) {
    const Standing standing = {__shfl_sync(ALL, stage.standing.law, lane), __shfl_sync(ALL, stage.standing.next, lane),
                               __shfl_sync(ALL, stage.standing.moved, lane)};
    return {standing, __shfl_sync(ALL, stage.flip, lane), __shfl_sync(ALL, stage.batch, lane)};
}

DEVICE void step(Run& run, Network& net, Memory& memory, const Window& window, Place& at, const Scratch& scratch,
                 int& turn) {
    const int place = run.t - window.first;
    const Key own = IN_PASSES ? Key{0, 0} : from_lane(window.data, place), data = EXAMPLES > 0 ? run.sample : own;
    const Key labels = !FLIPS ? Key{0, 0} : EXAMPLES > 0 ? run.sample_labels : from_lane(window.labels, place);
    prepare<32 * TEAM>(at, run.key, scratch, threadIdx.x % (32 * TEAM));
    const Stage stage = STAGES > 0 ? from_lane(window.stage, place) : stage_at(run.t, run.flip);
    const int batch = batch_at(at, stage);
    const float lr = SCHEDULED ? run.lr * __shfl_sync(ALL, window.factor, place) : run.lr;
    Pace pace = make_pace(lr, batch);
    if (RULE == ADAM) {
        pace.mean = __shfl_sync(ALL, window.mean, place);
        pace.square = __shfl_sync(ALL, window.square, place);
    }
    Gradient gradient = {};
#pragma unroll 1
    for (int subset = 0; subset < (STAGES > 0 ? (batch + AT_ONCE - 1) / AT_ONCE : SUBSETS); ++subset) {
        const int place_in_batch = AT_ONCE * subset + threadIdx.x % AT_ONCE;
        const u32 sample = EXAMPLES > 0 ? example_of(at, scratch, own, place_in_batch) : place_in_batch;
        Samples samples;
        Hidden hidden;
        outputs<SAMPLE_TILES>(samples, net, data, sample, stage.standing, false, run.mask, hidden, turn);
        if (FLIPS && random_bits(labels, sample) < stage.flip) samples.y = -samples.y;
        const bool counts = (BATCH % AT_ONCE == 0 && !VARYING) || place_in_batch < batch;
        const float slope = counts ? Loss::slope(samples.f, samples.y) : 0.0f;
        backward(net, memory, hidden, slope, gradient, pace);
    }
    finish(gradient, net, pace.share);
    const bool noisy = NOISY && run.noise != 0.0f;
    const Key noise = noisy ? fold_in(fold_in(run.key, NOISE), run.t) : Key{0, 0};
    if (noisy) add_noise_before(net, gradient, noise, run.noise);
    if (CLIPS) pace.scale = clipping(sum_over_warp(sum_over_team<4>(squared_norm(net, gradient), turn)));
    move_network(net, memory, gradient, pace);
    if (noisy) add_noise_after(net, noise, run.noise, pace);
    next_place(at);
    ++run.t;
}

// Whether the run has ended; its outcome is then in the table.
DEVICE bool check(Run& run, Network& net, const Table& table, int& turn) {
    const bool finite = !any_in_team(!is_finite(net));
    const bool whole = !finite || run.t == run.max_steps;
    const bool first = threadIdx.x % (32 * TEAM) == 0;
    float* scores = table.scores + (size_t)run.row * SCORES;
    const Key key = evaluation_key(run);
    const Score score = evaluate(whole, scores, first, [&](u32 sample, float& f, float& y) {
        Samples samples;
        Hidden hidden;
        forget_splits(net);
        outputs<4>(samples, net, key, sample, evaluation_standing(), true, run.mask, hidden, turn);
        f = samples.f, y = samples.y;
    });
    int status;
    if (!judge(run, score, finite, status)) return false;
    if (TRAINED) {
        const Score trained = score_group<1>(0, EXAMPLES, 0, true, [&](u32 sample, float& f, float& y) {
            Samples samples;
            Hidden hidden;
            forget_splits(net);
            outputs<4>(samples, net, run.sample, sample, sample_standing(), false, run.mask, hidden, turn);
            const bool flips = FLIPS && random_bits(run.sample_labels, sample) < run.flip;
            f = samples.f, y = flips ? -samples.y : samples.y;
        });
        put_score(scores + SCORES - 2, trained, EXAMPLES, first);
    }
    const double loss = sum_over_warp(score.loss);
    if (first) {
        table.status[run.row] = status;
        table.accuracy[run.row] = (float)((double)(EVAL_SIZE - score.errors) / EVAL_SIZE);
        table.loss[run.row] = (float)(loss / EVAL_SIZE);
    }
    return true;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, MIN_BLOCKS) train(const Table* rows, const int* order,
                                                                            int count, int microseconds, int quota) {
    const Table table = *rows;
    const Launch launch = {order, count, microseconds, quota, nanoseconds()};
    const bool first = threadIdx.x % (32 * TEAM) == 0;
    const size_t team = blockIdx.x * (WARPS / TEAM) + threadIdx.x / (32 * TEAM);
    const Scratch scratch = scratch_of(table, team);
    int turn = 0;
    for (bool stop = false; !stop;) {
        const int place = said_by_first(first ? (int)atomicAdd(table.taken, 1u) : 0);
        if (place >= launch.count) {
            if (first) atomicAdd(table.idle, 1u);
            return;
        }
        Run run;
        Network net;
        Memory memory;
        Window window;
        load_run(run, table, launch.order[place]);
        settle(net, memory, table, team);
        float* params = table.params + (size_t)run.row * PARAMS;
        float* kept = table.memory + (size_t)run.row * (MEMORIES * PARAMS);
        load_network(net, params);
#pragma unroll
        for (int k = 0; k < MEMORIES; ++k) load_network(memory.number[k], kept + k * PARAMS);
        look_at(net);
        window.first = run.t - 32;
        Place at = find_place(run.t);
        for (bool ended = false; !ended && !stop;) {
            const int known = steps_with_factors(run, table), steps = min(min(steps_to_check(run), STRETCH), known);
            if (known == 0) break;
#pragma unroll 1
            for (int i = 0; i < steps; ++i) {
                if (run.t - window.first >= 32) open_window(window, run, table);
                step(run, net, memory, window, at, scratch, turn);
            }
            if (due(run)) ended = check(run, net, table, turn);
            stop = said_by_first(first && over(table, launch));
        }
        save_network(net, params);
#pragma unroll
        for (int k = 0; k < MEMORIES; ++k) save_network(memory.number[k], kept + k * PARAMS);
        if (first) table.step[run.row] = run.t, table.streak[run.row] = run.streak;
    }
}
