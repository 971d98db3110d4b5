// What the oneDNN calls share: engine, stream, and exceptions as Status.
#pragma once

#include "absl/types/span.h"
#include <dnnl.hpp>

#include "ir/support/status.h"
#include "ir/types/shape.h"

namespace lazuli::cpu {

// Multiplications that a part of a product or a convolution has at least: some microseconds, which is
// more than beginning one takes.
inline constexpr int64_t kPartWork = 500000;

// Never destroyed. The library's cache of primitives is off: programs are cached as a whole.
inline const dnnl::engine& DnnlEngine() {
  static const auto* engine = [] {
    dnnl::set_primitive_cache_capacity(0);
    return new dnnl::engine(dnnl::engine::kind::cpu, 0);  // NOLINT
  }();
  return *engine;
}

// CPU streams run in order on the calling thread, so one per thread is enough.
inline dnnl::stream& DnnlStream() {
  static thread_local dnnl::stream stream(DnnlEngine());
  return stream;
}

inline dnnl::memory::dims ToDnnl(absl::Span<const int64_t> dims) {
  return {dims.begin(), dims.end()};
}

// Bytes of an array, so that the next one is aligned, too.
inline int64_t DnnlBytes(const dnnl::memory::desc& desc) {
  constexpr int64_t kAlignment = 64;
  return (static_cast<int64_t>(desc.get_size()) + kAlignment - 1) / kAlignment * kAlignment;
}

// Scratch memory comes from the caller: the library's own belongs to the thread that plans.
inline dnnl::primitive_attr DnnlUserScratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

// "oneDNN jit:avx2, 16 parts".
inline std::string DnnlDetails(const std::string& implementation, int64_t parts) {
  return Str("oneDNN ", implementation, parts > 1 ? Str(", ", parts, " parts") : "");
}

inline absl::Status FromDnnl(const dnnl::error& error, std::string_view what) {
  const auto code = error.status == dnnl_out_of_memory ? absl::StatusCode::kResourceExhausted
                                                       : absl::StatusCode::kInternal;
  return MakeError(code, "oneDNN failed in ", what, ": ", error.what());
}

}  // namespace lazuli::cpu
