// Moving a tensor to another device, with its history.
#pragma once

#include "lazy/tensor/tensor.h"

namespace lazuli::lazy {

// The elements on `device`, by way of the host: syncs and waits. The gradient comes back the same
// way.
Tensor ToDevice(const Tensor& tensor, backend::Device device);

}  // namespace lazuli::lazy
