// Size: the tuple of ints that a shape is in Python, as torch.Size.
#pragma once

#include <pybind11/pybind11.h>

#include "lazuli/int_list.h"

namespace lazuli::python {

void BindSize(pybind11::module_& module);
pybind11::tuple NewSize(const Dims& dims);

}  // namespace lazuli::python
