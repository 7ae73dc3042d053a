#include "parse.h"

#include <initializer_list>
#include <stdexcept>
#include <utility>

#include "refusal.h"

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
                        {"l1", Loss::l1},
                        {"clipped-logistic", Loss::clipped_logistic}});
}

Rule parse_rule(const std::string& name) {
    return parse<Rule>("rule", name,
                       {{"sgd", Rule::sgd},
                        {"momentum", Rule::momentum},
                        {"adam", Rule::adam},
                        {"rmsprop", Rule::rmsprop},
                        {"sign", Rule::sign}});
}

void check(const Config& config) {
    if (const char* why = refusal(config)) throw std::invalid_argument(why);
}

}  // namespace paritylab
