// pybind11's conversions of containers, and that of Dims, which is one.
#pragma once

#include <cstdint>

#include <pybind11/stl.h>

#include "lazuli/int_list.h"

namespace pybind11::detail {
template <>
struct type_caster<lazuli::Dims> : list_caster<lazuli::Dims, std::int64_t> {};
}  // namespace pybind11::detail
