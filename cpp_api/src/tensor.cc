#include "lazuli/tensor.h"

#include <cstring>
#include <new>
#include <numeric>
#include <ostream>

#include "cpp_api/src/operands.h"
#include "ir/support/data_memory.h"
#include "ir/support/wrong_type.h"
#include "lazuli/autograd.h"
#include "lazuli/execution.h"
#include "lazuli/ops.h"
#include "lazy/autograd/backward.h"
#include "lazy/autograd/grad_name.h"
#include "lazy/ops/core/functions.h"
#include "lazy/ops/program/to_device.h"
#include "lazy/ops/shape/strided.h"
#include "lazy/tensor/journal.h"
#include "lazy/tensor/outside.h"

namespace lazuli {
namespace {

lazy::Tensor Defined(const Tensor& tensor, std::string_view what) {
  if (!tensor.defined())
    throw lazy::StatusError(ir::InvalidArgument(what, ": the tensor is undefined"));
  return TensorAccess::Unwrap(tensor);
}

const ir::Shape& ShapeOf(const Tensor& tensor, const char* what) {
  if (!tensor.defined())
    throw Error(ErrorCode::kInvalidArgument, ir::Str(what, ": the tensor is undefined"));
  return TensorAccess::Impl(tensor)->storage()->shape();
}

}  // namespace

Tensor::Tensor(const Tensor& other) noexcept : impl_(other.impl_) {
  if (impl_ != nullptr) static_cast<lazy::TensorImpl*>(impl_)->Retain();
}
Tensor::~Tensor() {
  if (impl_ != nullptr) static_cast<lazy::TensorImpl*>(impl_)->Release();
}

Dims Tensor::sizes() const {
  const auto dims = ShapeOf(*this, "sizes").dims();
  return Dims(dims.begin(), dims.end());
}
std::int64_t Tensor::size(std::int64_t dim) const {
  const ir::Shape& shape = ShapeOf(*this, "size");
  const std::int64_t d = dim < 0 ? dim + shape.rank() : dim;
  if (d < 0 || d >= shape.rank()) {
    throw Error(ErrorCode::kOutOfRange,
                ir::Str("size: dim ", dim, " is out of range for rank ", shape.rank()));
  }
  return shape.dim(d);
}
std::int64_t Tensor::dim() const { return ShapeOf(*this, "dim").rank(); }
bool Tensor::is_floating_point() const { return ir::IsFloat(Unwrap(dtype())); }
bool Tensor::is_complex() const { return ir::IsComplex(Unwrap(dtype())); }
std::int64_t Tensor::itemsize() const { return ir::ByteWidth(Unwrap(dtype())); }
bool Tensor::equal(const Tensor& other, SourceLocation loc) const {
  return lazuli::equal(*this, other, loc);
}
std::int64_t Tensor::numel() const { return ShapeOf(*this, "numel").num_elements(); }
Dims Tensor::strides() const {
  ShapeOf(*this, "strides");
  const ir::Dims strides = lazy::GeometryOf(TensorAccess::Borrow(*this)).strides;
  return Dims(strides.begin(), strides.end());
}
std::int64_t Tensor::stride(std::int64_t dim) const {
  const std::int64_t rank = ShapeOf(*this, "stride").rank();
  const std::int64_t d = dim < 0 ? dim + rank : dim;
  if (d < 0 || d >= rank) {
    throw Error(ErrorCode::kOutOfRange,
                ir::Str("stride: dim ", dim, " is out of range for rank ", rank));
  }
  return strides()[static_cast<std::size_t>(d)];
}
std::int64_t Tensor::storage_offset() const {
  ShapeOf(*this, "storage_offset");
  return lazy::GeometryOf(TensorAccess::Borrow(*this)).offset;
}
bool Tensor::is_contiguous() const {
  const ir::Shape& shape = ShapeOf(*this, "is_contiguous");
  return lazy::IsContiguous(shape.dims(), lazy::GeometryOf(TensorAccess::Borrow(*this)).strides);
}
Tensor Tensor::contiguous(SourceLocation loc) const { return is_contiguous() ? *this : clone(loc); }
bool Tensor::is_view() const {
  ShapeOf(*this, "is_view");
  return TensorAccess::Impl(*this)->base() != nullptr;
}
Tensor Tensor::base() const {
  return is_view() ? TensorAccess::Wrap(lazy::Tensor(TensorAccess::Impl(*this)->base_ptr()))
                   : Tensor();
}
std::uint64_t Tensor::version() const {
  ShapeOf(*this, "version");
  return TensorAccess::Impl(*this)->storage()->version();
}
const void* Tensor::const_data_ptr(SourceLocation loc) const {
  return Call(loc, [&] {
    const lazy::Tensor tensor = Defined(*this, "data_ptr");
    const auto* data = static_cast<const std::byte*>(
        lazy::ToBuffer(lazy::Tensor(ir::IntrusivePtr<lazy::Storage>(&tensor.storage().written())))
            ->host_data());
    if (data == nullptr) return static_cast<const void*>(nullptr);
    return static_cast<const void*>(data + lazy::GeometryOf(tensor).offset *
                                               ir::ByteWidth(tensor.dtype()));
  });
}
void* Tensor::data_ptr(SourceLocation loc) const {
  return Call(loc, [&] {
    const lazy::Tensor tensor = Defined(*this, "data_ptr");
    lazy::Storage& base = tensor.storage().written();
    const lazy::Tensor whole{ir::IntrusivePtr<lazy::Storage>(&base)};
    std::byte* memory = nullptr;
    while (memory == nullptr) memory = lazy::Context::Lend(base, lazy::ToLiteral(whole));
    return static_cast<void*>(memory +
                              lazy::GeometryOf(tensor).offset * ir::ByteWidth(tensor.dtype()));
  });
}
void Tensor::check_dtype(DType dtype, SourceLocation loc) const {
  Call(loc, [&] {
    const ir::Shape& shape = Defined(*this, "data_ptr").shape();
    if (shape.dtype() != Unwrap(dtype)) {
      lazy::ThrowRecordError(
          "data_ptr", ir::WrongType("the tensor is ", shape, ", not ", lazuli::to_string(dtype)));
    }
  });
}
void Tensor::check_rank(std::size_t rank, SourceLocation loc) const {
  Call(loc, [&] {
    const ir::Shape& shape = Defined(*this, "accessor").shape();
    if (shape.rank() != static_cast<std::int64_t>(rank)) {
      lazy::ThrowRecordError("accessor", ir::InvalidArgument(rank, " dims are asked of ", shape));
    }
  });
}
DType Tensor::dtype() const { return Wrap(ShapeOf(*this, "dtype").dtype()); }
Device Tensor::device() const {
  ShapeOf(*this, "device");
  return DeviceAccess::Wrap(TensorAccess::Impl(*this)->storage()->device());
}

namespace {
lazy::Tensor OneElement(const Tensor& tensor, std::string_view op) {
  const lazy::Tensor t = Defined(tensor, op);
  if (t.shape().num_elements() != 1) {
    lazy::ThrowRecordError(op, ir::InvalidArgument(t.shape(), " has ", t.shape().num_elements(),
                                                   " elements, not one; use to_vector()"));
  }
  return t;
}
ir::Literal OnlyElement(const Tensor& tensor) {
  return lazy::ToLiteral(OneElement(tensor, "item"));
}
}  // namespace

DeferredItem Tensor::item_async(SourceLocation loc) const {
  return Call(loc, [&] {
    const lazy::Tensor t = OneElement(*this, "item_async");
    // A snapshot: what is written to the tensor before the sync does not change the number.
    return DeferredItem(
        TensorAccess::Wrap(lazy::Tensor(lazy::Context::Current().Snapshot(t.storage()))));
  });
}

Item Tensor::item(SourceLocation loc) const {
  return Call(loc, [&] {
    const ir::Literal element = OnlyElement(*this);
    const ir::DType dtype = element.shape().dtype();
    if (dtype == ir::DType::kPred) return Item(element.AsDouble(0) != 0);
    if (dtype == ir::DType::kU64) return Item(element.data<std::uint64_t>()[0]);
    if (ir::IsIntegral(dtype))
      return Item(element.Converted(ir::DType::kS64).data<std::int64_t>()[0]);
    if (ir::IsComplex(dtype))
      return Item(element.Converted(ir::DType::kC128).data<std::complex<double>>()[0]);
    return Item(element.AsDouble(0));
  });
}
double Tensor::item_as_double(SourceLocation loc) const {
  return Call(loc, [&] { return OnlyElement(*this).AsDouble(0); });
}
std::int64_t Tensor::item_as_integer(SourceLocation loc) const {
  return Call(
      loc, [&] { return OnlyElement(*this).Converted(ir::DType::kS64).data<std::int64_t>()[0]; });
}

void Tensor::read(void* out, DType dtype, SourceLocation loc) const {
  Call(loc, [&] {
    const lazy::Tensor tensor = Defined(*this, "to_vector");
    if (tensor.dtype() != Unwrap(dtype)) {
      throw lazy::StatusError(ir::InvalidArgument("to_vector: asked for ",
                                                  ir::DTypeText(Unwrap(dtype)), " of ",
                                                  tensor.shape(), "; convert with to()"));
    }
    const ir::Literal literal = lazy::ToLiteral(tensor);
    std::memcpy(out, literal.raw(), static_cast<std::size_t>(literal.byte_size()));
  });
}

std::vector<std::byte> Tensor::to_bytes(SourceLocation loc) const {
  return Call(loc, [&] {
    const ir::Literal literal = lazy::ToLiteral(Defined(*this, "to_bytes"));
    const auto* bytes = static_cast<const std::byte*>(literal.raw());
    try {
      return std::vector<std::byte>(bytes, bytes + literal.byte_size());
    } catch (const std::bad_alloc&) {
      throw ir::NoDataMemory(literal.byte_size());
    }
  });
}

template <>
std::vector<bool> Tensor::to_vector<bool>(SourceLocation loc) const {
  std::vector<unsigned char> bytes(static_cast<std::size_t>(numel()));
  read(bytes.data(), DType::kPred, loc);
  return std::vector<bool>(bytes.begin(), bytes.end());
}

std::string Tensor::to_string(SourceLocation loc) const {
  return Call(loc, [&] {
    const lazy::Tensor tensor = Defined(*this, "to_string");
    return ir::Str(tensor.shape(), " ", lazy::ToLiteral(tensor).ToString());
  });
}

std::ostream& operator<<(std::ostream& os, const Printed& printed) {
  const Tensor& tensor = printed.tensor_;
  return os << (tensor.defined() ? tensor.to_string(printed.loc_) : std::string("undefined"));
}

bool Tensor::requires_grad() const {
  return defined() && TensorAccess::Unwrap(*this).requires_grad();
}

Tensor& Tensor::set_requires_grad(bool on, SourceLocation loc) {
  Call(loc, [&] {
    const lazy::Tensor tensor = Defined(*this, "set_requires_grad");
    if (on && !ir::IsFloat(tensor.dtype()) && !ir::IsComplex(tensor.dtype())) {
      throw lazy::StatusError(
          ir::InvalidArgument("set_requires_grad: gradients need floats, not ", tensor.shape()));
    }
    lazy::AutogradMeta& meta = tensor.impl()->mutable_autograd();
    if (meta.grad_fn) {
      if (on) return;  // it does
      throw lazy::StatusError(ir::FailedPrecondition(
          "set_requires_grad: the tensor is a result, not a leaf; detach() it first"));
    }
    if (on && tensor.impl()->is_inference() && !lazy::InferenceMode()) {
      throw lazy::StatusError(ir::FailedPrecondition(
          "set_requires_grad: the tensor was made in inference mode; clone() it first"));
    }
    if (lazy::Watch* const watch = lazy::Watch::Current();
        watch != nullptr && meta.requires_grad != on) [[unlikely]]
      watch->NoteChange(*tensor.impl(), "requires_grad");
    meta.requires_grad = on;
    const lazy::Context& context = lazy::Context::Current();
    meta.leaf_of_trace = lazy::Outside::Of(context) != nullptr ? context.id() : 0;
  });
  return *this;
}

Tensor Tensor::grad() const {
  if (!defined()) return {};
  if (lazy::Watch* const watch = lazy::Watch::Current()) [[unlikely]]
    watch->NoteGradUse(*TensorAccess::Impl(*this));
  const lazy::Tensor* place = lazy::GradPlace(TensorAccess::Borrow(*this));
  return place == nullptr ? Tensor() : TensorAccess::Wrap(*place);
}

bool Tensor::is_leaf() const {
  ShapeOf(*this, "is_leaf");
  const lazy::AutogradMeta* meta = TensorAccess::Impl(*this)->autograd();
  return meta == nullptr || !meta->grad_fn;
}
bool Tensor::retains_grad() const {
  return !is_leaf() && lazy::GradPlace(TensorAccess::Borrow(*this));
}
bool Tensor::is_inference() const {
  ShapeOf(*this, "is_inference");
  return TensorAccess::Impl(*this)->is_inference();
}
GradFn Tensor::grad_fn() const {
  return GradFn(is_leaf() ? "" : lazy::GradName(*TensorAccess::Impl(*this)->autograd()->grad_fn));
}
GradPlace Tensor::mutable_grad(SourceLocation loc) { return {*this, loc}; }
void Tensor::retain_grad(SourceLocation loc) {
  Call(loc, [&] { lazy::RetainGrad(Defined(*this, "retain_grad")); });
}

void Tensor::set_grad(const Tensor& grad, SourceLocation loc) {
  Call(loc, [&] {
    const lazy::Tensor tensor = Defined(*this, "set_grad");
    lazy::NoteGrad(*tensor.impl());
    lazy::Tensor* place = lazy::GradPlace(tensor);
    if (!grad.defined()) {
      if (place != nullptr) *place = {};
      return;
    }
    const lazy::Tensor value = TensorAccess::Unwrap(grad);
    if (!(value.shape() == tensor.shape())) {
      throw lazy::StatusError(ir::InvalidArgument("set_grad: the gradient is ", value.shape(),
                                                  ", the tensor ", tensor.shape()));
    }
    (place != nullptr ? *place : tensor.impl()->mutable_autograd().grad) = value;
  });
}

void Tensor::backward(const Tensor& gradient, BackwardOptions options, SourceLocation loc) const {
  Call(loc, [&] {
    lazy::Backward(TensorAccess::Unwrap(*this), TensorAccess::Unwrap(gradient),
                   {options.retain_graph, options.create_graph});
  });
}
void Tensor::backward(const Tensor& gradient, bool retain_graph, bool create_graph,
                      SourceLocation loc) const {
  backward(gradient, BackwardOptions{retain_graph, create_graph}, loc);
}
void Tensor::backward(const Tensor& gradient, SourceLocation loc) const {
  backward(gradient, BackwardOptions(), loc);
}
void Tensor::backward(SourceLocation loc) const { backward({}, BackwardOptions(), loc); }

HookHandle Tensor::register_hook(std::function<Tensor(const Tensor&)> hook, SourceLocation loc) {
  return Call(loc, [&] {
    const lazy::HookHandle handle = lazy::AddHook(
        Defined(*this, "register_hook"), [hook = std::move(hook)](const lazy::Tensor& gradient) {
          return TensorAccess::Unwrap(hook(TensorAccess::Wrap(gradient)));
        });
    return HookHandle(handle.hooks, handle.id);
  });
}

HookHandle Tensor::register_post_accumulate_grad_hook(std::function<void(const Tensor&)> hook,
                                                      SourceLocation loc) {
  return Call(loc, [&] {
    const lazy::HookHandle handle = lazy::AddHook(
        Defined(*this, "register_post_accumulate_grad_hook"),
        [hook = std::move(hook)](const lazy::Tensor& leaf) {
          hook(TensorAccess::Wrap(leaf));
          return lazy::Tensor();
        },
        lazy::GradHook::When::kAccumulated);
    return HookHandle(handle.hooks, handle.id);
  });
}

Tensor Tensor::detach(SourceLocation loc) const {
  return CallTensor(loc, [&] { return lazy::Detach(Defined(*this, "detach")); });
}

Tensor Tensor::clone(SourceLocation loc) const {
  return CallTensor(loc, [&] { return lazy::Clone(Defined(*this, "clone")); });
}

Tensor Tensor::to(DType dtype, SourceLocation loc) const {
  return CallTensor(loc, [&] { return lazy::To(Defined(*this, "to"), Unwrap(dtype)); });
}

Tensor Tensor::to(const Device& device, SourceLocation loc) const {
  return CallTensor(loc, [&] {
    const lazy::Tensor tensor = Defined(*this, "to");
    const backend::Device target = DeviceAccess::Unwrap(device);
    return tensor.device() == target ? tensor : lazy::ToDevice(tensor, target);
  });
}

Tensor Tensor::to(const Device& device, DType dtype, SourceLocation loc) const {
  return to(dtype, loc).to(device, loc);
}
Tensor Tensor::to(const Tensor& other, SourceLocation loc) const {
  return to(other.device(), other.dtype(), loc);
}
Tensor Tensor::cpu(SourceLocation loc) const { return to(Device(kCPU), loc); }

Tensor Tensor::new_empty(const IntList& dims, std::optional<DType> dtype,
                         const std::optional<Device>& device, SourceLocation loc) const {
  return empty(dims, dtype.value_or(this->dtype()), device.value_or(this->device()), loc);
}
Tensor Tensor::new_zeros(const IntList& dims, std::optional<DType> dtype,
                         const std::optional<Device>& device, SourceLocation loc) const {
  return zeros(dims, dtype.value_or(this->dtype()), device.value_or(this->device()), loc);
}
Tensor Tensor::new_ones(const IntList& dims, std::optional<DType> dtype,
                        const std::optional<Device>& device, SourceLocation loc) const {
  return ones(dims, dtype.value_or(this->dtype()), device.value_or(this->device()), loc);
}
Tensor Tensor::new_full(const IntList& dims, const Scalar& value, std::optional<DType> dtype,
                        const std::optional<Device>& device, SourceLocation loc) const {
  return full(dims, value, dtype.value_or(this->dtype()), device.value_or(this->device()), loc);
}

Tensor& Tensor::set_data(const Tensor& source, SourceLocation loc) {
  Call(loc, [&] {
    const lazy::Tensor from = Defined(source, "set_data");
    lazy::TensorImpl& impl = *Defined(*this, "set_data").impl();
    if (impl.autograd() != nullptr) {
      const lazy::AutogradMeta& meta = impl.mutable_autograd();
      if (meta.requires_grad && !ir::IsFloat(from.dtype()) && !ir::IsComplex(from.dtype())) {
        throw lazy::StatusError(ir::InvalidArgument(
            "set_data: the tensor requires a gradient, which needs floats, not ", from.shape()));
      }
      if (meta.grad_fn) {
        throw lazy::StatusError(ir::FailedPrecondition(
            "set_data: the tensor is a result, not a leaf; detach() it first"));
      }
    }
    const auto name = impl.storage()->name();
    const lazy::StoragePtr old = impl.storage();
    impl.set_storage(from.impl()->storage());
    lazy::Context::Current().TakesPlaceOf(*impl.storage(), *old);
    if (name && !impl.storage()->name()) impl.storage()->set_name(*name);
  });
  return *this;
}

Tensor Tensor::t(SourceLocation loc) const {
  return CallTensor(loc, [&] { return lazy::TView(Defined(*this, "t")); });
}
Tensor Tensor::numpy_T(SourceLocation loc) const {
  Dims dims(static_cast<std::size_t>(dim()));
  std::iota(dims.rbegin(), dims.rend(), 0);
  return permute(dims, loc);
}
bool Tensor::is_signed() const {
  const ir::DType of = Unwrap(dtype());
  return ir::IsFloat(of) || ir::IsComplex(of) || ir::IsSigned(of);
}
bool Tensor::is_alias_of(const Tensor& other) const {
  const Tensor mine = is_view() ? base() : *this, theirs = other.is_view() ? other.base() : other;
  return TensorAccess::Impl(mine)->storage() == TensorAccess::Impl(theirs)->storage();
}
Tensor& Tensor::set_name(std::string name) {
  if (!defined()) throw Error(ErrorCode::kInvalidArgument, "set_name: the tensor is undefined");
  TensorAccess::Impl(*this)->storage()->set_name(std::move(name));
  return *this;
}
std::string Tensor::name() const {
  if (!defined()) return "";
  const auto& name = TensorAccess::Impl(*this)->storage()->name();
  return name ? *name : "";
}

std::ostream& operator<<(std::ostream& os, const Dims& dims) {
  return os << "[" << ir::Join(dims, ", ") << "]";
}
std::ostream& operator<<(std::ostream& os, DType dtype) { return os << to_string(dtype); }
std::ostream& operator<<(std::ostream& os, const Device& device) { return os << device.name(); }

// --- creation

Tensor from_data(const void* data, DType dtype, const IntList& dims, const Device& device,
                 SourceLocation loc) {
  return CallTensor(loc, [&] {
    const ir::Shape shape = lazy::ValueOrThrow(ir::Shape::Make(Unwrap(dtype), dims));
    ir::Literal literal = ir::Literal::Uninitialized(shape);
    std::memcpy(literal.mutable_raw(), data, static_cast<std::size_t>(literal.byte_size()));
    return lazy::FromLiteral(literal, DeviceAccess::Unwrap(device));
  });
}

void internal::CheckCount(std::size_t count, const IntList& dims, SourceLocation loc) {
  Call(loc, [&] {
    const ir::Shape shape = lazy::ValueOrThrow(ir::Shape::Make(ir::DType::kPred, dims));
    if (shape.num_elements() != static_cast<std::int64_t>(count)) {
      throw lazy::StatusError(ir::InvalidArgument("tensor: ", count, " values do not fill dims (",
                                                  ir::Join(dims, ", "), ")"));
    }
  });
}

}  // namespace lazuli
