// Which stage speaks whose vocabulary: namespaces follow folders, and each one sees those to its
// left.
//
// ir/support, ir/types and ir/graph live in lazuli::ir. The public API (cpp_api) lives in lazuli
// itself and must not see the internal names, which is why the vocabulary is not simply in lazuli.
#pragma once

namespace lazuli::ir {}
namespace lazuli::hlo {
using namespace lazuli::ir;  // NOLINT(google-build-using-namespace): the point of this file
}
namespace lazuli::lowering {
using namespace lazuli::ir;  // NOLINT(google-build-using-namespace)
}
namespace lazuli::backend {
using namespace lazuli::ir;  // NOLINT(google-build-using-namespace)
}
namespace lazuli::cpu {
using namespace lazuli::ir;       // NOLINT(google-build-using-namespace)
using namespace lazuli::backend;  // NOLINT(google-build-using-namespace)
}  // namespace lazuli::cpu
namespace lazuli::interpreter {
using namespace lazuli::ir;       // NOLINT(google-build-using-namespace)
using namespace lazuli::backend;  // NOLINT(google-build-using-namespace)
}  // namespace lazuli::interpreter
namespace lazuli::lazy {
using namespace lazuli::ir;  // NOLINT(google-build-using-namespace)
}

// For an internal name that the public API uses too (DType, Dims): a declaration in each stage
// hides the public one where both headers are included, which a directive does not.
#define LAZULI_DECLARE_IN_STAGES(name) \
  namespace lazuli::hlo {              \
  using ir::name;                      \
  }                                    \
  namespace lazuli::lowering {         \
  using ir::name;                      \
  }                                    \
  namespace lazuli::backend {          \
  using ir::name;                      \
  }                                    \
  namespace lazuli::cpu {              \
  using ir::name;                      \
  }                                    \
  namespace lazuli::interpreter {      \
  using ir::name;                      \
  }                                    \
  namespace lazuli::lazy {             \
  using ir::name;                      \
  }
