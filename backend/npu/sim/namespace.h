// lazuli::npu, the simulated accelerator's namespace, sees the vocabulary of ir and of the runtime
// that devices share.
#pragma once

#include "ir/support/namespaces.h"

namespace lazuli::npu {
using namespace lazuli::ir;  // NOLINT(google-build-using-namespace): see ir/support/namespaces.h
using namespace lazuli::backend;  // NOLINT(google-build-using-namespace)
}  // namespace lazuli::npu
