#include "ir/hlo/verifier.h"

#include <gtest/gtest.h>

#include "tests/ir/hlo/hlo_text.h"

namespace lazuli::hlo {
namespace {

constexpr const char* kVerified = R"(HloModule m
f { a = f32[] parameter(0)
  ROOT n = f32[] negate(a) }
ENTRY main { p = f32[2] parameter(0)
  q = f32[2] parameter(1)
  s = f32[2] add(p, q)
  m = f32[2] map(s), dimensions={0}, to_apply=f
  ROOT t = (f32[2], f32[2]) tuple(s, m) })";

class VerifierTest : public ::testing::Test {
 protected:
  Instruction* At(std::string_view name) { return main->Find(name); }
  std::string Error() { return ErrorOf(Verify(*module)); }

  std::unique_ptr<Module> module = Parse(kVerified);
  Computation* main = module->entry();
  Computation* f = module->computations()[0].get();
};

TEST_F(VerifierTest, AcceptsTheModule) { EXPECT_EQ(Error(), ""); }

TEST_F(VerifierTest, Entry) {
  module->set_entry(nullptr);
  EXPECT_EQ(Error(), "module m has no entry computation");
}

TEST_F(VerifierTest, Root) {
  module->AddComputation("empty");
  EXPECT_EQ(Error(), "computation empty has no root");
  module->RemoveComputation(module->computations().back().get());
  main->set_root(f->root());
  EXPECT_EQ(Error(), "computation main: its root is in another computation");
}

TEST_F(VerifierTest, ParameterNumbers) {
  main->AddParameter(3, Shape(DType::kF32));
  EXPECT_EQ(Error(), "computation main: parameter 2 of 4 is missing");
}

TEST_F(VerifierTest, RenumberedParameter) {
  std::get<ParameterAttrs>(At("q")->mutable_attrs()).number = 0;
  EXPECT_EQ(Error(), "q in main: parameter number 0 is not the one it was added with");
}

TEST_F(VerifierTest, OperandsOfAnotherComputation) {
  main->Add(Opcode::kNegate, Shape(DType::kF32), {f->root()});
  EXPECT_EQ(Error(), "n in f: is used by negate.8 of another computation");
}

TEST_F(VerifierTest, OperandsOfALaterComputation) {
  Computation* g = module->AddComputation("g");
  main->Add(Opcode::kNegate, Shape(DType::kF32), {g->AddParameter(0, Shape(DType::kF32))});
  EXPECT_EQ(Error(), "negate.9 in main: operand parameter.8 is in another computation");
}

TEST_F(VerifierTest, Cycles) {
  Instruction* back = main->Add(Opcode::kMultiply, Shape(DType::kF32, {2}), {At("s"), At("s")});
  At("s")->ReplaceOperand(1, back);
  EXPECT_NE(Error().find("depends on itself through"), std::string::npos) << Error();
}

TEST_F(VerifierTest, ControlPredecessors) {
  At("p")->AddControlPredecessor(f->root());
  EXPECT_EQ(Error(), "p in main: control predecessor n does not come before it");
}

TEST_F(VerifierTest, ShapesAgainstTheirRule) {
  *At("s")->mutable_shape() = Shape(DType::kF32, {3});
  EXPECT_EQ(
      Error(),
      "s in main: add: the result is f32[2], not the declared f32[3] (operands f32[2], f32[2])");
}

TEST_F(VerifierTest, LayoutsAreFree) {
  const auto other =
      Parse("ENTRY e { p = f32[2,3]{0,1} parameter(0)\n ROOT n = f32[2,3]{1,0} negate(p) }");
  EXPECT_TRUE(Verify(*other).ok());
}

TEST_F(VerifierTest, OperandCount) {
  main->Add(Opcode::kAdd, Shape(DType::kF32, {2}), {At("p")});
  EXPECT_EQ(Error(), "add.8 in main: add: takes 2 operands, not 1");
}

TEST_F(VerifierTest, RegionCount) {
  main->Add(Opcode::kMap, Shape(DType::kF32, {2}), {At("p")}, DimensionsAttrs{{0}});
  EXPECT_EQ(Error(), "map.8 in main: map calls 1 computations, not 0");
}

TEST_F(VerifierTest, BranchCount) {
  const Instruction* index = main->AddParameter(2, Shape(DType::kS32));
  main->Add(Opcode::kConditional, Shape(DType::kF32, {2}), {At(index->name()), At("p"), At("q")});
  EXPECT_EQ(Error(), "conditional.9 in main: conditional calls 2 computations, not 0");
}

TEST_F(VerifierTest, CalleeOfAnAsynchronousStart) {
  const Shape x(DType::kF32, {2});
  main->Add(Opcode::kAsyncStart, Shape::Tuple({Shape::Tuple({x}), x}), {At("p")}, AsyncAttrs{});
  EXPECT_EQ(Error(), "async-start.8 in main: async-start calls 1 computations, not 0");
}

TEST_F(VerifierTest, RegionSignature) {
  *f->parameters()[0]->mutable_shape() = Shape(DType::kS32);
  *f->root()->mutable_shape() = Shape(DType::kS32);
  EXPECT_EQ(Error(), "m in main: map: parameter 0 of to_apply f is s32[], not f32[]");
}

TEST_F(VerifierTest, CallsOfAnotherModule) {
  Module other("other");
  Computation* g = other.AddComputation("g");
  g->AddParameter(0, Shape(DType::kF32));
  main->Add(Opcode::kMap, Shape(DType::kF32, {2}), {At("p")}, DimensionsAttrs{{0}}, {g});
  EXPECT_EQ(Error(), "map.8 in main: calls a computation of another module");
}

TEST_F(VerifierTest, CallsOfTheEntry) {
  Computation* g = module->AddComputation("g");
  Instruction* p = g->AddParameter(0, Shape(DType::kF32, {2}));
  g->Add(Opcode::kCall, main->root()->shape(), {p, p}, NoAttrs{}, {main});
  EXPECT_EQ(Error(), "call.9 in g: calls the entry computation");
}

TEST_F(VerifierTest, Recursion) {
  const Shape scalar(DType::kF32);
  Computation* g = module->AddComputation("g");
  Computation* h = module->AddComputation("h");
  Instruction* p = g->AddParameter(0, scalar);
  Instruction* q = h->AddParameter(0, scalar);
  g->Add(Opcode::kCall, scalar, {p}, NoAttrs{}, {h});
  h->Add(Opcode::kCall, scalar, {q}, NoAttrs{}, {g});
  EXPECT_EQ(Error(), "computation g calls itself");
}

TEST_F(VerifierTest, Aliases) {
  module->aliases() = {{{0}, 0, {}}, {{1}, 1, {}}};
  EXPECT_EQ(Error(), "");
  module->aliases() = {{{2}, 0, {}}};
  EXPECT_EQ(Error(), "alias of output {2}: the result is (f32[2], f32[2])");
  module->aliases() = {{{0}, 2, {}}};
  EXPECT_EQ(Error(), "alias of parameter 2: the entry has 2");
  module->aliases() = {{{0}, 0, {1}}};
  EXPECT_EQ(Error(), "alias of parameter 0, {1}: the parameter is f32[2]");
  module->aliases() = {{{0}, 0, {}}, {{1}, 0, {}}};
  EXPECT_EQ(Error(), "output {1} or parameter 0, {} is aliased twice");
}

TEST_F(VerifierTest, AliasedSizes) {
  const auto other = Parse("ENTRY e { p = f32[2,3] parameter(0)\n ROOT c = f32[] constant(1) }");
  other->aliases() = {{{}, 0, {}}};
  EXPECT_EQ(ErrorOf(Verify(*other)),
            "alias of output f32[] and parameter f32[2,3]: they differ in size");
}

}  // namespace
}  // namespace lazuli::hlo
