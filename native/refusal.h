// Why something cannot be trained, in a line, or null if it can. No exceptions: the C interface asks as well.
#pragma once

#include <cstdint>

#include "config.h"

namespace paritylab {

const char* refusal(const Config& config);
const char* refusal(const Problem& problem, const Config& config);
const char* refusal_of_run(int64_t max_steps);

}  // namespace paritylab
