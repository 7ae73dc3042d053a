#pragma once

#include <nanobind/nanobind.h>

namespace paritylab {

void bind_problem(nanobind::module_& m);

}  // namespace paritylab
