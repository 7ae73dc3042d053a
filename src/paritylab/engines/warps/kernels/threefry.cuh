// The counter-based random numbers of jax.random (threefry2x32, partitionable).
struct Key {
    u32 a, b;
};

#ifdef __CUDACC__
// The whole product; of `*` the compiler would make shifts.
template <u32 FACTOR>
DEVICE u64 mul_wide(u32 x) {
    u64 product;
    asm("mul.wide.u32 %0, %1, %2;" : "=l"(product) : "r"(x), "n"(FACTOR));
    return product;
}
#endif

// To the left. Products have another pipe than shifts, which pays in one kernel and not in the others.
template <int R>
DEVICE u32 rotate(u32 y) {
    if (!BY_PRODUCTS) return __funnelshift_l(y, y, R);
    const u64 wide = mul_wide<1u << R>(y);
    return (u32)wide | (u32)(wide >> 32);
}

template <int R0, int R1, int R2, int R3>
DEVICE void four_rounds(u32& x, u32& y) {
    x += y, y = rotate<R0>(y) ^ x;
    x += y, y = rotate<R1>(y) ^ x;
    x += y, y = rotate<R2>(y) ^ x;
    x += y, y = rotate<R3>(y) ^ x;
}

// The counter is (0, y).
DEVICE Key threefry(Key key, u32 y) {
    const u32 third = key.a ^ key.b ^ 0x1BD11BDAu;
    u32 x = key.a;
    y += key.b;
    four_rounds<13, 15, 26, 6>(x, y), x += key.b, y += third + 1u;
    four_rounds<17, 29, 16, 24>(x, y), x += third, y += key.a + 2u;
    four_rounds<13, 15, 26, 6>(x, y), x += key.a, y += key.b + 3u;
    four_rounds<17, 29, 16, 24>(x, y), x += key.b, y += third + 4u;
    four_rounds<13, 15, 26, 6>(x, y), x += third, y += key.a + 5u;
    return {x, y};
}

// jax.random.fold_in(key, data)
DEVICE Key fold_in(Key key, u32 data) { return threefry(key, data); }

// Element `index` of jax.random.bits(key, shape), in row-major order.
DEVICE u32 random_bits(Key key, u32 index) {
    const Key out = threefry(key, index);
    return out.a ^ out.b;
}

// What a run's key is folded with to get each of its streams.
enum Stream { INIT = 0, DATA = 1, LABELS = 2, EVALUATION = 3, SAMPLE = 4, ORDER = 5, NOISE = 6 };

// The inverse error function: Giles' polynomials, as XLA has them.
DEVICE float erf_inverse(float x) {
    float w = -logf(1.0f - x * x), p;
    if (w < 5.0f) {
        w -= 2.5f;
        p = 2.81022636e-08f;
        p = fmaf(p, w, 3.43273939e-07f), p = fmaf(p, w, -3.5233877e-06f), p = fmaf(p, w, -4.39150654e-06f);
        p = fmaf(p, w, 0.00021858087f), p = fmaf(p, w, -0.00125372503f), p = fmaf(p, w, -0.00417768164f);
        p = fmaf(p, w, 0.246640727f), p = fmaf(p, w, 1.50140941f);
    } else {
        w = sqrtf(w) - 3.0f;
        p = -0.000200214257f;
        p = fmaf(p, w, 0.000100950558f), p = fmaf(p, w, 0.00134934322f), p = fmaf(p, w, -0.00367342844f);
        p = fmaf(p, w, 0.00573950773f), p = fmaf(p, w, -0.0076224613f), p = fmaf(p, w, 0.00943887047f);
        p = fmaf(p, w, 1.00167406f), p = fmaf(p, w, 2.83297682f);
    }
    return x * p;
}

// Element `index` of jax.random.normal(key, shape). Not inlined: noisy runs call it for every param.
static __device__ __noinline__ float random_normal(Key key, u32 index) {
    const float low = -0x1.fffffep-1f;  // nextafter(-1, 0)
    const float unit = __uint_as_float((random_bits(key, index) >> 9) | 0x3F800000u) - 1.0f;
    return 0x1.6a09e6p0f * erf_inverse(fmaxf(unit * (1.0f - low) + low, low));
}
