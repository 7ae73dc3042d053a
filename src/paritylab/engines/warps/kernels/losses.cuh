// Losses of an output f and a label y: the value, and the slope in f. UNIT: the slope is 0, 1 or -1 (or NaN).
template <int KIND>
struct LossOf;

template <>
struct LossOf<HINGE> {
    static constexpr bool unit = UNIT_LABELS;
    DEVICE float value(float f, float y) { return y * f < LOSS_NUMBER ? LOSS_NUMBER - y * f : f == f ? 0.0f : f; }
    DEVICE float slope(float f, float y) { return y * f < LOSS_NUMBER ? -y : 0.0f; }
};

template <>
struct LossOf<SQUARE> {
    static constexpr bool unit = false;
    DEVICE float value(float f, float y) { return (y - f) * (y - f); }
    DEVICE float slope(float f, float y) { return 2.0f * (f - y); }
};

// scale log(1 + e^-m) with m = y f, from e^-|m|, which cannot overflow.
template <>
struct LossOf<LOGISTIC> {
    static constexpr bool unit = false;
    DEVICE float value(float f, float y) {
        const float m = y * f;
        return LOSS_NUMBER * (fmaxf(-m, 0.0f) + log1pf(expf(-fabsf(m))));
    }
    DEVICE float slope(float f, float y) {
        const float m = y * f, e = expf(-fabsf(m));
        return -LOSS_NUMBER * y * (m < 0.0f ? 1.0f : e) / (1.0f + e);
    }
};

// The logistic loss between LOSS_NUMBER and LOSS_MOST, without a slope at and beyond either.
template <>
struct LossOf<CLIPPED_LOGISTIC> {
    static constexpr bool unit = false;
    DEVICE float whole(float m) { return fmaxf(-m, 0.0f) + log1pf(expf(-fabsf(m))); }
    DEVICE float value(float f, float y) {
        const float loss = whole(y * f);
        return y * f != y * f ? f : loss < LOSS_NUMBER ? LOSS_NUMBER : loss > LOSS_MOST ? LOSS_MOST : loss;
    }
    DEVICE float slope(float f, float y) {
        const float m = y * f, e = expf(-fabsf(m)), loss = whole(m);
        if (m != m) return f;
        return loss > LOSS_NUMBER && loss < LOSS_MOST ? -y * (m < 0.0f ? 1.0f : e) / (1.0f + e) : 0.0f;
    }
};

template <>
struct LossOf<CORRELATION> {
    static constexpr bool unit = UNIT_LABELS;
    DEVICE float value(float f, float y) { return -(y * f); }
    DEVICE float slope(float, float y) { return -y; }
};

template <>
struct LossOf<L1> {
    static constexpr bool unit = true;
    DEVICE float value(float f, float y) { return fabsf(y - f); }
    DEVICE float slope(float f, float y) { return f > y ? 1.0f : f < y ? -1.0f : f == f ? 0.0f : f; }
};

typedef LossOf<LOSS> Loss;
