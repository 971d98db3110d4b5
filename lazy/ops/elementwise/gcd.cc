#include "lazy/ops/elementwise/gcd.h"

#include "ir/support/wrong_type.h"
#include "lazy/ops/elementwise/composite.h"
#include "lazy/ops/elementwise/elementwise.h"

namespace lazuli::lazy {
namespace {

using lowering::Opcode;
using Direction = hlo::ComparisonDirection;

}  // namespace

lowering::Op GcdOp::Lower(lowering::Builder& b, lowering::Op in_x, lowering::Op in_y) const {
  auto [x, y] = Prepare(Accepts::kInteger, in_x, in_y);
  if (!IsIntegral(x.dtype())) return b.Error(WrongType("takes integers, not ", x.shape()));
  if (b.shapes_only()) return x;
  const Shape shape = x.shape(), pair = Shape::Tuple({shape, shape});
  const auto zeros = [&](lowering::Builder& r) { return r.Full(shape, 0); };
  hlo::Computation* left = b.Region("left", {pair}, [&](lowering::Builder& r, auto p) {
    const lowering::Op some = r.Compare(Direction::kNe, r.GetTupleElement(p[0], 1), zeros(r));
    Dims dims;
    for (int64_t d = 0; d < shape.rank(); ++d) dims.push_back(d);
    return r.Reduce(Opcode::kOr, some, dims);
  });
  // (x, y) becomes (y, x % y), and stays where y is 0.
  hlo::Computation* step = b.Region("step", {pair}, [&](lowering::Builder& r, auto p) {
    const lowering::Op a = r.GetTupleElement(p[0], 0), d = r.GetTupleElement(p[0], 1);
    const lowering::Op done = r.Compare(Direction::kEq, d, zeros(r));
    const lowering::Op safe = r.Select(done, r.Full(shape, 1), d);
    return r.Tuple(
        {r.Select(done, a, d), r.Select(done, d, r.Binary(Opcode::kRemainder, a, safe))});
  });
  const lowering::Op divisor = b.GetTupleElement(b.While(b.Tuple({x, y}), left, step), 0);
  return IsUnsigned(x.dtype()) ? divisor : b.Unary(Opcode::kAbs, divisor);
}

Tensor Gcd(const Tensor& x, const Tensor& y) { return Record(GcdOp{}, x, y); }
Tensor Lcm(const Tensor& x, const Tensor& y) {
  const Tensor divisor = Gcd(x, y), none = Eq(divisor, Number0(divisor));
  return Abs(FloorDivide(x, Where(none, Number1(divisor), divisor)) * y);
}

}  // namespace lazuli::lazy
