// Tensor: a multi-dimensional array whose operations are recorded and run together at the next
// sync.
//
// A Tensor is a handle: copies share elements and history. Recording is cheap and never computes;
// what is wrong with shapes, dtypes or arguments is thrown as Error by the very call. Elements
// exist after mark_step(), sync(), or a read (item, to_vector, printing), which syncs first. Every
// op remembers the caller's source line, for errors, dumps and profiles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lazuli/device.h"
#include "lazuli/dtype.h"
#include "lazuli/error.h"
#include "lazuli/export.h"

namespace lazuli {

using SourceLocation = std::source_location;
using Dims = std::vector<std::int64_t>;

// A number that takes part in ops: a slot of the compiled program, so changing its value never
// recompiles.
//
// A bare number in an expression makes a fresh slot at each use. Naming one Scalar and using it
// several times (a learning rate over all parameters) makes one slot. A number that should be a
// constant of the program is asked for by constant().
class LAZULI_API Scalar {
 public:
  Scalar(double v);                                        // NOLINT(google-explicit-constructor)
  Scalar(float v) : Scalar(static_cast<double>(v)) {}      // NOLINT(google-explicit-constructor)
  Scalar(std::int64_t v);                                  // NOLINT(google-explicit-constructor)
  Scalar(std::uint64_t v);                                 // NOLINT(google-explicit-constructor)
  Scalar(int v) : Scalar(static_cast<std::int64_t>(v)) {}  // NOLINT(google-explicit-constructor)
  Scalar(bool v);                                          // NOLINT(google-explicit-constructor)
  Scalar(const Scalar&);
  Scalar& operator=(const Scalar&);
  ~Scalar();
  double value() const;

 private:
  friend struct TensorAccess;
  struct Slot;
  Slot& SharedSlot() const;
  std::int8_t kind_;  // bool, integer, float, integer from 2^63 on
  double double_ = 0;
  std::int64_t int_ = 0;          // of the last kind, the bits
  mutable Slot* slot_ = nullptr;  // shared by copies; made at first use
};

class DeferredItem;
class HookHandle;
class Operand;

// A parameter list's last one: the caller's line, always defaulted.
#define LAZULI_LOC SourceLocation loc = SourceLocation::current()

class LAZULI_API Tensor {
 public:
  Tensor() = default;  // undefined: every use but defined() throws
  Tensor(const Tensor& other) noexcept;
  Tensor(Tensor&& other) noexcept : impl_(std::exchange(other.impl_, nullptr)) {}
  Tensor& operator=(Tensor other) noexcept {
    std::swap(impl_, other.impl_);
    return *this;
  }
  ~Tensor();

  bool defined() const { return impl_ != nullptr; }
  // Known without computing.
  Dims sizes() const;
  std::int64_t size(std::int64_t dim) const;  // negative dims count from the end
  std::int64_t dim() const;
  std::int64_t numel() const;
  DType dtype() const;
  Device device() const;

  // --- reading: each syncs the context and waits for this tensor
  // The only element, converted to T. Throws if there is more than one.
  template <class T = double>
  T item(SourceLocation loc = SourceLocation::current()) const {
    if constexpr (std::is_same_v<T, bool>)
      return item_as_double(loc) != 0;
    else if constexpr (std::is_integral_v<T>)
      return static_cast<T>(item_as_integer(loc));
    else
      return static_cast<T>(item_as_double(loc));
  }
  // The only element as it is now, without waiting: the next sync brings it (execution.h).
  DeferredItem item_async(SourceLocation loc = SourceLocation::current()) const;
  // The elements in row-major order; T must be the C++ type of the dtype.
  template <class T>
  std::vector<T> to_vector(SourceLocation loc = SourceLocation::current()) const {
    if constexpr (std::is_same_v<T, bool>) {  // a vector of bits has no data()
      std::vector<unsigned char> bytes(static_cast<std::size_t>(numel()));
      read(bytes.data(), DType::kPred, loc);
      return {bytes.begin(), bytes.end()};
    } else {
      std::vector<T> out(static_cast<std::size_t>(numel()));
      read(out.data(), dtype_of<T>(), loc);
      return out;
    }
  }
  // The elements' bytes in row-major order, of any dtype: what from_data() takes.
  std::vector<std::byte> to_bytes(SourceLocation loc = SourceLocation::current()) const;
  std::string to_string(SourceLocation loc = SourceLocation::current()) const;

  // --- gradients (autograd.h has the rest)
  bool requires_grad() const;
  Tensor& set_requires_grad(bool on, SourceLocation loc = SourceLocation::current());
  Tensor grad() const;  // undefined until backward reached the tensor
  void set_grad(const Tensor& grad, SourceLocation loc = SourceLocation::current());
  // Adds the gradients of this scalar to .grad of every leaf that requires one. `gradient` replaces
  // the implicit 1 and is needed for non-scalars. Frees what the forward pass saved, unless
  // retain_graph.
  struct BackwardOptions {
    bool retain_graph = false;
    bool create_graph = false;
  };
  void backward(const Tensor& gradient, BackwardOptions options,
                SourceLocation loc = SourceLocation::current()) const;
  void backward(SourceLocation loc = SourceLocation::current()) const;
  // The same elements without history; shares memory: a write to either is seen by both.
  Tensor detach(SourceLocation loc = SourceLocation::current()) const;
  // A copy with its own memory; gradients flow through.
  Tensor clone(SourceLocation loc = SourceLocation::current()) const;
  // Calls the hook with the gradient of this tensor in each backward that reaches it, once all of
  // it has arrived; a tensor that it returns takes the gradient's place. The handle removes it
  // (autograd.h).
  HookHandle register_hook(std::function<Tensor(const Tensor&)> hook, LAZULI_LOC);

  // --- conversion
  Tensor to(DType dtype, SourceLocation loc = SourceLocation::current()) const;
  Tensor to(const Device& device, SourceLocation loc = SourceLocation::current()) const;

  // --- in place: the tensor's elements are replaced; everybody who shares them sees it. Dims and
  // dtype stay: a result that would not fit them is an error, but for floats in other floats.
  Tensor& copy_(const Tensor& source, LAZULI_LOC);  // of any dtype and of dims that broadcast
  Tensor& fill_(const Scalar& value, LAZULI_LOC);
  Tensor& zero_(LAZULI_LOC);
  // The functions of ops.h that give what fits x: x becomes the result. The history is that of the
  // function, whatever it reads of x.
  Tensor& add_(const Operand& y);
  Tensor& add_(const Tensor& y, const Scalar& alpha, LAZULI_LOC);  // += alpha * y
  Tensor& sub_(const Operand& y);
  Tensor& sub_(const Tensor& y, const Scalar& alpha, LAZULI_LOC);  // -= alpha * y
  Tensor& mul_(const Operand& y);
  Tensor& div_(const Operand& y);
  Tensor& fmod_(const Operand& y);
  Tensor& remainder_(const Operand& y);
  Tensor& floor_divide_(const Operand& y);
  Tensor& pow_(const Operand& y);  // a number is part of the program
  Tensor& maximum_(const Operand& y);
  Tensor& minimum_(const Operand& y);
  Tensor& atan2_(const Operand& y);
  Tensor& logical_and_(const Operand& y);
  Tensor& logical_or_(const Operand& y);
  Tensor& logical_xor_(const Operand& y);
  Tensor& bitwise_and_(const Operand& y);
  Tensor& bitwise_or_(const Operand& y);
  Tensor& bitwise_xor_(const Operand& y);
  Tensor& bitwise_left_shift_(const Operand& y);
  Tensor& bitwise_right_shift_(const Operand& y);
  Tensor& logical_not_(LAZULI_LOC);
  Tensor& bitwise_not_(LAZULI_LOC);
  Tensor& abs_(LAZULI_LOC);
  Tensor& neg_(LAZULI_LOC);
  Tensor& sign_(LAZULI_LOC);
  Tensor& floor_(LAZULI_LOC);
  Tensor& ceil_(LAZULI_LOC);
  Tensor& round_(LAZULI_LOC);
  Tensor& sqrt_(LAZULI_LOC);
  Tensor& rsqrt_(LAZULI_LOC);
  Tensor& exp_(LAZULI_LOC);
  Tensor& expm1_(LAZULI_LOC);
  Tensor& log_(LAZULI_LOC);
  Tensor& log1p_(LAZULI_LOC);
  Tensor& sin_(LAZULI_LOC);
  Tensor& cos_(LAZULI_LOC);
  Tensor& erf_(LAZULI_LOC);
  Tensor& square_(LAZULI_LOC);
  Tensor& reciprocal_(LAZULI_LOC);
  Tensor& sigmoid_(LAZULI_LOC);
  Tensor& tanh_(LAZULI_LOC);
  Tensor& relu_(LAZULI_LOC);
  Tensor& silu_(LAZULI_LOC);
  Tensor& leaky_relu_(const Scalar& negative_slope = 0.01, LAZULI_LOC);
  Tensor& elu_(const Scalar& alpha = 1.0, LAZULI_LOC);
  Tensor& celu_(const Scalar& alpha = 1.0, LAZULI_LOC);
  Tensor& selu_(LAZULI_LOC);
  Tensor& hardtanh_(const Scalar& low = -1.0, const Scalar& high = 1.0, LAZULI_LOC);
  Tensor& relu6_(LAZULI_LOC);
  Tensor& clamp_(const std::optional<Scalar>& low = std::nullopt,
                 const std::optional<Scalar>& high = std::nullopt, LAZULI_LOC);
  Tensor& masked_fill_(const Tensor& mask, const Scalar& value, LAZULI_LOC);
  Tensor& tril_(std::int64_t diagonal = 0, LAZULI_LOC);
  Tensor& triu_(std::int64_t diagonal = 0, LAZULI_LOC);
  Tensor& cumsum_(std::int64_t dim, LAZULI_LOC);
  Tensor& scatter_(std::int64_t dim, const Tensor& index, const Tensor& source, LAZULI_LOC);
  Tensor& scatter_add_(std::int64_t dim, const Tensor& index, const Tensor& source, LAZULI_LOC);
  Tensor& index_add_(std::int64_t dim, const Tensor& index, const Tensor& source, LAZULI_LOC);
  Tensor& index_copy_(std::int64_t dim, const Tensor& index, const Tensor& source, LAZULI_LOC);
  Tensor& dropout_(double p, LAZULI_LOC);

  // Takes elements, dtype and device from `source` and stays the same tensor for all who hold it
  // (copy_ keeps dtype and device, and writes what is shared). Only for leaves; drops the gradient.
  Tensor& set_data(const Tensor& source, SourceLocation loc = SourceLocation::current());

  // --- common ops as methods; ops.h documents them
  Tensor matmul(const Tensor& other, SourceLocation loc = SourceLocation::current()) const;
  Tensor reshape(const Dims& dims, SourceLocation loc = SourceLocation::current()) const;
  Tensor flatten(std::int64_t start_dim = 0, std::int64_t end_dim = -1,
                 SourceLocation loc = SourceLocation::current()) const;
  Tensor transpose(std::int64_t dim0, std::int64_t dim1,
                   SourceLocation loc = SourceLocation::current()) const;
  Tensor t(SourceLocation loc = SourceLocation::current()) const;  // rank 2
  Tensor permute(const Dims& dims, SourceLocation loc = SourceLocation::current()) const;
  Tensor sum(const Dims& dims = {}, bool keepdim = false,
             SourceLocation loc = SourceLocation::current()) const;
  Tensor mean(const Dims& dims = {}, bool keepdim = false,
              SourceLocation loc = SourceLocation::current()) const;
  Tensor argmax(std::optional<std::int64_t> dim = std::nullopt, bool keepdim = false,
                SourceLocation loc = SourceLocation::current()) const;

  // A name for dumps and for the parameter's metadata in HLO: "conv1.weight".
  Tensor& set_name(std::string name);
  std::string name() const;
  // Whether both are handles of the same tensor.
  bool is_same(const Tensor& other) const { return impl_ == other.impl_; }

 private:
  friend struct TensorAccess;
  double item_as_double(SourceLocation loc) const;
  std::int64_t item_as_integer(SourceLocation loc) const;  // floats saturate, NaN is 0
  void read(void* out, DType dtype, SourceLocation loc) const;
  void* impl_ = nullptr;  // one counted reference to the library's own type
};

template <>
LAZULI_API std::vector<bool> Tensor::to_vector<bool>(SourceLocation loc) const;

// What << takes: a tensor, and the line of the expression.
class LAZULI_API Printed {
 public:
  Printed(const Tensor& tensor,
          SourceLocation loc = SourceLocation::current())  // NOLINT(google-explicit-constructor)
      : tensor_(tensor), loc_(loc) {}

 private:
  LAZULI_API friend std::ostream& operator<<(std::ostream& os, const Printed& printed);
  const Tensor& tensor_;
  SourceLocation loc_;
};
LAZULI_API std::ostream& operator<<(std::ostream& os, const Printed& printed);

// What an operator takes: a tensor or a number, and the line of the expression.
class LAZULI_API Operand {
 public:
  Operand(const Tensor& tensor,
          SourceLocation loc = SourceLocation::current())  // NOLINT(google-explicit-constructor)
      : tensor_(&tensor), loc_(loc) {}
  template <class T>
    requires std::is_arithmetic_v<T>
  Operand(T number,
          SourceLocation loc = SourceLocation::current())  // NOLINT(google-explicit-constructor)
      : scalar_(std::in_place, Convert(number)), loc_(loc) {}
  Operand(const Scalar& scalar,
          SourceLocation loc = SourceLocation::current())  // NOLINT(google-explicit-constructor)
      : scalar_(scalar), loc_(loc) {}
  const Tensor* tensor() const { return tensor_; }
  const Scalar* scalar() const { return scalar_ ? &*scalar_ : nullptr; }
  SourceLocation loc() const { return loc_; }

 private:
  template <class T>
  static auto Convert(T v) {
    if constexpr (std::is_same_v<T, bool>)
      return v;
    else if constexpr (std::is_floating_point_v<T>)
      return static_cast<double>(v);
    else if constexpr (std::is_unsigned_v<T> && sizeof(T) == sizeof(std::uint64_t))
      return static_cast<std::uint64_t>(v);
    else
      return static_cast<std::int64_t>(v);
  }
  const Tensor* tensor_ = nullptr;
  std::optional<Scalar> scalar_;
  SourceLocation loc_;
};

// --- creation. Data is copied. Rank-1 from a list; give dims for other ranks.
LAZULI_API Tensor from_data(const void* data, DType dtype, const Dims& dims,
                            const Device& device = Device(),
                            SourceLocation loc = SourceLocation::current());
template <class T>
Tensor tensor(const std::vector<T>& values, const Dims& dims, const Device& device = Device(),
              SourceLocation loc = SourceLocation::current());
template <class T>
  requires std::is_arithmetic_v<T>
Tensor tensor(std::initializer_list<T> values, SourceLocation loc = SourceLocation::current()) {
  return from_data(values.begin(), dtype_of<T>(), {static_cast<std::int64_t>(values.size())},
                   Device(), loc);
}
template <class T>
  requires std::is_arithmetic_v<T>
Tensor tensor(std::initializer_list<std::initializer_list<T>> rows,
              SourceLocation loc = SourceLocation::current()) {
  std::vector<T> values;
  for (const auto& row : rows) {
    if (row.size() != rows.begin()->size())
      throw Error(ErrorCode::kInvalidArgument, "tensor: rows differ in length");
    values.insert(values.end(), row.begin(), row.end());
  }
  const Dims dims{static_cast<std::int64_t>(rows.size()),
                  static_cast<std::int64_t>(rows.size() == 0 ? 0 : rows.begin()->size())};
  return tensor(values, dims, Device(), loc);
}

namespace internal {
LAZULI_API void CheckCount(std::size_t count, const Dims& dims, SourceLocation loc);
}

template <class T>
Tensor tensor(const std::vector<T>& values, const Dims& dims, const Device& device,
              SourceLocation loc) {
  internal::CheckCount(values.size(), dims, loc);
  if constexpr (std::is_same_v<T, bool>) {
    const std::vector<unsigned char> bytes(values.begin(), values.end());
    return from_data(bytes.data(), DType::kPred, dims, device, loc);
  } else {
    return from_data(values.data(), dtype_of<T>(), dims, device, loc);
  }
}

}  // namespace lazuli
