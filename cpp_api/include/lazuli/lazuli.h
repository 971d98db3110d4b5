// Everything: #include <lazuli/lazuli.h>
#pragma once

#include "lazuli/autograd.h"
#include "lazuli/data.h"
#include "lazuli/debug.h"
#include "lazuli/device.h"
#include "lazuli/dtype.h"
#include "lazuli/error.h"
#include "lazuli/execution.h"
#include "lazuli/foreach.h"
#include "lazuli/lr_scheduler.h"
#include "lazuli/memory.h"
#include "lazuli/nn.h"
#include "lazuli/ops.h"
#include "lazuli/optim.h"
#include "lazuli/serialize.h"
#include "lazuli/state_dict.h"
#include "lazuli/tensor.h"
