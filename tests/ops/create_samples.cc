// Ops without tensor operands.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "lazy/ops/core/require.h"
#include "lazy/ops/create/create.h"
#include "lazy/ops/random/draws.h"
#include "lazy/ops/random/samplers.h"
#include "tests/ops/sample.h"

namespace lazuli::lazy::test {
namespace {

// Philox 4x32-10 as Salmon et al. (2011) print it: four numbers of (key, counter). As in XLA, the
// key is the high half of the counter, too.
std::array<uint32_t, 4> Philox(uint64_t key, uint64_t counter) {
  std::array<uint32_t, 4> c{static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32),
                            static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)};
  auto low = static_cast<uint32_t>(key), high = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p = uint64_t{0xD2511F53} * c[0], q = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(q >> 32) ^ c[1] ^ low, static_cast<uint32_t>(q),
         static_cast<uint32_t>(p >> 32) ^ c[3] ^ high, static_cast<uint32_t>(p)};
    low += 0x9E3779B9;
    high += 0xBB67AE85;
  }
  return c;
}

Literals State(uint32_t seed_low, uint32_t seed_high, uint32_t offset_low, uint32_t offset_high) {
  Literals state;
  for (uint32_t v : {seed_low, seed_high, offset_low, offset_high})
    state.push_back(ScalarOf(DType::kU32, v));
  return state;
}

// The n-th number that follows the state.
uint32_t NumberAt(const Literals& state, int64_t n) {
  const auto join = [&](std::size_t low) {
    return static_cast<uint64_t>(At(state[low], {})) | static_cast<uint64_t>(At(state[low + 1], {}))
                                                           << 32;
  };
  return Philox(join(0), join(2) + static_cast<uint64_t>(n / 4))[static_cast<std::size_t>(n % 4)];
}

double TopBits(uint32_t number, int count) {
  return std::ldexp(static_cast<double>(number >> (32 - count)), -count);
}

// Of 53 bits: of the n-th number, and of the one `apart` numbers later.
double Double(const Literals& state, int64_t n, int64_t apart) {
  return ((NumberAt(state, n) >> 5) * 0x1p26 + (NumberAt(state, n + apart) >> 6)) * 0x1p-53;
}
// Of 64 bits, of which these are the first.
uint64_t Bits64(const Literals& state, int64_t n, int64_t apart) {
  const uint64_t high = NumberAt(state, n), low = NumberAt(state, n + apart);
  return (high >> 5) << 37 | (low >> 6) << 11 | (high & 31) << 6 | (low & 63);
}

void AddUniform(Table& table) {
  Row<UniformOp> row = table.Op<UniformOp>();
  for (DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
    row.Add({{3, 5}, dtype}, State(1, 2, 3, 4))
        .Add({{7}, dtype}, State(0xffffffff, 0xffffffff, 0xfffffffe, 0));
  }
  row.Numbers(15).ReferenceTolerance(0, 0).Reference([](const UniformOp& op, const Literals& in) {
    const Shape shape(op.dtype, op.dims);
    return Build(shape, [&, n = int64_t{0}](const Index&) mutable {
      const int64_t i = n++;
      if (op.dtype == DType::kF64) {
        return Double(in, i, shape.num_elements());
      }
      return TopBits(NumberAt(in, i), op.dtype == DType::kF16    ? 11
                                      : op.dtype == DType::kBF16 ? 8
                                                                 : 24);
    });
  });
}

void AddNormal(Table& table) {
  table.Op<NormalOp>()
      .Add({{3, 5}, DType::kF32}, State(1, 2, 3, 4))
      .Add({{40}, DType::kF64}, State(9, 8, 7, 6))
      .Numbers(15)
      .ReferenceTolerance(1e-5, 1e-6)
      .Reference([](const NormalOp& op, const Literals& in) {
        const Shape shape(op.dtype, op.dims);
        return Build(shape, [&, n = int64_t{0}](const Index&) mutable {
          const int64_t i = n++;
          const int64_t size = shape.num_elements();
          const bool wide = op.dtype == DType::kF64;
          const double u = wide ? Double(in, i, size) : TopBits(NumberAt(in, i), 24);
          const double v =
              wide ? Double(in, 2 * size + i, size) : TopBits(NumberAt(in, size + i), 24);
          return std::sqrt(-2 * std::log(1 - u)) * std::cos(6.283185307179586 * v);
        });
      });
}

void AddRandomInteger(Table& table) {
  const auto with = [](double low, double range) {
    Literals in = State(1, 2, 3, 4);
    in.insert(in.begin(), {ScalarOf(DType::kS64, low), ScalarOf(DType::kU64, range)});
    return in;
  };
  table.Op<RandomIntegerOp>()
      .Add({{3, 5}, DType::kS64}, with(-3, 7))
      .Add({{40}, DType::kS64}, with(-0x1p61, 0x1.8p62))
      .Add({{40}, DType::kU8}, with(0, 256))
      .Add({{2, 0}, DType::kF32}, with(0, 2))
      .Add({{40}, DType::kF16}, with(-5, 11))
      .Numbers(63)
      .Reference([](const RandomIntegerOp& op, const Literals& in) {
        const Shape shape(op.dtype, op.dims);
        const Literals state(in.begin() + 2, in.end());
        Literal result{Shape(DType::kS64, op.dims)};
        for (int64_t i = 0; i < shape.num_elements(); ++i) {
          const unsigned __int128 product =
              static_cast<unsigned __int128>(Bits64(state, i, shape.num_elements())) *
              static_cast<uint64_t>(At(in[1], {}));
          const auto drawn = static_cast<uint64_t>(product >> 64);
          const uint64_t low = static_cast<uint64_t>(static_cast<int64_t>(At(in[0], {})));
          const auto value = static_cast<int64_t>(low + drawn);
          std::memcpy(result.mutable_raw() + i * 8, &value, sizeof value);
        }
        return result.Converted(op.dtype);
      })
      .Error("randint: low must be below high, but 3 >= 3", {},
             [](const Tensors&) { (void)Randint(3, 3, {2}, DType::kS64, {}); })
      .Error("randint: integers from 0 to 299 are not all within u8, [0, 255]", {},
             [](const Tensors&) { (void)Randint(0, 300, {2}, DType::kU8, {}); })
      .Error("randint: makes integers or floats, not c64", {},
             [](const Tensors&) { (void)Randint(0, 3, {2}, DType::kC64, {}); });
}

void AddRandomPermutation(Table& table) {
  table.Op<ProbabilitiesOp>()
      .Add({1, 0}, {Floats({4}, {0, 0.5, 1, 0.25})})
      .Add({8, 2}, {Floats({2, 3}, {0, 5, 1, 0.25, 0, 3})})
      .Reference([](const ProbabilitiesOp&, const Literals& in) { return in[0]; });
  table.Op<RandomPermutationOp>()
      .Add({40, DType::kS64}, State(1, 2, 3, 4))
      .Add({5, DType::kS8}, State(9, 8, 7, 6))
      .Add({0, DType::kS64}, State(1, 2, 3, 4))
      .Numbers(15)
      .Reference([](const RandomPermutationOp& op, const Literals& in) {
        std::vector<std::pair<uint64_t, int64_t>> keys;
        for (int64_t i = 0; i < op.count; ++i) keys.emplace_back(Bits64(in, i, op.count), i);
        std::ranges::sort(keys);
        return Build(Shape(op.dtype, {op.count}), [&](const Index& i) {
          return static_cast<double>(keys[static_cast<std::size_t>(i[0])].second);
        });
      })
      .Error("randperm: integers from 0 to 199 are not all within s8, [-128, 127]", {},
             [](const Tensors&) { (void)Randperm(200, DType::kS8, {}); });
}

// The state `blocks` of four numbers later.
Literals Later(const Literals& state, int64_t blocks) {
  Literals later = state;
  later[2] = ScalarOf(DType::kU32, At(state[2], {}) + static_cast<double>(blocks));
  return later;
}

// The number of element i of n by the method of Marsaglia and Tsang: n numbers for the factor below 1,
// then three for each element in every round.
double GammaAt(double alpha, const Literals& state, int64_t i, int64_t n) {
  const double d = (alpha < 1 ? alpha + 1 : alpha) - 1.0 / 3;
  for (int64_t round = 0;; ++round) {
    const Literals at = Later(state, (2 * n + 3) / 4 + round * ((6 * n + 3) / 4));
    const auto u = [&](int64_t k) { return Double(at, 2 * k * n + i, n); };
    const double x = std::sqrt(-2 * std::log(1 - u(0))) * std::cos(6.283185307179586 * u(1));
    const double root = 1 + x / std::sqrt(9 * d), v = root * root * root;
    if (root <= 0 || std::log(1 - u(2)) >= 0.5 * x * x + d * (1 - v + std::log(v))) continue;
    return d * v * (alpha < 1 ? std::pow(1 - Double(state, i, n), 1 / alpha) : 1);
  }
}

Literals Before(Literals operands, Literals state) {
  operands.insert(operands.end(), state.begin(), state.end());
  return operands;
}

void AddSamplers(Table& table) {
  table.Op<AssertOp>()
      .Add({"f", "takes what it takes"}, {Literal::Full(Shape(DType::kPred, {2, 3}), 1)})
      .Reference([](const AssertOp&, const Literals& in) { return in[0]; });
  table.Op<StandardGammaOp>()
      .Add({}, Before({Between(DType::kF64, {3, 5}, 0.2, 9)}, State(1, 2, 3, 4)))
      .Numbers(0b11110)
      .ReferenceTolerance(1e-9, 1e-12)
      .Reference([](const StandardGammaOp&, const Literals& in) {
        const Literals state(in.begin() + 1, in.end());
        return Build(in[0].shape(), [&, n = int64_t{0}](const Index& i) mutable {
          return GammaAt(At(in[0], i), state, n++, in[0].shape().num_elements());
        });
      });
  table.Op<PoissonOp>()
      .Add({}, Before({Between(DType::kF64, {3, 5}, 0, 9)}, State(1, 2, 3, 4)))
      .Numbers(0b11110)
      .ReferenceTolerance(0, 0)
      .Reference([](const PoissonOp&, const Literals& in) {
        const Literals state(in.begin() + 1, in.end());
        return Build(in[0].shape(), [&, n = int64_t{0}](const Index& i) mutable {
          const double u = Double(state, n++, in[0].shape().num_elements());
          double p = std::exp(-At(in[0], i)), sum = p, k = 0;
          for (; u >= sum; sum += p) p *= At(in[0], i) / ++k;
          return k;
        });
      })
      .Error("poisson: takes floats, not s64[2]", {Indices({1, 2})},
             [](const Tensors& x) { (void)Poisson(x[0]); });
  table.Op<PoissonOp>().Add({}, Before({Between(DType::kF32, {40}, 10, 4000)}, State(1, 2, 3, 4)));
  const auto counts = [](double n) { return Literal::Full(Shape(DType::kF64, {20}), n); };
  table.Op<BinomialOp>()
      .Add({}, Before({counts(9), Between(DType::kF64, {20}, 0, 1)}, State(1, 2, 3, 4)))
      .Numbers(0b111100)
      .ReferenceTolerance(0, 0)
      .Reference([](const BinomialOp&, const Literals& in) {
        const Literals state(in.begin() + 2, in.end());
        return Build(in[0].shape(), [&, at = int64_t{0}](const Index& i) mutable {
          const double u = Double(state, at++, 20), n = At(in[0], i), given = At(in[1], i);
          const double q = std::min(given, 1 - given);
          double p = std::exp(n * std::log1p(-q)), sum = p, k = 0;
          for (; u >= sum && k < n; sum += p) {
            ++k;
            p *= (n - k + 1) * q / (k * (1 - q));
          }
          return given > 0.5 ? n - k : k;
        });
      });
  table.Op<BinomialOp>().Add(
      {}, Before({counts(900), Between(DType::kF64, {20}, 0, 1)}, State(1, 2, 3, 4)));
  table.Op<GammaPathOp>()
      .Add({}, {Between(DType::kF64, {6}, 1, 3), Between(DType::kF64, {6}, 1, 3)})
      .GradientsOf(2)
      .NoSecondGradients()
      .Reference([](const GammaPathOp&, const Literals& in) { return in[1]; });
  table.Op<DirichletPathOp>()
      .Add({}, {Between(DType::kF64, {2, 3}, 1, 3), Between(DType::kF64, {2, 3}, 0.1, 0.3)})
      .GradientsOf(2)
      .NoSecondGradients()
      .Reference([](const DirichletPathOp&, const Literals& in) { return in[1]; });
}

}  // namespace

void AddCreateSamples(Table& table) {
  table.Op<FullOp>()
      .Add({{2, 3}}, {ScalarOf(DType::kF32, 1.5)})
      .Add({{}}, {ScalarOf(DType::kS8, -3)})
      .Add({{0, 4}}, {ScalarOf(DType::kF64, 1)})
      .Numbers(1)
      .Reference([](const FullOp& op, const Literals& in) {
        return Literal::Full(Shape(in[0].shape().dtype(), op.dims), At(in[0], {}));
      })
      .Error("full: dimension -1 of f32[2,-1] is negative", {},
             [](const Tensors&) { (void)FullConstant(Shape(DType::kF32, {2, -1}), 1, {}); });
  table.Op<PositionsOp>()
      .Add({{2, 3}, 1, DType::kS64}, {})
      .Add({{2, 3}, 0, DType::kF32}, {})
      .Add({{40}, 0, DType::kS8}, {})
      .Reference([](const PositionsOp& op, const Literals&) {
        return Build(Shape(op.dtype, op.dims), [&](const Index& i) {
          return static_cast<double>(i[static_cast<std::size_t>(op.dim)]);
        });
      });
  AddUniform(table);
  AddNormal(table);
  AddRandomInteger(table);
  AddRandomPermutation(table);
  AddSamplers(table);
}

}  // namespace lazuli::lazy::test
