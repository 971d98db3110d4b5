// Calls of programs: one op of the graph around it, as far as values, keys and errors go.
#include "lazy/ops/program/call.h"

#include "lazy/autograd/backward.h"
#include "lazy/execution/capture.h"
#include "lazy/tensor/function_scope.h"
#include "tests/lazy/execution/each_client.h"
#include "tests/lazy/lazy_test.h"
#include "tests/lazy/program/program_text.h"

namespace lazuli::lazy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CallTest : public OnEachClient {};

LAZULI_ON_EACH_CLIENT(CallTest);

constexpr char kSquare[] =
    "HloModule square\n"
    "ENTRY e { x = f32[2] parameter(0) ROOT y = f32[2] multiply(x, x) }\n";

int64_t CountOf(std::string_view what, const std::string& text) {
  int64_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++count;
  return count;
}

TEST_P(CallTest, IsOneOpOfTheGraphAroundIt) {
  const Tensor x = Floats({1, 2});
  const Work work;
  const Tensor y = Call(ProgramOf(kSquare), {x + x})[0] + x;
  EXPECT_EQ(work.compiles(), 0);
  EXPECT_THAT(Values(y), ElementsAre(5, 18));
  EXPECT_EQ(work.compiles(), 1);
  EXPECT_EQ(work.runs(), 1);
}

// The key is what the program computes: not which object it is, nor what it is called.
TEST_P(CallTest, EqualProgramsHaveOneKey) {
  const Tensor x = Floats({1, 2});
  const Work work;
  std::string text = kSquare;
  for (const std::string_view name : {"square", "other"}) {
    text.replace(text.find(' ') + 1, text.find('\n') - text.find(' ') - 1, name);
    EXPECT_THAT(Values(Call(ProgramOf(text), {x})[0]), ElementsAre(1, 4));
  }
  EXPECT_EQ(work.compiles(), 1);
  text.replace(text.find("multiply"), 8, "subtract");
  EXPECT_THAT(Values(Call(ProgramOf(text), {x})[0]), ElementsAre(0, 0));
  EXPECT_EQ(work.compiles(), 2);
}

TEST_P(CallTest, SeveralCallsShareOneCopyOfTheProgram) {
  const ProgramPtr square = ProgramOf(kSquare);
  const Tensor x = Floats({1, 2});
  const Tensor y = Call(square, {Call(square, {x})[0]})[0];
  EXPECT_THAT(Values(y), ElementsAre(1, 16));
  const std::string hlo = LastProgram()->hlo();
  EXPECT_EQ(CountOf(" call(", hlo), 2);
  EXPECT_EQ(CountOf("multiply(", hlo), 1);
}

TEST_P(CallTest, ArgumentsAndResultsInTuplesAreLeaves) {
  const ProgramPtr program = ProgramOf(
      "HloModule nested\n"
      "ENTRY e { p = ((f32[2], f32[]), token[]) parameter(0)\n"
      "  inner = (f32[2], f32[]) get-tuple-element(p), index=0\n"
      "  a = f32[2] get-tuple-element(inner), index=0 b = f32[] get-tuple-element(inner), index=1\n"
      "  c = f32[2] broadcast(b), dimensions={} d = f32[2] add(a, c)\n"
      "  t = (f32[2]) tuple(d) ROOT r = (f32[], (f32[2])) tuple(b, t) }\n");
  const Tensors results = Call(program, {Floats({1, 2}), Of<float>({}, {10.f})});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_THAT(Values(results[0]), ElementsAre(10));
  EXPECT_THAT(Values(results[1]), ElementsAre(11, 12));
}

TEST_P(CallTest, ACheckInsideFailsTheRunWithBothLines) {
  ProgramCheck check = CheckedDoubling()->checks()[0];
  check.site = ir::InternSite("inner.cc", "f", 3);
  check.function = "twice";
  const auto program =
      std::make_shared<Program>(CheckedDoubling()->shared_module(), std::vector{check});
  Tensor y;
  {
    const SiteScope site(ir::InternSite("outer.cc", "g", 9));
    EXPECT_THAT(Values(Call(program, {Floats({3, 4})})[0]), ElementsAre(6, 8));
    y = Call(program, {Floats({12, 4})})[0];
  }
  EXPECT_EQ(Message(ErrorOf([&] { (void)Values(y); })),
            "twice: value 12 is above 10 (inner.cc:3), in a call of doubling (outer.cc:9)");
}

TEST_P(CallTest, TheGradientIsACall) {
  const ProgramPtr slope = ProgramOf(
      "HloModule slope\n"
      "ENTRY e { x = f32[2] parameter(0) dy = f32[2] parameter(1) two = f32[] constant(2)\n"
      "  twos = f32[2] broadcast(two), dimensions={} s = f32[2] multiply(x, twos)\n"
      "  ROOT dx = f32[2] multiply(s, dy) }\n");
  const ProgramPtr square = *ProgramOf(kSquare)->WithGradient(slope);
  const Tensor x = WithGrad(Floats({1, 2}));
  Backward(Sum(Call(square, {x})[0] * Floats({1, 10})), {}, {});
  EXPECT_THAT(Values(GradOf(x)), ElementsAre(2, 40));
  EXPECT_THAT(LastProgram()->hlo(), HasSubstr("%e"));
}

// Of a program without a gradient of its own, twice: the derived gradient is a program, too.
TEST_P(CallTest, TheGradientIsDerivedWhereNoneIsGiven) {
  const ProgramPtr cube = ProgramOf(
      "HloModule cube\n"
      "ENTRY e { x = f32[2] parameter(0) i = s32[] parameter(1) s = f32[2] multiply(x, x)\n"
      "  c = f32[2] multiply(s, x) ROOT r = (s32[], f32[2]) tuple(i, c) }\n");
  const Tensor x = WithGrad(Floats({1, 2})), i = Of<int32_t>({}, {7});
  const Tensors results = Call(cube, {x, i});
  EXPECT_THAT(Values<int32_t>(results[0]), ElementsAre(7));
  const Tensors once =
      Grad({Sum(results[1])}, {x}, {}, {.create_graph = true}, /*allow_unused=*/false);
  EXPECT_THAT(Values(once[0]), ElementsAre(3, 12));
  const Tensors twice = Grad({Sum(once[0])}, {x}, {}, {}, /*allow_unused=*/false);
  EXPECT_THAT(Values(twice[0]), ElementsAre(6, 12));
}

TEST_P(CallTest, AProgramWithoutRulesForItsGradientIsRefused) {
  const ProgramPtr other = ProgramOf(
      "HloModule other\n"
      "ENTRY e { x = f32[2] parameter(0)\n"
      "  ROOT y = f32[2] custom-call(x), custom_call_target=\"mine\",\n"
      "    metadata={op_name=\"mine\" source_file=\"a.py\" source_line=3} }\n");
  EXPECT_STATUS(kUnimplemented,
                "call of other: mine: no derivative of custom-call \"mine\" (a.py:3); an argument "
                "wants a gradient: give the program one (with_gradient) or detach() the argument",
                (void)Call(other, {WithGrad(Floats({1, 2}))}));
}

// What a function records is a program that a graph can call.
TEST_P(CallTest, ACapturedProgramIsCalled) {
  ProgramPtr program;
  {
    Capture capture;
    const Tensor p = capture.Parameter(Shape(DType::kF32, {2}), TestDevice());
    program = *capture.Finish({Exp(p) + p}, "captured");
  }
  const Tensor x = Floats({0, 0});
  EXPECT_THAT(Values(Call(program, {x})[0]), ElementsAre(1, 1));
}

TEST_P(CallTest, WhatDoesNotFitIsRefusedByTheCall) {
  const Tensor x = Floats({1, 2});
  const ProgramPtr square = ProgramOf(kSquare);
  EXPECT_STATUS(kInvalidArgument, "call of square: it takes 1 arguments, not 2",
                (void)Call(square, {x, x}));
  EXPECT_STATUS(kInvalidArgument, "call of square: argument 0 is an undefined tensor",
                (void)Call(square, {Tensor()}));
  EXPECT_STATUS(kInvalidArgument, "call of square: argument 0 is f32[1], not f32[2]",
                (void)Call(square, {Floats({1})}));
  const ProgramPtr two = ProgramOf(
      "HloModule two, replica_count=2\n"
      "ENTRY e { x = f32[2] parameter(0) ROOT y = f32[2] negate(x) }\n");
  EXPECT_STATUS(kInvalidArgument,
                "call of two: the program is for 2 devices; run_on_devices() runs it on them",
                (void)Call(two, {x}));
}

}  // namespace
}  // namespace lazuli::lazy
