#include "lazy/ops/random/samplers.h"

#include <array>
#include <limits>
#include <numbers>

#include "ir/support/wrong_type.h"
#include "lazy/ops/core/require.h"
#include "lazy/ops/elementwise/composite.h"
#include "lazy/ops/elementwise/loops.h"
#include "lazy/ops/random/philox.h"
#include "lazy/ops/special/gamma.h"

namespace lazuli::lazy {
namespace {

using lowering::Opcode;
using Is = hlo::ComparisonDirection;

// Operations with which formulas on arrays read like formulas on numbers.
struct Formula {
  lowering::Builder& b;
  const Wide64& w;
  lowering::Op Log(lowering::Op x) const { return b.Unary(Opcode::kLog, x); }
  lowering::Op Exp(lowering::Op x) const { return b.Unary(Opcode::kExponential, x); }
  lowering::Op Sqrt(lowering::Op x) const { return b.Unary(Opcode::kSqrt, x); }
  lowering::Op Abs(lowering::Op x) const { return b.Unary(Opcode::kAbs, x); }
  lowering::Op Floor(lowering::Op x) const { return b.Unary(Opcode::kFloor, x); }
  lowering::Op Not(lowering::Op x) const { return b.Unary(Opcode::kNot, x); }
  lowering::Op And(lowering::Op x, lowering::Op y) const { return b.Binary(Opcode::kAnd, x, y); }
  lowering::Op Or(lowering::Op x, lowering::Op y) const { return b.Binary(Opcode::kOr, x, y); }
  lowering::Op Less(lowering::Op x, lowering::Op y) const { return b.Compare(Is::kLt, x, y); }
  lowering::Op AtMost(lowering::Op x, lowering::Op y) const { return b.Compare(Is::kLe, x, y); }
  // The logarithm of n!.
  lowering::Op LogFactorial(lowering::Op n) const { return LgammaOp{}.Lower(b, w.Plus(n, 1)); }
};

// What a round of rejection drew, and where that is accepted.
struct Draw {
  lowering::Op value, accepted;
};

// Uniform numbers in (0, 1), whose logarithms are finite and not 0: 1 - u, at most the largest number
// below 1.
lowering::Op Open(const Formula& f, lowering::Op u) {
  return f.b.Binary(Opcode::kMinimum, f.b.Minus(f.w(1), u), f.w(1 - 0x1p-53));
}

// Draws `uniforms` numbers per element, and makes a draw from them and `parameters`, until each
// element has accepted one. Elements that are `done` keep their `value` instead.
template <class F>
lowering::Op Reject(lowering::Builder& builder, lowering::Op value, lowering::Op done,
                    lowering::Op random, int64_t uniforms,
                    absl::Span<const lowering::Op> parameters, F&& draw) {
  const int64_t n = value.shape().num_elements();
  lowering::Ops begin{value, done, random};
  begin.insert(begin.end(), parameters.begin(), parameters.end());
  const lowering::Ops end = LoopWhile(
      builder, begin,
      [](lowering::Builder& b, const Wide64&, const lowering::Ops& s) {
        return b.Unary(Opcode::kNot, s[1]);
      },
      [&](lowering::Builder& b, const Wide64& w, const lowering::Ops& s) {
        const auto [next, bits] = b.RngBitGenerator(hlo::RngAlgorithm::kPhilox, s[2],
                                                    Shape(DType::kU32, {2 * uniforms * n}));
        lowering::Ops u;
        for (int64_t i = 0; i < uniforms; ++i) u.push_back(Uniform(b, bits, i, n, DType::kF64));
        const Formula f{b, w};
        const Draw drawn = draw(f, u, lowering::Ops(s.begin() + 3, s.end()));
        lowering::Ops after{b.Select(s[1], s[0], drawn.value), f.Or(s[1], drawn.accepted), next};
        after.insert(after.end(), s.begin() + 3, s.end());
        return after;
      });
  return end[0];
}

// How many rounds numbers are reserved for; more are needed with a probability below 2^-64.
constexpr int64_t kRounds = 64;
int64_t Reserved(int64_t count, int64_t first, int64_t uniforms) {
  return 2 * first * count + kRounds * (2 * uniforms * count + 4);
}

// One of the two normal numbers that the method of Box and Muller makes from u and v.
lowering::Op NormalOf(const Formula& f, lowering::Op u, lowering::Op v) {
  const lowering::Op radius = f.Sqrt(f.w.Times(f.Log(Open(f, u)), -2));
  return f.b.Times(radius, f.b.Unary(Opcode::kCosine, f.w.Times(v, 2 * std::numbers::pi)));
}

Draw DrawGamma(const Formula& f, const lowering::Ops& u, const lowering::Ops& s) {
  lowering::Builder& b = f.b;
  const lowering::Op d = s[0], x = NormalOf(f, u[0], u[1]);
  const lowering::Op c = b.DividedBy(f.w(1), f.Sqrt(f.w.Times(d, 9)));
  const lowering::Op root = f.w.Plus(b.Times(c, x), 1);
  const lowering::Op is_positive = f.Less(f.w(0), root);
  const lowering::Op v = b.Select(is_positive, b.Times(b.Times(root, root), root), f.w(1));
  const lowering::Op bound =
      b.Plus(f.w.Times(b.Times(x, x), 0.5), b.Times(d, b.Plus(b.Minus(f.w(1), v), f.Log(v))));
  return {b.Times(d, v), f.And(is_positive, f.Less(f.Log(Open(f, u[2])), bound))};
}

// The smallest k for which the probability of at most k is above u. The probability of 0 is `first`;
// ratio(f, k, parameters) is the probability of k divided by that of k - 1. 0 where `skip` is set.
template <class F>
lowering::Op Invert(lowering::Builder& builder, lowering::Op u, lowering::Op first,
                    lowering::Op skip, absl::Span<const lowering::Op> parameters, F&& ratio) {
  constexpr double kMost = 200;  // probabilities beyond it are below the digits of u
  const Wide64 wide{builder, u};
  lowering::Ops begin{wide(0), builder.Select(skip, wide(-1), u), first, first};
  begin.insert(begin.end(), parameters.begin(), parameters.end());
  const lowering::Ops end = LoopWhile(
      builder, begin,
      [](lowering::Builder& b, const Wide64& w, const lowering::Ops& s) {
        return b.Binary(Opcode::kAnd, b.Compare(Is::kGe, s[1], s[3]),
                        b.Compare(Is::kLt, s[0], w(kMost)));
      },
      [&](lowering::Builder& b, const Wide64& w, const lowering::Ops& s) {
        const Formula f{b, w};
        const lowering::Op more = b.Compare(Is::kGe, s[1], s[3]), k = w.Plus(s[0], 1);
        const lowering::Op p = b.Times(s[2], ratio(f, k, lowering::Ops(s.begin() + 4, s.end())));
        lowering::Ops after{b.Select(more, k, s[0]), s[1], b.Select(more, p, s[2]),
                            b.Select(more, b.Plus(s[3], p), s[3])};
        after.insert(after.end(), s.begin() + 4, s.end());
        return after;
      });
  return end[0];
}

constexpr double kInvertBelow = 10;  // means below it are drawn by inversion

Draw DrawPoisson(const Formula& f, const lowering::Ops& u, const lowering::Ops& s) {
  lowering::Builder& b = f.b;
  const Wide64& w = f.w;
  const lowering::Op rate = s[0], center = w.Plus(u[0], -0.5), v = Open(f, u[1]);
  const lowering::Op scale = w.Plus(w.Times(f.Sqrt(rate), 2.53), 0.931);
  const lowering::Op a = w.Plus(w.Times(scale, 0.02483), -0.059);
  const lowering::Op inverse = w.Plus(b.DividedBy(w(1.1328), w.Plus(scale, -3.4)), 1.1239);
  const lowering::Op ratio = b.Minus(w(0.9277), b.DividedBy(w(3.6224), w.Plus(scale, -2)));
  const lowering::Op rest = b.Minus(w(0.5), f.Abs(center));
  const lowering::Op slope = b.Plus(b.DividedBy(w.Times(a, 2), rest), scale);
  const lowering::Op k = f.Floor(w.Plus(b.Plus(b.Times(slope, center), rate), 0.43));
  const lowering::Op quick = f.And(f.AtMost(w(0.07), rest), f.AtMost(v, ratio));
  const lowering::Op out = f.Or(f.Less(k, w(0)), f.And(f.Less(rest, w(0.013)), f.Less(rest, v)));
  const lowering::Op density = b.Plus(b.DividedBy(a, b.Times(rest, rest)), scale);
  const lowering::Op height = f.Log(b.DividedBy(b.Times(v, inverse), density));
  const lowering::Op kept = b.Select(out, w(0), k);
  const lowering::Op bound =
      b.Minus(b.Minus(b.Times(kept, f.Log(rate)), rate), f.LogFactorial(kept));
  return {k, f.Or(quick, f.And(f.Not(out), f.AtMost(height, bound)))};
}

Draw DrawBinomial(const Formula& f, const lowering::Ops& u, const lowering::Ops& s) {
  lowering::Builder& b = f.b;
  const Wide64& w = f.w;
  const lowering::Op n = s[0], p = s[1], center = w.Plus(u[0], -0.5), v = Open(f, u[1]);
  const lowering::Op mean = b.Times(n, p), odds = b.DividedBy(p, b.Minus(w(1), p));
  const lowering::Op spread = f.Sqrt(b.Times(mean, b.Minus(w(1), p)));
  const lowering::Op scale = w.Plus(w.Times(spread, 2.53), 1.15);
  const lowering::Op a = b.Plus(w.Plus(w.Times(scale, 0.0248), -0.0873), w.Times(p, 0.01));
  const lowering::Op ratio = b.Minus(w(0.92), b.DividedBy(w(4.2), scale));
  const lowering::Op alpha = b.Times(w.Plus(b.DividedBy(w(5.1), scale), 2.83), spread);
  const lowering::Op rest = b.Minus(w(0.5), f.Abs(center));
  const lowering::Op slope = b.Plus(b.DividedBy(w.Times(a, 2), rest), scale);
  const lowering::Op k = f.Floor(w.Plus(b.Plus(b.Times(slope, center), mean), 0.5));
  const lowering::Op out = f.Or(f.Less(k, w(0)), f.Less(n, k));
  const lowering::Op quick = f.And(f.Not(out), f.And(f.AtMost(w(0.07), rest), f.AtMost(v, ratio)));
  const lowering::Op density = b.Plus(b.DividedBy(a, b.Times(rest, rest)), scale);
  const lowering::Op height = f.Log(b.DividedBy(b.Times(v, alpha), density));
  const lowering::Op mode = f.Floor(b.Times(w.Plus(n, 1), p)), kept = b.Select(out, mode, k);
  const auto ways = [&](lowering::Op x) {
    return b.Plus(f.LogFactorial(x), f.LogFactorial(b.Minus(n, x)));
  };
  const lowering::Op bound =
      b.Plus(b.Minus(ways(mode), ways(kept)), b.Times(b.Minus(kept, mode), f.Log(odds)));
  return {k, f.Or(quick, f.And(f.Not(out), f.AtMost(height, bound)))};
}

double LeastNormal(DType dtype) {
  return dtype == DType::kF64   ? std::numeric_limits<double>::min()
         : dtype == DType::kF16 ? 0x1p-14
                                : std::numeric_limits<float>::min();
}

lowering::Op FlatDouble(lowering::Builder& b, lowering::Op x) {
  return b.Convert(b.Reshape(x, {x.shape().num_elements()}), DType::kF64);
}

// A uniform number per element of x, second, and the generator's state after them, for rounds.
std::pair<lowering::Op, lowering::Op> FirstNumbers(lowering::Builder& b, const PhiloxWords& words,
                                                   lowering::Op x) {
  const int64_t n = x.shape().num_elements();
  const auto [state, bits] = b.RngBitGenerator(hlo::RngAlgorithm::kPhilox, PhiloxArray(b, words),
                                               Shape(DType::kU32, {2 * n}));
  return {state, Uniform(b, bits, 0, n, DType::kF64)};
}

}  // namespace

lowering::Op StandardGammaOp::Lower(lowering::Builder& b, lowering::Op alpha, lowering::Op seed_low,
                                    lowering::Op seed_high, lowering::Op offset_low,
                                    lowering::Op offset_high) const {
  if (b.shapes_only()) return alpha;
  const lowering::Op a = FlatDouble(b, alpha);
  const Wide64 w{b, a};
  const Formula f{b, w};
  const auto [random, u] = FirstNumbers(b, {seed_low, seed_high, offset_low, offset_high}, a);
  // Below 1 the number for a + 1 times u^(1 / a).
  const lowering::Op is_low = f.Less(a, w(1));
  const lowering::Op usual = f.And(f.Less(w(0), a), f.Less(a, w(kInfinity)));
  const lowering::Op d = b.Select(usual, w.Plus(b.Select(is_low, w.Plus(a, 1), a), -1.0 / 3), w(1));
  const lowering::Op drawn = Reject(b, a, f.Not(usual), random, 3, {d}, DrawGamma);
  const lowering::Op factor = f.Exp(b.DividedBy(f.Log(Open(f, u)), b.Select(usual, a, w(1))));
  const lowering::Op boosted = b.Select(f.And(is_low, usual), b.Times(drawn, factor), drawn);
  const lowering::Op y = b.Convert(boosted, alpha.dtype());
  const lowering::Op least = b.Full(y.shape(), LeastNormal(alpha.dtype()));
  const lowering::Op kept = b.Select(usual, b.Binary(Opcode::kMaximum, y, least), y);
  return b.Reshape(kept, alpha.shape().dims());
}

lowering::Op PoissonOp::Lower(lowering::Builder& b, lowering::Op rate, lowering::Op seed_low,
                              lowering::Op seed_high, lowering::Op offset_low,
                              lowering::Op offset_high) const {
  if (b.shapes_only()) return rate;
  const lowering::Op r = FlatDouble(b, rate);
  const Wide64 w{b, r};
  const Formula f{b, w};
  const auto [random, u] = FirstNumbers(b, {seed_low, seed_high, offset_low, offset_high}, r);
  const lowering::Op is_large = f.AtMost(w(kInvertBelow), r);
  const lowering::Op mean = b.Select(is_large, w(1), r);
  const lowering::Op small = Invert(b, u, f.Exp(b.Unary(Opcode::kNegate, mean)), is_large, {mean},
                                    [](const Formula& g, lowering::Op k, const lowering::Ops& s) {
                                      return g.b.DividedBy(s[0], k);
                                    });
  const lowering::Op skip = f.Not(f.And(is_large, f.Less(r, w(kInfinity))));
  const lowering::Op k = Reject(b, b.Select(is_large, r, small), skip, random, 2,
                                {b.Select(skip, w(kInvertBelow), r)}, DrawPoisson);
  return b.Reshape(b.Convert(k, rate.dtype()), rate.shape().dims());
}

lowering::Op BinomialOp::Lower(lowering::Builder& b, lowering::Op count, lowering::Op prob,
                               lowering::Op seed_low, lowering::Op seed_high,
                               lowering::Op offset_low, lowering::Op offset_high) const {
  if (b.shapes_only()) return count;
  const lowering::Op trials = FlatDouble(b, count), given = FlatDouble(b, prob);
  const Wide64 w{b, trials};
  const Formula f{b, w};
  const auto [random, u] = FirstNumbers(b, {seed_low, seed_high, offset_low, offset_high}, trials);
  const lowering::Op is_flipped = f.Less(w(0.5), given);
  const lowering::Op p = b.Select(is_flipped, b.Minus(w(1), given), given);
  const lowering::Op is_large = f.AtMost(w(kInvertBelow), b.Times(trials, p));
  const lowering::Op q = b.Select(is_large, w(0), p);
  const lowering::Op none =
      f.Exp(b.Times(trials, b.Unary(Opcode::kLogPlusOne, b.Unary(Opcode::kNegate, q))));
  const lowering::Op small =
      Invert(b, u, none, is_large, {trials, q},
             [](const Formula& g, lowering::Op k, const lowering::Ops& s) {
               const lowering::Op left = g.w.Plus(g.b.Minus(s[0], k), 1);
               return g.b.DividedBy(g.b.Times(left, s[1]), g.b.Times(k, g.b.Minus(g.w(1), s[1])));
             });
  const lowering::Op k =
      Reject(b, small, f.Not(is_large), random, 2,
             {b.Select(is_large, trials, w(100)), b.Select(is_large, p, w(0.5))}, DrawBinomial);
  const lowering::Op at_most = b.Binary(Opcode::kMinimum, k, trials);
  const lowering::Op drawn = b.Select(is_flipped, b.Minus(trials, at_most), at_most);
  return b.Reshape(b.Convert(drawn, count.dtype()), count.shape().dims());
}

Tensors GammaPathOp::Vjp(const Saved& s, const Tensor& dy) const {
  const Tensor alpha = To(s.x(0), dy.dtype()), sample = To(s.x(1), dy.dtype());
  return {dy * StandardGammaGrad(alpha, sample), dy};
}

Tensors DirichletPathOp::Vjp(const Saved& s, const Tensor& dy) const {
  const Tensor alpha = To(s.x(0), dy.dtype()), x = To(s.x(1), dy.dtype());
  const Tensor total = Sum(alpha, {-1}, true);
  const Tensor along = dy - Sum(x * dy, {-1}, true);
  return {DirichletGrad(x, alpha, BroadcastTo(total, alpha.shape().dims())) * along, dy};
}

namespace {

void CheckIsFloat(std::string_view op, const Tensor& x) {
  if (!IsFloat(x.dtype())) ThrowRecordError(op, WrongType("takes floats, not ", x.shape()));
}

int64_t SizeOf(const Tensor& x) { return x.shape().num_elements(); }

Tensor DrawStandardGamma(const Tensor& alpha, Generator& generator) {
  const Tensor given = Detach(alpha);  // lives as long as the operand, which refers to it
  const std::array<Operand, 1> in{given};
  return RecordRandom(StandardGammaOp{}, Reserved(SizeOf(alpha), 1, 3), alpha.device(), generator,
                      in);
}

}  // namespace

Tensor StandardGamma(const Tensor& x, Generator& generator) {
  CheckIsFloat("standard_gamma", x);
  return Record(GammaPathOp{}, x, DrawStandardGamma(x, generator));
}

Tensor SampleDirichlet(const Tensor& x, Generator& generator) {
  CheckIsFloat("sample_dirichlet", x);
  if (x.rank() == 0) {
    ThrowRecordError("sample_dirichlet",
                     InvalidArgument("takes concentrations along a dim, not ", x.shape()));
  }
  const Tensor gamma = DrawStandardGamma(To(Detach(x), DType::kF64), generator);
  const Tensor sample = To(gamma / Sum(gamma, {-1}, true), x.dtype());
  const double least = LeastNormal(x.dtype());
  const Tensor bounded = Maximum(sample, Constant(least, x.dtype()));
  return Record(DirichletPathOp{}, x, bounded);
}

Tensor Poisson(const Tensor& x, Generator& generator) {
  CheckIsFloat("poisson", x);
  const Tensor rate = Detach(x);
  AssertAsync(Ge(rate, Constant(0, rate.dtype())), "poisson", "takes rates that are not negative");
  const std::array<Operand, 1> in{rate};
  return RecordRandom(PoissonOp{}, Reserved(SizeOf(rate), 1, 2), rate.device(), generator, in);
}

Tensor Binomial(const Tensor& count, const Tensor& prob, Generator& generator) {
  CheckIsFloat("binomial", count);
  CheckIsFloat("binomial", prob);
  const Tensor sum = Detach(count) + Detach(prob);
  const Tensor n = BroadcastTo(To(Detach(count), sum.dtype()), sum.shape().dims());
  const Tensor p = BroadcastTo(To(Detach(prob), sum.dtype()), sum.shape().dims());
  AssertAsync(Ge(n, Constant(0, n.dtype())), "binomial", "takes counts that are not negative");
  AssertAsync(LogicalAnd(Ge(p, Constant(0, p.dtype())), Le(p, Constant(1, p.dtype()))), "binomial",
              "takes probabilities between 0 and 1");
  const std::array<Operand, 2> in{n, p};
  return RecordRandom(BinomialOp{}, Reserved(SizeOf(n), 1, 2), n.device(), generator, in);
}

}  // namespace lazuli::lazy
