#include "ir/hlo/module.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/hlo/text/parser.h"
#include "ir/hlo/text/printer.h"
#include "ir/hlo/verifier.h"
#include "tests/ir/hlo/hlo_text.h"

namespace lazuli::hlo {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

const Shape kF32(DType::kF32);

// main: c = a + b, d = c + c
struct Fixture {
  Module module{"m"};
  Computation* main = module.AddComputation("main");
  Instruction* a = main->AddParameter(0, kF32, "a");
  Instruction* b = main->AddParameter(1, kF32, "b");
  Instruction* c = main->Add(Opcode::kAdd, kF32, {a, b});
  Instruction* d = main->Add(Opcode::kAdd, kF32, {c, c});
  Fixture() { module.set_entry(main); }
};

TEST(ModuleTest, NewestInstructionIsTheRootUntilOneIsSet) {
  Fixture f;
  EXPECT_EQ(f.main->root(), f.d);
  f.main->set_root(f.c);
  f.main->Add(Opcode::kNegate, kF32, {f.c});
  EXPECT_EQ(f.main->root(), f.c);
  EXPECT_TRUE(f.c->IsRoot());
}

TEST(ModuleTest, UsersAreListedOnceInOrder) {
  Fixture f;
  Instruction* e = f.main->Add(Opcode::kNegate, kF32, {f.c});
  EXPECT_THAT(f.c->users(), ElementsAre(f.d, e));
  EXPECT_THAT(f.a->users(), ElementsAre(f.c));
  EXPECT_THAT(e->users(), ElementsAre());
}

TEST(ModuleTest, ReplaceOperandKeepsUsers) {
  Fixture f;
  f.d->ReplaceOperand(0, f.a);
  EXPECT_THAT(f.c->users(), ElementsAre(f.d));
  EXPECT_THAT(f.a->users(), ElementsAre(f.c, f.d));
  f.d->ReplaceOperand(1, f.a);
  EXPECT_THAT(f.c->users(), ElementsAre());
  EXPECT_THAT(f.a->users(), ElementsAre(f.c, f.d));
  EXPECT_TRUE(Verify(f.module).ok()) << Verify(f.module);
}

TEST(ModuleTest, ReplaceAllUsesMovesUsersAndRoot) {
  Fixture f;
  f.main->set_root(f.c);
  Instruction* e = f.main->Add(Opcode::kMultiply, kF32, {f.a, f.b});
  f.c->ReplaceAllUsesWith(e);
  EXPECT_EQ(f.main->root(), e);
  EXPECT_THAT(f.c->users(), ElementsAre());
  EXPECT_THAT(e->users(), ElementsAre(f.d));
  EXPECT_THAT(f.d->operands(), ElementsAre(e, e));
  EXPECT_TRUE(Verify(f.module).ok()) << Verify(f.module);
}

TEST(ModuleTest, ReplacementMayUseWhatItReplaces) {
  Fixture f;
  Instruction* negated = f.main->Add(Opcode::kNegate, kF32, {f.c});
  f.main->set_root(f.d);
  f.c->ReplaceAllUsesWith(negated);
  EXPECT_THAT(f.c->users(), ElementsAre(negated));
  EXPECT_THAT(f.d->operands(), ElementsAre(negated, negated));
  // Now an operand comes after its user; the post-order still holds.
  EXPECT_THAT(f.main->PostOrder(), ElementsAre(f.a, f.b, f.c, negated, f.d));
  EXPECT_TRUE(Verify(f.module).ok()) << Verify(f.module);
}

TEST(ModuleTest, OperandsOfAWideTupleAreReplacedAsThoseOfANarrowOne) {
  std::mt19937 random(0);
  for (const std::size_t width : {3, 100}) {
    Module module("m");
    Computation* main = module.AddComputation("main");
    std::vector<Instruction*> values;
    for (std::size_t k = 0; k < width / 2; ++k)
      values.push_back(main->AddParameter(static_cast<int64_t>(k), kF32));
    const auto any = [&] { return values[random() % values.size()]; };
    std::vector<Instruction*> expected;
    for (std::size_t k = 0; k < width; ++k) expected.push_back(any());
    Instruction* tuple =
        main->Add(Opcode::kTuple, Shape::Tuple(std::vector<Shape>(width, kF32)), expected);
    for (int turn = 0; turn < 300; ++turn) {
      Instruction *const old = any(), *const with = any();
      if (turn % 2 == 0) {
        const std::size_t at = random() % width;
        tuple->ReplaceOperand(static_cast<int64_t>(at), with);
        expected[at] = with;
      } else {
        old->ReplaceAllUsesWith(with);
        std::replace(expected.begin(), expected.end(), old, with);
      }
      ASSERT_THAT(tuple->operands(), ElementsAreArray(expected));
      for (Instruction* value : values) {
        const bool read = std::find(expected.begin(), expected.end(), value) != expected.end();
        ASSERT_EQ(value->users().size(), read ? 1 : 0);
      }
    }
  }
}

TEST(ModuleTest, RemoveTakesTheInstructionOffItsOperands) {
  Fixture f;
  f.main->set_root(f.c);
  f.main->Remove(f.d);
  EXPECT_EQ(f.main->instruction_count(), 3);
  EXPECT_THAT(f.c->users(), ElementsAre());
  EXPECT_DEATH(f.main->Remove(f.c), "removing add.*, which is used");
  EXPECT_DEATH(f.main->Remove(f.a), "removing a, which is used");
}

TEST(ModuleTest, RemoveDeadKeepsRootSideEffectsAndParameters) {
  const auto module = Parse(R"(ENTRY e {
    p = f32[] parameter(0)
    unused = f32[] parameter(1)
    dead = f32[] negate(p)
    deader = f32[] negate(dead)
    forced = f32[] negate(p)
    u = f32[] custom-call(forced), custom_call_target="print", custom_call_has_side_effect=true
    needed = f32[] sine(p)
    ROOT r = f32[] cosine(p), control-predecessors={needed}
  })");
  EXPECT_EQ(module->entry()->RemoveDead(), 2);
  EXPECT_EQ(module->entry()->Find("dead"), nullptr);
  EXPECT_EQ(module->entry()->instruction_count(), 6);
  EXPECT_EQ(module->entry()->RemoveDead(), 0);
  EXPECT_TRUE(Verify(*module).ok()) << Verify(*module);
}

TEST(ModuleTest, NamesAreCleanAndUniqueInTheirComputation) {
  Fixture f;
  EXPECT_EQ(f.c->name(), "add.3");
  EXPECT_EQ(f.main->AddConstant(Literal::Scalar(1.0f), "conv1.weight")->name(), "conv1.weight");
  Instruction* again = f.main->AddConstant(Literal::Scalar(1.0f), "conv1.weight");
  EXPECT_EQ(again->name(), "conv1.weight.6");
  EXPECT_EQ(f.main->AddConstant(Literal::Scalar(1.0f), "layer/0 bias")->name(), "layer_0_bias");
  EXPECT_EQ(f.main->AddConstant(Literal::Scalar(1.0f), "f32")->name(), "f32_");
  EXPECT_EQ(f.main->AddConstant(Literal::Scalar(1.0f), "0th")->name(), "_0th");
  // A given name that is the automatic one of an older instruction.
  EXPECT_NE(f.main->AddConstant(Literal::Scalar(1.0f), "add.3")->name(), "add.3");
  EXPECT_EQ(f.main->Find("add.3"), f.c);
  EXPECT_EQ(f.main->Find("a"), f.a);
  EXPECT_EQ(f.main->Find("add.4711"), nullptr);
  EXPECT_EQ(f.module.AddComputation("main")->name(), "main.1");
}

TEST(ModuleTest, AutomaticNameAvoidsAGivenOne) {
  Module module("m");
  Computation* main = module.AddComputation("main");
  Instruction* given = main->AddParameter(0, kF32, "negate.2");
  Instruction* made = main->Add(Opcode::kNegate, kF32, {given});
  EXPECT_NE(made->name(), given->name());
  EXPECT_EQ(main->Find(made->name()), made);
}

TEST(ModuleTest, IdsIncreaseAcrossComputations) {
  Module module("m");
  Computation* x = module.AddComputation("x");
  Computation* y = module.AddComputation("y");
  const int64_t first = x->AddParameter(0, kF32)->id();
  const int64_t second = y->AddParameter(0, kF32)->id();
  EXPECT_LT(first, second);
  EXPECT_LT(second, x->AddParameter(1, kF32)->id());
}

TEST(ModuleTest, ControlPredecessorsComeFirst) {
  Fixture f;
  Instruction* late = f.main->Add(Opcode::kNegate, kF32, {f.a});
  f.c->AddControlPredecessor(late);
  EXPECT_THAT(f.main->PostOrder(), ElementsAre(f.a, f.b, late, f.c, f.d));
}

TEST(ModuleTest, ComputationsAreOrderedCalleesFirst) {
  Module module("m");
  Computation* main = module.AddComputation("main");
  Computation* outer = module.AddComputation("outer");
  Computation* inner = module.AddComputation("inner");
  module.AddComputation("unreached")->AddParameter(0, kF32);
  module.set_entry(main);
  auto body = [](Computation* c, Computation* callee) {
    Instruction* p = c->AddParameter(0, kF32);
    if (callee != nullptr) c->Add(Opcode::kCall, kF32, {p}, NoAttrs{}, {callee});
  };
  body(main, outer);
  body(outer, inner);
  body(inner, nullptr);
  EXPECT_THAT(module.PostOrder(), ElementsAre(inner, outer, main));
  EXPECT_EQ(module.instruction_count(), 6);
}

TEST(ModuleTest, SideEffectsOfCalleesCount) {
  const auto module = Parse(R"(
    inner { p = f32[] parameter(0)
      ROOT c = f32[] custom-call(p), custom_call_target="t", custom_call_has_side_effect=true }
    pure { p = f32[] parameter(0)
      ROOT c = f32[] negate(p) }
    outer { p = f32[] parameter(0)
      ROOT c = f32[] call(p), to_apply=inner }
    ENTRY e { p = f32[] parameter(0)
      x = f32[] call(p), to_apply=pure
      ROOT y = f32[] call(x), to_apply=outer })");
  EXPECT_FALSE(module->entry()->Find("x")->HasSideEffect());
  EXPECT_TRUE(module->entry()->Find("y")->HasSideEffect());
}

TEST(ModuleTest, CloneIsEqualAndIndependent) {
  for (const auto& [name, text] : SampleTexts()) {
    SCOPED_TRACE(name);
    const auto module = Parse(text);
    const auto clone = module->Clone();
    EXPECT_TRUE(Equal(*module, *clone));
    EXPECT_EQ(module->ToString(), clone->ToString());
    EXPECT_TRUE(Verify(*clone).ok()) << Verify(*clone);
    clone->entry()->set_root(clone->entry()->instructions().front().get());
    EXPECT_EQ(module->ToString(), Parse(text)->ToString());
  }
}

TEST(ModuleTest, AddCloneCopiesEverythingButOperands) {
  const auto module = Parse(R"(ENTRY e { p = f32[4] parameter(0)
    q = f32[4] parameter(1)
    ROOT s = f32[2] slice(p), slice={[1:3]}, sharding={replicated}, metadata={op_name="x"} })");
  Instruction* clone =
      module->entry()->AddClone(*module->entry()->root(), {module->entry()->parameters()[1]});
  EXPECT_EQ(
      clone->ToString(),
      "%s.4 = f32[2]{0} slice(%q), slice={[1:3]}, sharding={replicated}, metadata={op_name=\"x\"}");
}

TEST(ModuleTest, EqualSeesOpcodesShapesAttributesWiringAndCallees) {
  const std::string base = R"(
    f { a = f32[] parameter(0)
        b = f32[] parameter(1)
        ROOT r = f32[] add(a, b) }
    ENTRY e {
      p = f32[4,2]{1,0} parameter(0)
      q = f32[4,2]{1,0} parameter(1)
      z = f32[] constant(1)
      s = f32[4,2]{1,0} subtract(p, q)
      ROOT r = f32[4] reduce(s, z), dimensions={1}, to_apply=f, sharding={replicated}
    })";
  const auto module = Parse(base);
  auto changed = [&](std::string_view from, std::string_view to) {
    std::string text = base;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return Parse(text.replace(at, from.size(), to));
  };
  EXPECT_TRUE(Equal(*module, *changed("ENTRY e", "ENTRY other")));
  EXPECT_TRUE(Equal(*module, *changed("z = f32[] constant(1)",
                                      "z = f32[] constant(1), metadata={op_name=\"one\"}")));
  EXPECT_FALSE(Equal(*module, *changed("subtract", "divide")));
  EXPECT_FALSE(Equal(*module, *changed("subtract(p, q)", "subtract(q, p)")));
  EXPECT_FALSE(Equal(*module, *changed("constant(1)", "constant(2)")));
  EXPECT_FALSE(Equal(*module, *changed("f32[] add", "f32[] multiply")));
  EXPECT_FALSE(Equal(*module, *changed("{1,0} subtract", "{0,1} subtract")));
  EXPECT_FALSE(Equal(*module, *changed("replicated", "manual")));
}

// --- a million instructions

TEST(ModuleTest, AMillionInstructionsNeedNoDeepStack) {
  constexpr int kLength = 1'000'000;
  Module module("m");
  Computation* main = module.AddComputation("main");
  module.set_entry(main);
  Instruction* x = main->AddParameter(0, kF32);
  for (int i = 0; i < kLength; ++i) x = main->Add(Opcode::kNegate, kF32, {x});
  EXPECT_EQ(main->PostOrder().size(), std::size_t{kLength} + 1);
  EXPECT_GT(module.ToString().size(), std::size_t{kLength} * 20);
  EXPECT_TRUE(Verify(module).ok());

  // Against insertion order, so that the post-order has to search.
  Instruction* first = main->instructions()[1].get();
  Instruction* last = main->Add(Opcode::kNegate, kF32, {main->parameters()[0]});
  first->ReplaceOperand(0, last);
  EXPECT_EQ(main->PostOrder()[1], last);
  main->set_root(first);
  EXPECT_EQ(main->RemoveDead(), kLength - 1);
}

}  // namespace
}  // namespace lazuli::hlo
