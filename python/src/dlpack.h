// Memory that other libraries take over, by DLPack's first form, which all of them read.
//
// The structs are DLPack's: their layout is the protocol.
#pragma once

#include <memory>

#include <pybind11/pybind11.h>

#include "ir/types/shape.h"

namespace lazuli::python {

namespace py = pybind11;

// A capsule "dltensor" of row-major elements that `owner` keeps alive; who takes it may write to
// them. Throws TypeError for a dtype that DLPack has no code for.
py::capsule ToDLPack(const ir::Shape& shape, const void* data, std::shared_ptr<const void> owner);

}  // namespace lazuli::python
