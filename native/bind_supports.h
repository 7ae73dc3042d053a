#pragma once

#include <nanobind/nanobind.h>

namespace paritylab {

void bind_supports(nanobind::module_& m);

}  // namespace paritylab
