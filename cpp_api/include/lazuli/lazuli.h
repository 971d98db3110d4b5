// Everything: #include <lazuli/lazuli.h>
#pragma once

#include "lazuli/autograd.h"
#include "lazuli/data.h"
#include "lazuli/debug.h"
#include "lazuli/device.h"
#include "lazuli/dtype.h"
#include "lazuli/error.h"
#include "lazuli/execution.h"
#include "lazuli/nn.h"
#include "lazuli/ops.h"
#include "lazuli/optim.h"
#include "lazuli/tensor.h"
