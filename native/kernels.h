// The kernels this build has, and which layout of theirs a network gets.
#pragma once

#include <string_view>
#include <vector>

#include "group.h"

namespace paritylab {

// Those this machine can run, best first.
const std::vector<Kernel>& supported_kernels();
const Kernel* find_kernel(std::string_view isa);  // "auto": the best; null if this machine cannot run it

// By shape only, so that a run's result never depends on what else is in the pool.
Layout choose_layout(const Config& config);
const char* refusal_of_layout(const Config& config, Layout layout);  // null: the network can have it

}  // namespace paritylab
