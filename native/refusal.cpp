#include "refusal.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace paritylab {
namespace {

// What must hold, and what to say where it does not.
struct Demand {
    bool holds;
    const char* message;
};

const char* first_unmet(std::initializer_list<Demand> demands) {
    const auto unmet = std::find_if(demands.begin(), demands.end(), [](const Demand& d) { return !d.holds; });
    return unmet == demands.end() ? nullptr : unmet->message;
}

bool is_count(float x) { return x >= 1 && x == std::floor(x) && x < 1e6f; }

Demand activation_demand(const Config& config) {
    const std::vector<float>& p = config.activation_params;
    switch (config.activation) {
        case Activation::clip: return {p.size() == 1 && p[0] > 0, "clip: expected one parameter, upper > 0"};
        case Activation::power: return {p.size() == 1 && is_count(p[0]), "power: expected one integer >= 1"};
        case Activation::zigzag:
        case Activation::triangle:
            return {p.size() == 1 && is_count(p[0]), "zigzag, triangle: expected one integer k >= 1"};
        case Activation::polynomial: return {!p.empty(), "polynomial: expected coefficients c0, c1, ..."};
        case Activation::sinusoid: return {p.size() == 2, "sinusoid: expected scale and degree"};
        case Activation::gelu: return {p.empty(), "gelu: expected no parameters"};
    }
    return {false, "activation: unknown"};
}

Demand loss_demand(const Config& config) {
    const std::vector<float>& p = config.loss_params;
    if (config.loss == Loss::clipped_logistic) {
        return {p.size() == 2 && p[0] > 0 && p[0] < p[1], "loss_params: clipped-logistic takes the least and the most"};
    }
    const bool takes_one = config.loss == Loss::hinge || config.loss == Loss::logistic;
    return {p.size() == (takes_one ? 1 : 0), "loss_params: hinge takes beta, logistic takes scale, the others nothing"};
}

Demand rule_demand(const Config& config) {
    const std::vector<float>& p = config.rule_params;
    const auto fraction = [](float x) { return x >= 0 && x < 1; };
    switch (config.rule) {
        case Rule::sgd: return {p.empty(), "sgd: expected no parameters"};
        case Rule::momentum: return {p.size() == 2 && fraction(p[0]), "momentum: expected mu in [0, 1), and 0 or 1"};
        case Rule::adam:
            return {p.size() == 3 && fraction(p[0]) && fraction(p[1]) && p[2] >= 0, "adam: expected b1, b2 and eps"};
        case Rule::rmsprop:
            return {p.size() == 3 && fraction(p[0]) && p[1] >= 0 && fraction(p[2]), "rmsprop: expected alpha, eps, mu"};
        case Rule::sign: return {p.size() == 2 && fraction(p[0]) && fraction(p[1]), "sign: expected b1 and b2"};
    }
    return {false, "rule: unknown"};
}

bool is_size(int64_t units) { return units >= 1 && units <= 1 << 20; }

}  // namespace

// The order matters: a product is formed only where its factors are known to be small.
const char* refusal(const Config& config) {
    const auto shape = {
        Demand{is_size(config.inputs), "n: expected 1 to 2^20 inputs"},
        Demand{is_size(config.width), "width: expected 1 to 2^20 units"},
        Demand{std::ranges::all_of(config.below, is_size), "below: expected widths of 1 to 2^20 units"},
        Demand{config.below.empty() || config.family == Family::mlp, "below: only an mlp has several hidden layers"},
        Demand{config.outputs >= 1 && config.outputs <= MOST_OUTPUTS, "outputs: expected 1 to 16"},
        Demand{config.outputs == 1 || config.problem, "outputs: several need a problem that says of what"},
        Demand{config.family != Family::neuron || config.width == 1, "neuron: expected width 1"},
        // Gradients are float32 sums in the order of the samples: at 2^20 their rounding is a hundredth of the batch's
        // own sampling noise, at 2^22 as large.
        Demand{config.batch >= 1 && config.batch <= 1 << 20, "batch: expected 1 to 2^20"},
        Demand{config.sample >= 0 && config.sample < int64_t{1} << 32, "sample: expected 0 (online) or a size below 2^32"},
        Demand{config.eval_size >= 1 && config.eval_size < 1 << 30, "eval_size: expected 1 to 2^30 - 1"},
    };
    if (const char* why = first_unmet(shape)) return why;
    if (config.problem) {
        if (const char* why = refusal(*config.problem, config)) return why;
    }
    const int64_t stride = config.stride();
    const auto numbered = [&](int64_t size) { return size * stride < int64_t{1} << 32; };  // random words: by 32 bits
    return first_unmet({
        {config.weights() <= 1 << 26, "n * width: too large for this kernel"},
        {config.rates.size() == config.below.size() + 2, "rates: expected one for each layer"},
        config.family != Family::polynet ? activation_demand(config) : Demand{true, nullptr},  // polynet has none
        loss_demand(config),
        rule_demand(config),
        {config.clip >= 0, "clip: expected at least 0"},
        {config.decay_gradient >= 0, "decay_gradient: expected at least 0"},
        {numbered(config.batch), "batch: too many random words in one batch"},
        {numbered(config.sample), "sample: too many random words in one sample"},
        {numbered(config.eval_size), "eval_size: too many random words in one evaluation"},
        {config.eval_every >= 1, "eval_every: expected at least 1"},
        {config.allowed_errors >= 0, "allowed_errors: expected at least 0"},
        {config.consecutive >= 1, "consecutive: expected at least 1"},
        {config.within >= 0 || config.within == -1, "within: expected at least 0, or -1"},
        {!config.short_last || (config.sample > 0 && !config.replacement), "short_last: for a finite sample in passes"},
    });
}

const char* refusal_of_run(int64_t max_steps) {
    return first_unmet({{max_steps >= 1 && max_steps < int64_t{1} << 31, "max_steps: expected 1 to 2^31 - 1"}});
}

}  // namespace paritylab
