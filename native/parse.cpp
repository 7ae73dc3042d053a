#include "parse.h"

#include <cmath>
#include <initializer_list>
#include <stdexcept>
#include <utility>

namespace paritylab {
namespace {

template <class Enum>
Enum parse(const char* what, const std::string& name, std::initializer_list<std::pair<const char*, Enum>> choices) {
    std::string expected;
    for (const auto& [text, value] : choices) {
        if (name == text) return value;
        expected += std::string(expected.empty() ? "" : ", ") + text;
    }
    throw std::invalid_argument(std::string(what) + ": '" + name + "' is none of " + expected);
}

void require(bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(message);
}

bool is_count(float x) { return x >= 1 && x == std::floor(x) && x < 1e6f; }

void check_activation(const Config& config) {
    const std::vector<float>& p = config.activation_params;
    switch (config.activation) {
        case Activation::clip: return require(p.size() == 1 && p[0] > 0, "clip: expected one parameter, upper > 0");
        case Activation::power: return require(p.size() == 1 && is_count(p[0]), "power: expected one integer >= 1");
        case Activation::zigzag:
        case Activation::triangle:
            return require(p.size() == 1 && is_count(p[0]), "zigzag, triangle: expected one integer k >= 1");
        case Activation::polynomial: return require(!p.empty(), "polynomial: expected coefficients c0, c1, ...");
        case Activation::sinusoid: return require(p.size() == 2, "sinusoid: expected scale and degree");
        case Activation::gelu: return require(p.empty(), "gelu: expected no parameters");
    }
}

void check_loss(const Config& config) {
    const bool takes_one = config.loss == Loss::hinge || config.loss == Loss::logistic;
    require(config.loss_params.size() == (takes_one ? 1 : 0),
            "loss_params: hinge takes beta, logistic takes scale, the others nothing");
}

}  // namespace

Family parse_family(const std::string& name) {
    return parse<Family>("family", name,
                         {{"mlp", Family::mlp}, {"neuron", Family::neuron}, {"polynet", Family::polynet}});
}

Activation parse_activation(const std::string& name) {
    return parse<Activation>("activation", name,
                             {{"clip", Activation::clip},
                              {"power", Activation::power},
                              {"zigzag", Activation::zigzag},
                              {"triangle", Activation::triangle},
                              {"polynomial", Activation::polynomial},
                              {"sinusoid", Activation::sinusoid},
                              {"gelu", Activation::gelu}});
}

Loss parse_loss(const std::string& name) {
    return parse<Loss>("loss", name,
                       {{"hinge", Loss::hinge},
                        {"square", Loss::square},
                        {"logistic", Loss::logistic},
                        {"correlation", Loss::correlation},
                        {"l1", Loss::l1}});
}

void check(const Config& config) {
    require(config.inputs >= 1 && config.inputs <= 1 << 20, "n: expected 1 to 2^20 inputs");
    require(config.width >= 1 && config.width <= 1 << 20, "width: expected 1 to 2^20 units");
    require(config.below.empty() || config.family == Family::mlp, "below: only an mlp has several hidden layers");
    for (int width : config.below) require(width >= 1 && width <= 1 << 20, "below: expected widths of 1 to 2^20 units");
    require(config.weights() <= 1 << 26, "n * width: too large for this kernel");
    require(config.rates.size() == config.below.size() + 2, "rates: expected one for each layer");
    require(config.family != Family::neuron || config.width == 1, "neuron: expected width 1");
    if (config.family != Family::polynet) check_activation(config);  // polynet has none
    check_loss(config);
    require(config.batch >= 1 && config.batch <= 1 << 24, "batch: expected 1 to 2^24");
    // Element numbers of the random streams are 32 bits wide.
    const int64_t words = config.words();
    require(config.batch * words < int64_t{1} << 32, "batch: too many random words in one batch");
    require(config.sample >= 0 && config.sample * words < int64_t{1} << 32, "sample: expected 0 (online) or a size");
    require(config.eval_every >= 1, "eval_every: expected at least 1");
    require(config.eval_size >= 1 && config.eval_size < 1 << 30, "eval_size: expected at least 1");
    require(config.eval_size * words < int64_t{1} << 32, "eval_size: too many random words in one evaluation");
    require(config.allowed_errors >= 0, "allowed_errors: expected at least 0");
    require(config.consecutive >= 1, "consecutive: expected at least 1");
}

}  // namespace paritylab
