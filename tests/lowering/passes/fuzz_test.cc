// Random programs through the simplification pipeline: the values must stay the same bit for bit.
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "ir/evaluator/evaluator.h"
#include "ir/hlo/printer.h"
#include "ir/hlo/verifier.h"
#include "ir/support/status.h"
#include "lowering/builder/builder.h"
#include "lowering/passes/pipelines.h"
#include "tests/support/hlo_test.h"

namespace lazuli::lowering {
namespace {

// Writes programs from pieces that the rules look for: special constants, chains of shape changes,
// both sides the same.
class Generator {
 public:
  explicit Generator(uint64_t seed) : rng_(seed) {}

  std::unique_ptr<hlo::Module> Make() {
    auto module = std::make_unique<hlo::Module>("fuzz");
    Builder b(module.get(), "main");
    for (int64_t i = 0; i < 4; ++i) {
      values_.push_back(b.Parameter(
          i, Shape(Pick({DType::kF32, DType::kF32, DType::kS32, DType::kPred}), {2, 3})));
    }
    for (int i = 0; i < 40; ++i) values_.push_back(Next(b));
    const Op root = b.Tuple(absl::MakeConstSpan(values_).last(6));
    const auto entry = b.Finish(root);
    EXPECT_TRUE(entry.ok()) << Message(entry.status());
    module->set_entry(*entry);
    return module;
  }

 private:
  std::size_t Below(std::size_t n) { return rng_() % n; }
  template <class T>
  T Pick(std::initializer_list<T> options) {
    return *(options.begin() + Below(options.size()));
  }
  Op Any() { return Below(3) == 0 ? values_.back() : values_[Below(values_.size())]; }

  Op Next(Builder& b) {
    const Op x = Any();
    switch (Below(5)) {
      case 0:
        return Reshaped(b, x);
      case 1:
        return b.Convert(x,
                         Pick({DType::kF32, DType::kS32, DType::kPred, DType::kF64, DType::kS8}));
      case 2:
        return b.Select(b.Convert(Like(b, x), DType::kPred), x, b.Convert(Like(b, x), x.dtype()));
      case 3:
        return Unary(b, x);
      default:
        return Binary(b, x);
    }
  }

  // A value of x's dims: x itself, a constant, or another value made to fit.
  Op Like(Builder& b, Op x) {
    const Op y = Any();
    if (Below(4) == 0) return x;
    if (Below(2) == 0 || y.shape().num_elements() != x.shape().num_elements()) {
      return b.Full(x.shape(), x.dtype() == DType::kPred
                                   ? static_cast<double>(Below(2))
                                   : Pick({0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -4.0}));
    }
    return b.Reshape(y, x.shape().dims());
  }

  Op Unary(Builder& b, Op x) {
    if (x.dtype() == DType::kPred) return b.Unary(Opcode::kNot, x);
    if (!IsFloat(x.dtype())) return b.Unary(Pick({Opcode::kNegate, Opcode::kAbs, Opcode::kNot}), x);
    return b.Unary(
        Pick({Opcode::kNegate, Opcode::kAbs, Opcode::kFloor, Opcode::kCeil, Opcode::kTanh}), x);
  }

  Op Binary(Builder& b, Op x) {
    const Op y = b.Convert(Like(b, x), x.dtype());
    const bool swap = Below(2) == 0;
    const Op left = swap ? y : x, right = swap ? x : y;
    if (x.dtype() == DType::kPred)
      return b.Binary(Pick({Opcode::kAnd, Opcode::kOr, Opcode::kXor}), left, right);
    if (Below(6) == 0) {
      using enum hlo::ComparisonDirection;
      return b.Compare(Pick({kEq, kNe, kLt, kLe, kGt, kGe}), left, right);
    }
    return b.Binary(Pick({Opcode::kAdd, Opcode::kSubtract, Opcode::kMultiply, Opcode::kDivide,
                          Opcode::kMaximum, Opcode::kMinimum, Opcode::kRemainder}),
                    left, right);
  }

  Op Reshaped(Builder& b, Op x) {
    const int64_t rank = x.rank();
    const Dims dims(x.shape().dims().begin(), x.shape().dims().end());
    Dims permutation, zeros(dims.size(), 0), ones(dims.size(), 1);
    for (int64_t d = rank - 1; d >= 0; --d) permutation.push_back(d);
    switch (Below(8)) {
      case 0:
        return b.Transpose(x, permutation);
      case 1:
        return b.Reshape(x, {x.shape().num_elements(), 1});
      case 2:
        return rank < 3 ? b.BroadcastTo(x, PutBefore(dims))
                        : b.Reshape(x, {x.shape().num_elements()});
      case 3:
        return rank == 0 ? x : b.Reverse(x, {static_cast<int64_t>(Below(dims.size()))});
      case 4:
        return b.Slice(x, zeros, dims, ones);
      case 5:
        return b.Pad(x, b.Scalar(x.dtype(), 0), zeros, zeros, zeros);
      case 6:
        return rank == 0 ? x : b.Concatenate({b.Slice(x, zeros, dims, ones)}, 0);
      default:
        return rank == 0 || x.dtype() == DType::kPred ? x : Reduced(b, x);
    }
  }

  Dims PutBefore(const Dims& dims) {
    Dims result = {static_cast<int64_t>(1 + Below(2))};
    result.insert(result.end(), dims.begin(), dims.end());
    return result;
  }

  Op Reduced(Builder& b, Op x) {
    const auto d = static_cast<int64_t>(Below(static_cast<std::size_t>(x.rank())));
    return b.Reduce(Pick({Opcode::kAdd, Opcode::kMultiply, Opcode::kMaximum, Opcode::kMinimum}), x,
                    {d});
  }

  std::mt19937_64 rng_;
  std::vector<Op> values_;
};

class PipelineFuzzTest : public ::testing::TestWithParam<uint64_t> {};

TEST_P(PipelineFuzzTest, KeepsValues) {
  for (uint64_t seed = GetParam(); seed < GetParam() + 50; ++seed) {
    const std::unique_ptr<hlo::Module> before = Generator(seed).Make();
    const std::unique_ptr<hlo::Module> after = before->Clone();
    PassPipeline pipeline("fuzz");
    AddSimplificationPipeline(pipeline);
    const absl::StatusOr<bool> changed = pipeline.Run(*after);
    SCOPED_TRACE(Str("seed ", seed, "\n", hlo::ToString(*before), "\n", hlo::ToString(*after)));
    ASSERT_TRUE(changed.ok()) << Message(changed.status());
    const absl::Status verified = hlo::Verify(*after);
    ASSERT_TRUE(verified.ok()) << Message(verified);
    for (RandomValues values : {RandomValues::kTame, RandomValues::kSpecial}) {
      const std::vector<Literal> arguments = RandomArguments(*before, values);
      std::vector<const Literal*> pointers;
      for (const Literal& argument : arguments) pointers.push_back(&argument);
      const auto expected = hlo::Evaluate(*before, pointers),
                 actual = hlo::Evaluate(*after, pointers);
      ASSERT_TRUE(expected.ok()) << Message(expected.status());
      ASSERT_TRUE(actual.ok()) << Message(actual.status());
      ExpectSameBits(*expected, *actual);
      if (HasFailure()) return;
    }
    EXPECT_FALSE(*pipeline.Run(*after)) << "four rounds were not enough";
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, PipelineFuzzTest, ::testing::Range<uint64_t>(0, 2000, 50));

}  // namespace
}  // namespace lazuli::lowering
