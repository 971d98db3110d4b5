#include "lazy/ops/loss/ctc.h"

#include <limits>

#include "ir/support/wrong_type.h"
#include "lazy/ops/core/dims.h"
#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/step_loop.h"
#include "lazy/ops/core/wide.h"
#include "lazy/ops/elementwise/elementwise.h"
#include "lazy/ops/loss/reduction.h"
#include "lazy/ops/shape/shape_ops.h"

namespace lazuli::lazy {
namespace {

using lowering::Builder;
using Relation = hlo::ComparisonDirection;

constexpr double kNever = -std::numeric_limits<double>::infinity();  // the log of no probability

// Arrays [N, L] of one builder, which may be a region's.
struct Plane {
  Builder& b;
  Shape shape;

  lowering::Op Full(double v) const { return b.Full(shape, v); }
  lowering::Op Never() const { return Full(kNever); }
  // The numbers [N] along L.
  lowering::Op Along(lowering::Op numbers) const {
    const int64_t dimensions[] = {0};
    return b.Broadcast(numbers, shape.dims(), dimensions);
  }
  lowering::Op Number(lowering::Op rank0) const { return b.Broadcast(rank0, shape.dims(), {}); }
  // What stands n places to the left, or to the right if n is negative.
  lowering::Op Shifted(lowering::Op x, int64_t n) const {
    const int64_t low[] = {0, n}, high[] = {0, -n}, interior[] = {0, 0};
    return b.Pad(x, b.Scalar(shape.dtype(), kNever), low, high, interior);
  }
  // log(exp(x) + exp(y) + exp(z)).
  lowering::Op LogSum(lowering::Op x, lowering::Op y, lowering::Op z) const {
    const lowering::Op most = b.Maximum(b.Maximum(x, y), z);
    const lowering::Op safe = b.Select(b.Compare(Relation::kEq, most, Never()), Full(0), most);
    const auto part = [&](lowering::Op v) {
      return b.Unary(lowering::Opcode::kExponential, b.Minus(v, safe));
    };
    const lowering::Op sum = b.Plus(b.Plus(part(x), part(y)), part(z));
    return b.Plus(safe, b.Unary(lowering::Opcode::kLog, sum));
  }
};

struct Ctc {
  lowering::Op x, skips, last_time;  // [N]: input_lengths - 1
  Shape shape, plane;                // of x, and of [N, L]
};

// The sequences [N] whose last time is that of the step, along the labels.
lowering::Op IsLast(const LoopStep& step, const Plane& p, lowering::Op last_time) {
  const lowering::Op times = step.b.Broadcast(step.number, last_time.shape().dims(), {});
  return p.Along(step.b.Compare(Relation::kEq, times, last_time));
}

// (ways to each label at each time, those at the last time): the logs of the sums of their probabilities.
std::pair<lowering::Op, lowering::Op> Forward(Builder& builder, const Ctc& in) {
  const auto step = [&](const LoopStep& s) -> std::vector<lowering::Op> {
    Builder& b = s.b;
    const Plane p{b, in.plane};
    const lowering::Op all = s.carried[0], before = s.carried[1], last = s.carried[2];
    const lowering::Op x = s.fixed[0], skips = s.fixed[1], last_time = s.fixed[2];
    const lowering::Op two = b.Select(skips, p.Shifted(before, 2), p.Never());
    const lowering::Op now = b.Plus(s.Of(x), p.LogSum(before, p.Shifted(before, 1), two));
    return {s.With(all, now), now, b.Select(IsLast(s, p, last_time), now, last)};
  };
  const Plane p{builder, in.plane};
  // Before the first time all ways are at the first label.
  const lowering::Op place = builder.Iota(Shape(DType::kS64, in.plane.dims()), 1);
  const lowering::Op begin = builder.Select(
      builder.Compare(Relation::kEq, place, builder.ZerosLike(place)), p.Full(0), p.Never());
  const std::vector<lowering::Op> end = ForEachStep(builder, in.shape.dim(0), StepOrder::kForward,
                                                    {builder.Full(in.shape, kNever), begin, begin},
                                                    {in.x, in.skips, in.last_time}, step);
  return {end[0], end[2]};
}

// exp(ways to each label at each time + ways on from there + loss).
lowering::Op Shares(Builder& builder, const Ctc& in, lowering::Op ways, lowering::Op seed,
                    lowering::Op loss) {
  const auto step = [&](const LoopStep& s) -> std::vector<lowering::Op> {
    Builder& b = s.b;
    const Plane p{b, in.plane};
    const lowering::Op shares = s.carried[0], after = s.carried[1];
    const lowering::Op x = s.fixed[0], skips = s.fixed[1], last_time = s.fixed[2];
    const lowering::Op to = s.fixed[3], ends = s.fixed[4], cost = s.fixed[5];
    const lowering::Op two = p.Shifted(b.Select(skips, after, p.Never()), -2);
    const lowering::Op from = p.LogSum(after, p.Shifted(after, -1), two);
    const lowering::Op on = b.Select(IsLast(s, p, last_time), ends, from);
    const lowering::Op log = b.Plus(b.Plus(s.Of(to), on), p.Along(cost));
    return {s.With(shares, b.Unary(lowering::Opcode::kExponential, log)), b.Plus(s.Of(x), on)};
  };
  return ForEachStep(builder, in.shape.dim(0), StepOrder::kBackward,
                     {builder.Full(in.shape, 0), builder.Full(in.plane, kNever)},
                     {in.x, in.skips, in.last_time, ways, seed, loss}, step)[0];
}

}  // namespace

namespace {
void CheckLengths(lowering::LoweringContext& c, lowering::Op lengths, std::string_view what,
                  int64_t most, int64_t factor) {
  Builder& b = c.builder;
  const auto number = [&](int64_t v) { return b.Full(lengths.shape(), static_cast<double>(v)); };
  const lowering::Op bad =
      b.Binary(lowering::Opcode::kOr, b.Compare(Relation::kLt, lengths, number(factor - 1)),
               b.Compare(Relation::kGt, lengths, number(most)));
  const lowering::Op given = b.DividedBy(b.Minus(lengths, number(factor - 1)), number(factor));
  c.CheckNone(bad, given,
              {"ctc_loss", std::string(what), Str(" is out of range [0, ", most / factor, "]")});
}
}  // namespace

std::vector<lowering::Op> CtcOp::Lower(lowering::LoweringContext& c, lowering::Op x,
                                       lowering::Op skips, lowering::Op input_lengths,
                                       lowering::Op label_lengths) const {
  Builder& b = c.builder;
  const Shape shape = x.shape(), plane(shape.dtype(), shape.dims().subspan(1));
  const Shape numbers(shape.dtype(), {shape.dim(1)});
  if (b.shapes_only()) {
    std::vector<lowering::Op> results{b.Full(numbers, 0)};
    if (shares) results.push_back(x);
    return results;
  }
  CheckLengths(c, input_lengths, "an input length ", shape.dim(0), 1);
  CheckLengths(c, label_lengths, "a target length ", shape.dim(2), 2);
  const lowering::Op one = b.Full(input_lengths.shape(), 1);
  const Ctc in{x, skips, b.Minus(input_lengths, one), shape, plane};
  const auto [ways, last] = Forward(b, in);
  // A way ends at the last label or the blank behind it.
  const Plane p{b, plane};
  const lowering::Op place = b.Iota(Shape(DType::kS64, plane.dims()), 1);
  const int64_t dimensions[] = {0};
  const lowering::Op count = b.Broadcast(label_lengths, plane.dims(), dimensions);
  const lowering::Op two = b.Full(count.shape(), 2);
  const lowering::Op is_end =
      b.Binary(lowering::Opcode::kAnd, b.Compare(Relation::kLt, place, count),
               b.Compare(Relation::kGe, place, b.Minus(count, two)));
  const lowering::Op ends = b.Select(is_end, last, p.Never());
  const lowering::Op most = b.Reduce(lowering::Opcode::kMaximum, ends, {1});
  const lowering::Op never = b.Full(numbers, kNever);
  const lowering::Op safe =
      b.Select(b.Compare(Relation::kEq, most, never), b.ZerosLike(most), most);
  const lowering::Op sum =
      b.Reduce(lowering::Opcode::kAdd,
               b.Unary(lowering::Opcode::kExponential, b.Minus(ends, p.Along(safe))), {1});
  const lowering::Op loss =
      b.Unary(lowering::Opcode::kNegate, b.Plus(safe, b.Unary(lowering::Opcode::kLog, sum)));
  if (!shares) return {loss};
  const lowering::Op seed = b.Select(is_end, p.Full(0), p.Never());
  return {loss, Shares(b, in, ways, seed, loss)};
}

// --- the function

namespace {

constexpr char kCtc[] = "ctc_loss";

Tensor Lengths(std::string_view what, const Tensor& t, int64_t n) {
  if (!IsIntegral(t.dtype()))
    ThrowRecordError(kCtc, InvalidArgument(what, " must be integral, are ", t.shape()));
  if (t.shape().num_elements() != n) {
    ThrowRecordError(kCtc,
                     InvalidArgument(what, " must be of size batch_size ", n, ", are ", t.shape()));
  }
  return To(Reshape(Detach(t), {n}), DType::kS64);
}

Value Whole64(int64_t v) { return Constant(static_cast<double>(v), DType::kS64); }

// [N, S] of labels that may stand one after the other, as many as there are in all for each.
Tensor InRows(const Tensor& targets, const Tensor& lengths, int64_t n) {
  if (targets.rank() == 2) return targets;
  const int64_t total = targets.dim(0);
  if (total == 0) return FullConstant(Shape(DType::kS64, {n, 0}), 0, targets.device());
  const Tensor begin = Unsqueeze(Cumsum(lengths, 0, std::nullopt) - lengths, 1);
  const Tensor place =
      Minimum(begin + Positions({n, total}, 1, targets.device()), Whole64(total - 1));
  return Reshape(IndexSelect(targets, 0, Reshape(place, {-1})), {n, total});
}

// Blanks before, between and after the labels [N, S] of which so many count: [N, 2 S + 1].
Tensor Extended(const Tensor& rows, const Tensor& lengths, int64_t blank) {
  const int64_t n = rows.dim(0), s = rows.dim(1);
  const Tensor blanks =
      FullConstant(Shape(DType::kS64, {n, s, 1}), static_cast<double>(blank), rows.device());
  const Tensor counts = Lt(Positions({n, s}, 1, rows.device()), Unsqueeze(lengths, 1));
  const Tensor labels = Unsqueeze(Where(counts, rows, Whole64(blank)), -1);
  const Tensor pairs[] = {blanks, labels};
  const Tensor last =
      FullConstant(Shape(DType::kS64, {n, 1}), static_cast<double>(blank), rows.device());
  const Tensor parts[] = {Reshape(Cat(pairs, -1), {n, 2 * s}), last};
  return Cat(parts, 1);
}

// A label may follow another one without a blank between them if it is another.
Tensor Skips(const Tensor& labels, int64_t blank) {
  const int64_t n = labels.dim(0), count = labels.dim(1);
  const Tensor none =
      FullConstant(Shape(DType::kPred, {n, std::min<int64_t>(count, 2)}), 0, labels.device());
  if (count <= 2) return Narrow(none, 1, 0, count);
  const Tensor later = After(labels, 1, 2), earlier = Before(labels, 1, 2);
  const Tensor parts[] = {none, LogicalAnd(Ne(later, earlier), Ne(later, Whole64(blank)))};
  return Cat(parts, 1);
}

// What the gradient of each loss is at x: the probabilities less the shares of the labels, so that that of log_softmax()
// is the same.
Tensor LossSlopes(const Tensor& x, const Tensor& shares, const Tensor& labels,
                  const Tensor& lengths) {
  const Tensor zero = FullConstant(x.shape(), 0, x.device());
  const Tensor taken = ScatterAdd(zero, 2, labels, shares);
  const Dims dims{x.dim(0), x.dim(1), 1};
  const Tensor counts = Lt(Positions(dims, 0, x.device()), Reshape(lengths, {1, -1, 1}));
  return Where(counts, Exp(x) - taken, Constant(0, x.dtype()));
}

Tensor LossOfBatch(const Tensor& in, const Tensor& rows, const Tensor& times, const Tensor& counts,
                   int64_t blank, bool zero_infinity) {
  const Tensor x = Detach(in), labels = Extended(rows, counts, blank);
  Dims dims{x.dim(0), labels.dim(0), labels.dim(1)};
  const Tensor at = BroadcastTo(Unsqueeze(labels, 0), dims);
  const Operand given(in);
  const bool wanted = WantsGrad(absl::MakeConstSpan(&given, 1));
  const Tensor said = Gather(x, 2, at), skips = Skips(labels, blank);
  const Tensor lengths = counts * 2.0 + 1.0;
  const Operand operands[] = {said, skips, times, lengths};
  const Tensors results = RecordAll(CtcOp{wanted}, operands);
  const Value zero = Constant(0, x.dtype());
  const Tensor endless =
      Eq(results[0], Constant(std::numeric_limits<double>::infinity(), x.dtype()));
  Tensor loss = zero_infinity ? Where(endless, zero, results[0]) : results[0];
  if (!wanted) return loss;
  Tensor slopes = LossSlopes(x, results[1], at, times);
  if (zero_infinity) slopes = Where(Reshape(endless, {1, -1, 1}), zero, slopes);
  // 0 with these slopes; and no NaN where a loss that is infinite has slopes that are none.
  const Tensor some = LogicalAnd(Isfinite(x), LogicalNot(Reshape(endless, {1, -1, 1})));
  const Tensor off = Where(some, in - x, zero);
  slopes = Where(some, slopes, zero);
  return loss + Sum(slopes * off, {0, 2});
}

}  // namespace

Tensor CtcLoss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
               const Tensor& target_lengths, int64_t blank, Reduction reduction,
               bool zero_infinity) {
  if (log_probs.rank() == 2) {
    const Tensor one =
        CtcLoss(Unsqueeze(log_probs, 1), targets.rank() == 1 ? Unsqueeze(targets, 0) : targets,
                input_lengths, target_lengths, blank, reduction, zero_infinity);
    return reduction == Reduction::kNone ? Squeeze(one, 0) : one;
  }
  if (log_probs.rank() != 3 || !IsFloat(log_probs.dtype())) {
    ThrowRecordError(
        kCtc, InvalidArgument("takes log_probs [T, N, C] of floats, not ", log_probs.shape()));
  }
  const int64_t n = log_probs.dim(1);
  if (blank < 0 || blank >= log_probs.dim(2))
    ThrowRecordError(kCtc, InvalidArgument("blank must be in label range, is ", blank));
  const bool fits = targets.rank() == 1 || (targets.rank() == 2 && targets.dim(0) == n);
  if (!IsIntegral(targets.dtype()) || !fits) {
    ThrowRecordError(kCtc, InvalidArgument("takes targets [N, S], or one after the other, of "
                                           "integers, not ",
                                           targets.shape(), " for ", log_probs.shape()));
  }
  if (log_probs.dim(0) == 0)
    ThrowRecordError(kCtc, InvalidArgument("needs log_probs of a time, not ", log_probs.shape()));
  const Tensor times = Lengths("input_lengths", input_lengths, n);
  const Tensor counts = Lengths("target_lengths", target_lengths, n);
  const Tensor rows = InRows(To(Detach(targets), DType::kS64), counts, n);
  return InWide(log_probs, [&](const Tensor& x) {
    const Tensor loss = LossOfBatch(x, rows, times, counts, blank, zero_infinity);
    if (reduction != Reduction::kMean) return Reduced(loss, reduction);
    return Mean(loss / To(Maximum(counts, Whole64(1)), x.dtype()));
  });
}

}  // namespace lazuli::lazy
