#include <dnnl.hpp>

#include "backend/cpu/runtime/library.h"
#include "ir/support/str.h"

namespace lazuli::cpu {

bool HasOneDnn() { return true; }
bool MultipliesBf16() { return dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core_bf16; }

std::string LibraryEngine() {
  const dnnl::version_t& v = *dnnl::version();
  return Str("oneDNN ", v.major, ".", v.minor, ".", v.patch);
}

}  // namespace lazuli::cpu
