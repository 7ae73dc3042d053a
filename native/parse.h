// From the names and numbers of the Python side to a checked Config; what is wrong becomes std::invalid_argument.
#pragma once

#include <string>
#include <vector>

#include "config.h"

namespace paritylab {

Family parse_family(const std::string& name);
Activation parse_activation(const std::string& name);
Loss parse_loss(const std::string& name);
Rule parse_rule(const std::string& name);

void check(const Config& config);

}  // namespace paritylab
