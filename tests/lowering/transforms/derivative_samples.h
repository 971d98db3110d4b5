// Modules whose derivatives are tested: the uses of all opcodes, in double precision, and more uses of
// those whose rules have cases; with values at which they have derivatives.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"

#include "ir/evaluator/evaluator.h"
#include "ir/types/leaves.h"
#include "tests/ir/hlo/hlo_text.h"

namespace lazuli::lowering {

inline std::vector<std::pair<std::string, std::string>> DerivativeTexts() {
  auto texts = hlo::OpcodeTexts();
  for (auto& text : hlo::TextsOfUses("tests/lowering/transforms/testdata/uses.txt"))
    texts.push_back(std::move(text));
  for (auto& [name, text] : texts) {
    text = absl::StrReplaceAll(text, {{"bf16[", "f64["}, {"f32[", "f64["}, {"c64[", "c128["}});
  }
  return texts;
}

// Null for uses that are meant for other types, or that no double precision has.
inline std::unique_ptr<hlo::Module> ParseInDoublePrecision(const std::string& text) {
  auto module = hlo::ParseModule(text);
  return module.ok() ? *std::move(module) : nullptr;
}

inline bool IsDifferentiable(const ir::Shape& shape) {
  return ir::IsFloat(shape.dtype()) || ir::IsComplex(shape.dtype());
}

// The doubles of an array of f64 or c128.
inline std::span<double> DoublesOf(ir::Literal& value) {
  const auto count = static_cast<std::size_t>(value.byte_size()) / sizeof(double);
  return {reinterpret_cast<double*>(value.mutable_raw()), count};
}

// Distinct numbers between low and high; small integers for other types.
inline ir::Literal RandomInput(const ir::Shape& shape, std::mt19937& random, double low = 0.2,
                               double high = 0.9) {
  if (shape.IsTuple()) {
    std::vector<ir::Literal> elements;
    for (const ir::Shape& element : shape.tuple())
      elements.push_back(RandomInput(element, random, low, high));
    return ir::Literal::Tuple(std::move(elements));
  }
  ir::Literal value(shape);
  if (shape.dtype() == ir::DType::kF64 || shape.dtype() == ir::DType::kC128) {
    std::uniform_real_distribution<double> values(low, high);
    for (double& element : DoublesOf(value)) element = values(random);
  } else if (shape.IsArray()) {
    for (int64_t i = 0; i < shape.num_elements(); ++i)
      value.SetFromDouble(i, static_cast<double>(random() % 4));
  }
  return value;
}

// Arguments of the use of this name: of functions with a smaller domain, inside of it.
inline std::vector<ir::Literal> ArgumentsOf(const std::string& name, const hlo::Module& module,
                                            std::mt19937& random) {
  const bool above_one = name == "acosh";
  std::vector<ir::Literal> arguments;
  for (const hlo::Instruction* parameter : module.entry()->parameters()) {
    arguments.push_back(
        RandomInput(parameter->shape(), random, above_one ? 1.5 : 0.2, above_one ? 3.0 : 0.9));
    const ir::Shape& shape = arguments.back().shape();
    const bool square = shape.IsArray() && shape.rank() >= 2 &&
                        shape.dim(shape.rank() - 1) == shape.dim(shape.rank() - 2);
    if (!square || (!name.starts_with("cholesky") && !name.starts_with("triangular"))) continue;
    // Enough on the diagonal for a factor.
    const bool is_complex = ir::IsComplex(shape.dtype());
    const int64_t n = shape.dim(shape.rank() - 1);
    const std::span<double> values = DoublesOf(arguments.back());
    for (int64_t i = 0; i < shape.num_elements(); ++i) {
      const auto at = static_cast<std::size_t>(is_complex ? 2 * i : i);
      if (i % (n * n) % (n + 1) != 0) continue;
      values[at] += 3;
      if (is_complex) values[at + 1] = 0;
    }
  }
  return arguments;
}

inline std::vector<ir::Literal> LeavesOf(const ir::Literal& value) {
  std::vector<ir::Literal> leaves;
  ir::ForEachLeaf(value, [&](const ir::Literal& leaf) { leaves.push_back(leaf); });
  return leaves;
}

inline absl::StatusOr<std::vector<ir::Literal>> ValuesOf(
    const hlo::Module& module, const std::vector<ir::Literal>& arguments) {
  std::vector<const ir::Literal*> pointers;
  for (const ir::Literal& argument : arguments) pointers.push_back(&argument);
  LAZULI_ASSIGN_OR_RETURN(const ir::Literal result, hlo::Evaluate(module, pointers));
  return LeavesOf(result);
}

// Real and imaginary parts multiplied and added: the product of vectors of real numbers.
inline double InnerProduct(std::vector<ir::Literal> x, std::vector<ir::Literal> y) {
  EXPECT_EQ(x.size(), y.size());
  double sum = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    const std::span<double> a = DoublesOf(x[k]), b = DoublesOf(y[k]);
    EXPECT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  }
  return sum;
}

}  // namespace lazuli::lowering
