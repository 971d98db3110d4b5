#include <dnnl.hpp>

#include "backend/cpu/runtime/library.h"
#include "ir/support/str.h"

namespace lazuli::cpu {

bool HasOneDnn() { return true; }

std::string LibraryEngine() {
  const dnnl::version_t& v = *dnnl::version();
  return Str("oneDNN ", v.major, ".", v.minor, ".", v.patch);
}

}  // namespace lazuli::cpu
