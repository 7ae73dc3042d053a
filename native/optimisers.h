// Optimisers that remember: what becomes of a gradient once the whole batch is summed.
//
// Plain SGD moves the weights while the sums are still in registers (tiles.h). All others keep the gradient, and pass
// over it once more: noise, clipping and decay first, then the rule, which turns it into a direction and keeps one or
// two numbers for each parameter. Only operations that round the same everywhere are used: no fused ones.
#pragma once

#include <cmath>
#include <utility>
#include <vector>

#include "config.h"
#include "simd.h"

namespace paritylab::PARITYLAB_ISA {

// What one step has beside the gradient; a lane for each run.
struct Step {
    vf lr;
    vf first, second;  // 1 / (1 - b1^t) and 1 / (1 - b2^t)
};

struct Heavy {  // v <- mu v + g
    vf mu;
    bool nesterov;
    vf operator()(vf g, vf& m, vf&) const {
        m = mu * m + g;
        return nesterov ? g + mu * m : m;
    }
};

struct AdamRule {
    vf b1, rest1, b2, rest2, eps, first, second;
    vf operator()(vf g, vf& m, vf& v) const {
        m = b1 * m + rest1 * g;
        v = b2 * v + rest2 * g * g;
        return (m * first) / (square_root(v * second) + eps);
    }
};

struct RMSPropRule {
    vf alpha, rest, eps, mu;
    bool heavy;
    vf operator()(vf g, vf& m, vf& v) const {
        v = alpha * v + rest * g * g;
        const vf scaled = g / (square_root(v) + eps);
        if (!heavy) return scaled;
        m = mu * m + scaled;
        return m;
    }
};

struct SignRule {  // Lion's; without memory the sign of the gradient
    vf b1, rest1, b2, rest2;
    vf operator()(vf g, vf& m, vf&) const {
        const vf c = b1 * m + rest1 * g;
        m = b2 * m + rest2 * g;
        return select(c > 0.0f, broadcast(1.0f), select(c < 0.0f, broadcast(-1.0f), c));  // 0 and NaN stay
    }
};

struct Straight {  // SGD, for a gradient that is clipped
    vf operator()(vf g, vf&, vf&) const { return g; }
};

// Calls work(rule).
template <class Work>
void with_rule(const Config& config, const Step& step, Work&& work) {
    const std::vector<float>& p = config.rule_params;
    const auto number = [&](size_t i) { return broadcast(p[i]); };
    const auto rest = [&](size_t i) { return broadcast(1.0f - p[i]); };
    switch (config.rule) {
        case Rule::sgd: return work(Straight{});
        case Rule::momentum: return work(Heavy{number(0), p[1] != 0});
        case Rule::adam:
            return work(AdamRule{number(0), rest(0), number(1), rest(1), number(2), step.first, step.second});
        case Rule::rmsprop: return work(RMSPropRule{number(0), rest(0), number(1), number(2), p[2] != 0});
        case Rule::sign: return work(SignRule{number(0), rest(0), number(1), rest(1)});
    }
}

// How the parameters of one layer move, by a rule.
template <class R>
struct Move {
    const R& rule;
    vf scale;  // of the gradient, which is too long
    vf decay;  // that is added to the gradient
    vf rate, keep;
    bool clips, decays_gradient, decays, skips;
    vi moves;  // lanes whose gradient is not all 0

    Move(const Config& config, const R& rule, vf scale, vf lr, float layer_rate, vi moves)
        : rule(rule),
          scale(scale),
          decay(broadcast(config.decay_gradient)),
          rate(lr * layer_rate),
          keep(1.0f - rate * config.decay_coupled - (layer_rate != 0 ? config.decay_plain : 0.0f)),
          clips(config.clip > 0),
          decays_gradient(config.decay_gradient != 0),
          decays(config.decays()),
          skips(config.skips_satisfied),
          moves(moves) {}

    PARITYLAB_ONCE void operator()(vf& theta, vf g, vf& m, vf& v) const {
        const vf before[3] = {theta, m, v};
        if (clips) g *= scale;
        if (decays_gradient) g += decay * theta;
        const vf direction = rule(g, m, v);
        theta = (decays ? theta * keep : theta) - rate * direction;
        if (!skips) return;
        theta = select(moves, theta, before[0]);
        m = select(moves, m, before[1]);
        v = select(moves, v, before[2]);
    }
};

// Where a number is not 0: 1, and elsewhere 0.
inline vf not_zero(const std::vector<vf>& all) {
    vi any{};
    for (const vf& g : all) any |= g != 0.0f;
    return select(any, broadcast(1.0f), vf{});
}

// By what a gradient of this squared norm is multiplied.
inline vf clipping(const Config& config, vf squared) {
    const vf norm = square_root(squared), most = broadcast(config.clip);
    return select(norm > most, most / norm, broadcast(1.0f));
}

}  // namespace paritylab::PARITYLAB_ISA
