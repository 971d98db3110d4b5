#include "lowering/passes/fuse_loops.h"

#include <gtest/gtest.h>

#include "tests/support/pass_test.h"

namespace lazuli::lowering {
namespace {

using hlo::Opcode;

// As KernelSupports, without LLVM.
bool LoopSupports(const hlo::Instruction& i) {
  const bool scalar = i.opcode() == Opcode::kConstant && i.shape().num_elements() == 1;
  return scalar || i.opcode() == Opcode::kBroadcast || i.IsElementwise();
}

FuseLoops FuseLoopsPass(bool takes_loops = true) {
  return FuseLoops(
      {.device = "cpu",
       .supports = LoopSupports,
       .supports_loop = [takes_loops](const hlo::Computation&) { return takes_loops; }});
}

constexpr char kLoop[] = R"(
    condition {
      s = (s32[], f32[8]) parameter(0)
      i = s32[] get-tuple-element(s), index=0
      last = s32[] constant(5)
      ROOT r = pred[] compare(i, last), direction=LT
    }
    square {
      x = f32[8] parameter(0)
      ROOT y = f32[8] multiply(x, x)
    }
    body {
      s = (s32[], f32[8]) parameter(0)
      i = s32[] get-tuple-element(s), index=0
      x = f32[8] get-tuple-element(s), index=1
      one = s32[] constant(1)
      next = s32[] add(i, one)
      y = f32[8] call(x), to_apply=square
      ROOT t = (s32[], f32[8]) tuple(next, y)
    })";

TEST(FuseLoopsTest, ALoopTakesInWhatIsAroundIt) {
  ExpectPass(FuseLoopsPass(), std::string(kLoop) + R"(
    ENTRY main {
      // CHECK:      %[[BODY:fused_loop[.0-9]*]] {
      // CHECK:      subtract(
      // CHECK:      while(
      // CHECK:      negate(
      // CHECK:      ENTRY
      // CHECK-NEXT: %p =
      // CHECK-NEXT: ROOT {{.*}} fusion(%p), kind=kLoop, calls=%[[BODY]]
      p = f32[8] parameter(0)
      x = f32[8] subtract(p, p)
      zero = s32[] constant(0)
      t = (s32[], f32[8]) tuple(zero, x)
      w = (s32[], f32[8]) while(t), condition=condition, body=body
      y = f32[8] get-tuple-element(w), index=1
      ROOT n = f32[8] negate(y)
    })");
}

TEST(FuseLoopsTest, WhatOthersNeedStaysOutside) {
  ExpectPass(FuseLoopsPass(), std::string(kLoop) + R"(
    ENTRY main {
      // CHECK:      ENTRY
      // CHECK-DAG:  %x = f32[8] negate(%p)
      // CHECK-DAG:  [[F:%[a-z.0-9]+]] = f32[8] fusion(%x)
      // CHECK:      ROOT {{.*}} tuple(%x, [[F]])
      p = f32[8] parameter(0)
      x = f32[8] negate(p)
      zero = s32[] constant(0)
      t = (s32[], f32[8]) tuple(zero, x)
      w = (s32[], f32[8]) while(t), condition=condition, body=body
      y = f32[8] get-tuple-element(w), index=1
      ROOT r = (f32[8], f32[8]) tuple(x, y)
    })");
}

TEST(FuseLoopsTest, ALoopMayBeTheRoot) {
  ExpectPass(FuseLoopsPass(), std::string(kLoop) + R"(
    ENTRY main {
      // CHECK:      ENTRY
      // CHECK:      [[F:%[a-z.0-9]+]] = (s32[], f32[8]) fusion(%p)
      // CHECK-DAG:  [[I:%[a-z.0-9-]+]] = s32[] get-tuple-element([[F]]), index=0
      // CHECK-DAG:  [[X:%[a-z.0-9-]+]] = f32[8] get-tuple-element([[F]]), index=1
      // CHECK:      ROOT {{.*}} tuple([[I]], [[X]])
      p = f32[8] parameter(0)
      zero = s32[] constant(0)
      t = (s32[], f32[8]) tuple(zero, p)
      ROOT w = (s32[], f32[8]) while(t), condition=condition, body=body
    })");
}

TEST(FuseLoopsTest, LoopsThatAreNoKernelStay) {
  constexpr char kEntry[] = R"(
    ENTRY main {
      p = f32[8] parameter(0)
      zero = s32[] constant(0)
      t = (s32[], f32[8]) tuple(zero, p)
      w = (s32[], f32[8]) while(t), condition=condition, body=body
      ROOT x = f32[8] get-tuple-element(w), index=1
    })";
  ExpectNoChange(FuseLoopsPass(/*takes_loops=*/false), std::string(kLoop) + kEntry);
  std::string sorts = kLoop;
  const std::string call = "call(x), to_apply=square";
  sorts.replace(sorts.find(call), call.size(), "reverse(x), dimensions={0}");
  ExpectNoChange(FuseLoopsPass(), sorts + kEntry);
}

TEST(FuseLoopsTest, ALoopInABranchTakesThatBranchsArguments) {
  ExpectPass(FuseLoopsPass(), std::string(kLoop) + R"(
    yes {
      // CHECK:      %yes {
      // CHECK-NOT:  while(
      // CHECK:      ROOT {{.*}} fusion(
      s = (s32[], f32[8]) parameter(0)
      w = (s32[], f32[8]) while(s), condition=condition, body=body
      ROOT x = f32[8] get-tuple-element(w), index=1
    }
    no {
      s = (s32[], f32[8]) parameter(0)
      ROOT x = f32[8] get-tuple-element(s), index=1
    }
    ENTRY main {
      g = pred[] parameter(0)
      p = f32[8] parameter(1)
      zero = s32[] constant(0)
      t = (s32[], f32[8]) tuple(zero, p)
      ROOT c = f32[8] conditional(g, t, t), true_computation=yes, false_computation=no
    })");
}

}  // namespace
}  // namespace lazuli::lowering
