#include "lowering/passes/fuse.h"

#include <gtest/gtest.h>

#include "tests/support/pass_test.h"

namespace lazuli::lowering {
namespace {

using hlo::Opcode;

// As KernelSupports, without LLVM.
bool Supports(const hlo::Instruction& i) {
  switch (i.opcode()) {
    case Opcode::kBroadcast:
    case Opcode::kTranspose:
    case Opcode::kIota:
    case Opcode::kReduce:
    case Opcode::kSelectAndScatter:
    case Opcode::kGather:
      return true;
    case Opcode::kConstant:
      return i.shape().num_elements() == 1;
    default:
      return i.IsElementwise();
  }
}

Fuse FusePass(std::size_t max_args = 64) {
  return Fuse({.device = "cpu", .supports = Supports, .supports_loop = {}, .max_args = max_args});
}

TEST(FuseTest, AnElementwiseChainIsOneKernel) {
  ExpectPass(FusePass(), R"(
    ENTRY main {
      // CHECK:     %[[BODY:fused_computation[.0-9]*]] {
      // CHECK:     add(
      // CHECK:     multiply(
      // CHECK:     ENTRY
      // CHECK-NOT: add(
      // CHECK:     ROOT {{.*}} fusion(%x, %y), kind=kLoop, calls=%[[BODY]]
      x = f32[4] parameter(0)
      y = f32[4] parameter(1)
      a = f32[4] add(x, y)
      ROOT m = f32[4] multiply(a, a)
    })");
}

TEST(FuseTest, AValueNeededElsewhereIsAFurtherOutput) {
  ExpectPass(FusePass(), R"(
    ENTRY main {
      // CHECK:     ROOT {{.*}} (f32[4], f32[4]) tuple(
      // CHECK:     ENTRY
      // CHECK:     fusion(%x), kind=kLoop
      // CHECK-NOT: fusion(
      x = f32[4] parameter(0)
      a = f32[4] negate(x)
      m = f32[4] multiply(a, a)
      ROOT t = (f32[4], f32[4]) tuple(a, m)
    })");
}

TEST(FuseTest, AReductionTakesItsProducersIn) {
  ExpectPass(FusePass(), R"(
    add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
    ENTRY main {
      // CHECK:     multiply(
      // CHECK:     reduce(
      // CHECK:     ENTRY
      // CHECK:     ROOT {{.*}} fusion(%x), kind=kInput
      x = f32[4,16] parameter(0)
      m = f32[4,16] multiply(x, x)
      zero = f32[] constant(0)
      ROOT r = f32[4] reduce(m, zero), dimensions={1}, to_apply=add
    })");
}

TEST(FuseTest, SiblingReductionsShareAKernel) {
  ExpectPass(FusePass(), R"(
    add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
    ENTRY main {
      // CHECK:     ENTRY
      // CHECK:     fusion(%x), kind=kInput
      // CHECK-NOT: fusion(
      x = f32[4,16] parameter(0)
      zero = f32[] constant(0)
      s = f32[4] reduce(x, zero), dimensions={1}, to_apply=add
      m = f32[4,16] multiply(x, x)
      q = f32[4] reduce(m, zero), dimensions={1}, to_apply=add
      ROOT t = (f32[4], f32[4]) tuple(s, q)
    })");
}

TEST(FuseTest, ReductionsOfDifferentDimensionsDoNot) {
  ExpectPass(FusePass(), R"(
    add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
    ENTRY main {
      // CHECK:     ENTRY
      // CHECK:     fusion(%x{{.*}}), kind=kInput
      // CHECK:     fusion(%x{{.*}}), kind=kInput
      x = f32[16,16] parameter(0)
      zero = f32[] constant(0)
      s = f32[16] reduce(x, zero), dimensions={1}, to_apply=add
      q = f32[16] reduce(x, zero), dimensions={0}, to_apply=add
      ROOT t = (f32[16], f32[16]) tuple(s, q)
    })");
}

TEST(FuseTest, AReductionWritesAProducerThatIsNeededElsewhere) {
  ExpectPass(FusePass(), R"(
    add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
    ENTRY main {
      // CHECK:     ROOT {{.*}} (f32[4], f32[4,16]) tuple(
      // CHECK:     ENTRY
      // CHECK:     fusion(%x), kind=kInput
      // CHECK-NOT: fusion(
      x = f32[4,16] parameter(0)
      zero = f32[] constant(0)
      e = f32[4,16] negate(x)
      s = f32[4] reduce(e, zero), dimensions={1}, to_apply=add
      ROOT t = (f32[4,16], f32[4]) tuple(e, s)
    })");
}

// Softmax: the quotient reads the sum, so it cannot be in the kernel that makes it.
TEST(FuseTest, AGroupNeverNeedsItsOwnResult) {
  ExpectPass(FusePass(), R"(
    add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
    ENTRY main {
      // CHECK:     ENTRY
      // CHECK:     fusion({{.*}}), kind=kInput
      // CHECK:     ROOT {{.*}} fusion({{.*}}), kind=kLoop
      x = f32[4,16] parameter(0)
      zero = f32[] constant(0)
      e = f32[4,16] negate(x)
      s = f32[4] reduce(e, zero), dimensions={1}, to_apply=add
      b = f32[4,16] broadcast(s), dimensions={0}
      ROOT d = f32[4,16] divide(e, b)
    })");
}

// An optimiser's moment: the step needs it, and what is kept of it where a check failed.
TEST(FuseTest, LoopsThatReadTheSameValueBecomeOne) {
  ExpectPass(FusePass(), R"(
    ENTRY main {
      // CHECK:     multiply(
      // CHECK:     ROOT {{.*}} (f32[4], f32[4]) tuple(
      // CHECK:     ENTRY
      // CHECK:     fusion(
      // CHECK-NOT: fusion(
      x = f32[4] parameter(0)
      y = f32[4] parameter(1)
      c = pred[4] parameter(2)
      v = f32[4] multiply(x, y)
      q = f32[4] sqrt(v)
      d = f32[4] divide(x, q)
      s = f32[4] select(c, v, y)
      ROOT t = (f32[4], f32[4]) tuple(d, s)
    })");
}

TEST(FuseTest, UnlessOneNeedsTheOthersResult) {
  ExpectPass(FusePass(), R"(
    ENTRY main {
      // CHECK:     ENTRY
      // CHECK:     fusion(
      // CHECK:     dot(
      // CHECK:     fusion(
      x = f32[4,4] parameter(0)
      v = f32[4,4] negate(x)
      s = f32[4,4] exponential(v)
      p = f32[4,4] dot(s, s), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT d = f32[4,4] subtract(p, v)
    })");
}

// A gather reads any element of what the other loop makes, which lies in memory then.
TEST(FuseTest, OrReadsAnyElementOfIt) {
  ExpectPass(FusePass(), R"(
    ENTRY main {
      // CHECK:     ENTRY
      // CHECK:     fusion(
      // CHECK:     fusion(
      x = f32[4,4] parameter(0)
      i = u32[4] parameter(1)
      v = f32[4,4] negate(x)
      e = f32[4,4] exponential(v)
      g = f32[4,4] gather(e, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}
      d = f32[4,4] subtract(g, v)
      ROOT r = (f32[4,4], f32[4,4]) tuple(d, e)
    })");
}

// Nor where one reads the other's result in another order: it would be computed twice.
TEST(FuseTest, OrReadsItInAnotherOrder) {
  ExpectPass(FusePass(), R"(
    ENTRY main {
      // CHECK:     ENTRY
      // CHECK:     fusion(
      // CHECK:     fusion(
      x = f32[4,4] parameter(0)
      v = f32[4,4] negate(x)
      s = f32[4,4] exponential(v)
      t = f32[4,4] transpose(s), dimensions={1,0}
      d = f32[4,4] subtract(t, v)
      ROOT r = (f32[4,4], f32[4,4]) tuple(d, s)
    })");
}

constexpr char kPoolGradient[] = R"(
    ge { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT m = pred[] compare(a, b), direction=GE }
    add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT m = f32[] add(a, b) }
    ENTRY main {
      $CHECKS
      x = f32[2,8,6,3] parameter(0)
      s = f32[2,4,3,3] parameter(1)
      zero = f32[] constant(0)
      zeros = f32[2,8,6,3] broadcast(zero), dimensions={}
      p = pred[2,8,6,3] compare(x, zeros), direction=GT
      g = f32[2,8,6,3] select-and-scatter(x, s, zero), window={size=1x$SIZEx2x1 stride=1x2x2x1$PAD}, select=ge, scatter=add
      ROOT r = f32[2,8,6,3] select(p, g, zeros)
    })";

std::string PoolGradient(const std::string& checks, const std::string& size,
                         const std::string& pad) {
  std::string text = kPoolGradient;
  const auto set = [&](const std::string& name, const std::string& value) {
    text.replace(text.find(name), name.size(), value);
  };
  set("$CHECKS", checks);
  set("$SIZE", size);
  set("$PAD", pad);
  return text;
}

TEST(FuseTest, WorkOnTheGradientOfPoolingJoinsIt) {
  ExpectPass(FusePass(), PoolGradient(R"(
      // CHECK:     select-and-scatter(
      // CHECK:     ROOT {{.*}} select(
      // CHECK:     ENTRY
      // CHECK:     ROOT {{.*}} fusion({{.*}}), kind=kInput
      )",
                                      "2", ""));
}

TEST(FuseTest, UnlessItsWindowsOverlap) {
  ExpectPass(FusePass(), PoolGradient(R"(
      // CHECK:     ENTRY
      // CHECK:     fusion({{.*}}), kind=kInput
      // CHECK:     ROOT {{.*}} fusion({{.*}}), kind=kLoop
      )",
                                      "3", " pad=0_0x0_1x0_0x0_0"));
}

TEST(FuseTest, KernelsAreLimitedInParameters) {
  ExpectPass(FusePass(/*max_args=*/3), R"(
    ENTRY main {
      // CHECK:     ENTRY
      // CHECK:     fusion({{.*}}), kind=kLoop
      // CHECK:     fusion({{.*}}), kind=kLoop
      x = f32[4] parameter(0)
      y = f32[4] parameter(1)
      z = f32[4] parameter(2)
      a = f32[4] add(x, y)
      ROOT b = f32[4] add(a, z)
    })");
}

TEST(FuseTest, AMoveOfDataAloneIsLeftToTheCopy) {
  ExpectNoChange(FusePass(), R"(
    ENTRY main {
      x = f32[4,5] parameter(0)
      ROOT t = f32[5,4] transpose(x), dimensions={1,0}
    })");
}

// Bodies of loops and branches are computations that the device runs, as the entry is.
TEST(FuseTest, ALoopsBodyIsFused) {
  ExpectPass(FusePass(), R"(
    goes_on {
      s = (f32[8], f32[]) parameter(0)
      x = f32[] get-tuple-element(s), index=1
      zero = f32[] constant(0)
      ROOT r = pred[] compare(x, zero), direction=GT
    }
    body {
      // CHECK:      %body {
      // CHECK-NOT:  add(
      // CHECK:      [[F:%[a-z.0-9]+]] = f32[8] fusion({{.*}}), kind=kLoop
      // CHECK:      ROOT {{.*}} tuple([[F]]
      s = (f32[8], f32[]) parameter(0)
      p = f32[8] get-tuple-element(s), index=0
      x = f32[] get-tuple-element(s), index=1
      q = f32[8] add(p, p)
      t = f32[8] multiply(q, p)
      one = f32[] constant(1)
      y = f32[] subtract(x, one)
      ROOT r = (f32[8], f32[]) tuple(t, y)
    }
    ENTRY main {
      p = f32[8] parameter(0)
      n = f32[] constant(3)
      s = (f32[8], f32[]) tuple(p, n)
      w = (f32[8], f32[]) while(s), condition=goes_on, body=body
      ROOT r = f32[8] get-tuple-element(w), index=0
    })");
}

}  // namespace
}  // namespace lazuli::lowering
