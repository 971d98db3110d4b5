#include "python/src/dlpack.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "ir/types/dtype.h"
#include "python/src/errors.h"

namespace lazuli::python {
namespace {

struct DLDevice {
  int32_t type;
  int32_t id;
};
struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t rank;
  DLDataType dtype;
  int64_t* dims;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor* self);
};

constexpr int32_t kHost = 1;
constexpr const char* kName = "dltensor";  // until somebody takes it
constexpr const char* kTaken = "used_dltensor";

struct Exported {
  DLManagedTensor managed;
  ir::Dims dims;
  ir::Dims strides;  // some readers need them
  std::shared_ptr<const void> owner;
};

enum Code : uint8_t { kInt = 0, kUint = 1, kFloat = 2, kBfloat = 4, kComplex = 5, kBool = 6 };

DLDataType TypeOf(ir::DType dtype) {
  const int bits = ir::Row(dtype).bits;
  Code code = kFloat;
  if (dtype == ir::DType::kPred)
    return {kBool, 8, 1};
  else if (dtype == ir::DType::kBF16)
    code = kBfloat;
  else if (ir::IsComplex(dtype))
    code = kComplex;
  else if (!ir::IsFloat(dtype))
    code = ir::IsUnsigned(dtype) ? kUint : kInt;
  if (bits < 8 || (code == kFloat && bits < 16))
    ThrowTypeError("DLPack has no code for " + std::string(ir::DTypeText(dtype)));
  return {code, static_cast<uint8_t>(bits), 1};
}

void Forget(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kName) == 0) return;  // somebody took it
  auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kName));
  managed->deleter(managed);
}

// Copies elements of two bytes, the last dim fastest, from where their strides say.
void CopyStrided(const DLTensor& from, std::byte* to, std::size_t count) {
  constexpr int64_t kBytes = 2;
  const auto* const first = static_cast<const std::byte*>(from.data) + from.byte_offset;
  ir::Dims position(static_cast<std::size_t>(from.rank));
  for (std::size_t i = 0; i < count; ++i) {
    int64_t at = 0, row = 1;
    for (std::size_t d = position.size(); d-- > 0;) {
      at += position[d] * (from.strides == nullptr ? row : from.strides[d]);
      row *= from.dims[d];
    }
    std::memcpy(to + i * kBytes, first + at * kBytes, kBytes);
    for (std::size_t d = position.size(); d-- > 0 && ++position[d] == from.dims[d];)
      position[d] = 0;
  }
}

}  // namespace

ir::Literal FromDLPack(const py::object& capsule) {
  if (PyCapsule_IsValid(capsule.ptr(), kName) == 0)
    ThrowTypeError("from_dlpack: takes what has __dlpack__(), or what that gave, once");
  auto* const managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), kName));
  const DLTensor& tensor = managed->tensor;
  if (tensor.dtype.code != kBfloat || tensor.dtype.bits != 16 || tensor.dtype.lanes != 1)
    ThrowTypeError("from_dlpack: there is no tensor of DLPack's type " +
                   std::to_string(tensor.dtype.code) + " of " + std::to_string(tensor.dtype.bits) +
                   " bits");
  if (tensor.device.type != kHost)
    ThrowTypeError("from_dlpack: takes memory of the host, not of DLPack's device " +
                   std::to_string(tensor.device.type));
  ir::Literal literal(
      ir::Shape(ir::DType::kBF16, ir::Dims(tensor.dims, tensor.dims + tensor.rank)));
  CopyStrided(tensor, literal.mutable_raw(),
              static_cast<std::size_t>(literal.shape().num_elements()));
  PyCapsule_SetName(capsule.ptr(), kTaken);
  if (managed->deleter != nullptr) managed->deleter(managed);
  return literal;
}

py::capsule ToDLPack(const ir::Shape& shape, const void* data, std::shared_ptr<const void> owner) {
  auto exported = std::make_unique<Exported>();
  exported->owner = std::move(owner);
  exported->dims.assign(shape.dims().begin(), shape.dims().end());
  exported->strides.resize(exported->dims.size());
  int64_t stride = 1;
  for (std::size_t i = exported->dims.size(); i-- > 0;) {
    exported->strides[i] = stride;
    stride *= exported->dims[i];
  }
  exported->managed.tensor = {.data = const_cast<void*>(data),
                              .device = {kHost, 0},
                              .rank = static_cast<int32_t>(shape.rank()),
                              .dtype = TypeOf(shape.dtype()),
                              .dims = exported->dims.data(),
                              .strides = exported->strides.data(),
                              .byte_offset = 0};
  exported->managed.context = exported.get();
  exported->managed.deleter = [](DLManagedTensor* self) {
    delete static_cast<Exported*>(self->context);  // NOLINT: the protocol's
  };
  PyObject* const capsule = PyCapsule_New(&exported->managed, kName, &Forget);
  if (capsule == nullptr) throw py::error_already_set();
  static_cast<void>(exported.release());  // NOLINT: the capsule's
  return py::reinterpret_steal<py::capsule>(capsule);
}

}  // namespace lazuli::python
