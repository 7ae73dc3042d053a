// From the structures of the C interface to a checked Config.
#pragma once

#include <optional>

#include "kernels.h"
#include "paritylab.h"
#include "starts.h"

namespace paritylab {

// A Config, or why there is none.
struct Parsed {
    const char* refusal;
    Config config;
    Layout layout;
};

Parsed parsed(const paritylab_config& given);
std::optional<Start> parsed(const paritylab_law& given);  // nothing where a kind or an array is unknown

}  // namespace paritylab
