#include "backend/cpu/runtime/padding_guard.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ir/support/status.h"

namespace lazuli::cpu {
namespace {

template <class Holds>
bool AllOf(const std::byte* data, int64_t count, Holds&& holds) {
  const auto* const values = reinterpret_cast<const float*>(data);
  return std::all_of(values, values + count, holds);
}

class GuardedCall final : public LibraryCall {
 public:
  explicit GuardedCall(PaddingGuard guard) : g_(std::move(guard)) {}

  int64_t scratch_bytes() const override {
    return std::max(g_.fast->scratch_bytes(), g_.exact->scratch_bytes());
  }
  absl::Status Run(const LibraryBuffers& buffers) const override {
    LibraryBuffers operands = buffers;
    if (g_.swapped) std::swap(operands.a, operands.b);
    if (g_.factors <= g_.results) {
      const bool finite = AllOf(operands.b, g_.factors, [](float x) { return std::isfinite(x); });
      return finite ? g_.fast->Run(buffers) : g_.exact->Run(operands);
    }
    LAZULI_RETURN_IF_ERROR(g_.fast->Run(buffers));
    const bool numbers = AllOf(buffers.result, g_.results, [](float x) { return !std::isnan(x); });
    return numbers ? absl::OkStatus() : g_.exact->Run(operands);
  }
  std::string Details() const override { return g_.fast->Details(); }

 private:
  PaddingGuard g_;
};

}  // namespace

std::shared_ptr<const LibraryCall> MakePaddingGuard(PaddingGuard guard) {
  return std::make_shared<GuardedCall>(std::move(guard));
}

}  // namespace lazuli::cpu
