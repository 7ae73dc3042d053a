// Activation functions. Each has a value(z) and a chain(z, g), which is g times the derivative at z.
#pragma once

#include "config.h"
#include "elementary.h"

namespace paritylab::PARITYLAB_ISA {

struct Relu {
    vf value(vf z) const { return at_least(z, vf{}); }
    vf chain(vf z, vf g) const { return select(z > 0.0f, g, vf{}); }
};

struct Clip {
    float upper;
    vf value(vf z) const { return at_most(at_least(z, vf{}), broadcast(upper)); }
    vf chain(vf z, vf g) const { return select((z > 0.0f) & (z < upper), g, vf{}); }
};

struct Power {
    int q;
    vf power(vf z, int exponent) const {
        vf product = broadcast(1.0f);
        for (int i = 0; i < exponent; ++i) product *= z;
        return product;
    }
    vf value(vf z) const { return power(z, q); }
    vf chain(vf z, vf g) const { return g * (static_cast<float>(q) * power(z, q - 1)); }
};

// A piecewise linear wave of slope +-1 with its turning points at k, k - 2, k - 4, ...; past the outermost turns the
// zigzag goes straight on, the triangle keeps turning.
template <bool endless>
struct Wave {
    float k;
    struct Piece {
        vf offset;  // place on this piece, from 0 to 1
        vf sign;    // (-1)^m
    };
    Piece piece(vf z) const {
        const vf s = (z - k) * 0.5f;
        vf m = floor_of(s);
        if (!endless) m = at_most(at_least(m, broadcast(-k)), broadcast(-1.0f));
        const vf odd = m - 2.0f * floor_of(m * 0.5f);
        return {s - m, 1.0f - 2.0f * odd};
    }
    vf value(vf z) const {
        const Piece p = piece(z);
        return p.sign * (1.0f - 2.0f * p.offset);
    }
    vf chain(vf z, vf g) const { return -(g * piece(z).sign); }
};
using Zigzag = Wave<false>;
using Triangle = Wave<true>;

struct Polynomial {
    const std::vector<float>& coefficients;  // of z^0, z^1, ...
    vf value(vf z) const {
        vf sum{};
        for (size_t i = coefficients.size(); i-- > 0;) sum = fma(sum, z, broadcast(coefficients[i]));
        return sum;
    }
    vf chain(vf z, vf g) const {
        vf sum{};
        for (size_t i = coefficients.size(); i-- > 1;) {
            sum = fma(sum, z, broadcast(static_cast<float>(i) * coefficients[i]));
        }
        return g * sum;
    }
};

struct Sinusoid {
    float scale, degree;
    SinCos angle(vf z) const { return sincos_half_pi(fma(broadcast(scale), z, broadcast(-degree))); }
    vf value(vf z) const { return angle(z).cos; }
    vf chain(vf z, vf g) const { return g * ((-1.57079633f * scale) * angle(z).sin); }
};

struct Gelu {
    vf cumulative(vf z) const { return fma(broadcast(0.5f), erf_of(z * 0.70710678f), broadcast(0.5f)); }
    vf value(vf z) const { return z * cumulative(z); }
    vf chain(vf z, vf g) const {
        const vf density = 0.39894228f * exp_of_negative(-0.5f * z * z);
        return g * fma(z, density, cumulative(z));
    }
};

// Calls work(activation) with the type the configuration asks for: the choice is made once, outside the loops.
template <class Work>
inline void with_activation(const Config& config, Work&& work) {
    const std::vector<float>& p = config.activation_params;
    switch (config.activation) {
        case Activation::clip: return p[0] < __builtin_inff() ? work(Clip{p[0]}) : work(Relu{});
        case Activation::power: return work(Power{static_cast<int>(p[0])});
        case Activation::zigzag: return work(Zigzag{p[0]});
        case Activation::triangle: return work(Triangle{p[0]});
        case Activation::polynomial: return work(Polynomial{p});
        case Activation::sinusoid: return work(Sinusoid{p[0], p[1]});
        case Activation::gelu: return work(Gelu{});
    }
}

}  // namespace paritylab::PARITYLAB_ISA
