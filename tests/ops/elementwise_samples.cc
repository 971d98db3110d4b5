// Elementwise ops. The rows of unary.def, binary.def and compare.def get their samples from the
// dtypes they accept, with every special value; a row here says only what the op means.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "lazy/ops/activation/activation.h"
#include "lazy/ops/core/gradient_ops.h"
#include "lazy/ops/core/require.h"
#include "lazy/ops/elementwise/complex.h"
#include "lazy/ops/elementwise/elementwise.h"
#include "lazy/ops/elementwise/float_bits.h"
#include "lazy/ops/elementwise/gcd.h"
#include "lazy/ops/elementwise/logarithms.h"
#include "lazy/ops/elementwise/powers.h"
#include "lazy/ops/special/error_function.h"
#include "lazy/ops/special/gamma.h"
#include "lazy/ops/special/modified_bessel.h"
#include "tests/ops/sample.h"

namespace lazuli::lazy::test {
namespace {

// --- what the ops mean, on doubles and on integers that wrap

struct UnaryMeaning {
  std::string_view name;
  double (*of_float)(double);
  int64_t (*of_integer)(int64_t) = nullptr;  // null: integers are taken as f32, or refused
  double low = -2, high = 2;                 // where the gradient is compared
};

uint64_t U(int64_t v) { return static_cast<uint64_t>(v); }
int64_t S(uint64_t v) { return static_cast<int64_t>(v); }
double SignOf(double x) { return x > 0 ? 1 : x < 0 ? -1 : std::isnan(x) ? 0 : x; }

// By halving.
double Erfinv(double y) {
  if (!(std::fabs(y) <= 1)) return std::numeric_limits<double>::quiet_NaN();
  if (std::fabs(y) == 1) return y * std::numeric_limits<double>::infinity();
  if (std::fabs(y) < 1e-8) return y * 0.886226925452758;
  double low = -7, high = 7;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (std::erf(middle) < y ? low : high) = middle;
  }
  return high;
}

const UnaryMeaning kUnary[] = {
    {"abs", [](double x) { return std::fabs(x); }, [](int64_t x) { return x < 0 ? S(-U(x)) : x; }},
    {"neg", [](double x) { return -x; }, [](int64_t x) { return S(-U(x)); }},
    {"sign", SignOf, [](int64_t x) { return int64_t{x > 0} - int64_t{x < 0}; }},
    {"floor", [](double x) { return std::floor(x); }, [](int64_t x) { return x; }},
    {"ceil", [](double x) { return std::ceil(x); }, [](int64_t x) { return x; }},
    {"round", [](double x) { return std::nearbyint(x); }, [](int64_t x) { return x; }},
    {"sqrt", [](double x) { return std::sqrt(x); }, nullptr, 0.25, 3},
    {"rsqrt", [](double x) { return 1 / std::sqrt(x); }, nullptr, 0.25, 3},
    {"exp", [](double x) { return std::exp(x); }},
    {"expm1", [](double x) { return std::expm1(x); }},
    {"log", [](double x) { return std::log(x); }, nullptr, 0.25, 3},
    {"log1p", [](double x) { return std::log1p(x); }, nullptr, -0.5, 2},
    {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
    {"tanh", [](double x) { return std::tanh(x); }},
    {"sin", [](double x) { return std::sin(x); }},
    {"cos", [](double x) { return std::cos(x); }},
    {"tan", [](double x) { return std::tan(x); }, nullptr, -1, 1},
    {"asin", [](double x) { return std::asin(x); }, nullptr, -0.8, 0.8},
    {"acos", [](double x) { return std::acos(x); }, nullptr, -0.8, 0.8},
    {"atan", [](double x) { return std::atan(x); }},
    {"sinh", [](double x) { return std::sinh(x); }},
    {"cosh", [](double x) { return std::cosh(x); }},
    {"asinh", [](double x) { return std::asinh(x); }},
    {"acosh", [](double x) { return std::acosh(x); }, nullptr, 1.5, 3},
    {"atanh", [](double x) { return std::atanh(x); }, nullptr, -0.8, 0.8},
    {"erf", [](double x) { return std::erf(x); }},
    {"erfc", [](double x) { return std::erfc(x); }},
    {"erfinv", Erfinv, nullptr, -0.9, 0.9},
    {"logit", [](double x) { return std::log(x / (1 - x)); }, nullptr, 0.1, 0.9},
    {"lgamma", [](double x) { return std::lgamma(x); }, nullptr, 0.3, 3},
    {"logical_not", [](double x) { return x == 0 ? 1.0 : 0.0; },
     [](int64_t x) { return int64_t{x == 0}; }},
    {"bitwise_not", nullptr, [](int64_t x) { return ~x; }},
};

struct BinaryMeaning {
  std::string_view name;
  double (*of_floats)(double, double);
  int64_t (*of_integers)(int64_t, int64_t) = nullptr;
  double low = -2, high = 2;
  int64_t (*of_width)(int64_t, int64_t, DType) = nullptr;  // instead of of_integers
};

double Nan() { return std::numeric_limits<double>::quiet_NaN(); }

double Remainder(double x, double y) {
  const double rest = std::fmod(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}
int64_t Remainder(int64_t x, int64_t y) {
  if (y == -1) return 0;
  const int64_t rest = x % y;
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}
// As Python defines it.
double FloorDivide(double x, double y) {
  if (y == 0) return x / y;
  const double rest = std::fmod(x, y);
  double times = (x - rest) / y;
  if (rest != 0 && (rest < 0) != (y < 0)) times -= 1;
  if (times == 0) return std::copysign(0.0, x / y);
  const double below = std::floor(times);
  return times - below > 0.5 ? below + 1 : below;
}
int64_t FloorDivide(int64_t x, int64_t y) {
  if (y == -1) return S(-U(x));
  return x / y - (x % y != 0 && (x < 0) != (y < 0) ? 1 : 0);
}
int64_t Power(int64_t x, int64_t y) {
  if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 != 0 ? -1 : 1) : 0;
  uint64_t power = 1, square = U(x);
  for (uint64_t n = U(y); n != 0; n >>= 1) {
    if (n % 2 != 0) power *= square;
    square *= square;
  }
  return S(power);
}

const BinaryMeaning kBinary[] = {
    {"hypot", [](double x, double y) { return std::hypot(x, y); }, nullptr, 0.3, 2},
    {"add", [](double x, double y) { return x + y; },
     [](int64_t x, int64_t y) { return S(U(x) + U(y)); }},
    {"sub", [](double x, double y) { return x - y; },
     [](int64_t x, int64_t y) { return S(U(x) - U(y)); }},
    {"mul", [](double x, double y) { return x * y; },
     [](int64_t x, int64_t y) { return S(U(x) * U(y)); }},
    {"div", [](double x, double y) { return x / y; }, nullptr, 0.5, 2},
    {"fmod", [](double x, double y) { return std::fmod(x, y); },
     [](int64_t x, int64_t y) { return y == -1 ? 0 : x % y; }, 0.6, 2.3},
    {"remainder", Remainder, Remainder, 0.6, 2.3},
    {"floor_divide", FloorDivide, FloorDivide, 0.6, 2.3},
    {"maximum",
     [](double x, double y) { return std::isnan(x) || std::isnan(y) ? Nan() : std::max(x, y); },
     [](int64_t x, int64_t y) { return std::max(x, y); }},
    {"minimum",
     [](double x, double y) { return std::isnan(x) || std::isnan(y) ? Nan() : std::min(x, y); },
     [](int64_t x, int64_t y) { return std::min(x, y); }},
    {"pow", [](double x, double y) { return std::pow(x, y); }, Power, 0.25, 2},
    {"atan2", [](double x, double y) { return std::atan2(x, y); }, nullptr, 0.5, 2},
    {"logical_and", [](double x, double y) { return x != 0 && y != 0 ? 1.0 : 0.0; },
     [](int64_t x, int64_t y) { return int64_t{x != 0 && y != 0}; }},
    {"logical_or", [](double x, double y) { return x != 0 || y != 0 ? 1.0 : 0.0; },
     [](int64_t x, int64_t y) { return int64_t{x != 0 || y != 0}; }},
    {"logical_xor", [](double x, double y) { return (x != 0) != (y != 0) ? 1.0 : 0.0; },
     [](int64_t x, int64_t y) { return int64_t{(x != 0) != (y != 0)}; }},
    {"bitwise_and", nullptr, [](int64_t x, int64_t y) { return x & y; }},
    {"bitwise_or", nullptr, [](int64_t x, int64_t y) { return x | y; }},
    {"bitwise_xor", nullptr, [](int64_t x, int64_t y) { return x ^ y; }},
    {"bitwise_left_shift", nullptr, nullptr, 0, 0,
     [](int64_t x, int64_t y, DType dtype) {
       return y >= 0 && y < 8 * ByteWidth(dtype) ? S(U(x) << y) : 0;
     }},
    {"bitwise_right_shift", nullptr, nullptr, 0, 0,
     [](int64_t x, int64_t y, DType dtype) {
       const bool out = y < 0 || y >= 8 * ByteWidth(dtype);
       if (IsUnsigned(dtype)) return out ? 0 : S(U(x) >> y);
       return x >> (out ? 63 : y);
     }},
    {"eq", [](double x, double y) { return x == y ? 1.0 : 0.0; },
     [](int64_t x, int64_t y) { return int64_t{x == y}; }},
    {"ne", [](double x, double y) { return x != y ? 1.0 : 0.0; },
     [](int64_t x, int64_t y) { return int64_t{x != y}; }},
    {"lt", [](double x, double y) { return x < y ? 1.0 : 0.0; },
     [](int64_t x, int64_t y) { return int64_t{x < y}; }},
    {"le", [](double x, double y) { return x <= y ? 1.0 : 0.0; },
     [](int64_t x, int64_t y) { return int64_t{x <= y}; }},
    {"gt", [](double x, double y) { return x > y ? 1.0 : 0.0; },
     [](int64_t x, int64_t y) { return int64_t{x > y}; }},
    {"ge", [](double x, double y) { return x >= y ? 1.0 : 0.0; },
     [](int64_t x, int64_t y) { return int64_t{x >= y}; }},
};

template <class M, std::size_t kCount>
const M& MeaningOf(const M (&meanings)[kCount], std::string_view name) {
  for (const M& meaning : meanings) {
    if (meaning.name == name) return meaning;
  }
  LAZULI_CHECK(false, "say what ", name, " means: a row in tests/ops/elementwise_samples.cc");
}

// --- elements as integers, without a detour through double

int64_t IntegerAt(const Literal& x, int64_t i) {
  const auto width = static_cast<std::size_t>(ByteWidth(x.shape().dtype()));
  uint64_t bits = 0;
  std::memcpy(&bits, x.raw() + static_cast<std::size_t>(i) * width, width);
  if (!IsSigned(x.shape().dtype()) || width == 8) return S(bits);
  const int shift = 64 - 8 * static_cast<int>(width);
  return S(bits << shift) >> shift;
}
void SetInteger(Literal& x, int64_t i, int64_t value) {  // wraps
  const auto width = static_cast<std::size_t>(ByteWidth(x.shape().dtype()));
  if (x.shape().dtype() == DType::kPred) value &= 1;
  std::memcpy(x.mutable_raw() + static_cast<std::size_t>(i) * width, &value, width);
}

// --- special values of a dtype

Literal Specials(DType dtype) {
  std::vector<double> values;
  if (IsFloat(dtype)) {
    const double tiny = dtype == DType::kF16    ? 0x1p-24
                        : dtype == DType::kF64  ? 0x1p-1074
                        : dtype == DType::kBF16 ? 0x1p-133
                                                : 0x1p-149;
    const double smallest = dtype == DType::kF16   ? 0x1p-14
                            : dtype == DType::kF64 ? 0x1p-1022
                                                   : 0x1p-126;
    const double largest = dtype == DType::kF16    ? 65504
                           : dtype == DType::kBF16 ? 0x1.fep127
                           : dtype == DType::kF64  ? std::numeric_limits<double>::max()
                                                   : std::numeric_limits<float>::max();
    const double inf = std::numeric_limits<double>::infinity();
    values = {0.0,  -0.0,  1.0,      -1.0,      0.5,     -2.5,     3.0, -7.25, 20.0, -88.5,
              tiny, -tiny, smallest, -smallest, largest, -largest, inf, -inf,  Nan()};
  } else if (dtype == DType::kPred) {
    values = {0, 1};
  } else {
    values = {0, 1, 2, 3, 7, 100};
    if (IsSigned(dtype)) values.insert(values.end(), {-1, -2, -7, -100});
  }
  const auto count = static_cast<int64_t>(values.size());
  Literal result(Shape(dtype, {IsIntegral(dtype) ? count + 2 : count}));
  for (int64_t i = 0; i < count; ++i) result.SetFromDouble(i, values[static_cast<std::size_t>(i)]);
  if (IsIntegral(dtype)) {  // the extremes
    const int bits = 8 * ByteWidth(dtype);
    SetInteger(result, count, S(uint64_t{1} << (bits - 1)));
    SetInteger(result, count + 1,
               IsSigned(dtype) ? S((uint64_t{1} << (bits - 1)) - 1) : int64_t{-1});
  }
  return result;
}

std::vector<DType> DTypesOf(Accepts accepts) {
  switch (accepts) {
    case Accepts::kFloat:
      return {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kS32, DType::kPred};
    case Accepts::kReal:
      return {DType::kF32, DType::kF64, DType::kF16, DType::kBF16,
              DType::kS8,  DType::kU8,  DType::kS32, DType::kS64};
    case Accepts::kWhole:
      return {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kU8, DType::kS64};
    case Accepts::kInteger:
      return {DType::kU8, DType::kS8, DType::kS16, DType::kS32, DType::kS64, DType::kU64};
    case Accepts::kBits:
      return {DType::kPred, DType::kU8, DType::kS16, DType::kS32, DType::kS64};
    case Accepts::kTruth:
      return {DType::kPred, DType::kU8, DType::kS32, DType::kF32, DType::kF64};
  }
  return {};
}

bool TakesFloats(Accepts accepts) {
  return accepts != Accepts::kBits && accepts != Accepts::kInteger;
}
std::string_view RefusesFloats(Accepts accepts) {
  return accepts == Accepts::kBits ? ": takes pred or integers, not f32"
                                   : ": takes integers, not f32";
}

bool Narrow(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

// --- references

// What is left of the elements that are 0, which integers are not divided by.
Literal WithoutZeros(const Literal& x) {
  if (!IsIntegral(x.shape().dtype())) return x;
  Literal result = x;
  for (int64_t i = 0; i < x.shape().num_elements(); ++i) {
    if (IntegerAt(x, i) == 0) SetInteger(result, i, 5);
  }
  return result;
}

// What an op of floats sees: integers are rounded to f32 first.
double FloatAt(const Literal& x, int64_t i) {
  const double v = x.AsDouble(i);
  return IsFloat(x.shape().dtype()) ? v : static_cast<float>(v);
}

template <class OneElement>
Literal ByElement(const Shape& shape, OneElement&& element) {
  Literal result(shape);
  for (int64_t i = 0; i < shape.num_elements(); ++i) element(result, i);
  return result;
}

Literal UnaryReference(const UnaryMeaning& meaning, const Shape& shape, const Literal& x) {
  return ByElement(shape, [&](Literal& result, int64_t i) {
    if (IsFloat(shape.dtype()) || IsFloat(x.shape().dtype()))
      result.SetFromDouble(i, meaning.of_float(FloatAt(x, i)));
    else
      SetInteger(result, i, meaning.of_integer(IntegerAt(x, i)));
  });
}

Literal BinaryReference(const BinaryMeaning& meaning, const Shape& shape, const Literals& in) {
  const DType common = *Promote(in[0].shape().dtype(), in[1].shape().dtype());
  const bool floats = IsFloat(common) || IsFloat(shape.dtype());
  Literal result(shape);
  int64_t n = 0;
  ForEachIndex(shape.dims(), [&](const Index& index) {
    auto at = [&](const Literal& x) {  // broadcast: missing and stretched dims count as 0
      const auto rank = static_cast<std::size_t>(x.shape().rank());
      Index own(index.end() - static_cast<std::ptrdiff_t>(rank), index.end());
      for (std::size_t d = 0; d < rank; ++d) own[d] = x.shape().dims()[d] == 1 ? 0 : own[d];
      return Offset(x.shape().dims(), own);
    };
    const int64_t i = at(in[0]), j = at(in[1]);
    if (!floats) {
      const int64_t x = IntegerAt(in[0], i), y = IntegerAt(in[1], j);
      SetInteger(
          result, n,
          meaning.of_width != nullptr ? meaning.of_width(x, y, common) : meaning.of_integers(x, y));
    } else {
      result.SetFromDouble(n, meaning.of_floats(FloatAt(in[0], i), FloatAt(in[1], j)));
    }
    ++n;
  });
  return result;
}

// --- the rows of the tables

// Rows of 16-bit floats are kept apart: they are promised within a bound only.
struct Kind {
  bool narrow;
  double device_tolerance, rtol, atol;
};
constexpr Kind kWide{false, 0, 3e-6, 1e-44};
constexpr Kind kNarrow{true, 1.6e-2, 1.6e-2, 1e-6};

// A row of an op of the tables, which has no attributes, without its type.
struct TableRow {
  std::string_view op;
  Accepts accepts;
  OpRow& row;
  std::unique_ptr<const SampledOp> (*make)();
  Shape (*infer)(const Literals& operands);

  void Add(Literals operands) const { AddSample(row, op, make(), std::move(operands), true); }
  void AddEdge(Literals operands) const { AddSample(row, op, make(), std::move(operands), false); }
  void Refuse(std::string message, Literals operands) const {
    row.errors.push_back({std::move(message), std::move(operands), [make = make](const Tensors& x) {
                            (void)make()->Record(std::vector<Operand>(x.begin(), x.end()), {});
                          }});
  }
};

void AddUnary(const TableRow& row, const Kind& kind) {
  const UnaryMeaning& meaning = MeaningOf(kUnary, row.op);
  for (DType dtype : DTypesOf(row.accepts)) {
    if (Narrow(dtype) == kind.narrow) row.AddEdge({Specials(dtype)});
  }
  if (!kind.narrow) {
    if (!TakesFloats(row.accepts))
      row.Refuse(Str(row.op, RefusesFloats(row.accepts)), {Random(DType::kF32, {2})});
    else
      row.Add({Between(DType::kF64, {2, 3}, meaning.low, meaning.high, 0.1)});
    row.AddEdge({Random(DType::kS32, {0, 2})});
    row.AddEdge({Random(DType::kS32, {37})});
  }
  SetReference(row.row, [&meaning, infer = row.infer](const SampledOp&, const Literals& x) {
    return Literals{UnaryReference(meaning, infer(x), x[0])};
  });
}

void AddBinary(const TableRow& row, const Kind& kind) {
  const BinaryMeaning& meaning = MeaningOf(kBinary, row.op);
  const bool divides = row.op == "fmod" || row.op == "remainder" || row.op == "floor_divide";
  for (DType dtype : DTypesOf(row.accepts)) {
    if (Narrow(dtype) != kind.narrow) continue;
    const Literal specials = Specials(dtype);
    const int64_t n = specials.shape().num_elements();
    const Literal columns = divides ? WithoutZeros(specials) : specials;
    row.AddEdge({specials.Reshaped({n, 1}), columns.Reshaped({1, n})});
    row.AddEdge({specials, ScalarOf(dtype, 3)});
  }
  if (!kind.narrow) {
    const auto [low, high] = std::pair(meaning.low, meaning.high);
    if (TakesFloats(row.accepts)) {
      row.Add({Between(DType::kF64, {2, 3}, low, high, 0.1),
               Between(DType::kF64, {2, 3}, low, high, 0.35)});
      row.Add({Between(DType::kF64, {2, 1}, low, high, 0.2),
               Between(DType::kF64, {3}, low, high, 0.45)});
      row.AddEdge({Random(DType::kS32, {3}), Random(DType::kF32, {2, 3}, 1)});
    } else {
      row.Refuse(Str(row.op, RefusesFloats(row.accepts)),
                 {Random(DType::kF32, {2}), Random(DType::kF32, {2})});
    }
    row.AddEdge({Random(DType::kS32, {0, 2}), Random(DType::kS32, {2})});
    row.Refuse(Str(row.op, ": shapes s32[2,3] and s32[2] do not broadcast"),
               {Random(DType::kS32, {2, 3}), Random(DType::kS32, {2})});
    if (row.accepts != Accepts::kTruth) {
      row.Refuse(Str(row.op,
                     ": dtypes of s32[2] and u64[2] have no common type; convert one "
                     "with to()"),
                 {Random(DType::kS32, {2}), Random(DType::kU64, {2})});
    }
  }
  SetReference(row.row, [&meaning, infer = row.infer](const SampledOp&, const Literals& x) {
    return Literals{BinaryReference(meaning, infer(x), x)};
  });
}

template <class T>
std::unique_ptr<const SampledOp> MakeSampled() {
  return std::make_unique<test::internal::SampledOpOf<T>>(T{});
}
template <class T>
void AddTableRows(Table& table, Accepts accepts, void (*add)(const TableRow&, const Kind&),
                  Shape (*infer)(const Literals&)) {
  for (const Kind& kind : {kWide, kNarrow}) {
    if (kind.narrow && !TakesFloats(accepts)) return;
    OpRow& row = table.NewRow<T>();
    row.device_tolerance = kind.device_tolerance;
    row.reference_rtol = kind.rtol;
    row.reference_atol = kind.atol;
    add({T::kName, accepts, row, &MakeSampled<T>, infer}, kind);
  }
}
template <class T>
void AddUnary(Table& table, Accepts accepts) {
  AddTableRows<T>(table, accepts, &AddUnary,
                  [](const Literals& x) { return *T{}.Infer(x[0].shape()); });
}
template <class T>
void AddBinary(Table& table, Accepts accepts) {
  AddTableRows<T>(table, accepts, &AddBinary,
                  [](const Literals& x) { return *T{}.Infer(x[0].shape(), x[1].shape()); });
}

// --- ops with a body of their own

void AddRelu(Table& table) {
  table.Op<ReluOp>()
      .AddEdge({}, {Specials(DType::kF32)})
      .AddEdge({}, {Specials(DType::kS32)})
      .Add({}, {Between(DType::kF64, {2, 3}, -1, 1, 0.1)})
      .Reference([](const ReluOp&, const Literals& in) {
        return Build(in[0].shape(), [&](const Index& i) {
          const double x = At(in[0], i);
          return std::isnan(x) ? x : std::max(x, 0.0);
        });
      })
      .Error("relu: operand 0 is an undefined tensor", {},
             [](const Tensors&) { (void)Relu(Tensor()); });
}

void AddGelu(Table& table) {
  Row<GeluOp> row = table.Op<GeluOp>();
  for (const bool tanh : {false, true}) {
    row.AddEdge({tanh}, {Specials(DType::kF32)});
    row.AddEdge({tanh}, {Specials(DType::kS32)});
    row.Add({tanh}, {Between(DType::kF64, {2, 3}, -3, 3, 0.1)});
  }
  row.ReferenceTolerance(1e-5, 1e-6).Reference([](const GeluOp& op, const Literals& in) {
    const DType dtype = in[0].shape().dtype();
    return Build(
        Shape(IsFloat(dtype) ? dtype : DType::kF32, in[0].shape().dims()), [&](const Index& i) {
          const double x = At(in[0], i);
          if (op.tanh)
            return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
          return 0.5 * x * (1 + std::erf(x * 0.7071067811865476));
        });
  });
}

void AddElu(Table& table) {
  Row<EluOp> row = table.Op<EluOp>();
  for (const bool continuous : {false, true}) {
    row.AddEdge({continuous}, {Specials(DType::kF32), ScalarOf(DType::kF32, 2)});
    row.AddEdge({continuous}, {Random(DType::kS32, {5}), ScalarOf(DType::kF32, 0.5)});
    row.Add({continuous}, {Between(DType::kF64, {2, 3}, -3, 3, 0.1), ScalarOf(DType::kF64, 1.5)});
  }
  row.Numbers(2)
      .GradientsOf(1)
      .Reference([](const EluOp& op, const Literals& in) {
        const DType dtype = in[0].shape().dtype();
        const double alpha = At(in[1], {});
        return Build(Shape(IsFloat(dtype) ? dtype : DType::kF32, in[0].shape().dims()),
                     [&](const Index& i) {
                       const double x = At(in[0], i);
                       return x > 0 ? x : alpha * std::expm1(op.continuous ? x / alpha : x);
                     });
      })
      .Error("elu: alpha must be a number, is f32[2]", {Random(DType::kF32, {2})},
             [](const Tensors& x) { (void)Record(EluOp{}, x[0], x[0]); });
}

void AddLogSigmoid(Table& table) {
  table.Op<LogSigmoidOp>()
      .AddEdge({}, {Specials(DType::kF32)})
      .AddEdge({}, {Random(DType::kS32, {5})})
      .Add({}, {Between(DType::kF64, {2, 3}, -3, 3, 0.1)})
      .Add({}, {Literal::Full(Shape(DType::kF64, {2}), 0)})  // smooth there, too
      .Reference([](const LogSigmoidOp&, const Literals& in) {
        const DType dtype = in[0].shape().dtype();
        return Build(Shape(IsFloat(dtype) ? dtype : DType::kF32, in[0].shape().dims()),
                     [&](const Index& i) {
                       const double x = At(in[0], i);
                       return std::min(x, 0.0) - std::log1p(std::exp(-std::fabs(x)));
                     });
      });
}

void AddClone(Table& table) {
  table.Op<CloneOp>()
      .AddEdge({}, {Specials(DType::kF32)})
      .AddEdge({}, {Random(DType::kPred, {3})})
      .Add({}, {Random(DType::kF64, {2, 2})})
      .Reference([](const CloneOp&, const Literals& in) { return in[0]; });
}

void AddWhere(Table& table) {
  const Literal condition = Random(DType::kPred, {2, 3});
  table.Op<WhereOp>()
      .AddEdge({}, {Random(DType::kPred, {19}), Specials(DType::kF32), ScalarOf(DType::kF32, 5)})
      .AddEdge(
          {}, {Random(DType::kPred, {3}), Random(DType::kS32, {2, 3}), Random(DType::kF32, {3}, 1)})
      .Add({}, {condition, Random(DType::kF64, {2, 3}), Random(DType::kF64, {2, 3}, 1)})
      .Add({}, {condition, Random(DType::kF64, {3}), Random(DType::kF64, {2, 1}, 1)})
      .Reference([](const WhereOp&, const Literals& in) {
        const Shape values =
            *BinaryShape(Accepts::kReal, hlo::Opcode::kAdd, in[1].shape(), in[2].shape());
        const Shape shape(values.dtype(), *BroadcastDims(in[0].shape(), values));
        const auto broadcast = [&](std::size_t k) {
          return BinaryReference(
              {"", [](double x, double) { return x; }, [](int64_t x, int64_t) { return x; }},
              Shape(in[k].shape().dtype(), shape.dims()),
              {in[k], Literal(Shape(in[k].shape().dtype(), shape.dims()))});
        };
        const Literal c = broadcast(0), x = broadcast(1), y = broadcast(2);
        return Build(shape, [&](const Index& i) { return At(c, i) != 0 ? At(x, i) : At(y, i); });
      })
      .Error("where: condition must be pred, is s32[2]",
             {Random(DType::kS32, {2}), Random(DType::kF32, {2})},
             [](const Tensors& x) { (void)Where(x[0], x[1], x[1]); });
}

void AddClamp(Table& table) {
  table.Op<ClampOp>()
      .AddEdge({}, {Specials(DType::kF32), ScalarOf(DType::kF32, -1), ScalarOf(DType::kF32, 2.5)})
      .AddEdge({}, {Specials(DType::kS32), ScalarOf(DType::kS32, -1), ScalarOf(DType::kS32, 2)})
      .Add({}, {Between(DType::kF64, {2, 3}, -2, 2, 0.1), ScalarOf(DType::kF64, -0.7),
                ScalarOf(DType::kF64, 0.9)})
      .Numbers(6)
      .GradientsOf(1)  // bounds have none
      .Reference([](const ClampOp&, const Literals& in) {
        return Build(in[0].shape(), [&](const Index& i) {
          const double x = At(in[0], i);
          return std::isnan(x) ? x : std::min(std::max(x, At(in[1], {})), At(in[2], {}));
        });
      })
      .Error("clamp: bounds must be numbers, are f32[2] and f32[2]", {Random(DType::kF32, {2})},
             [](const Tensors& x) { (void)ClampBetween(x[0], x[0], x[0]); });
}

void AddPowNumber(Table& table) {
  Row<PowNumberOp> row = table.Op<PowNumberOp>();
  for (double exponent : {-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 2.7}) {
    row.AddEdge({exponent}, {Specials(DType::kF32)});
    row.Add({exponent}, {Between(DType::kF64, {2, 3}, 0.25, 2, 0.1)});
  }
  row.AddEdge({2.0}, {Random(DType::kS32, {5})})
      .ReferenceTolerance(3e-6, 1e-44)
      .Reference([](const PowNumberOp& op, const Literals& in) {
        return Build(*op.Infer(in[0].shape()), [&](const Index& i) {
          const double x = At(in[0], i);
          // As written by hand: sqrt and its reciprocal differ from a power at -inf and -0.
          if (op.exponent == 0.5) return std::sqrt(x);
          if (op.exponent == -0.5) return 1 / std::sqrt(x);
          return std::pow(x, op.exponent);
        });
      });
}

void AddPowInteger(Table& table) {
  Row<PowIntegerOp> row = table.Op<PowIntegerOp>();
  for (const int64_t exponent :
       {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{7}, int64_t{39}, (int64_t{1} << 40) + 1}) {
    for (DType dtype : {DType::kS8, DType::kU8, DType::kS32, DType::kS64, DType::kU64})
      row.AddEdge({exponent}, {Specials(dtype)});
  }
  row.Reference([](const PowIntegerOp& op, const Literals& in) {
       return ByElement(in[0].shape(), [&](Literal& result, int64_t i) {
         SetInteger(result, i, Power(IntegerAt(in[0], i), op.exponent));
       });
     })
      .Error("pow: takes integers, not f32", {Random(DType::kF32, {2})},
             [](const Tensors& x) { (void)Record(PowIntegerOp{2}, x[0]); })
      .Error("pow: the power of an integer must be in [0, 2^63), is -2; convert x to floats",
             {Random(DType::kS32, {2})}, [](const Tensors& x) { (void)PowNumber(x[0], -2); });
}

void AddToDType(Table& table) {
  Row<ToDTypeOp> row = table.Op<ToDTypeOp>();
  for (DType to : {DType::kPred, DType::kS8, DType::kU8, DType::kS32, DType::kS64, DType::kF16,
                   DType::kBF16, DType::kF32, DType::kF64}) {
    row.AddEdge({to}, {Specials(DType::kF32)}).AddEdge({to}, {Specials(DType::kS64)});
  }
  row.Add({DType::kF64}, {Random(DType::kF64, {2, 2})})
      .Reference([](const ToDTypeOp& op, const Literals& in) { return in[0].Converted(op.dtype); });
}

void AddSignBit(Table& table) {
  Row<SignBitOp> row = table.Op<SignBitOp>();
  for (DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64, DType::kS8, DType::kU8})
    row.AddEdge({}, {Specials(dtype)});
  row.Reference([](const SignBitOp&, const Literals& in) {
    Literal result(Shape(DType::kPred, in[0].shape().dims()));
    for (int64_t i = 0; i < result.shape().num_elements(); ++i) {
      result.SetFromDouble(i, IsFloat(in[0].shape().dtype()) ? std::signbit(FloatAt(in[0], i))
                                                             : IntegerAt(in[0], i) < 0);
    }
    return result;
  });
}

void AddErfcx(Table& table) {
  table.Op<ErfcxOp>()
      .Add({}, {Between(DType::kF64, {2, 5}, -3, 4, 0.1)})
      .AddEdge({}, {Between(DType::kF64, {20}, -5, 5, 0.1)})
      .ReferenceTolerance(1e-12, 1e-14)
      .Reference([](const ErfcxOp&, const Literals& in) {
        return Build(in[0].shape(), [&](const Index& i) {
          const double x = At(in[0], i);
          return std::exp(x * x) * std::erfc(x);
        });
      });
}

void AddFrexp(Table& table) {
  Row<FrexpOp> row = table.Op<FrexpOp>();
  row.Add({}, {Between(DType::kF64, {2, 5}, -4, 4, 0.1)});
  for (DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64})
    row.AddEdge({}, {Specials(dtype)});
  row.Reference([](const FrexpOp&, const Literals& in) {
    Literal mantissas(in[0].shape()), exponents(Shape(DType::kS32, in[0].shape().dims()));
    for (int64_t i = 0; i < in[0].shape().num_elements(); ++i) {
      int exponent = 0;
      mantissas.SetFromDouble(i, std::frexp(FloatAt(in[0], i), &exponent));
      exponents.SetFromDouble(i, exponent);
    }
    Literals results;
    results.push_back(std::move(mantissas));
    results.push_back(std::move(exponents));
    return results;
  });
}

void AddGcd(Table& table) {
  Row<GcdOp> row = table.Op<GcdOp>();
  row.AddEdge({}, {Literal::FromValues<int32_t>({5}, {12, -18, 0, 7, 0}),
                   Literal::FromValues<int32_t>({5}, {18, 12, 5, 0, 0})});
  row.AddEdge({}, {Literal::FromValues<int64_t>({2, 1}, {1134903170, 48}),
                   Literal::FromValues<uint8_t>({3}, {255, 36, 1})});
  row.Reference([](const GcdOp&, const Literals& in) {
    const bool narrow = in[0].shape().dtype() == DType::kS32;
    const Shape shape = narrow ? in[0].shape() : Shape(DType::kS64, {2, 3});
    return Build(shape, [&](const Index& i) {
      const auto x = static_cast<int64_t>(At(in[0], narrow ? i : Index{i[0], 0}));
      const auto y = static_cast<int64_t>(At(in[1], narrow ? i : Index{i[1]}));
      return static_cast<double>(std::gcd(x, y));
    });
  });
  row.Error("gcd: takes integers, not f32", {Random(DType::kF32, {2}), Random(DType::kF32, {2})},
            [](const Tensors& x) { (void)Gcd(x[0], x[1]); });
}

void AddNextAfter(Table& table) {
  table.Op<UnaffectedOp>()
      .Add({}, {Random(DType::kF64, {2, 3}), Random(DType::kF64, {4})})
      .GradientsOf(1)
      .Reference([](const UnaffectedOp&, const Literals& in) { return in[0]; });
  table.Op<RequireOp>()
      .Add({Requirement::kFirstBag},
           {Random(DType::kF64, {2, 3}), Literal(Shape(DType::kPred, {2})), Indices({4, 7})})
      .GradientsOf(1)
      .Reference([](const RequireOp&, const Literals& in) { return in[0]; });
  Row<NextAfterOp> row = table.Op<NextAfterOp>();
  row.Add({}, {Random(DType::kF64, {2, 3}), ScalarOf(DType::kF64, 9)});
  for (DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    row.AddEdge({}, {Specials(dtype), ScalarOf(dtype, 1)});
    row.AddEdge({}, {Specials(dtype), ScalarOf(dtype, -1)});
  }
  row.Reference([](const NextAfterOp&, const Literals& in) {
    const DType dtype = in[0].shape().dtype();
    return Build(in[0].shape(), [&](const Index& i) {
      const double x = At(in[0], i), y = At(in[1], {});
      if (dtype == DType::kF64) return std::nextafter(x, y);
      if (dtype == DType::kF32)
        return static_cast<double>(std::nextafter(static_cast<float>(x), static_cast<float>(y)));
      if (std::isnan(x) || x == y) return x;
      // One in the last digit, of which a power of two has half below it.
      const int digits = dtype == DType::kF16 ? 11 : 8, least = dtype == DType::kF16 ? -24 : -133;
      const bool grows = (y > x) == (x > 0);
      if (x == 0) return std::copysign(std::ldexp(1.0, least), y);
      if (std::isinf(x)) return std::copysign(dtype == DType::kF16 ? 65504 : 0x1.fep127, x);
      int exponent = 0;
      const double fraction = std::frexp(x, &exponent);
      if (!grows && std::abs(fraction) == 0.5) --exponent;
      const double unit = std::ldexp(1.0, std::max(exponent - digits, least));
      return x + (y > x ? unit : -unit);
    });
  });
}

void AddBesselI(Table& table) {
  Row<BesselIOp> row = table.Op<BesselIOp>();
  for (const int64_t order : {0, 1}) {
    for (const bool scaled : {false, true}) {
      row.Add({order, scaled}, {Between(DType::kF64, {2, 5}, -4, 4, 0.1)});
      row.AddEdge({order, scaled}, {Between(DType::kF64, {40}, -80, 80, 0.1)});
    }
  }
  row.ReferenceTolerance(1e-6, 1e-12).Reference([](const BesselIOp& op, const Literals& in) {
    return Build(in[0].shape(), [&](const Index& i) {
      const double x = At(in[0], i);
      const double y = std::cyl_bessel_i(static_cast<double>(op.order), std::abs(x)) *
                       (op.scaled ? std::exp(-std::abs(x)) : 1);
      return op.order == 1 && x < 0 ? -y : y;
    });
  });
}

void AddComplex(Table& table) {
  table.Op<RealOp>()
      .AddEdge({}, {Random(DType::kC64, {2, 3})})
      .AddEdge({}, {Random(DType::kC128, {2})});
  table.Op<ImagOp>()
      .AddEdge({}, {Random(DType::kC64, {2, 3})})
      .AddEdge({}, {Random(DType::kC128, {2})});
  table.Op<ConjOp>()
      .AddEdge({}, {Random(DType::kC64, {2, 3})})
      .AddEdge({}, {Random(DType::kC128, {2})});
  table.Op<ComplexOp>()
      .AddEdge({}, {Random(DType::kF32, {2, 1}), Random(DType::kF32, {3}, 1)})
      .AddEdge({}, {Random(DType::kF64, {2}), Random(DType::kF64, {}, 1)})
      .Error("complex: takes parts that are both f32 or both f64, not f32[2] and f64[2]",
             {Random(DType::kF32, {2}), Random(DType::kF64, {2})},
             [](const Tensors& x) { Complex(x[0], x[1]); });
}

void AddConstant(Table& table) {
  table.Op<ConstantOp>()
      .Add({1.5, DType::kF32}, {})
      .Add({-0.0, DType::kF64}, {})
      .Add({3, DType::kS32}, {})
      .Add({1, DType::kPred}, {})
      .Reference(
          [](const ConstantOp& op, const Literals&) { return ScalarOf(op.dtype, op.value); });
}

}  // namespace

void AddElementwiseSamples(Table& table) {
#define LAZULI_UNARY(struct_name, function, public_name, opcode, accepts, ...) \
  AddUnary<struct_name>(table, Accepts::accepts);
#include "lazy/ops/functions/unary.def"
#undef LAZULI_UNARY
#define LAZULI_BINARY(struct_name, function, public_name, opcode, accepts, ...) \
  AddBinary<struct_name>(table, Accepts::accepts);
#include "lazy/ops/functions/binary.def"
#undef LAZULI_BINARY
#define LAZULI_COMPARE(struct_name, ...) AddBinary<struct_name>(table, Accepts::kReal);
#include "lazy/ops/functions/compare.def"
#undef LAZULI_COMPARE
  AddBinary<RemainderOp>(table, Accepts::kReal);
  AddBinary<FloorDivideOp>(table, Accepts::kReal);
  AddUnary<ErfcOp>(table, Accepts::kFloat);
  AddUnary<ErfinvOp>(table, Accepts::kFloat);
  AddUnary<LogitOp>(table, Accepts::kFloat);
  AddUnary<LgammaOp>(table, Accepts::kFloat);
  AddBinary<HypotOp>(table, Accepts::kFloat);
  AddSignBit(table);
  AddErfcx(table);
  AddFrexp(table);
  AddGcd(table);
  AddNextAfter(table);
  AddBesselI(table);
  AddComplex(table);
  AddRelu(table);
  AddGelu(table);
  AddElu(table);
  AddLogSigmoid(table);
  AddClone(table);
  AddWhere(table);
  AddClamp(table);
  AddPowNumber(table);
  AddPowInteger(table);
  AddToDType(table);
  AddConstant(table);
}

}  // namespace lazuli::lazy::test
