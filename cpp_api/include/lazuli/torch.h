// PyTorch's C++ vocabulary, for programs that are written for LibTorch:
//
//   #include <lazuli/torch.h>
//   namespace torch = lazuli::torch_names;
//
// What is not declared in these headers is lazuli's own: torch::relu is lazuli::relu. New programs
// need none of it; docs/from_libtorch.md has both columns.
#pragma once

#include "lazuli/lazuli.h"
#include "lazuli/torch/adaptive.h"
#include "lazuli/torch/attention.h"
#include "lazuli/torch/containers.h"
#include "lazuli/torch/data.h"
#include "lazuli/torch/functional.h"
#include "lazuli/torch/nn.h"
#include "lazuli/torch/optim.h"
#include "lazuli/torch/out.h"
#include "lazuli/torch/recurrent.h"
#include "lazuli/torch/resample.h"
#include "lazuli/torch/serialize.h"
#include "lazuli/torch/tensor.h"
