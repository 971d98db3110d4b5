#include "tests/support/hlo_test.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "ir/hlo/shapes/shape_inference.h"
#include "ir/hlo/text/parser.h"
#include "ir/support/check.h"
#include "ir/support/status.h"

namespace lazuli {
namespace {

using ir::DType;
using ir::Literal;
using ir::Shape;

double SpecialFloat(std::mt19937_64& rng) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kValues[] = {
      0.0, -0.0, 1, -1, kInf, -kInf, std::numeric_limits<double>::quiet_NaN(), 1e-40};
  return kValues[rng() % std::size(kValues)];
}

double RandomValue(DType dtype, RandomValues values, std::mt19937_64& rng) {
  const bool special = values == RandomValues::kSpecial && rng() % 3 == 0;
  if (dtype == DType::kPred) return static_cast<double>(rng() % 2);
  if (ir::IsIntegral(dtype)) {
    const int bits = std::min(ir::Row(dtype).bits, 53);
    const double extreme = std::ldexp(1.0, ir::IsSigned(dtype) ? bits - 1 : bits);
    if (special && rng() % 2 == 0) return extreme - 1;
    if (special) return ir::IsSigned(dtype) ? -extreme : 0;
    const auto small =
        static_cast<double>(rng() % std::min<uint64_t>(16, uint64_t{1} << (bits - 1)));
    return ir::IsSigned(dtype) ? small - std::min(8.0, extreme) : small;
  }
  if (special) return SpecialFloat(rng);
  return static_cast<double>(static_cast<int64_t>(rng() % 4001) - 2000) / 997;
}

bool SameElement(const Literal& a, const Literal& b, int64_t index) {
  const auto width = static_cast<std::size_t>(ir::ByteWidth(a.shape().dtype()));
  const std::size_t offset = static_cast<std::size_t>(index) * width;
  if (std::memcmp(a.raw() + offset, b.raw() + offset, width) == 0) return true;
  return ir::IsFloat(a.shape().dtype()) && std::isnan(a.AsDouble(index)) &&
         std::isnan(b.AsDouble(index));
}

// The parts of complex numbers, which alternate, as an array of floats.
Shape PartsShape(const Shape& shape) {
  return Shape(hlo::PartType(shape.dtype()), {2 * shape.num_elements()});
}
Literal PartsOf(const Literal& x) {
  Literal parts(PartsShape(x.shape()));
  std::memcpy(parts.mutable_raw(), x.raw(), static_cast<std::size_t>(x.byte_size()));
  return parts;
}

// Calls same(index) for every element of every leaf and reports the first that is not.
template <class Same>
void ExpectElements(const Literal& expected, const Literal& actual, Same&& same) {
  ASSERT_EQ(expected.shape().ToString(), actual.shape().ToString());
  if (ir::IsComplex(expected.shape().dtype()))
    return ExpectElements(PartsOf(expected), PartsOf(actual), same);
  for (std::size_t k = 0; k < expected.tuple().size(); ++k) {
    ExpectElements(expected.tuple()[k], actual.tuple()[k], same);
  }
  if (!expected.shape().IsArray()) return;
  for (int64_t i = 0; i < expected.shape().num_elements(); ++i) {
    if (same(expected, actual, i)) continue;
    ADD_FAILURE() << "element " << i << " of " << expected.shape().ToString() << " is "
                  << ir::Str(actual.AsDouble(i)) << ", expected " << ir::Str(expected.AsDouble(i));
    return;
  }
}

}  // namespace

std::unique_ptr<hlo::Module> ParseHlo(std::string_view text) {
  auto module = hlo::ParseModule(text);
  LAZULI_CHECK(module.ok(), ir::Message(module.status()), "\n", text);
  return *std::move(module);
}

Literal RandomLiteral(const Shape& shape, uint64_t seed, RandomValues values) {
  if (shape.IsTuple()) {
    std::vector<Literal> elements;
    for (const Shape& element : shape.tuple()) {
      elements.push_back(RandomLiteral(element, seed * 31 + elements.size() + 1, values));
    }
    return Literal::Tuple(std::move(elements));
  }
  Literal result(shape);
  if (ir::IsComplex(shape.dtype())) {
    const Literal parts = RandomLiteral(PartsShape(shape), seed, values);
    std::memcpy(result.mutable_raw(), parts.raw(), static_cast<std::size_t>(parts.byte_size()));
    return result;
  }
  std::mt19937_64 rng(seed + 1);
  for (int64_t i = 0; i < result.shape().num_elements(); ++i) {
    result.SetFromDouble(i, RandomValue(shape.dtype(), values, rng));
  }
  return result;
}

std::vector<Literal> RandomArguments(const hlo::Module& module, RandomValues values) {
  std::vector<Literal> arguments;
  for (const hlo::Instruction* parameter : module.entry()->parameters()) {
    arguments.push_back(RandomLiteral(parameter->shape(), arguments.size(), values));
  }
  return arguments;
}

void ExpectSameBits(const Literal& expected, const Literal& actual) {
  ExpectElements(expected, actual, SameElement);
}

void ExpectClose(const Literal& expected, const Literal& actual, double rtol, double atol) {
  ExpectElements(expected, actual, [rtol, atol](const Literal& a, const Literal& b, int64_t i) {
    const double x = a.AsDouble(i), y = b.AsDouble(i);
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
    return x == y || std::abs(x - y) <= atol + rtol * std::abs(x);
  });
}

}  // namespace lazuli
