#include "lowering/emit/emit.h"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/evaluator/evaluator.h"
#include "ir/hlo/text/parser.h"
#include "ir/hlo/verifier.h"
#include "ir/support/status.h"
#include "tests/support/hlo_test.h"
#include "tests/support/small_stack.h"

namespace lazuli::lowering {
namespace {

using ir::Node;
using ir::NodeKind;
using ir::Value;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using LowerFunction = std::function<void(LoweringContext&, absl::Span<const Op>, std::vector<Op>&)>;

class FunctionNode final : public Node {
 public:
  FunctionNode(NodeKind kind, ir::SiteId site, std::vector<Value> operands,
               std::vector<Shape> shapes, LowerFunction lower = {})
      : Node(kind, site), operands_(std::move(operands)), lower_(std::move(lower)) {
    shapes_.assign(shapes.begin(), shapes.end());
    SetOperands(operands_.data(), operands_.size());
  }
  std::string_view name() const override { return "op"; }
  std::string_view dump_name() const override { return "aten::op"; }
  void AppendKey(ir::KeyWriter&) const override {}
  void Lower(LoweringContext& context, absl::Span<const Op> operands,
             std::vector<Op>& results) const override {
    lower_(context, operands, results);
  }

 private:
  std::vector<Value> operands_;
  LowerFunction lower_;
};

const Shape kF2(DType::kF32, {2});

Value Leaf(NodeKind kind, Shape shape) {
  return {ir::MakeIntrusive<FunctionNode>(kind, ir::kNoSite, std::vector<Value>(),
                                          std::vector<Shape>{std::move(shape)}),
          0};
}
Value Make(std::vector<Value> in, std::vector<Shape> shapes, LowerFunction lower,
           ir::SiteId site = ir::kNoSite) {
  return {ir::MakeIntrusive<FunctionNode>(NodeKind::kOp, site, std::move(in), std::move(shapes),
                                          std::move(lower)),
          0};
}
Value Binary(Opcode opcode, const Value& x, const Value& y, ir::SiteId site = ir::kNoSite) {
  return Make(
      {x, y}, {x.shape()},
      [opcode](LoweringContext& c, absl::Span<const Op> in, std::vector<Op>& out) {
        const auto [l, r] = c.builder.BroadcastTogether(in[0], in[1]);
        out.push_back(c.builder.Binary(opcode, l, r));
      },
      site);
}

absl::StatusOr<EmittedModule> Emit(std::vector<Value> roots, const EmitOptions& options = {}) {
  ir::Trace trace;
  trace.roots = std::move(roots);
  ir::TraceGraph(trace);
  return EmitModule(trace, options);
}
EmittedModule MustEmit(std::vector<Value> roots, const EmitOptions& options = {}) {
  absl::StatusOr<EmittedModule> emitted = Emit(std::move(roots), options);
  LAZULI_CHECK(emitted.ok(), Message(emitted.status()));
  const absl::Status verified = hlo::Verify(*emitted->module);
  LAZULI_CHECK(verified.ok(), Message(verified));
  return *std::move(emitted);
}

TEST(EmitTest, ParametersAreDataInOrderOfFirstVisitThenNumbers) {
  const Value s = Leaf(NodeKind::kScalar, Shape(DType::kF32)), a = Leaf(NodeKind::kData, kF2);
  const Value b = Leaf(NodeKind::kData, Shape(DType::kF32, {1, 2}));
  const Value x = Binary(Opcode::kMultiply, a, s);
  const Value y = Make({x, b}, {Shape(DType::kF32, {1, 2})},
                       [](LoweringContext& c, absl::Span<const Op> in, std::vector<Op>& out) {
                         const auto [l, r] = c.builder.BroadcastTogether(in[0], in[1]);
                         out.push_back(c.builder.Plus(l, r));
                       });
  const EmittedModule emitted =
      MustEmit({y}, {.name = "Graph.1", .aliases = {}, .parameter_names = {"fc.weight"}});
  const auto& parameters = emitted.module->entry()->parameters();
  ASSERT_EQ(parameters.size(), 3u);
  EXPECT_EQ(emitted.module->name(), "Graph.1");
  EXPECT_EQ(parameters[0]->shape(), kF2);
  EXPECT_EQ(parameters[0]->name(), "p0.1");
  EXPECT_EQ(parameters[0]->metadata().op_name, "fc.weight");
  EXPECT_EQ(parameters[1]->shape(), Shape(DType::kF32, {1, 2}));
  EXPECT_EQ(parameters[1]->name(), "p1.2");
  EXPECT_EQ(parameters[1]->metadata().op_name, "");
  EXPECT_EQ(parameters[2]->shape(), Shape(DType::kF32));
  EXPECT_EQ(parameters[2]->name(), "p2.3");
}

TEST(EmitTest, TheRootIsATupleOfTheRootsInOrder) {
  const Value a = Leaf(NodeKind::kData, kF2);
  const Value x = Binary(Opcode::kAdd, a, a), y = Binary(Opcode::kMultiply, x, x);
  const EmittedModule one = MustEmit({x});
  EXPECT_TRUE(one.module->entry()->root()->shape().IsTuple());
  const EmittedModule two = MustEmit({y, x, x});
  const hlo::Instruction& root = *two.module->entry()->root();
  ASSERT_EQ(root.operands().size(), 3u);
  EXPECT_EQ(root.operand(0)->opcode(), Opcode::kMultiply);
  EXPECT_EQ(root.operand(1)->opcode(), Opcode::kAdd);
  EXPECT_EQ(root.operand(1), root.operand(2));
}

TEST(EmitTest, InstructionsCarryOpAndLine) {
  const Value a = Leaf(NodeKind::kData, kF2);
  const Value x = Binary(Opcode::kAdd, a, a, ir::InternSite("/home/u/train.cc", "main", 41));
  const EmittedModule emitted = MustEmit({x});
  const hlo::Metadata& metadata = emitted.module->entry()->root()->operand(0)->metadata();
  EXPECT_EQ(metadata.op_type, "aten__op");
  EXPECT_EQ(metadata.op_name, "aten__op");
  EXPECT_EQ(metadata.source_file, "/home/u/train.cc");
  EXPECT_EQ(metadata.source_line, 41);
  const auto parsed = hlo::ParseModule(emitted.module->ToString());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ((*parsed)->ToString(), emitted.module->ToString());
}

TEST(EmitTest, SeveralOutputsOfANodeAreToldApart) {
  const Value a = Leaf(NodeKind::kData, kF2);
  const Value both =
      Make({a}, {kF2, Shape(DType::kPred, {2})},
           [](LoweringContext& c, absl::Span<const Op> in, std::vector<Op>& out) {
             out.push_back(c.builder.Plus(in[0], in[0]));
             out.push_back(c.builder.Compare(hlo::ComparisonDirection::kLt, in[0], in[0]));
           });
  const EmittedModule emitted = MustEmit({{both.node, 1}, both});
  const hlo::Instruction& root = *emitted.module->entry()->root();
  EXPECT_EQ(root.operand(0)->opcode(), Opcode::kCompare);
  EXPECT_EQ(root.operand(1)->opcode(), Opcode::kAdd);
}

TEST(EmitTest, ChecksBecomeOutputsBehindTheRoots) {
  const Value labels = Leaf(NodeKind::kData, Shape(DType::kS32, {3}));
  auto checked = [](LoweringContext& c, absl::Span<const Op> in, std::vector<Op>& out) {
    const Op bad =
        c.builder.Compare(hlo::ComparisonDirection::kLt, in[0], c.builder.ZerosLike(in[0]));
    c.CheckNone(bad, in[0], {"op", "label ", " is negative"});
    out.push_back(c.builder.Plus(in[0], in[0]));
  };
  const Value x = Make({labels}, {labels.shape()}, checked),
              y = Make({x}, {labels.shape()}, checked);
  const EmittedModule emitted = MustEmit({y});
  ASSERT_EQ(emitted.checks.size(), 2u);
  EXPECT_EQ(emitted.checks[0].node, 1u);  // 0 is the leaf
  EXPECT_EQ(emitted.checks[1].node, 2u);
  const CheckMessage& message = emitted.checks[0].message;
  EXPECT_EQ(message.op, "op");
  EXPECT_EQ(message.before, "label ");
  EXPECT_EQ(message.after, " is negative");
  const hlo::Instruction& root = *emitted.module->entry()->root();
  ASSERT_EQ(root.operands().size(), 3u);
  EXPECT_EQ(root.operand(1)->shape(), Shape(DType::kS64));
  const Literal good = Literal::FromValues<int32_t>({3}, {0, 4, 2}),
                bad = Literal::FromValues<int32_t>({3}, {5, -7, -3});
  const Literal* arguments[] = {&good};
  EXPECT_EQ(hlo::Evaluate(*emitted.module, arguments)->tuple()[1].data<int64_t>()[0],
            RuntimeCheck::kNoOffender);
  arguments[0] = &bad;
  EXPECT_EQ(hlo::Evaluate(*emitted.module, arguments)->tuple()[1].data<int64_t>()[0], -3);
}

TEST(EmitTest, WhatLoweringYieldsMustBeWhatWasRecorded) {
  const ir::SiteId site = ir::InternSite("a.cc", "f", 7);
  const Value a = Leaf(NodeKind::kData, kF2);
  const auto wrong_shape = Emit({Make(
      {a}, {Shape(DType::kF32, {3})},
      [](LoweringContext&, absl::Span<const Op> in, std::vector<Op>& out) { out.push_back(in[0]); },
      site)});
  EXPECT_EQ(Message(wrong_shape.status()), "op: recorded as f32[3], lowered to f32[2] (a.cc:7)");
  const auto wrong_count = Emit({Make(
      {a}, {kF2, kF2},
      [](LoweringContext&, absl::Span<const Op> in, std::vector<Op>& out) { out.push_back(in[0]); },
      site)});
  EXPECT_EQ(Message(wrong_count.status()), "op: recorded 2 results, lowered 1 (a.cc:7)");
}

TEST(EmitTest, AnErrorOfLoweringNamesTheOpAndItsLine) {
  const Value a = Leaf(NodeKind::kData, kF2);
  const auto emitted = Emit({Make(
      {a}, {kF2},
      [](LoweringContext& c, absl::Span<const Op>, std::vector<Op>& out) {
        out.push_back(c.builder.Error(ir::Unimplemented("not today")));
      },
      ir::InternSite("a.cc", "f", 7))});
  EXPECT_EQ(emitted.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(Message(emitted.status()), "op: not today (a.cc:7)");
}

TEST(EmitTest, ADeepChainEmitsInASmallStack) {
  lazuli::test::RunInSmallStack([] {
    const int n = lazuli::test::kSanitized ? 20'000 : 200'000;
    Value x = Leaf(NodeKind::kData, kF2);
    const Value a = x;
    for (int i = 0; i < n; ++i) x = Binary(Opcode::kAdd, x, a);
    const auto emitted = Emit({x});
    ASSERT_TRUE(emitted.ok()) << emitted.status();
    EXPECT_EQ(emitted->module->entry()->instruction_count(), n + 2);
  });
}

TEST(EmitTest, NarrowProgramsComputeInOtherDtypesThanTensorsHave) {
  const Value a = Leaf(NodeKind::kData, kF2), n = Leaf(NodeKind::kData, Shape(DType::kS64, {2})),
              d = Leaf(NodeKind::kData, Shape(DType::kF64, {2}));
  const Value x = Binary(Opcode::kMultiply, a, a);
  // Needs the 32 bits that were recorded.
  const Value bits = Make(
      {x}, {Shape(DType::kS32, {2})},
      [](LoweringContext& c, absl::Span<const Op> in, std::vector<Op>& out) {
        const Shape word(DType::kS32, {2});
        out.push_back(c.builder.Add(Opcode::kBitcastConvert, {in[0]}, hlo::NoAttrs{}, {}, &word));
      });
  const std::vector<Value> roots{x, Binary(Opcode::kAdd, n, n), Binary(Opcode::kAdd, d, d), bits};
  using enum Narrowing::Floats;
  const auto text = [&](const Narrowing& narrowing) {
    const EmittedModule emitted = MustEmit(
        roots, {.name = "Graph", .narrowing = narrowing, .aliases = {}, .parameter_names = {}});
    const hlo::Instruction& root = *emitted.module->entry()->root();
    for (std::size_t i = 0; i < roots.size(); ++i)
      EXPECT_EQ(root.operand(static_cast<int64_t>(i))->shape(), roots[i].shape());
    for (const hlo::Instruction* p : emitted.module->entry()->parameters())
      EXPECT_TRUE(p->shape() == kF2 || p->shape().dtype() == DType::kS64 ||
                  p->shape().dtype() == DType::kF64);
    return emitted.module->ToString();
  };
  EXPECT_THAT(text({}), AllOf(HasSubstr("f32[2]{0} multiply("), HasSubstr("s64[2]{0} add("),
                              HasSubstr("f64[2]{0} add("), Not(HasSubstr(" convert("))));
  EXPECT_THAT(text({.longs = true}),
              AllOf(HasSubstr(" f32[2]{0} multiply("), HasSubstr("s32[2]{0} add("),
                    HasSubstr("f64[2]{0} add(")));
  EXPECT_THAT(text({.floats = kAllBf16}),
              AllOf(HasSubstr("bf16[2]{0} multiply("), HasSubstr("s64[2]{0} add("),
                    HasSubstr("bf16[2]{0} add("), HasSubstr("s32[2]{0} bitcast-convert(%convert")));
  EXPECT_THAT(text({.longs = true, .floats = kDowncast}),
              AllOf(HasSubstr("bf16[2]{0} multiply("), HasSubstr("s32[2]{0} add("),
                    HasSubstr(" f32[2]{0} add("), HasSubstr("s32[2]{0} bitcast-convert(%convert")));
}

TEST(EmitTest, NoRootsGiveAnEmptyTuple) {
  const EmittedModule emitted = MustEmit({});
  EXPECT_EQ(emitted.module->entry()->root()->operands().size(), 0u);
}

}  // namespace
}  // namespace lazuli::lowering
