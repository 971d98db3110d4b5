#include "lowering/builder/builder.h"

#include <gmock/gmock.h>

#include "ir/hlo/monoid.h"
#include "ir/hlo/text/printer.h"
#include "ir/hlo/verifier.h"
#include "ir/support/status.h"

namespace lazuli::lowering {
namespace {

using ::testing::HasSubstr;

std::string Text(const hlo::Computation& computation) {
  std::string text;
  for (const auto& i : computation.instructions())
    text += hlo::ToString(*i, hlo::PrintOptions::Short()) + "\n";
  return text;
}

std::string Error(const Builder& b) { return std::string(Message(b.status())); }

class BuilderTest : public ::testing::Test {
 protected:
  Op Input(DType dtype, std::initializer_list<int64_t> dims) {
    return b.Parameter(next_++, Shape(dtype, dims));
  }
  hlo::Module module{"test"};
  Builder b{&module, "main"};

 private:
  int64_t next_ = 0;
};

TEST_F(BuilderTest, InfersShapesAndFinishesWithARoot) {
  const Op x = Input(DType::kF32, {2, 3}), y = Input(DType::kF32, {3, 4});
  hlo::DotAttrs attrs;
  attrs.lhs_contracting_dims = {1};
  attrs.rhs_contracting_dims = {0};
  const Op product = b.Dot(x, y, attrs);
  EXPECT_EQ(product.shape().ToString(), "f32[2,4]");
  const Op relu = b.Maximum(product, b.ZerosLike(product));
  const auto computation = b.Finish(relu);
  ASSERT_TRUE(computation.ok()) << Error(b);
  EXPECT_EQ((*computation)->root(), relu.instruction());
  module.set_entry(*computation);
  EXPECT_TRUE(hlo::Verify(module).ok()) << Message(hlo::Verify(module));
}

TEST_F(BuilderTest, KeepsTheFirstErrorAndPoisonsWhatFollows) {
  const Op x = Input(DType::kF32, {2, 3}), y = Input(DType::kF32, {4});
  const Op bad = b.Plus(x, y);
  const std::string first = Error(b);
  EXPECT_THAT(first, HasSubstr("add"));
  EXPECT_THAT(first, HasSubstr("f32[2,3]"));
  EXPECT_THAT(first, HasSubstr("f32[4]"));
  EXPECT_EQ(bad.instruction(), nullptr);
  EXPECT_EQ(bad.shape().ToString(), "f32[]");
  const int64_t count = b.computation()->instruction_count();
  b.Reshape(bad, {7});
  b.Constant(Literal::Scalar(1.0f));
  EXPECT_EQ(b.computation()->instruction_count(), count);
  EXPECT_EQ(Error(b), first);
  EXPECT_EQ(std::string(Message(b.Finish(x).status())), first);
}

TEST_F(BuilderTest, RefusesValuesOfAnotherBuilder) {
  Builder other(&module, "other");
  const Op stranger = other.Parameter(0, Shape(DType::kF32));
  b.Plus(Input(DType::kF32, {}), stranger);
  EXPECT_EQ(Error(b), "add: operand 1 belongs to another builder");
  EXPECT_TRUE(other.status().ok());
}

TEST_F(BuilderTest, BroadcastsLikeNumPy) {
  const Op x = Input(DType::kF32, {8, 1, 16}), y = Input(DType::kF32, {4, 1});
  const auto [a, c] = b.BroadcastTogether(x, y);
  EXPECT_EQ(a.shape().ToString(), "f32[8,4,16]");
  EXPECT_EQ(c.shape().ToString(), "f32[8,4,16]");
  EXPECT_EQ(b.BroadcastTo(x, {8, 1, 16}).instruction(), x.instruction());
  EXPECT_EQ(b.BroadcastTo(Input(DType::kS32, {}), {0, 2}).shape().ToString(), "s32[0,2]");
  EXPECT_TRUE(b.status().ok()) << Error(b);
}

TEST_F(BuilderTest, BroadcastErrorsNameBothShapes) {
  b.BroadcastTogether(Input(DType::kF32, {8, 16}), Input(DType::kF32, {4}));
  EXPECT_EQ(Error(b), "shapes f32[8,16] and f32[4] do not broadcast");
  Builder other(&module, "other");
  other.BroadcastTo(other.Parameter(0, Shape(DType::kF32, {3})), {2});
  EXPECT_EQ(Error(other), "shape f32[3] does not broadcast to f32[2]");
  Builder shrink(&module, "shrink");
  shrink.BroadcastTo(shrink.Parameter(0, Shape(DType::kF32, {3})), {1});
  EXPECT_EQ(Error(shrink), "shape f32[3] does not broadcast to f32[1]");
}

TEST_F(BuilderTest, ReducesFromTheIdentity) {
  const Op x = Input(DType::kF32, {2, 3});
  const Op sum = b.Reduce(Opcode::kAdd, x, {1});
  const Op max = b.Reduce(Opcode::kMaximum, x, {0, 1});
  EXPECT_EQ(sum.shape().ToString(), "f32[2]");
  EXPECT_EQ(max.shape().ToString(), "f32[]");
  EXPECT_EQ(sum.instruction()->operand(1)->literal().AsDouble(0), 0);
  EXPECT_EQ(max.instruction()->operand(1)->literal().AsDouble(0),
            -std::numeric_limits<double>::infinity());
  EXPECT_EQ(hlo::MonoidOf(*sum.instruction()->to_apply()), Opcode::kAdd);
  EXPECT_EQ(b.Reduce(Opcode::kMinimum, Input(DType::kS8, {2}), {0})
                .instruction()
                ->operand(1)
                ->literal()
                .AsDouble(0),
            127);
  EXPECT_EQ(b.Reduce(Opcode::kAnd, Input(DType::kPred, {2}), {0})
                .instruction()
                ->operand(1)
                ->literal()
                .AsDouble(0),
            1);
}

TEST_F(BuilderTest, MakesScalarComputationsOnceAModule) {
  hlo::Computation* const add = b.ScalarComputation(Opcode::kAdd, DType::kF32);
  Builder other(&module, "other");
  EXPECT_EQ(other.ScalarComputation(Opcode::kAdd, DType::kF32), add);
  EXPECT_NE(b.ScalarComputation(Opcode::kAdd, DType::kS32), add);
  EXPECT_EQ(b.ScalarComputation(Opcode::kCopy, DType::kF32)->root()->opcode(), Opcode::kParameter);
}

TEST_F(BuilderTest, PoolsAndTheirGradient) {
  const Op x = Input(DType::kF32, {1, 1, 4, 4});
  const hlo::Window window = {{}, {}, {.size = 2, .stride = 2}, {.size = 2, .stride = 2}};
  const Op pooled = b.ReduceWindow(Opcode::kMaximum, x, window);
  EXPECT_EQ(pooled.shape().ToString(), "f32[1,1,2,2]");
  EXPECT_EQ(b.SelectAndScatter(x, pooled, window).shape().ToString(), "f32[1,1,4,4]");
  EXPECT_TRUE(b.status().ok()) << Error(b);
}

TEST_F(BuilderTest, RegionsAreComputationsOfTheirOwn) {
  const Shape s(DType::kS32);
  hlo::Computation* const condition =
      b.Region("condition", {s}, [](Builder& r, absl::Span<const Op> in) {
        return r.Compare(hlo::ComparisonDirection::kLt, in[0], r.Scalar(DType::kS32, 10));
      });
  hlo::Computation* const body = b.Region("body", {s}, [](Builder& r, absl::Span<const Op> in) {
    return r.Plus(in[0], r.Scalar(DType::kS32, 1));
  });
  const Op loop = b.While(Input(DType::kS32, {}), condition, body);
  EXPECT_EQ(loop.shape().ToString(), "s32[]");
  const auto computation = b.Finish(loop);
  ASSERT_TRUE(computation.ok()) << Error(b);
  module.set_entry(*computation);
  EXPECT_TRUE(hlo::Verify(module).ok()) << Message(hlo::Verify(module));
}

TEST_F(BuilderTest, ErrorsInRegionsAreTheBuilders) {
  const Op outer = Input(DType::kF32, {});
  b.Region("body", {Shape(DType::kF32)},
           [&](Builder& r, absl::Span<const Op> in) { return r.Plus(in[0], outer); });
  EXPECT_EQ(Error(b), "add: operand 1 belongs to another builder");
}

TEST_F(BuilderTest, RandomBitsComeWithTheNextState) {
  const Op state = Input(DType::kU64, {2});
  const auto [next, bits] =
      b.RngBitGenerator(hlo::RngAlgorithm::kPhilox, state, Shape(DType::kU32, {5}));
  EXPECT_EQ(next.shape().ToString(), "u64[2]");
  EXPECT_EQ(bits.shape().ToString(), "u32[5]");
  EXPECT_TRUE(b.status().ok()) << Error(b);
  b.RngBitGenerator(hlo::RngAlgorithm::kPhilox, state, Shape(DType::kF32, {5}));
  EXPECT_EQ(Error(b), "rng-bit-generator: bits of an unsigned type, not f32[5]");
}

TEST_F(BuilderTest, MetadataComesFromTheInnermostScope) {
  const Op x = Input(DType::kF32, {});
  Op inner, outer;
  {
    Builder::MetadataScope scope(b, {"aten__mul", "", "net.cc", 1});
    {
      Builder::MetadataScope nested(b, {"aten__relu", "", "net.cc", 2});
      inner = b.Times(x, x);
    }
    outer = b.Times(x, x);
  }
  const Op none = b.Times(x, x);
  b.SetOneShotMetadata({"", "conv1.weight", "", 0});
  const Op shot = b.Times(x, x), after = b.Times(x, x);
  EXPECT_EQ(inner.instruction()->metadata().op_type, "aten__relu");
  EXPECT_EQ(outer.instruction()->metadata().op_type, "aten__mul");
  EXPECT_TRUE(none.instruction()->metadata().empty());
  EXPECT_EQ(shot.instruction()->metadata().op_name, "conv1.weight");
  EXPECT_TRUE(after.instruction()->metadata().empty());
}

TEST_F(BuilderTest, ShapesSurviveLaterInstructions) {
  const Op x = Input(DType::kF32, {2, 3});
  const Shape& shape = x.shape();
  for (int i = 0; i < 1000; ++i) b.Plus(x, x);
  EXPECT_EQ(shape.ToString(), "f32[2,3]");
}

TEST_F(BuilderTest, NothingIsAddedForWhatIsThereAlready) {
  const Op x = Input(DType::kF32, {2, 3});
  EXPECT_EQ(b.Reshape(x, {2, 3}).instruction(), x.instruction());
  EXPECT_EQ(b.Convert(x, DType::kF32).instruction(), x.instruction());
  EXPECT_EQ(Text(*b.computation()).find('\n'), Text(*b.computation()).size() - 1);
}

TEST_F(BuilderTest, HugeShapesAreAnError) {
  b.Broadcast(Input(DType::kF32, {}), {int64_t{1} << 40, int64_t{1} << 40}, {});
  EXPECT_FALSE(b.status().ok());
}

TEST(ShapesOnlyTest, InfersTheSameShapesWithoutAModule) {
  Builder b(Builder::Mode::kShapesOnly);
  const Op x = b.Parameter(0, Shape(DType::kF32, {8, 3}));
  EXPECT_TRUE(b.shapes_only());
  EXPECT_EQ(b.Reduce(Opcode::kAdd, x, {1}).shape().ToString(), "f32[8]");
  EXPECT_EQ(b.Transpose(x, {1, 0}).shape().ToString(), "f32[3,8]");
  EXPECT_EQ(x.instruction(), nullptr);
  EXPECT_EQ(b.ScalarComputation(Opcode::kAdd, DType::kF32), nullptr);
  const hlo::Window window = {{.size = 2, .stride = 2}, {}};
  EXPECT_EQ(b.ReduceWindow(Opcode::kMaximum, x, window).shape().ToString(), "f32[4,3]");
  EXPECT_EQ(
      b.SelectAndScatter(x, b.ReduceWindow(Opcode::kMaximum, x, window), window).shape().ToString(),
      "f32[8,3]");
  EXPECT_EQ(b.Sort({x}, 0, true, nullptr).shape().ToString(), "f32[8,3]");
  EXPECT_EQ(b.While(x, nullptr, nullptr).shape().ToString(), "f32[8,3]");
  hlo::ScatterAttrs scatter;
  scatter.inserted_window_dims = {0};
  scatter.update_window_dims = {1};
  scatter.scatter_dims_to_operand_dims = {0};
  scatter.index_vector_dim = 1;
  const Op indices = b.Parameter(1, Shape(DType::kS32, {4, 1})),
           updates = b.Parameter(2, Shape(DType::kF32, {4, 3}));
  EXPECT_EQ(b.Scatter(x, indices, updates, scatter, Opcode::kAdd).shape().ToString(), "f32[8,3]");
  EXPECT_EQ(b.RngBitGenerator(hlo::RngAlgorithm::kPhilox, b.Parameter(3, Shape(DType::kU64, {2})),
                              Shape(DType::kU32, {5}))
                .second.shape()
                .ToString(),
            "u32[5]");
  EXPECT_TRUE(b.status().ok()) << Error(b);
}

TEST(ShapesOnlyTest, ResetForgetsErrorsAndValues) {
  Builder b(Builder::Mode::kShapesOnly);
  const Op x = b.Parameter(0, Shape(DType::kF32, {8}));
  b.Reshape(x, {9});
  EXPECT_FALSE(b.status().ok());
  b.Reset();
  EXPECT_TRUE(b.status().ok());
  b.Unary(Opcode::kNegate, x);
  EXPECT_EQ(Error(b), "negate: operand 0 belongs to another builder");
}

TEST(ShapesOnlyTest, RegionsRunForTheirErrors) {
  Builder b(Builder::Mode::kShapesOnly);
  bool ran = false;
  auto bad = [&](Builder& r, absl::Span<const Op> in) {
    ran = true;
    return r.Reshape(in[0], {2});
  };
  EXPECT_EQ(b.Region("body", {Shape(DType::kF32, {3})}, bad), nullptr);
  EXPECT_TRUE(ran);
  EXPECT_THAT(Error(b), HasSubstr("reshape"));
}

}  // namespace
}  // namespace lazuli::lowering
