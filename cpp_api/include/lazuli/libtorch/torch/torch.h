// LibTorch's main header, for programs that are compiled as they are: with the folder
// lazuli/libtorch among those of headers (the target lazuli::libtorch), `#include <torch/torch.h>`,
// its sub-headers and the namespaces torch, at and c10 are there. docs/from_libtorch.md says more.
#pragma once

// What LibTorch's own headers include, and programs count on.
#include <algorithm>
#include <cfloat>
#include <chrono>
#include <climits>
#include <cmath>
#include <cstring>
#include <deque>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <set>
#include <sstream>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "lazuli/torch.h"

namespace torch = lazuli::torch_names;
namespace at = lazuli::torch_names;
namespace c10 = lazuli::torch_names;
