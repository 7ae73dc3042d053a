// Optimisers that remember: what becomes of a gradient once the whole batch is summed, as native/optimisers.h has it.
// Noise, clipping and decay come first, then the rule, which turns the gradient into a direction and keeps MEMORIES
// numbers for each param. Plain SGD has nothing of this: the sums of a batch move its weights as they are.
constexpr bool PLAIN = RULE == SGD && !CLIPS;
constexpr bool FIRST_WHOLE = CLIPS || (NOISY && !PLAIN);  // the gradient must be complete before any param moves
// A gradient that is always 0 would make NaN of a param that does not exist, but only pads a tile.
constexpr bool ZERO_OVER_ZERO = coefficients(RULE == ADAM ? 2 : 1) == 0.0f && (RULE == ADAM || RULE == RMSPROP);

// How params move at one step: each layer's update, what corrects Adam's means, which begin at 0, and by what a gradient
// that is too long is multiplied.
struct Pace {
    Update hidden, output;
    float mean, square;  // 1 / (1 - b1^t) and 1 / (1 - b2^t)
    float scale;
    float share;  // of an example in the mean over the batch
    float lr;
};

// The corrections at step t, counted from 0; expm1 is as accurate as its argument.
DEVICE float correction(int t, float log_of_mean) { return -1.0f / expm1f((float)(t + 1) * log_of_mean); }

DEVICE Pace make_pace(float lr, int batch) {
    const float share = VARYING ? 1.0f / (float)batch : 1.0f / BATCH;
    return {make_update(lr, RATE_HIDDEN), make_update(lr, RATE_OUTPUT), 1.0f, 1.0f, 1.0f, share, lr};
}

DEVICE float clipping(float squared) {
    const float norm = approximate_root(squared);
    return norm > MOST_NORM ? MOST_NORM / norm : 1.0f;
}

// Where a gradient leads, by what is kept of those before.
DEVICE float direction(float g, float& one, float& two, const Pace& pace) {
    const float a = coefficients(0), b = coefficients(1), c = coefficients(2);
    if (RULE == MOMENTUM) {  // mu, Nesterov's or not
        one = fmaf(a, one, g);
        return b != 0.0f ? fmaf(a, one, g) : one;
    }
    if (RULE == ADAM) {  // b1, b2, eps
        one = fmaf(a, one, (1.0f - a) * g);
        two = fmaf(b, two, (1.0f - b) * g * g);
        return approximate_quotient(one * pace.mean, approximate_root(two * pace.square) + c);
    }
    if (RULE == RMSPROP) {  // alpha, eps, mu
        one = fmaf(a, one, (1.0f - a) * g * g);
        const float scaled = approximate_quotient(g, approximate_root(one) + b);
        if (c == 0.0f) return scaled;
        two = fmaf(c, two, scaled);
        return two;
    }
    if (RULE == SIGN_OF) {  // b1, b2: Lion's; without memory the sign of the gradient
        const float mean = MEMORIES > 0 ? fmaf(a, one, (1.0f - a) * g) : g;
        if (MEMORIES > 0) one = fmaf(b, one, (1.0f - b) * g);
        return mean > 0.0f ? 1.0f : mean < 0.0f ? -1.0f : mean;  // 0 and NaN stay
    }
    return g;
}

// A param after the step, by the gradient of the whole batch.
DEVICE float moved(float theta, float g, float& one, float& two, const Pace& pace, Update update) {
    if (CLIPS) g *= pace.scale;
    if (DECAY_GRADIENT != 0.0f) g = fmaf(DECAY_GRADIENT, theta, g);
    return move(theta, direction(g, one, two, pace), update);
}
