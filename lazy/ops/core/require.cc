#include "lazy/ops/core/require.h"

#include <array>
#include <cmath>

#include "ir/support/wrong_type.h"

namespace lazuli::lazy {
namespace {

struct Words {
  std::string_view before, after;
};
const Words& WordsOf(Requirement what) {
  static constexpr std::array<Words, 4> kWords = {{
      {"offsets[0] has to be 0, but is ", ""},
      {"offset ", " is below the one before it, or above the number of indices"},
      {"the element at position ", " makes the range of the bins one that is not finite"},
      {"the squares of the windows at element ", " of the signal add up to less than 1e-11"},
  }};
  return kWords[static_cast<std::size_t>(what)];
}

}  // namespace

lowering::Op RequireOp::Lower(lowering::LoweringContext& c, lowering::Op x, lowering::Op bad,
                              lowering::Op value) const {
  const Words& words = WordsOf(what);
  c.CheckNone(bad, value,
              {std::string(kName), std::string(words.before), std::string(words.after)});
  return x;
}

Tensor Require(const Tensor& x, Requirement what, const Tensor& bad, const Tensor& value) {
  return Record(RequireOp{what}, x, bad, value);
}

Tensor RequireAll(const Tensor& x, Requirement what, const Tensor& good) {
  const int64_t count = good.shape().num_elements();
  if (count == 0) return x;
  return Require(x, what, LogicalNot(Reshape(good, {-1})), Arange(count, DType::kS64, x.device()));
}

lowering::Op AssertOp::Lower(lowering::LoweringContext& c, lowering::Op x) const {
  lowering::Builder& b = c.builder;
  if (x.dtype() != DType::kPred) return b.Error(WrongType("takes bools, not ", x.shape()));
  const int64_t n = x.shape().num_elements();
  const lowering::Op bad = b.Unary(lowering::Opcode::kNot, b.Reshape(x, {n}));
  lowering::CheckMessage message{function, what + ", but the element at position ", " does not"};
  message.is_users = true;
  c.CheckNone(bad, b.Iota(Shape(DType::kS64, {n}), 0), std::move(message));
  return x;
}

Tensor AssertAsync(const Tensor& condition, std::string_view function, std::string_view message) {
  return Record(AssertOp{std::string(function), std::string(message)}, Detach(condition));
}

namespace {

using hlo::ComparisonDirection;
using lowering::Opcode;

}  // namespace

lowering::Op ProbabilitiesOp::Lower(lowering::LoweringContext& c, lowering::Op x) const {
  lowering::Builder& b = c.builder;
  const Shape shape = x.shape();  // NOLINT: a copy, for the original moves as more is built
  const int64_t n = shape.num_elements();
  const lowering::Op flat = b.Reshape(x, {n});
  const lowering::Op low = b.Compare(ComparisonDirection::kGe, flat, b.ZerosLike(flat));
  // NaN compares as false.
  const lowering::Op high =
      b.Compare(std::isfinite(most) ? ComparisonDirection::kLe : ComparisonDirection::kLt, flat,
                b.Full(flat.shape(), most));
  const lowering::Op good = b.Binary(Opcode::kAnd, low, high);
  const lowering::Op where = b.Iota(Shape(DType::kS64, {n}), 0);
  c.CheckNone(
      b.Unary(Opcode::kNot, good), where,
      {"probabilities", "the element at position ",
       std::isfinite(most) ? Str(" is not a probability between 0 and ", most)
                           : std::string(" is negative, infinite or NaN, which is not a weight")});
  if (at_least == 0 || n == 0) return x;
  const int64_t columns = shape.dim(shape.rank() - 1), rows = n / columns;
  const lowering::Op some =
      b.Convert(b.Compare(ComparisonDirection::kGt, flat, b.ZerosLike(flat)), DType::kS64);
  const lowering::Op count = b.Reduce(Opcode::kAdd, b.Reshape(some, {rows, columns}), {1});
  c.CheckNone(
      b.Compare(ComparisonDirection::kLt, count,
                b.Full(count.shape(), static_cast<double>(at_least))),
      count,
      {"probabilities", "only ", Str(" weights of a row are not 0, and ", at_least, " are drawn")});
  return x;
}

}  // namespace lazuli::lazy
