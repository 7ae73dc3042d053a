// Activations: value(z) and slope(z). Where the slope is 0 or 1 (MASK), or -1 or 1 (SIGN), products with it are bit
// operations; otherwise (GENERAL) they are products.
enum SlopeKind { MASK, SIGN, GENERAL };

template <int KIND>
struct ActivationOf;

template <>
struct ActivationOf<RELU> {
    static constexpr SlopeKind kind = MASK;
    DEVICE float value(float z) { return max_nan(z, 0.0f); }
    DEVICE float slope(float z) { return z > 0.0f ? 1.0f : 0.0f; }
};

template <>
struct ActivationOf<CLIP> {
    static constexpr SlopeKind kind = MASK;
    DEVICE float value(float z) { return min_nan(max_nan(z, 0.0f), numbers(0)); }
    DEVICE float slope(float z) { return z > 0.0f && z < numbers(0) ? 1.0f : 0.0f; }
};

template <>
struct ActivationOf<POWER> {
    static constexpr SlopeKind kind = GENERAL;
    DEVICE float power(float z, int exponent) {
        float product = 1.0f;
        for (int i = 0; i < exponent; ++i) product *= z;
        return product;
    }
    DEVICE float value(float z) { return power(z, (int)numbers(0)); }
    DEVICE float slope(float z) { return numbers(0) * power(z, (int)numbers(0) - 1); }
};

// A piecewise linear wave of slope +-1 with its turning points at k, k - 2, k - 4, ...; past the outermost turns the
// zigzag goes straight on, the triangle keeps turning.
template <bool ENDLESS>
struct Wave {
    static constexpr SlopeKind kind = SIGN;
    DEVICE float piece(float z) {
        const float m = floorf((z - numbers(0)) * 0.5f);
        return ENDLESS ? m : fminf(fmaxf(m, -numbers(0)), -1.0f);
    }
    DEVICE float sign(float m) { return 1.0f - 2.0f * (m - 2.0f * floorf(m * 0.5f)); }
    DEVICE float value(float z) {
        const float m = piece(z);
        return sign(m) * (1.0f - 2.0f * ((z - numbers(0)) * 0.5f - m));
    }
    DEVICE float slope(float z) { return -sign(piece(z)); }
};
template <>
struct ActivationOf<ZIGZAG> : Wave<false> {};
template <>
struct ActivationOf<TRIANGLE> : Wave<true> {};

template <>
struct ActivationOf<POLYNOMIAL> {
    static constexpr SlopeKind kind = GENERAL;
    DEVICE float value(float z) {
        float sum = 0.0f;
        for (int i = NUMBERS; i-- > 0;) sum = fmaf(sum, z, numbers(i));
        return sum;
    }
    DEVICE float slope(float z) {
        float sum = 0.0f;
        for (int i = NUMBERS; i-- > 1;) sum = fmaf(sum, z, (float)i * numbers(i));
        return sum;
    }
};

// cos(pi/2 (scale z - degree)): sinpif and cospif reduce their argument exactly.
template <>
struct ActivationOf<SINUSOID> {
    static constexpr SlopeKind kind = GENERAL;
    DEVICE float half_turns(float z) { return 0.5f * fmaf(numbers(0), z, -numbers(1)); }
    DEVICE float value(float z) { return cospif(half_turns(z)); }
    DEVICE float slope(float z) { return -1.57079633f * numbers(0) * sinpif(half_turns(z)); }
};

template <>
struct ActivationOf<GELU> {
    static constexpr SlopeKind kind = GENERAL;
    DEVICE float cumulative(float z) { return fmaf(0.5f, erff(z * 0.70710678f), 0.5f); }
    DEVICE float value(float z) { return z * cumulative(z); }
    DEVICE float slope(float z) { return fmaf(z, 0.39894228f * expf(-0.5f * z * z), cumulative(z)); }
};

typedef ActivationOf<ACTIVATION> Act;
