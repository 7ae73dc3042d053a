// Elementary functions on SIMD registers. Absolute errors are below 1e-6 (tests/test_native_kernel.py measures them
// through the activations and losses); every one keeps NaN.
#pragma once

#include <initializer_list>

#include "simd.h"

namespace paritylab::PARITYLAB_ISA {

// Horner's rule; the coefficient of the highest power comes first.
inline vf horner(vf x, std::initializer_list<float> coefficients) {
    vf sum{};
    for (float coefficient : coefficients) sum = fma(sum, x, broadcast(coefficient));
    return sum;
}

// To the nearest integer, exact for every float: adding 2^23 pushes the fraction out of the significand.
inline vf nearest(vf x) {
    const vf size = absolute(x);
    const vf rounded = (size + 0x1p23f) - 0x1p23f;
    const vf with_sign = (vf)((vu)rounded | ((vu)x & 0x80000000u));
    return select(size < 0x1p23f, with_sign, x);
}

PARITYLAB_ONCE vf floor_of(vf x) {
    const vf rounded = nearest(x);
    return rounded - select(rounded > x, broadcast(1.0f), vf{});
}

// e^x for x <= 0 (smaller than 1e-37 counts as 1e-37). x = k ln 2 + r: a polynomial in r, and k added to the exponent.
PARITYLAB_ONCE vf exp_of_negative(vf x) {
    x = at_least(x, broadcast(-86.0f));
    const float magic = 0x1.8p23f;  // a float of this size holds an integer in its low bits
    const vf shifted = fma(x, broadcast(0x1.715476p0f), broadcast(magic));
    const vf k = shifted - magic;
    vf r = fma(k, broadcast(-0x1.62e400p-1f), x);
    r = fma(k, broadcast(-0x1.7f7d1cp-20f), r);
    const vf power = horner(r, {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f});
    return power * (vf)(((vu)shifted << 23) + 0x3F800000u);
}

// Natural logarithm of a positive normal float: x = 2^k m with m near 1, and log m = 2 artanh((m - 1) / (m + 1)).
PARITYLAB_ONCE vf log_of_positive(vf x) {
    const vu from_root_half = (vu)x - 0x3F3504F3u;  // so that m runs from sqrt(1/2) to sqrt(2)
    const vf k = __builtin_convertvector((vi)from_root_half >> 23, vf);
    const vf m = (vf)((from_root_half & 0x007FFFFFu) + 0x3F3504F3u);
    const vf t = (m - 1.0f) / (m + 1.0f);
    const vf series = horner(t * t, {1.0f / 9, 1.0f / 7, 1.0f / 5, 1.0f / 3, 1.0f});
    const vf result = fma(k, broadcast(0x1.62e430p-1f), 2.0f * t * series);
    return select(x == x, result, x);
}

// sin(pi/2 a) for |a| <= 1.
inline vf sin_quarter(vf a) {
    return a * horner(a * a, {1.5082056e-4f, -4.6722279e-3f, 7.9688482e-2f, -6.4596337e-1f, 1.5707963f});
}

struct SinCos {
    vf sin, cos;
};

// sin(pi/2 v) and cos(pi/2 v): v - 4 nearest(v / 4) is exact, so large arguments lose nothing.
PARITYLAB_ONCE SinCos sincos_half_pi(vf v) {
    const vf r = fma(nearest(v * 0.25f), broadcast(-4.0f), v);  // in [-2, 2]
    const vf size = absolute(r);
    const vf folded = select(size > 1.0f, 2.0f - size, size);  // sin(pi/2 |r|), mirrored at the top
    const vf sine = sin_quarter(folded);
    return {(vf)((vu)sine ^ ((vu)r & 0x80000000u)), sin_quarter(1.0f - size)};
}

// The error function as x P(x^2) / Q(x^2), the rational approximation of Eigen and XLA.
PARITYLAB_ONCE vf erf_of(vf x) {
    x = at_most(at_least(x, broadcast(-4.0f)), broadcast(4.0f));
    const vf square = x * x;
    const vf p = horner(square, {-2.72614225801306e-10f, 2.77068142495902e-08f, -2.10102402082508e-06f,
                                 -5.69250639462346e-05f, -7.34990630326855e-04f, -2.95459980854025e-03f,
                                 -1.60960333262415e-02f});
    const vf q = horner(square, {-1.45660718464996e-05f, -2.13374055278905e-04f, -1.68282697438203e-03f,
                                 -7.37332916720468e-03f, -1.42647390514189e-02f});
    return x * p / q;
}

// The inverse error function on (-1, 1): Giles' polynomials, as XLA has them.
inline vf erf_inverse(vf x) {
    const vf w = -log_of_positive(1.0f - x * x);
    const vf centre = horner(w - 2.5f, {2.81022636e-08f, 3.43273939e-07f, -3.5233877e-06f, -4.39150654e-06f,
                                        0.00021858087f, -0.00125372503f, -0.00417768164f, 0.246640727f, 1.50140941f});
    const vf tail = horner(square_root(w) - 3.0f,
                           {-0.000200214257f, 0.000100950558f, 0.00134934322f, -0.00367342844f, 0.00573950773f,
                            -0.0076224613f, 0.00943887047f, 1.00167406f, 2.83297682f});
    return x * select(w < 5.0f, centre, tail);
}

// The standard normal that jax.random.normal makes of these bits.
PARITYLAB_ONCE vf standard_normal(vu bits) {
    const float low = -0x1.fffffep-1f;  // nextafter(-1, 0)
    const vf unit = (vf)((bits >> 9) | 0x3F800000u) - 1.0f;
    const vf uniform = at_least(unit * (1.0f - low) + low, broadcast(low));
    return 0x1.6a09e6p0f * erf_inverse(uniform);
}

}  // namespace paritylab::PARITYLAB_ISA
