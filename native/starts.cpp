#include "starts.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>

namespace paritylab {
namespace {

// a * b + c, rounded once, without an instruction for it. The product is exact in double; the sum is rounded to odd, so
// that rounding it again to float does no harm (Boldo and Melquiond, 2008).
float fma(float a, float b, float c) {
    const double product = double(a) * double(b), sum = product + double(c);
    const double back = sum - product, error = (product - (sum - back)) + (double(c) - back);
    const uint64_t bits = std::bit_cast<uint64_t>(sum);
    if (error == 0 || (bits & 1) != 0) return static_cast<float>(sum);
    const bool away = (error > 0) == (sum > 0);
    return static_cast<float>(std::bit_cast<double>(away ? bits + 1 : bits - 1));
}

float from_bits(uint32_t bits) { return std::bit_cast<float>(bits); }

// Of a polynomial with these coefficients, first the one of the highest power.
float horner(float x, std::span<const float> coefficients) {
    float value = coefficients[0];
    for (const float c : coefficients.subspan(1)) value = fma(value, x, c);
    return value;
}

float logarithm(float a) {
    const uint32_t bits = std::bit_cast<uint32_t>(a);
    float power = static_cast<float>(static_cast<int32_t>(bits >> 23) - 127) + 1.0f;
    const float part = from_bits((bits & 0x807FFFFFu) | 0x3F000000u);
    const bool low = part < from_bits(0x3F3504F3u);  // the root of 1/2
    const float x = (part - 1.0f) + (low ? part : 0.0f);
    if (low) power -= 1.0f;
    const float x2 = x * x, x3 = x2 * x;
    const float first[] = {from_bits(0x3D9021BBu), from_bits(0xBDEBD1B8u), from_bits(0x3DEF251Au)};
    const float second[] = {from_bits(0xBDFE5D4Fu), from_bits(0x3E11E9BFu), from_bits(0xBE2AAE50u)};
    const float third[] = {from_bits(0x3E4CCEACu), from_bits(0xBE7FFFFCu), from_bits(0x3EAAAAAAu)};
    const float y = fma(fma(horner(x, first), x3, horner(x, second)), x3, horner(x, third));
    const float rest = fma(y, x3, power * from_bits(0xB95E8083u));
    return fma(power, from_bits(0x3F318000u), fma(x2, -0.5f, x) + rest);
}

float log_of_one_plus(float m) {
    if (!(std::fabs(m) < from_bits(0x3ED413CDu))) return logarithm(m + 1.0f);
    const float over[] = {4.527e-05f, from_bits(0x3EFF40C5u), from_bits(0x40D284FAu), from_bits(0x41EF4B9Cu),
                          from_bits(0x4273CC76u), from_bits(0x426473ADu), from_bits(0x41A05101u)};
    const float under[] = {1.0f, from_bits(0x417101ADu), from_bits(0x42A6185Bu), from_bits(0x435DC32Du),
                           from_bits(0x439A8CA3u), from_bits(0x43586D8Au), from_bits(0x42707982u)};
    const float m2 = m * m, ratio = horner(m, over) / horner(m, under);
    return m + fma(m2, -0.5f, (m * m2) * ratio);
}

// The inverse error function (Giles, 2010) at a number of (-1, 1) from a random word.
float inverse_error_function(uint32_t word) {
    const float least = from_bits(0xBF7FFFFFu);
    const float x = std::max((from_bits((word >> 9) | 0x3F800000u) - 1.0f) * 2.0f + least, least);
    const float l = log_of_one_plus(x * -x);
    const bool middle = l > -5.0f;
    const float w = middle ? -2.5f - l : std::sqrt(-l) - 3.0f;
    static constexpr uint32_t inner[] = {0x32F16588, 0x34B84B36, 0xB66C7357, 0xB6935AC1, 0x396532DB,
                                         0xBAA45408, 0xBB88E4EF, 0x3E7C8F63, 0x3FC02E2F};
    static constexpr uint32_t outer[] = {0xB951F09B, 0x38D3B56B, 0x3AB0DC72, 0xBB70BDE7, 0x3BBC127B,
                                         0xBBF9C5D7, 0x3C1AA57E, 0x3F8036DB, 0x40354F7E};
    float coefficients[std::size(inner)];
    std::ranges::transform(middle ? inner : outer, coefficients, from_bits);
    return x * horner(w, coefficients);
}

constexpr float ROOT_2 = 1.41421356f;

float sign(uint32_t word) { return 1.0f - 2.0f * static_cast<float>(word & 1); }
float unit(uint32_t word) { return from_bits((word >> 9) | 0x3F800000u) - 1.0f; }  // of [0, 1)
float uniform(uint32_t word) { return 2.0f * unit(word) - 1.0f; }

// jax.random.randint(key, shape, 0, count): two words, so that a count that divides no power of 2 does little harm.
uint32_t below(Key<uint32_t> key, uint32_t index, uint32_t count) {
    const uint32_t high = random_bits(fold_in(key, 0u), index), low = random_bits(fold_in(key, 1u), index);
    const uint32_t half = (1u << 16) % count, multiplier = half * half % count;
    return (high % count * multiplier + low % count) % count;
}

// Weights (fan_in, units) of one law, scaled.
void draw(const StartLaw& law, Key<uint32_t> key, float scale, int64_t fan_in, int64_t units, float* out) {
    const int64_t count = fan_in * units;
    const Key<uint32_t> first = fold_in(key, 0u), second = fold_in(key, 1u);
    const float s = law.params.empty() ? 0.0f : law.params[0], folded = ROOT_2 * scale, noisy = ROOT_2 * s;
    for (int64_t i = 0; i < count; ++i) {
        const auto at = static_cast<uint32_t>(i);
        const auto word = [&](Key<uint32_t> of) { return random_bits(of, at); };
        switch (law.kind) {
            case StartKind::uniform: out[i] = scale * uniform(word(key)); break;
            case StartKind::signs: out[i] = scale * sign(word(key)); break;
            case StartKind::normal: out[i] = inverse_error_function(word(key)) * folded; break;
            case StartKind::near_signs:
                out[i] = scale * fma(inverse_error_function(word(second)), noisy, sign(word(first)));
                break;
            case StartKind::wide_signs: out[i] = scale * fma(uniform(word(second)), s, sign(word(first))); break;
            case StartKind::few_signs: out[i] = scale * (unit(word(second)) >= s ? sign(word(first)) : 0.0f); break;
            case StartKind::points:
                out[i] = scale * law.params[below(key, at, static_cast<uint32_t>(law.params.size()))];
                break;
            case StartKind::sphere: out[i] = inverse_error_function(word(key)) * ROOT_2; break;
            case StartKind::tilted_signs: out[i] = unit(word(key)) < s ? scale : -scale; break;
        }
    }
    for (int64_t u = 0; law.kind == StartKind::sphere && u < units; ++u) {
        float squares = 0;
        for (int64_t j = u; j < count; j += units) squares = fma(out[j], out[j], squares);
        for (int64_t j = u; j < count; j += units) out[j] = scale * (out[j] / std::sqrt(squares));
    }
}

}  // namespace

const char* refusal(const Start& start, const Config& config) {
    const auto known = [](const StartLaw& law) {
        const bool one = law.kind == StartKind::near_signs || law.kind == StartKind::wide_signs ||
                         law.kind == StartKind::few_signs || law.kind == StartKind::tilted_signs;
        if (law.kind == StartKind::points) return !law.params.empty() && law.params.size() < 1000;
        return law.params.size() == (one ? 1u : 0u);
    };
    if (!known(start.hidden) || !known(start.output)) return "start: parameters of another law";
    const size_t layers = config.below.size() + (config.family == Family::mlp ? 2 : 1);
    if (start.scales.size() != layers) return "start: expected a scale for each layer";
    const bool can = config.family == Family::mlp && config.width % 2 == 0;
    return start.mirrored && !can ? "start: mirrored pairs need an even width and an output layer" : nullptr;
}

Parameters draw_start(const Config& config, const Start& start, Key<uint32_t> key) {
    const std::vector<int> sizes = config.sizes();
    Parameters made{std::vector<float>(config.weights()), std::vector<float>(config.units()),
                    std::vector<float>(config.width), {0.0f}};
    float *W = made.W.data(), *b = made.b.data();
    const size_t hidden = sizes.size() - 1;
    const bool biased = start.biased && config.bias;
    for (size_t l = 0; l < start.scales.size(); ++l) {
        const Key<uint32_t> layer = fold_in(key, static_cast<uint32_t>(l));
        const Key<uint32_t> weights = fold_in(layer, 0u), biases = fold_in(layer, 1u);
        if (l == hidden) {
            draw(start.output, weights, start.scales[l], config.width, 1, made.u.data());
            if (biased && config.head_bias) draw(start.output, biases, start.scales[l], 1, 1, made.c.data());
            break;
        }
        draw(start.hidden, weights, start.scales[l], sizes[l], sizes[l + 1], W);
        if (biased) draw(start.hidden, biases, start.scales[l], 1, sizes[l + 1], b);
        if (l + 1 < hidden) W += int64_t{sizes[l]} * sizes[l + 1], b += sizes[l + 1];
    }
    if (start.mirrored) {
        const int width = config.width, half = width / 2;
        for (int unit = 0; unit < half; ++unit) {
            const int twin = half + unit;
            for (int j = 0; j < sizes[hidden - 1]; ++j) W[j * width + twin] = W[j * width + unit];
            b[twin] = b[unit];
            made.u[twin] = -made.u[unit];
        }
        made.c = {0.0f};
    }
    return made;
}

}  // namespace paritylab
