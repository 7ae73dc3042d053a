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
};

// Errors and loss of what `outputs(key, sample)` gives for 32 samples, one a lane, as (f, y); task by task, if there are
// tasks. Stops once there are more errors than allowed, unless `whole`: so the score of a run that has passed, or is
// finished, is complete.
template <class Outputs>
DEVICE Score evaluate(Key key, bool whole, const Outputs& outputs) {
    Score score = {true, 0, 0.0};
#pragma unroll 1
    for (u32 group = 0; group < (u32)GROUPS && (whole || score.few); ++group) {
        const int allowed = GROUPS > 1 ? ALLOWED_ERRORS[group] : ALLOWED;
        int errors = 0;
        for (u32 first = 0; first < (u32)EVAL_SIZE && (whole || errors <= allowed); first += 32 * GROUPS) {
            const u32 sample = group + first + GROUPS * lane_id();
            float f, y;
            outputs(key, sample, f, y);
            const bool counts = sample < (u32)EVAL_SIZE;
            errors += __popc(__ballot_sync(ALL, counts && !is_right(f, y)));
            if (counts) score.loss += (double)Loss::value(f, y);
        }
        score.errors += errors;
        score.few &= errors <= allowed;
    }
    return score;
}

// Whether the run has ended; if so `status` says how. The score must be that of `evaluate`.
DEVICE bool judge(Run& run, const Score& score, bool finite, int& status) {
    const bool passed = finite && score.few;
    run.streak = passed ? run.streak + 1 : 0;
    const bool solved = passed && run.streak == CONSECUTIVE;
    status = !finite ? DIVERGED : solved ? SOLVED : CENSORED;
    return !finite || solved || run.t == run.max_steps;
}

template <class Number>
DEVICE Number sum_over_warp(Number value) {
#pragma unroll
    for (int d = 16; d > 0; d /= 2) value += __shfl_xor_sync(ALL, value, d);
    return value;
}
