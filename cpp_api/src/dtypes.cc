#include "cpp_api/src/facade.h"
#include "ir/support/wrong_type.h"
#include "lazuli/dtype.h"
#include "lazuli/ops.h"
#include "lazy/ops/core/default_type.h"
#include "lazy/ops/elementwise/elementwise.h"

namespace lazuli {

DType default_dtype() { return Wrap(lazy::DefaultFloat()); }

void set_default_dtype(DType dtype) {
  const ir::DType type = Unwrap(dtype);
  if (!ir::IsFloat(type) || ir::ByteWidth(type) < 2) {
    throw Error(ErrorCode::kWrongType,
                ir::Str("set_default_dtype: takes f16, bf16, f32 or f64, not ", to_string(dtype)));
  }
  lazy::SetDefaultFloat(type);
}

DType promote_types(DType x, DType y) {
  const std::optional<ir::DType> common = ir::Promote(Unwrap(x), Unwrap(y));
  if (!common) {
    throw Error(ErrorCode::kWrongType, ir::Str("promote_types: ", to_string(x), " and ",
                                               to_string(y), " have no common type"));
  }
  return Wrap(*common);
}

bool can_cast(DType from_type, DType to_type) {
  const ir::DType from = Unwrap(from_type), to = Unwrap(to_type);
  if (ir::IsComplex(from) && !ir::IsComplex(to)) return false;
  if (ir::IsFloat(from) && ir::IsIntegral(to)) return false;
  return from == ir::DType::kPred || to != ir::DType::kPred;
}

DType result_type(const Operand& x, const Operand& y) {
  return Call(x.loc(), [&] {
    const auto number = [](const Operand& o) { return TensorAccess::ToNumber(*o.scalar()); };
    const auto shape = [](const Operand& o) {
      const lazy::Tensor t = TensorAccess::Unwrap(*o.tensor());
      if (!t.defined())
        lazy::ThrowRecordError("result_type", ir::InvalidArgument("the tensor is undefined"));
      return t.shape();
    };
    if (x.tensor() != nullptr && y.tensor() != nullptr) {
      const absl::StatusOr<ir::DType> common = lazy::CommonType(shape(x), shape(y));
      if (!common.ok()) lazy::ThrowRecordError("result_type", common.status());
      return Wrap(*common);
    }
    if (x.tensor() != nullptr) return Wrap(number(y).TypeBeside(shape(x).dtype()));
    if (y.tensor() != nullptr) return Wrap(number(x).TypeBeside(shape(y).dtype()));
    return Wrap(*ir::Promote(number(x).DefaultType(), number(y).DefaultType()));
  });
}

}  // namespace lazuli
