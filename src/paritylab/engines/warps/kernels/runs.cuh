// A run while it is trained: its own numbers, its samples and its verdict.
struct Run {
    int row;  // -1: none
    int t, max_steps, streak;
    float lr, noise;
    u32 flip;
    u32 mask[WORDS];
    Key key, evaluation;  // of the run, and of its evaluation sample
    Key sample, sample_labels;  // of a finite sample
};

DEVICE void load_run(Run& run, const Table& table, int row) {
    run.row = row;
    run.t = table.step[row], run.max_steps = table.max_steps[row], run.streak = table.streak[row];
    run.lr = table.lr[row], run.noise = table.noise[row], run.flip = table.flip[row];
#pragma unroll
    for (int w = 0; w < WORDS; ++w) run.mask[w] = table.mask[row * WORDS + w];
    run.key = {table.key[2 * row], table.key[2 * row + 1]};
    run.evaluation = fold_in(fold_in(run.key, EVALUATION), 0);
    if (EXAMPLES > 0) {
        const Key root = fold_in(run.key, SAMPLE);
        run.sample = fold_in(root, 0);
        if (FLIPS) run.sample_labels = fold_in(root, 1);
    }
}

DEVICE Key evaluation_key(const Run& run) {
    return EVAL_FRESH ? fold_in(fold_in(run.key, EVALUATION), run.t) : run.evaluation;
}

DEVICE int steps_to_check(const Run& run) {
    const int on_grid = EVAL_EVERY - run.t % EVAL_EVERY, left = run.max_steps - run.t;
    return on_grid < left ? on_grid : left;
}

// What lr is multiplied by at step t.
DEVICE float factor_at(const Table& table, int t) { return table.schedule[t / SCHEDULE_BLOCK][t % SCHEDULE_BLOCK]; }

// For how many steps the factors are surely there; 0: the run has to wait for the next launch.
DEVICE int steps_with_factors(const Run& run, const Table& table) {
    if (!SCHEDULED) return STRETCH;
    return table.schedule[run.t / SCHEDULE_BLOCK] ? SCHEDULE_BLOCK - run.t % SCHEDULE_BLOCK : 0;
}

DEVICE bool due(const Run& run) { return run.t % EVAL_EVERY == 0 || run.t == run.max_steps; }

// theta <- keep theta - rate gradient, for one layer at one step.
struct Update {
    float keep, rate;
};

DEVICE Update make_update(float lr, float layer) {
    const float rate = lr * layer;
    return {1.0f - rate * DECAY_COUPLED - (layer != 0.0f ? DECAY_PLAIN : 0.0f), rate};
}

DEVICE float move(float theta, float gradient, Update update) {
    return fmaf(-update.rate, gradient, DECAYS ? theta * update.keep : theta);
}

struct Score {
    bool few;  // errors, no more than allowed
    int errors;
    double loss;  // summed
    double f, signs, products;  // sums of outputs, of the labels' signs and of both, if TRACED
};

template <class Number>
DEVICE Number sum_over_warp(Number value) {
#pragma unroll
    for (int d = 16; d > 0; d /= 2) value += __shfl_xor_sync(ALL, value, d);
    return value;
}

// Errors and loss of what `outputs(sample)` gives for every sample from `from` on in steps of GROUP_COUNT, one a lane, as
// (f, y). Stops once there are more errors than allowed, unless `whole`.
template <int GROUP_COUNT, class Outputs>
DEVICE Score score_group(u32 from, u32 size, int allowed, bool whole, const Outputs& outputs) {
    Score score = {true, 0, 0.0, 0.0, 0.0, 0.0};
    for (u32 first = 0; first < size && (whole || score.errors <= allowed); first += 32 * GROUP_COUNT) {
        const u32 sample = from + first + GROUP_COUNT * lane_id();
        float f, y;
        outputs(sample, f, y);
        const bool counts = sample < size;
        score.errors += __popc(__ballot_sync(ALL, counts && !is_right(f, y)));
        if (counts) score.loss += (double)Loss::value(f, y);
        if (TRACED && counts) {
            const double sign = y > 0.0f ? 1.0 : y < 0.0f ? -1.0 : 0.0;
            score.f += (double)f, score.signs += sign, score.products += sign * (double)f;
        }
    }
    score.few = score.errors <= allowed;
    return score;
}

// What is recorded of a run at a point of its curve: accuracy, loss and skill of each task, accuracy and loss on the
// training sample.
constexpr int SCORES = TRACED ? 3 * GROUPS + 2 * TRAINED : 0;

DEVICE void put_score(float* scores, const Score& score, int size, bool first) {
    const double loss = sum_over_warp(score.loss);
    if (first) scores[0] = (float)((double)(size - score.errors) / size), scores[1] = (float)(loss / size);
}

// That of a task: the covariance of the output with the label's sign, in units of the label's size.
DEVICE void put_task(float* scores, const Score& score, int size, bool first) {
    put_score(scores, score, size, first);
    const double f = sum_over_warp(score.f) / size, signs = sum_over_warp(score.signs) / size;
    const double products = sum_over_warp(score.products) / size;
    if (first) scores[2] = (float)((products - f * signs) / (SCALE < 0.0f ? -SCALE : SCALE));
}

// The score on the evaluation sample, task by task, if there are tasks: once there are more errors than allowed in one,
// unless `whole`, the others are left out. So the score of a run that has passed, or is finished, is complete. `first`
// says which thread records those of tasks.
template <class Outputs>
DEVICE Score evaluate(bool whole, float* scores, bool first, const Outputs& outputs) {
    if (GROUPS == 1) {
        const Score score = score_group<1>(0, EVAL_SIZE, ALLOWED, whole, outputs);
        if (TRACED && whole) put_task(scores, score, EVAL_SIZE, first);
        return score;
    }
    Score all = {true, 0, 0.0, 0.0, 0.0, 0.0};
#pragma unroll 1
    for (int task = 0; task < GROUPS && (whole || all.few); ++task) {
        const Score score = score_group<GROUPS>(task, EVAL_SIZE, ALLOWED_ERRORS[task], whole, outputs);
        all.few = all.few && score.few, all.errors += score.errors, all.loss += score.loss;
        if (TRACED && whole) put_task(scores + 3 * task, score, (EVAL_SIZE - task + GROUPS - 1) / GROUPS, first);
    }
    return all;
}

// Whether the run has ended; if so `status` says how. The score must be that of `evaluate`.
DEVICE bool judge(Run& run, const Score& score, bool finite, int& status) {
    const bool passed = finite && score.few;
    run.streak = passed ? run.streak + 1 : 0;
    const bool solved = passed && run.streak == CONSECUTIVE;
    status = !finite ? DIVERGED : solved ? SOLVED : CENSORED;
    return !finite || solved || run.t == run.max_steps;
}
