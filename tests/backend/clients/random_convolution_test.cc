// Convolutions of every form - groups of features or of the batch, windows strided, dilated, padded
// (by negative numbers, too) and reversed dimension by dimension, labels in any order - are library
// calls on the CPU and give the interpreter's values.
//
// LAZULI_FUZZ_PROGRAMS and LAZULI_FUZZ_SEED: how many, and from which seed on.
#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "ir/hlo/module.h"
#include "ir/hlo/shapes/shape_inference.h"
#include "ir/hlo/text/parser.h"
#include "ir/hlo/text/printer.h"
#include "tests/backend/clients/client_test.h"
#include "tests/support/hlo_test.h"

namespace lazuli {
namespace {

using ir::Dims;
using ir::DType;
using ir::Shape;

uint64_t Environment(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::strtoull(value, nullptr, 10) : otherwise;
}

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  // Text of a module, or nothing if the numbers that were drawn leave no result.
  std::string Next();
  DType dtype() const { return dtype_; }

 private:
  int64_t Pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  hlo::WindowDim PickWindow();
  // Places {first, second, spatial...} in a random order; `sizes` becomes that of the array.
  Dims Arrange(Dims& sizes);

  std::mt19937_64 random_;
  DType dtype_ = DType::kF32;
};

hlo::WindowDim Generator::PickWindow() {
  return {.size = Pick(1, 4),
          .stride = Pick(1, 3),
          .pad_low = Pick(-1, 3),
          .pad_high = Pick(-1, 3),
          .base_dilation = Pick(0, 2) == 0 ? Pick(2, 3) : 1,
          .window_dilation = Pick(1, 2),
          .reversal = Pick(0, 2) == 0};
}

Dims Generator::Arrange(Dims& sizes) {
  Dims places(sizes.size());
  std::iota(places.begin(), places.end(), 0);
  std::shuffle(places.begin(), places.end(), random_);
  Dims arranged(sizes.size());
  for (std::size_t d = 0; d < sizes.size(); ++d)
    arranged[static_cast<std::size_t>(places[d])] = sizes[d];
  sizes = arranged;
  return places;
}

std::string Generator::Next() {
  constexpr DType kTypes[] = {DType::kF32, DType::kF32, DType::kF64, DType::kC64, DType::kC128,
                              DType::kS32, DType::kU8,  DType::kS16, DType::kU64, DType::kBF16};
  dtype_ = kTypes[Pick(0, std::size(kTypes) - 1)];
  const int64_t groups = Pick(0, 1) == 0 ? 1 : Pick(2, 4);
  const bool of_batch = Pick(0, 1) == 0;
  const int64_t channels = Pick(1, 4);  // of a group
  hlo::ConvolutionAttrs attrs;
  (of_batch ? attrs.batch_group_count : attrs.feature_group_count) = groups;
  Dims input{Pick(1, 3) * (of_batch ? groups : 1), channels * (of_batch ? 1 : groups)};
  Dims kernel{groups * Pick(1, 4), channels};
  const int64_t spatial = Pick(0, 3);
  for (int64_t d = 0; d < spatial; ++d) {
    attrs.window.push_back(PickWindow());
    input.push_back(Pick(1, 8));
    kernel.push_back(attrs.window.back().size);
  }
  hlo::ConvDims& labels = attrs.dim_labels;
  const auto rest = [](const Dims& places) { return Dims(places.begin() + 2, places.end()); };
  const Dims in = Arrange(input), of = Arrange(kernel);
  labels.input_batch = in[0], labels.input_feature = in[1], labels.input_spatial = rest(in);
  labels.kernel_output_feature = of[0], labels.kernel_input_feature = of[1];
  labels.kernel_spatial = rest(of);
  Dims result(input.size(), 1);
  const Dims out = Arrange(result);
  labels.output_batch = out[0], labels.output_feature = out[1], labels.output_spatial = rest(out);

  hlo::Module module("random");
  hlo::Computation* const entry = module.AddComputation("main");
  hlo::Instruction* const x = entry->AddParameter(0, Shape(dtype_, input));
  hlo::Instruction* const w = entry->AddParameter(1, Shape(dtype_, kernel));
  const auto shape = hlo::InferShape(hlo::Opcode::kConvolution, {&x->shape(), &w->shape()}, attrs);
  if (!shape.ok() || shape->num_elements() == 0) return "";
  entry->set_root(entry->Add(hlo::Opcode::kConvolution, *shape, {x, w}, attrs));
  module.set_entry(entry);
  return module.ToString();
}

// What the order of a sum may change; integers have none.
double BoundOf(DType dtype) {
  switch (dtype) {
    case DType::kBF16:
      return 1e-2;
    case DType::kF32:
    case DType::kC64:
      return 1e-4;
    case DType::kF64:
    case DType::kC128:
      return 1e-12;
    default:
      return 0;
  }
}

// Whether some window has padding in it, or holes between dilated elements.
bool HasZeros(const hlo::Module& module) {
  for (const hlo::WindowDim& w : module.entry()->root()->attrs_as<hlo::ConvolutionAttrs>().window) {
    if (w.pad_low > 0 || w.pad_high > 0 || w.base_dilation > 1) return true;
  }
  return false;
}

// One element of the input or of the kernel is infinity or NaN: it reaches the results whose windows
// have it, in its own group, and no other.
TEST(RandomConvolutionTest, WhatIsNotFiniteReachesOnlyWhatItIsMultipliedFor) {
  const uint64_t seed = Environment("LAZULI_FUZZ_SEED", 1);
  const uint64_t count = Environment("LAZULI_FUZZ_PROGRAMS", 400);
  uint64_t compared = 0;
  for (uint64_t i = seed; i < seed + count; ++i) {
    Generator generator(i);
    const std::string hlo = generator.Next();
    if (hlo.empty() || !ir::IsFloat(generator.dtype())) continue;
    SCOPED_TRACE(ir::Str("seed ", i, "\n", hlo));
    const auto module = ParseHlo(hlo);
    auto arguments = RandomArguments(*module);
    const bool in_kernel = i % 2 == 0;
    ir::Literal& x = arguments[in_kernel ? 1 : 0];
    constexpr double kInf = std::numeric_limits<double>::infinity();
    x.SetFromDouble(
        static_cast<int64_t>(i * 7919 % static_cast<uint64_t>(x.shape().num_elements())),
        i % 3 == 0 ? std::numeric_limits<double>::quiet_NaN() : kInf);
    const auto expected = RunOn("interpreter", hlo, arguments);
    ASSERT_TRUE(expected.ok()) << expected.status();
    for (const std::string_view platform : {"cpu", "npu"}) {
      // The NPU's units multiply the zeros of padding and of holes (docs/npu.md).
      if (platform == "npu" && in_kernel && HasZeros(*module)) continue;
      SCOPED_TRACE(platform);
      const auto actual = RunOn(platform, hlo, arguments, {.op_filter = false});
      ASSERT_TRUE(actual.ok()) << actual.status();
      SCOPED_TRACE(actual->text);
      const double bound = BoundOf(generator.dtype());
      ExpectClose(expected->outputs[0], actual->outputs[0], bound, bound);
    }
    if (HasFailure()) return;
    ++compared;
  }
  EXPECT_GE(compared, count / 6);
}

// Large enough for the NPU's array, on which small groups of integers are multiplied together.
TEST(RandomConvolutionTest, AnInfinityStaysInItsGroup) {
  for (const char* const type : {"f32", "bf16"}) {
    const std::string hlo = ir::Str("ENTRY e { x = ", type, "[1,32,14,14] parameter(0) k = ", type,
                                    "[32,16,3,3] parameter(1) ", "ROOT r = ", type,
                                    "[1,32,12,12] convolution(x, k), window={size=3x3}, "
                                    "dim_labels=bf01_oi01->bf01, feature_group_count=2 }");
    auto arguments = RandomArguments(*ParseHlo(hlo));
    arguments[0].SetFromDouble(0, std::numeric_limits<double>::infinity());
    const auto expected = RunOn("interpreter", hlo, arguments);
    ASSERT_TRUE(expected.ok()) << expected.status();
    for (const char* const platform : {"cpu", "npu"}) {
      SCOPED_TRACE(ir::Str(platform, " ", type));
      const auto actual = RunOn(platform, hlo, arguments, {.op_filter = false});
      ASSERT_TRUE(actual.ok()) << actual.status();
      ExpectClose(expected->outputs[0], actual->outputs[0], 1e-2, 1e-1);
    }
  }
}

TEST(RandomConvolutionTest, CpuAgreesWithInterpreterThroughTheLibrary) {
  const uint64_t seed = Environment("LAZULI_FUZZ_SEED", 1);
  const uint64_t count = Environment("LAZULI_FUZZ_PROGRAMS", 300);
  uint64_t compared = 0;
  for (uint64_t i = seed; i < seed + count; ++i) {
    Generator generator(i);
    const std::string hlo = generator.Next();
    if (hlo.empty()) continue;
    SCOPED_TRACE(ir::Str("seed ", i, "\n", hlo));
    const auto arguments = RandomArguments(*ParseHlo(hlo));
    const auto expected = RunOn("interpreter", hlo, arguments);
    ASSERT_TRUE(expected.ok()) << expected.status();
    const auto actual = RunOn("cpu", hlo, arguments);
    ASSERT_TRUE(actual.ok()) << actual.status();
    EXPECT_EQ(actual->stats.library_calls, 1);
    EXPECT_EQ(actual->stats.evaluator_thunks, 0);
    const double bound = BoundOf(generator.dtype());
    if (bound == 0) {
      ExpectSameBits(expected->outputs[0], actual->outputs[0]);
    } else {
      ExpectClose(expected->outputs[0], actual->outputs[0], bound, bound);
    }
    if (HasFailure()) return;
    ++compared;
  }
  EXPECT_GE(compared, count / 3);
}

}  // namespace
}  // namespace lazuli
