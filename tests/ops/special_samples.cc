// Special functions without an opcode: Bessel functions, orthogonal polynomials, incomplete gamma functions; and the ways
// of connectionist temporal classification.
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

#include "lazy/ops/loss/ctc.h"
#include "lazy/ops/special/bessel.h"
#include "lazy/ops/special/incomplete_gamma.h"
#include "lazy/ops/special/orthogonal_polynomial.h"
#include "lazy/ops/special/sample_gradients.h"
#include "tests/ops/sample.h"

namespace lazuli::lazy::test {
namespace {

constexpr double kPi = std::numbers::pi;

double AiryAi(double x) {
  const double zeta = 2 / 3.0 * std::pow(std::abs(x), 1.5), third = 1 / 3.0;
  if (x > 0) return std::sqrt(x / 3) / kPi * std::cyl_bessel_k(third, zeta);
  const double j = std::cyl_bessel_j(third, zeta), n = std::cyl_neumann(third, zeta);
  const double reflected = std::cos(kPi / 3) * j - std::sin(kPi / 3) * n;
  return std::sqrt(-x) / 3 * (j + reflected);
}

double BesselOf(Bessel function, double x) {
  const double size = std::abs(x);
  switch (function) {
    case Bessel::kJ0:
      return std::cyl_bessel_j(0.0, size);
    case Bessel::kJ1:
      return std::cyl_bessel_j(1.0, size) * (x < 0 ? -1 : 1);
    case Bessel::kAiry:
      return AiryAi(x);
    default:
      break;
  }
  if (x < 0) return std::numeric_limits<double>::quiet_NaN();
  const bool first =
      function == Bessel::kY1 || function == Bessel::kK1 || function == Bessel::kScaledK1;
  if (function == Bessel::kY0 || function == Bessel::kY1)
    return std::cyl_neumann(first ? 1.0 : 0.0, x);
  const bool scaled = function == Bessel::kScaledK0 || function == Bessel::kScaledK1;
  return std::cyl_bessel_k(first ? 1.0 : 0.0, x) * (scaled ? std::exp(x) : 1);
}

void AddBessel(Table& table) {
  Row<BesselOp> row = table.Op<BesselOp>();
  for (int i = 0; i <= static_cast<int>(Bessel::kAiry); ++i) {
    const auto function = static_cast<Bessel>(i);
    row.AddEdge({function}, {Between(DType::kF64, {60}, -30, 30, 0.1)});
    row.AddEdge({function}, {Between(DType::kF64, {40}, 0.001, 9.5)});
  }
  row.ReferenceTolerance(1e-11, 1e-13).Reference([](const BesselOp& op, const Literals& in) {
    return Build(in[0].shape(),
                 [&](const Index& i) { return BesselOf(op.function, At(in[0], i)); });
  });
}

double PolynomialAt(Polynomial kind, double x, int n) {
  if (n < 0) return 0;
  if (kind <= Polynomial::kW) {
    const double first[] = {x, 2 * x, 2 * x - 1, 2 * x + 1};
    double p = 1, q = first[static_cast<int>(kind)];
    for (int k = 1; k < n; ++k) p = std::exchange(q, 2 * x * q - p);
    return n == 0 ? 1 : q;
  }
  const auto degree = static_cast<unsigned>(n);
  switch (kind) {
    case Polynomial::kH:
      return std::hermite(degree, x);
    case Polynomial::kHe:
      return std::pow(2.0, -n / 2.0) * std::hermite(degree, x / std::numbers::sqrt2);
    default: {  // the standard library's take no x below 0, or beyond 1
      const bool laguerre = kind == Polynomial::kLaguerre;
      double p = 1, q = laguerre ? 1 - x : x;
      for (int k = 1; k < n; ++k) {
        const double factor = laguerre ? 2 * k + 1 - x : (2 * k + 1) * x;
        p = std::exchange(q, (factor * q - k * p) / (k + 1));
      }
      return n == 0 ? 1 : q;
    }
  }
}

void AddPolynomial(Table& table) {
  Row<PolynomialOp> row = table.Op<PolynomialOp>();
  for (int i = 0; i <= static_cast<int>(Polynomial::kLegendre); ++i) {
    const auto kind = static_cast<Polynomial>(i);
    row.AddEdge({kind}, {Between(DType::kF64, {1, 9}, -1, 1, 0.05),
                         Literal::FromValues<int64_t>({5, 1}, {-1, 0, 1, 4, 13})});
    row.AddEdge({kind}, {Between(DType::kF64, {6}, 0.5, 2.5),
                         Literal::FromValues<int64_t>({6}, {2, 3, 5, 0, 7, 1})});
  }
  row.ReferenceTolerance(1e-10, 1e-11).Reference([](const PolynomialOp& op, const Literals& in) {
    const bool grid = in[1].shape().rank() == 2;
    const Shape shape = grid ? Shape(DType::kF64, {5, 9}) : in[0].shape();
    return Build(shape, [&](const Index& i) {
      const double x = At(in[0], grid ? Index{0, i[1]} : i);
      const double n = At(in[1], grid ? Index{i[0], 0} : i);
      return PolynomialAt(op.kind, x, static_cast<int>(n));
    });
  });
}

// The share of the gamma distribution below x, by the power series.
double LowerGamma(double a, double x) {
  double term = 1, sum = 1;
  for (int n = 1; n < 20000; ++n) sum += term *= x / (a + n);
  return std::exp(a * std::log(x) - x - std::lgamma(a + 1)) * sum;
}

void AddIncompleteGamma(Table& table) {
  Row<IncompleteGammaOp> row = table.Op<IncompleteGammaOp>();
  for (const bool upper : {false, true}) {
    row.Add({upper}, {Between(DType::kF64, {2, 1}, 0.5, 5), Between(DType::kF64, {5}, 0.2, 9)});
    row.AddEdge({upper}, {Between(DType::kF64, {20}, 10, 400), Between(DType::kF64, {20}, 9, 404)});
    row.AddEdge({upper}, {Literal::FromValues<double>({3}, {2e5, 2e5, 2e5}),
                          Literal::FromValues<double>({3}, {199500, 200000, 200900})});
  }
  row.GradientsOf(2)
      .NoSecondGradients()
      .ReferenceTolerance(1e-8, 1e-10)
      .Reference([](const IncompleteGammaOp& op, const Literals& in) {
        const bool grid = in[0].shape().rank() == 2;
        const Shape shape = grid ? Shape(DType::kF64, {2, 5}) : in[1].shape();
        return Build(shape, [&](const Index& i) {
          const double lower =
              LowerGamma(At(in[0], grid ? Index{i[0], 0} : i), At(in[1], grid ? Index{i[1]} : i));
          return op.upper ? 1 - lower : lower;
        });
      });
}

// The share of a beta distribution below x.
double LowerBeta(double a, double b, double x) {
  double term = 1, sum = 1;
  for (int n = 0; n < 20000; ++n) sum += term *= (a + b + n) / (a + 1 + n) * x;
  const double log_beta = std::lgamma(a) + std::lgamma(b) - std::lgamma(a + b);
  return std::exp(a * std::log(x) + b * std::log1p(-x) - log_beta) / a * sum;
}

// How far a number moves with a parameter, by the quotient of differences of its share.
template <class Share>
double MoveOf(Share&& share, double parameter, double density) {
  constexpr double kStep = 1e-5;
  return (share(parameter - kStep) - share(parameter + kStep)) / (2 * kStep * density);
}

// digamma by its recurrence and asymptotic series.
double DigammaOf(double x) {
  double sum = 0;
  for (; x < 20; ++x) sum -= 1 / x;
  const double square = 1 / (x * x);
  return sum + std::log(x) - 0.5 / x - square * (1.0 / 12 - square * (1.0 / 120 - square / 252));
}

void AddSampleGradients(Table& table) {
  const Literal a = Between(DType::kF64, {8}, 0.4, 6), x = Between(DType::kF64, {8}, 0.2, 9);
  const auto map = [](auto&& f, const Literal& like) {
    return Build(like.shape(), [&](const Index& i) { return f(i); });
  };
  table.Op<GammaSlopeOp>()
      .Add({}, {a, x, map([&](const Index& i) { return DigammaOf(At(a, i)); }, a)})
      .ReferenceTolerance(1e-6, 1e-8)
      .Reference([=](const GammaSlopeOp&, const Literals& in) {
        return map(
            [&](const Index& i) {
              const double shape = At(in[0], i), at = At(in[1], i);
              const double density = std::exp((shape - 1) * std::log(at) - at - std::lgamma(shape));
              return MoveOf([&](double p) { return LowerGamma(p, at); }, shape, density);
            },
            in[0]);
      });
  const Literal b = Between(DType::kF64, {8}, 0.5, 5), u = Between(DType::kF64, {8}, 0.05, 0.9);
  const Literal psi =
      map([&](const Index& i) { return DigammaOf(At(a, i)) - DigammaOf(At(a, i) + At(b, i)); }, a);
  table.Op<BetaSlopeOp>()
      .Add({}, {u, a, b, psi})
      .ReferenceTolerance(1e-6, 1e-8)
      .Reference([=](const BetaSlopeOp&, const Literals& in) {
        return map(
            [&](const Index& i) {
              const double at = At(in[0], i), p = At(in[1], i), q = At(in[2], i);
              const double log_beta = std::lgamma(p) + std::lgamma(q) - std::lgamma(p + q);
              const double log = (p - 1) * std::log(at) + (q - 1) * std::log1p(-at) - log_beta;
              const auto share = [&](double v) { return LowerBeta(v, q, at); };
              return MoveOf(share, p, std::exp(log)) / (1 - at);
            },
            in[1]);
      });
}

// Calls f of each way through the labels with the log of its probability.
struct Ways {
  const Literals& in;  // x, skips, input_lengths, label_lengths
  int64_t n;
  std::function<void(const std::vector<int64_t>&, double)> f;

  void From(std::vector<int64_t> way, double log) const {
    const auto t = static_cast<int64_t>(way.size());
    const auto times = static_cast<int64_t>(At(in[2], {n}));
    const auto labels = static_cast<int64_t>(At(in[3], {n}));
    if (t == times) {
      if (times == 0 ? labels == 1 : way.back() >= labels - 2) f(way, log);
      return;
    }
    const int64_t at = t == 0 ? 0 : way.back();
    for (int64_t to = at; to < std::min(at + 3, labels); ++to) {
      const bool allowed = to < at + 2 ? t > 0 || to < 2 : t > 0 && At(in[1], {n, to}) != 0;
      if (!allowed) continue;
      std::vector<int64_t> next = way;
      next.push_back(to);
      From(next, log + At(in[0], {t, n, to}));
    }
  }
};

void AddCtc(Table& table) {
  Row<CtcOp> row = table.Op<CtcOp>();
  for (const bool shares : {false, true}) {
    row.AddEdge({shares}, {Between(DType::kF64, {4, 3, 5}, -3, -0.1, 0.1),
                           Literal::FromValues<bool>({3, 5}, {false, false, false, true, false,   //
                                                              false, false, false, false, false,  //
                                                              false, false, false, false, false}),
                           Literal::FromValues<int64_t>({3}, {4, 3, 2}),
                           Literal::FromValues<int64_t>({3}, {5, 5, 1})});
  }
  row.ReferenceTolerance(1e-10, 1e-12).Reference([](const CtcOp& op, const Literals& in) {
    std::vector<double> sums(3, 0);
    const Literal loss = Build(Shape(DType::kF64, {3}), [&](const Index& i) {
      Ways{in, i[0],
           [&](const std::vector<int64_t>&, double log) {
             sums[static_cast<std::size_t>(i[0])] += std::exp(log);
           }}
          .From({}, 0);
      return -std::log(sums[static_cast<std::size_t>(i[0])]);
    });
    if (!op.shares) return Literals{loss};
    return Literals{loss, Build(in[0].shape(), [&](const Index& i) {
                      double share = 0;
                      Ways{in, i[1],
                           [&](const std::vector<int64_t>& way, double log) {
                             const auto t = static_cast<std::size_t>(i[0]);
                             if (t < way.size() && way[t] == i[2]) share += std::exp(log);
                           }}
                          .From({}, 0);
                      return share / sums[static_cast<std::size_t>(i[1])];
                    })};
  });
}

}  // namespace

void AddSpecialSamples(Table& table) {
  AddBessel(table);
  AddPolynomial(table);
  AddIncompleteGamma(table);
  AddSampleGradients(table);
  AddCtc(table);
}

}  // namespace lazuli::lazy::test
