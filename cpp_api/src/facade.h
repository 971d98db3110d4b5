// Between the public types and the library's own: handles, sites, errors.
#pragma once

#include <new>
#include <utility>

#include "backend/client/client.h"
#include "lazuli/nn.h"
#include "lazuli/tensor.h"
#include "lazy/ops/core/accepts.h"
#include "lazy/ops/core/number.h"
#include "lazy/tensor/site_scope.h"
#include "lazy/tensor/status_error.h"
#include "lazy/tensor/tensor.h"

namespace lazuli {

// Registers backends and installs the executor, once.
void Initialize();

struct DeviceAccess {
  static backend::Device Unwrap(const Device& device) {
    return {static_cast<backend::ComputationClient*>(device.client_), device.ordinal_};
  }
  static Device Wrap(backend::Device device) { return Device(device.client, device.ordinal); }
};

// A public tensor as a lazy one for the length of a call: the caller holds it, so nothing is
// counted.
class Borrowed {
 public:
  Borrowed() = default;
  explicit Borrowed(void* impl)
      : tensor_(ir::IntrusivePtr<lazy::TensorImpl>::Adopt(static_cast<lazy::TensorImpl*>(impl))) {}
  ~Borrowed() { tensor_.Detach(); }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  const lazy::Tensor& get() const { return tensor_; }
  operator const lazy::Tensor&() const { return tensor_; }           // NOLINT: it is one
  operator lazy::Operand() const { return lazy::Operand(tensor_); }  // NOLINT

 private:
  lazy::Tensor tensor_;
};

// The same for many tensors.
class BorrowedList {
 public:
  BorrowedList() = default;
  ~BorrowedList() {
    for (lazy::Tensor& tensor : tensors_) tensor.Detach();
  }
  BorrowedList(BorrowedList&& other) noexcept : tensors_(std::exchange(other.tensors_, {})) {}
  BorrowedList& operator=(BorrowedList&&) = delete;
  // Room for so many more.
  void reserve(std::size_t more) { tensors_.reserve(tensors_.size() + more); }
  void push_back(const lazy::Tensor& tensor) {
    tensors_.emplace_back(ir::IntrusivePtr<lazy::TensorImpl>::Adopt(tensor.impl()));
  }
  const lazy::Tensors& get() const { return tensors_; }
  operator const lazy::Tensors&() const { return tensors_; }            // NOLINT: it is one
  operator absl::Span<const lazy::Tensor>() const { return tensors_; }  // NOLINT

 private:
  lazy::Tensors tensors_;
};

struct TensorAccess {
  static Borrowed Borrow(const Tensor& tensor) { return Borrowed(tensor.impl_); }
  static lazy::Tensor Unwrap(const Tensor& tensor) {
    return lazy::Tensor(
        ir::IntrusivePtr<lazy::TensorImpl>(static_cast<lazy::TensorImpl*>(tensor.impl_)));
  }
  static Tensor Wrap(lazy::Tensor tensor) {
    Tensor wrapped;
    wrapped.impl_ = tensor.Detach();
    return wrapped;
  }
  static lazy::TensorImpl* Impl(const Tensor& tensor) {
    return static_cast<lazy::TensorImpl*>(tensor.impl_);
  }
  static lazy::Number ToNumber(const Scalar& scalar);
  // The same as a function takes it: its slot is the scalar's, one for all uses.
  static lazy::Number Given(const Scalar& scalar);
  static ir::Value OperandSlot(const Operand& operand, ir::DType dtype,
                               lazy::Overflow overflow = lazy::Overflow::kRefuse);
};

// The line, with its callers where they are kept and it is not inside of another call.
inline ir::SiteId Intern(const SourceLocation& loc) {
  const ir::SiteId site = ir::InternSite(loc.file_name(), loc.function_name(), loc.line());
  if (ir::KeepsStacks() && lazy::CurrentSite() == ir::kNoSite) [[unlikely]]
    return ir::WithNativeStack(site);
  return site;
}
inline ir::DType Unwrap(DType dtype) { return static_cast<ir::DType>(dtype); }
inline DType Wrap(ir::DType dtype) { return static_cast<DType>(dtype); }

// Throws the status as Error, with the line of the current site.
[[noreturn]] void Rethrow(const absl::Status& status, ir::SiteId site);
// Throws Error where there was no memory for data; else the process ends.
[[noreturn]] void RethrowOrEnd(const std::bad_alloc& error, ir::SiteId site);

// Runs a public call: nodes recorded inside get the caller's line, an internal error becomes Error
// with that line.
template <class F>
decltype(auto) Call(const SourceLocation& loc, F&& f) {
  lazy::SiteScope scope(Intern(loc));
  try {
    return std::forward<F>(f)();
  } catch (const lazy::StatusError& error) {
    Rethrow(error.status(), lazy::CurrentSite());
  } catch (const std::bad_alloc& error) {
    RethrowOrEnd(error, lazy::CurrentSite());
  }
}

// As Call for a function of tensors that gives a tensor.
template <class F>
Tensor CallTensor(const SourceLocation& loc, F&& f) {
  return Call(loc, [&] { return TensorAccess::Wrap(f()); });
}

// An operand of a binary op beside an operand of this dtype.
struct OperandHolder {
  Borrowed tensor;  // what the lazy operand points to
  ir::Value number;
  lazy::Operand get() const {
    return tensor.get().defined() ? lazy::Operand(tensor.get()) : lazy::Operand(number);
  }
};
// What an op does with a number beside a tensor: the dtype it computes in, whether an integer may
// wrap in it, and whether beside floats of 16 bits the number is not rounded to them.
struct NumberUse {
  lazy::Accepts accepts = lazy::Accepts::kReal;
  lazy::Overflow overflow = lazy::Overflow::kRefuse;
  bool unrounded = false;
  bool takes_bool = true;
};
inline constexpr NumberUse kArithmetic{lazy::Accepts::kReal, lazy::Overflow::kWrap};
inline constexpr NumberUse kInFloats{lazy::Accepts::kFloat};  // beside integers, too
OperandHolder Hold(std::string_view op, int position, const Operand& operand, const Operand& other,
                   NumberUse use);

}  // namespace lazuli
