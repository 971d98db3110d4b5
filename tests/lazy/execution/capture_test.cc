// Captured functions that use tensors from outside: these become parameters, and nothing is synced.
#include "lazy/execution/capture.h"

#include "lazy/autograd/backward.h"
#include "lazy/ops/program/call.h"
#include "tests/lazy/execution/each_client.h"
#include "tests/lazy/lazy_test.h"
#include "tests/lazy/program/program_text.h"

namespace lazuli::lazy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using FromOutside = Capture::FromOutside;

class CaptureTest : public OnEachClient {};

LAZULI_ON_EACH_CLIENT(CaptureTest);

const Shape kPair(DType::kF32, {2});

struct Captured {
  ProgramPtr program;
  Tensors outside;

  // A call of the program in the graph around it.
  Tensors operator()(Tensors arguments) const {
    arguments.insert(arguments.end(), outside.begin(), outside.end());
    return Call(program, arguments, TestDevice());
  }
};

// What the function records of one parameter of two floats.
template <class F>
Captured Function(F function, FromOutside mode = FromOutside::kReadOnly) {
  Capture capture(mode);
  const Tensor p = capture.Parameter(kPair, TestDevice());
  absl::StatusOr<ProgramPtr> program = capture.Finish(function(p), "captured");
  EXPECT_TRUE(program.ok()) << program.status();
  return {*program, capture.outside()};
}

TEST_P(CaptureTest, TensorsFromOutsideAreParametersInOrderOfFirstUse) {
  const Tensor data = Floats({1, 2}), pending = Exp(Floats({0, 0})), unused = Floats({5, 5});
  const Counted foreign(ir::Counter::kSyncForeign);
  const Work work;
  const Captured f = Function([&](const Tensor& p) {
    (void)Exp(unused);
    const Tensor first = Mul(pending, p);
    return Tensors{first + p * data + pending};
  });
  EXPECT_EQ(f.program->parameters().size(), 3u);
  ASSERT_EQ(f.outside.size(), 2u);
  EXPECT_EQ(f.outside[0].impl(), pending.impl());
  EXPECT_EQ(f.outside[1].impl(), data.impl());
  const Tensor y = f({pending + data})[0];
  EXPECT_EQ(work.runs(), 0);
  EXPECT_THAT(Values(y), ElementsAre(5, 10));
  EXPECT_EQ(work.runs(), 1);
  EXPECT_EQ(foreign(), 0);
}

// As in every graph, neither a number nor data that was made decides which program runs.
TEST_P(CaptureTest, NumbersAndDataMadeInsideAreParameters) {
  const Tensor x = Floats({1, 2});
  const Work work;
  for (const float number : {2.f, 3.f}) {
    const Captured f = Function(
        [&](const Tensor& p) { return Tensors{Add(Mul(p, Slot(number)), Floats({number, 1}))}; });
    EXPECT_EQ(f.outside.size(), 2u);
    EXPECT_THAT(Values(f({x})[0]), ElementsAre(2 * number, 2 * number + 1));
  }
  EXPECT_EQ(work.compiles(), 1);
}

TEST_P(CaptureTest, AResultMayBeATensorFromOutside) {
  const Tensor data = Floats({1, 2}), pending = Exp(Floats({0, 0}));
  const Captured f = Function([&](const Tensor& p) { return Tensors{data, p, pending}; });
  const Tensors results = f({Floats({7, 8})});
  EXPECT_THAT(Values(results[0]), ElementsAre(1, 2));
  EXPECT_THAT(Values(results[1]), ElementsAre(7, 8));
  EXPECT_THAT(Values(results[2]), ElementsAre(1, 1));
}

TEST_P(CaptureTest, ViewsFromOutsideAndOfWhatIsOutside) {
  const Tensor base = Of<float>({2, 2}, {1, 2, 3, 4}), view = SelectView(base, 0, 0);
  const Captured f =
      Function([&](const Tensor& p) { return Tensors{p + view + SelectView(base, 0, 1)}; });
  Assign("copy_", base, Of<float>({2, 2}, {10, 20, 30, 40}));  // the view is stale
  EXPECT_THAT(Values(f({Floats({0, 0})})[0]), ElementsAre(40, 60));
  const Captured of_stale = Function([&](const Tensor& p) { return Tensors{p + view}; });
  EXPECT_THAT(Values(of_stale({Floats({0, 0})})[0]), ElementsAre(10, 20));
}

// Each function gets what it uses of those around it.
TEST_P(CaptureTest, CapturesNest) {
  const Tensor outermost = Exp(Floats({0, 0}));
  const Counted foreign(ir::Counter::kSyncForeign);
  const Captured outer = Function([&](const Tensor& p) {
    const Tensor pending = p + outermost;
    const Captured inner =
        Function([&](const Tensor& q) { return Tensors{q * pending + p - outermost}; });
    EXPECT_EQ(inner.outside.size(), 3u);
    return inner({pending + p});
  });
  ASSERT_EQ(outer.outside.size(), 1u);
  EXPECT_THAT(Values(outer({Floats({1, 2})})[0]), ElementsAre(6, 16));
  EXPECT_EQ(foreign(), 0);
}

TEST_P(CaptureTest, AGradientReachesWhatIsOutside) {
  const ProgramPtr gradient = ProgramOf(
      "HloModule gradient\n"
      "ENTRY e { p = f32[2] parameter(0) w = f32[2] parameter(1) dy = f32[2] parameter(2)\n"
      "  dp = f32[2] multiply(w, dy) dw = f32[2] multiply(p, dy)\n"
      "  ROOT r = (f32[2], f32[2]) tuple(dp, dw) }\n");
  const Tensor leaf = WithGrad(Floats({1, 2})), w = leaf * Floats({10, 100});
  Captured f = Function([&](const Tensor& p) { return Tensors{p * w}; });
  f.program = *f.program->WithGradient(gradient);
  Backward(Sum(f({Floats({3, 4})})[0]), {}, {});
  EXPECT_THAT(Values(GradOf(leaf)), ElementsAre(30, 400));
}

// Tensors that share elements but not their history are not one parameter.
TEST_P(CaptureTest, ADetachedTensorIsAParameterOfItsOwn) {
  const Tensor x = WithGrad(Floats({1, 2})), same = Detach(x);
  const Captured f = Function([&](const Tensor& p) { return Tensors{p + same * x}; });
  ASSERT_EQ(f.outside.size(), 2u);
  EXPECT_FALSE(f.outside[0].requires_grad());
  EXPECT_TRUE(f.outside[1].requires_grad());
}

TEST_P(CaptureTest, NothingIsReadInside) {
  const Tensor data = Floats({1, 2}), pending = Exp(data);
  Function([&](const Tensor& p) {
    for (const Tensor& x : {p, data, pending, Exp(p), p + data, SelectView(p, 0, 0)}) {
      const absl::Status status = ErrorOf([&] { (void)Values(x); });
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_THAT(Message(status), HasSubstr("nothing runs while a function is traced"));
    }
    EXPECT_THAT(Message(Sync()), HasSubstr("nothing runs while a function is traced"));
    EXPECT_THAT(Values(Floats({3})), ElementsAre(3));  // made inside, without a run
    return Tensors{p};
  });
  EXPECT_THAT(Values(data), ElementsAre(1, 2));
}

TEST_P(CaptureTest, WhatAReadOnlyFunctionWritesOutsideIsRefused) {
  const Tensor x = Floats({1, 2}), leaf = WithGrad(Floats({1, 2}));
  Function([&](const Tensor& p) {
    EXPECT_STATUS(
        kFailedPrecondition,
        "add_: a tensor from outside of the function, f32[2], is changed in place; return "
        "its new elements",
        Assign("add_", x, p));
    const absl::Status status = ErrorOf([&] { Backward(Sum(p * leaf), {}, {}); });
    EXPECT_THAT(Message(status), HasSubstr("the gradient of a tensor from outside of the function, "
                                           "f32[2], would be changed inside"));
    const Tensor mine = Exp(p);
    Assign("add_", mine, p);  // of the function's own
    return Tensors{mine};
  });
  EXPECT_THAT(Values(x), ElementsAre(1, 2));
  EXPECT_FALSE(GradOf(leaf).defined());
}

TEST_P(CaptureTest, WhatAnotherFunctionWritesIsAParameterBehindTheOthers) {
  const Tensor x = Floats({1, 2}), y = Floats({10, 20});
  const Captured f = Function(
      [&](const Tensor& p) {
        Assign("add_", x, x + p * y);
        return Tensors{p};
      },
      FromOutside::kParameters);
  ASSERT_EQ(f.outside.size(), 2u);  // x as it is read first
  EXPECT_EQ(f.program->parameters().size(), 4u);
  EXPECT_EQ(f.program->results().size(), 2u);
  ASSERT_EQ(f.program->module().aliases().size(), 1u);
  EXPECT_EQ(f.program->module().aliases()[0].parameter_number, 3);
  EXPECT_THAT(Values(x), ElementsAre(1, 2));
}

}  // namespace
}  // namespace lazuli::lazy
