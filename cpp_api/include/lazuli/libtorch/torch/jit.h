// LibTorch's other name of torch/script.h.
#pragma once

#include "lazuli/libtorch/torch/script.h"
