// Memory that other libraries take over, and theirs, by DLPack's first form, which all of them read.
//
// The structs are DLPack's: their layout is the protocol.
#pragma once

#include <memory>

#include <pybind11/pybind11.h>

#include "ir/types/literal.h"
#include "ir/types/shape.h"

namespace lazuli::python {

namespace py = pybind11;

// A capsule "dltensor" of row-major elements that `owner` keeps alive; who takes it may write to
// them. Throws TypeError for a dtype that DLPack has no code for.
py::capsule ToDLPack(const ir::Shape& shape, const void* data, std::shared_ptr<const void> owner);

// The elements of a capsule "dltensor", which is taken over and released: those of bfloat16, which
// NumPy does not read. Throws TypeError for another capsule, dtype or device.
ir::Literal FromDLPack(const py::object& capsule);

}  // namespace lazuli::python
