#include "cpp_api/src/facade.h"

#include <atomic>
#include <memory>

#include "backend/cpu/cpu_client.h"
#include "backend/interpreter/interpreter.h"
#include "backend/npu/npu_client.h"
#include "ir/support/data_memory.h"
#include "ir/support/error_place.h"
#include "ir/support/linalg_error.h"
#include "ir/support/wrong_type.h"
#include "lazy/debug/debug_level.h"
#include "lazy/debug/fatal_stack.h"
#include "lazy/debug/graph_analysis.h"
#include "lazy/debug/metrics_file.h"
#include "lazy/debug/profile_file.h"
#include "lazy/debug/profile_socket.h"
#include "lazy/debug/reproduction.h"
#include "lazy/debug/save_tensors.h"
#include "lazy/execution/sync.h"
#include "lazy/graphs/graph_page.h"
#include "lazy/ops/core/default_type.h"
#include "lazy/ops/core/record.h"

namespace lazuli {
namespace {

ErrorCode CodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      if (ir::IsLinAlgError(status)) return ErrorCode::kLinAlg;
      return ir::IsWrongType(status) ? ErrorCode::kWrongType : ErrorCode::kInvalidArgument;
    case absl::StatusCode::kOutOfRange:
      return ErrorCode::kOutOfRange;
    case absl::StatusCode::kUnimplemented:
      return ErrorCode::kUnimplemented;
    case absl::StatusCode::kFailedPrecondition:
      return ErrorCode::kFailedPrecondition;
    case absl::StatusCode::kResourceExhausted:
      return ErrorCode::kResourceExhausted;
    case absl::StatusCode::kNotFound:
      return ErrorCode::kNotFound;
    default:
      return ErrorCode::kInternal;
  }
}

#define LAZULI_DTYPE(name, ...) \
  static_assert(static_cast<int>(DType::name) == static_cast<int>(ir::DType::name));
#include "ir/types/dtype.def"
#undef LAZULI_DTYPE

}  // namespace

void Initialize() {
  static const bool initialized = [] {
    interpreter::RegisterInterpreter();
    cpu::RegisterCpu();
    npu::RegisterNpu();
    lazy::InitializeDebugLevel();
    lazy::InitializeProfileFile();
    lazy::InitializeProfileSocket();
    lazy::InitializeExecution();
    lazy::InitializeFatalStack();
    lazy::InitializeGraphAnalysis();
    lazy::InitializeMetricsFile();
    lazy::InitializeReproductions();
    lazy::InitializeSaveTensors();
    lazy::InstallModulePages();
    return true;
  }();
  (void)initialized;
}

void Rethrow(const absl::Status& status, ir::SiteId site) {
  const absl::Status placed = ir::AtSite(status, site);
  throw Error(CodeOf(placed), std::string(ir::Message(placed)), ir::OpOf(placed),
              ir::PlaceOf(placed));
}

void RethrowOrEnd(const std::bad_alloc& error, ir::SiteId site) {
  if (const auto* data = dynamic_cast<const ir::NoDataMemory*>(&error))
    Rethrow(data->status(), site);
  const ir::Site& at = ir::GetSite(site);
  ir::EndWithoutMemory("in a call of the library", at.file, at.line);
}

// What the copies of a scalar share.
struct Scalar::Slot : ir::Pooled {
  std::atomic<int> refs{1};
  lazy::NumberSlots slots;
};

Scalar::Scalar(double v) : kind_(2), double_(v) {}
Scalar::Scalar(std::int64_t v) : kind_(1), double_(static_cast<double>(v)), int_(v) {}
Scalar::Scalar(std::uint64_t v)
    : kind_(v >> 63 != 0 ? 3 : 1),
      double_(static_cast<double>(v)),
      int_(static_cast<std::int64_t>(v)) {}
Scalar::Scalar(std::complex<double> v) : kind_(4), double_(v.real()), imag_(v.imag()) {}
Scalar::Scalar(bool v) : kind_(0), double_(v ? 1 : 0), int_(v ? 1 : 0) {}
Scalar::Slot& Scalar::SharedSlot() const {
  const std::atomic_ref<Slot*> shared(slot_);
  Slot* slot = shared.load(std::memory_order_acquire);
  if (slot != nullptr) return *slot;
  auto made = std::make_unique<Slot>();
  return shared.compare_exchange_strong(slot, made.get(), std::memory_order_acq_rel)
             ? *made.release()
             : *slot;
}
Scalar::Scalar(const Scalar& other)
    : kind_(other.kind_), double_(other.double_), imag_(other.imag_), int_(other.int_) {
  slot_ = &other.SharedSlot();  // now: the copy, an operand say, may be the first that is used
  slot_->refs.fetch_add(1, std::memory_order_relaxed);
}
Scalar& Scalar::operator=(const Scalar& other) {
  Scalar copy(other);
  std::swap(kind_, copy.kind_);
  std::swap(double_, copy.double_);
  std::swap(imag_, copy.imag_);
  std::swap(int_, copy.int_);
  std::swap(slot_, copy.slot_);
  return *this;
}
Scalar::~Scalar() {
  if (slot_ != nullptr && slot_->refs.fetch_sub(1, std::memory_order_acq_rel) == 1)
    delete slot_;  // NOLINT: counted
}
double Scalar::value() const { return double_; }

lazy::Number TensorAccess::ToNumber(const Scalar& scalar) {
  switch (scalar.kind_) {
    case 0:
      return lazy::Number(scalar.int_ != 0);
    case 1:
      return lazy::Number(scalar.int_);
    case 3:
      return lazy::Number(static_cast<std::uint64_t>(scalar.int_));
    case 4:
      return lazy::Number(std::complex<double>(scalar.double_, scalar.imag_));
    default:
      return lazy::Number(scalar.double_);
  }
}

lazy::Number TensorAccess::Given(const Scalar& scalar) {
  return ToNumber(scalar).OfUser(scalar.SharedSlot().slots);
}

ir::Value TensorAccess::OperandSlot(const Operand& operand, ir::DType dtype,
                                    lazy::Overflow overflow) {
  const Scalar& scalar = *operand.scalar();
  // A bare number is nobody else's: only a named one has a slot to share, made when the operand
  // copied it.
  return scalar.slot_ == nullptr ? ToNumber(scalar).Slot(dtype, overflow)
                                 : Given(scalar).As(dtype, overflow);
}

OperandHolder Hold(std::string_view op, int position, const Operand& operand, const Operand& other,
                   NumberUse use) {
  if (operand.tensor() != nullptr) {
    if (!operand.tensor()->defined()) {
      lazy::ThrowRecordError(op,
                             ir::InvalidArgument("operand ", position, " is an undefined tensor"));
    }
    return {TensorAccess::Borrow(*operand.tensor()), {}};
  }
  const lazy::Number number = TensorAccess::ToNumber(*operand.scalar());
  if (!use.takes_bool && number.is_bool())
    lazy::ThrowRecordError(op, ir::WrongType("takes no bool; logical_not or ~ may be meant"));
  const bool beside =
      other.tensor() != nullptr && other.tensor()->defined();  // undefined: an error follows
  ir::DType dtype =
      beside ? number.TypeBeside(Unwrap(other.tensor()->dtype())) : number.DefaultType();
  const bool beside_float = beside && ir::IsFloat(Unwrap(other.tensor()->dtype()));
  if (use.unrounded && beside_float && lazy::IsNarrow(dtype)) dtype = ir::DType::kF32;
  if (use.accepts == lazy::Accepts::kFloat && !ir::IsFloat(dtype) && !ir::IsComplex(dtype))
    dtype = lazy::DefaultFloat();
  // Beside pred an integer is an s64, whole.
  const bool wraps = beside && other.tensor()->dtype() != DType::kPred;
  return {{},
          TensorAccess::OperandSlot(operand, lazy::ComputeType(use.accepts, dtype),
                                    wraps ? use.overflow : lazy::Overflow::kRefuse)};
}

}  // namespace lazuli
