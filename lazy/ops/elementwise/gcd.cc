#include "lazy/ops/elementwise/gcd.h"

#include "ir/support/wrong_type.h"
#include "lazy/ops/elementwise/composite.h"
#include "lazy/ops/elementwise/elementwise.h"
#include "lazy/ops/elementwise/loops.h"

namespace lazuli::lazy {
namespace {

using lowering::Opcode;
using Direction = hlo::ComparisonDirection;

}  // namespace

lowering::Op GcdOp::Lower(lowering::Builder& b, lowering::Op in_x, lowering::Op in_y) const {
  auto [x, y] = Prepare(Accepts::kInteger, in_x, in_y);
  if (!IsIntegral(x.dtype())) return b.Error(WrongType("takes integers, not ", x.shape()));
  if (b.shapes_only()) return x;
  // (x, y) becomes (y, x % y), and stays where y is 0.
  const lowering::Ops end = LoopWhile(
      b, {x, y},
      [](lowering::Builder& r, const Wide64& w, const lowering::Ops& p) {
        return r.Compare(Direction::kNe, p[1], w(0));
      },
      [](lowering::Builder& r, const Wide64& w, const lowering::Ops& p) {
        const lowering::Op done = r.Compare(Direction::kEq, p[1], w(0));
        const lowering::Op rest = r.Binary(Opcode::kRemainder, p[0], r.Select(done, w(1), p[1]));
        return lowering::Ops{r.Select(done, p[0], p[1]), r.Select(done, p[1], rest)};
      });
  const lowering::Op divisor = end[0];
  return IsUnsigned(x.dtype()) ? divisor : b.Unary(Opcode::kAbs, divisor);
}

Tensor Gcd(const Tensor& x, const Tensor& y) { return Record(GcdOp{}, x, y); }
Tensor Lcm(const Tensor& x, const Tensor& y) {
  const Tensor divisor = Gcd(x, y), none = Eq(divisor, Number0(divisor));
  return Abs(FloorDivide(x, Where(none, Number1(divisor), divisor)) * y);
}

}  // namespace lazuli::lazy
