#include "cpp_api/src/autocast.h"

#include "cpp_api/src/facade.h"

namespace lazuli {
namespace {

// Autocast converts floats of 32 bits and narrower ones. Undefined tensors stay undefined.
bool IsCast(const Tensor& x) {
  if (!x.defined()) return false;
  const DType dtype = x.dtype();
  return dtype == kFloat32 || dtype == kBFloat16 || dtype == kFloat16;
}

}  // namespace

thread_local constinit std::optional<DType> autocast_to;

Tensor CastArguments::operator()(const Tensor& x) const {
  return IsCast(x) ? x.to(dtype_, loc_) : x;
}

std::vector<Tensor> CastArguments::operator()(const std::vector<Tensor>& xs) const {
  std::vector<Tensor> cast;
  cast.reserve(xs.size());
  for (const Tensor& x : xs) cast.push_back((*this)(x));
  return cast;
}

void CastArguments::Widen(const Tensor& x) {
  if (IsCast(x) && x.dtype() != dtype_) dtype_ = kFloat32;
}

namespace amp {

Autocast::Autocast(DType dtype, bool enabled) : saved_(autocast_to) {
  set_autocast_dtype(enabled ? std::optional(dtype) : std::nullopt);
}
Autocast::~Autocast() { autocast_to = saved_; }

std::optional<DType> autocast_dtype() { return autocast_to; }

void set_autocast_dtype(std::optional<DType> dtype) {
  if (dtype && *dtype != kBFloat16 && *dtype != kFloat16) {
    throw Error(
        ErrorCode::kInvalidArgument,
        "autocast: the dtype must be bfloat16 or float16, not " + std::string(to_string(*dtype)));
  }
  autocast_to = dtype;
}

}  // namespace amp
}  // namespace lazuli
