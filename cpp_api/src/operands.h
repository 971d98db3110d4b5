// Arguments of public functions as those of their definitions (lazy/ops), and results back.
#pragma once

#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "cpp_api/src/facade.h"
#include "lazuli/ops.h"
#include "lazy/ops/core/functions.h"

namespace lazuli {

// A tensor that must be defined: parameter `position` of the op, called `name`.
inline Borrowed In(const Tensor& tensor, std::string_view op, int position = 0,
                   std::string_view name = {}) {
  if (!tensor.defined()) [[unlikely]] {
    lazy::ThrowRecordError(op, ir::InvalidArgument("operand ", position, " is an undefined tensor",
                                                   position == 0 || name.empty() ? "" : ": ",
                                                   position == 0 ? "" : name));
  }
  return TensorAccess::Borrow(tensor);
}
inline BorrowedList In(const std::vector<Tensor>& tensors, std::string_view op, int position = 0,
                       std::string_view name = {}) {
  BorrowedList result;
  result.reserve(tensors.size());
  for (const Tensor& t : tensors) result.push_back(In(t, op, position, name));
  return result;
}

inline lazy::Number In(const Scalar& scalar) { return TensorAccess::Given(scalar); }
inline std::optional<lazy::Number> In(const std::optional<Scalar>& scalar) {
  return scalar ? std::optional(In(*scalar)) : std::nullopt;
}
inline ir::DType In(DType dtype) { return Unwrap(dtype); }
inline std::optional<ir::DType> In(std::optional<DType> dtype) {
  return dtype ? std::optional(In(*dtype)) : std::nullopt;
}
inline std::optional<backend::Device> In(const std::optional<Device>& device) {
  return device ? std::optional(DeviceAccess::Unwrap(*device)) : std::nullopt;
}
inline backend::Device In(const Device& device) { return DeviceAccess::Unwrap(device); }
inline lazy::Pair In(Size2 size) { return {size.height, size.width}; }
inline lazy::Pair In(std::pair<std::int64_t, std::int64_t> p) { return {p.first, p.second}; }
inline std::optional<lazy::Pair> In(const std::optional<Size2>& size) {
  return size ? std::optional(In(*size)) : std::nullopt;
}
inline std::optional<ir::Dims> In(const std::optional<Dims>& dims) {
  return dims ? std::optional(ir::Dims(dims->begin(), dims->end())) : std::nullopt;
}
inline lazy::ConvPadding In(const Padding& padding) {
  return {{padding.height, padding.width}, padding.same};
}
inline lazy::Conv2dOptions In(const Conv2dOptions& options) {
  return {In(options.stride), In(options.padding), In(options.dilation), options.groups};
}
inline lazy::Unbiased In(Unbiased unbiased) { return static_cast<lazy::Unbiased>(unbiased); }
inline lazy::Reduction In(nn::Reduction reduction) {
  static_assert(static_cast<int>(nn::Reduction::kSum) == static_cast<int>(lazy::Reduction::kSum));
  return static_cast<lazy::Reduction>(reduction);
}

struct GeneratorAccess {
  static lazy::Generator& Get(const OptionalGenerator& generator);  // none: the process' own
};
inline lazy::Generator& In(const OptionalGenerator& generator) {
  return GeneratorAccess::Get(generator);
}

inline Tensor Out(lazy::Tensor tensor) { return TensorAccess::Wrap(std::move(tensor)); }
inline std::pair<Tensor, Tensor> Out(std::pair<lazy::Tensor, lazy::Tensor> pair) {
  return {Out(std::move(pair.first)), Out(std::move(pair.second))};
}
template <class... T>  // lazy::Tensor each
auto Out(std::tuple<T...> results) {
  return std::apply([](T&... result) { return std::tuple(Out(std::move(result))...); }, results);
}
inline std::vector<Tensor> Out(lazy::Tensors tensors) {
  std::vector<Tensor> result;
  result.reserve(tensors.size());
  for (lazy::Tensor& t : tensors) result.push_back(Out(std::move(t)));
  return result;
}

}  // namespace lazuli
