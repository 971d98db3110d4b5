#include "backend/cpu/passes/fuse_attention.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "ir/hlo/text/printer.h"
#include "ir/hlo/verifier.h"
#include "ir/support/str.h"
#include "tests/support/hlo_test.h"
#include "tests/support/pass_test.h"

namespace lazuli::cpu {
namespace {

constexpr std::string_view kReducers = R"(
    largest { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] maximum(a, b) }
    sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
)";

// Weights of logits `x`, whose dims are {2, 128, 160}.
constexpr std::string_view kWeights = R"(
      zero = f32[] constant(0)
      none = f32[] constant(-inf)
      m = f32[2,128] reduce(x, none), dimensions={2}, to_apply=largest
      mb = f32[2,128,160] broadcast(m), dimensions={0,1}
      c = f32[2,128,160] subtract(x, mb)
      e = f32[2,128,160] exponential(c)
      l = f32[2,128] reduce(e, zero), dimensions={2}, to_apply=sum
      lb = f32[2,128,160] broadcast(l), dimensions={0,1}
      w = f32[2,128,160] divide(e, lb)
)";

TEST(FuseAttentionTest, ProductsAroundASoftmaxAreOneFusion) {
  ExpectPass(FuseAttention(), Str(kReducers, R"(
    // CHECK-LABEL: ENTRY
    // CHECK-NOT:   dot(
    // CHECK:       ROOT {{.*}} = f32[2,128,8] fusion({{.*}}), kind=kCustom
    ENTRY main {
      q = f32[2,128,16] parameter(0)
      k = f32[2,160,16] parameter(1)
      v = f32[2,160,8] parameter(2)
      seen = pred[2,160] parameter(3)
      bias = f32[128,160] parameter(4)
      s = f32[2,128,160] dot(q, k), lhs_batch_dims={0}, rhs_batch_dims={0},
          lhs_contracting_dims={2}, rhs_contracting_dims={2}
      quarter = f32[] constant(0.25)
      scale = f32[2,128,160] broadcast(quarter), dimensions={}
      scaled = f32[2,128,160] multiply(s, scale)
      wide = f32[2,128,160] broadcast(bias), dimensions={1,2}
      biased = f32[2,128,160] add(wide, scaled)
      shown = pred[2,128,160] broadcast(seen), dimensions={0,2}
      low = f32[] constant(-1e30)
      hidden = f32[2,128,160] broadcast(low), dimensions={}
      x = f32[2,128,160] select(shown, biased, hidden)
)",
                                  kWeights, R"(
      ROOT y = f32[2,128,8] dot(w, v), lhs_batch_dims={0}, rhs_batch_dims={0},
          lhs_contracting_dims={2}, rhs_contracting_dims={1}
    })"));
}

constexpr std::string_view kProducts = R"(
      q = f32[2,128,16] parameter(0)
      k = f32[2,160,16] parameter(1)
      v = f32[2,160,8] parameter(2)
      dy = f32[2,128,8] parameter(3)
      x = f32[2,128,160] dot(q, k), lhs_batch_dims={0}, rhs_batch_dims={0},
          lhs_contracting_dims={2}, rhs_contracting_dims={2}
)";
constexpr std::string_view kGradient = R"(
      y = f32[2,128,8] dot(w, v), lhs_batch_dims={0}, rhs_batch_dims={0},
          lhs_contracting_dims={2}, rhs_contracting_dims={1}
      dw = f32[2,128,160] dot(dy, v), lhs_batch_dims={0}, rhs_batch_dims={0},
          lhs_contracting_dims={2}, rhs_contracting_dims={2}
      t = f32[2,128,160] multiply(dw, w)
      mean = f32[2,128] reduce(t, zero), dimensions={2}, to_apply=sum
      means = f32[2,128,160] broadcast(mean), dimensions={0,1}
      d = f32[2,128,160] subtract(dw, means)
      ds = f32[2,128,160] multiply(w, d)
      dq = f32[2,128,16] dot(ds, k), lhs_batch_dims={0}, rhs_batch_dims={0},
          lhs_contracting_dims={2}, rhs_contracting_dims={1}
      dk = f32[2,16,160] dot(q, ds), lhs_batch_dims={0}, rhs_batch_dims={0},
          lhs_contracting_dims={1}, rhs_contracting_dims={1}
      dv = f32[2,160,8] dot(w, dy), lhs_batch_dims={0}, rhs_batch_dims={0},
          lhs_contracting_dims={1}, rhs_contracting_dims={1}
)";

TEST(FuseAttentionTest, TheGradientIsAnotherFusionThatKnowsTheSumsOfRows) {
  ExpectPass(FuseAttention(), Str(kReducers, R"(
    // CHECK-LABEL: ENTRY
    // CHECK-NOT:   dot(
    // CHECK-DAG:   [[F:%fusion[.0-9]*]] = (f32[2,128,8], f32[2,128], f32[2,128]) fusion(%q, %k, %v)
    // CHECK-DAG:   [[L:%[a-z0-9.-]+]] = f32[2,128] get-tuple-element([[F]]), index=1
    // CHECK-DAG:   [[D:%[a-z0-9.-]+]] = f32[2,128] get-tuple-element([[F]]), index=2
    // CHECK-DAG:   (f32[2,128,16]{{.*}} fusion(%q, %k, %v, %dy, [[L]], [[D]])
    ENTRY main {)",
                                  kProducts, kWeights, kGradient, R"(
      ROOT r = (f32[2,128,8], f32[2,128,16], f32[2,16,160], f32[2,160,8]) tuple(y, dq, dk, dv)
    })"));
}

TEST(FuseAttentionTest, WeightsThatSomebodyReadsStay) {
  for (const char* results :
       {"f32[2,128,160]) tuple(y, dq, dk, dv, w)", "f32[2,128,160]) tuple(y, dq, dk, dv, ds)"}) {
    ExpectNoChange(
        FuseAttention(),
        Str(kReducers, "ENTRY main {", kProducts, kWeights, kGradient,
            "ROOT r = (f32[2,128,8], f32[2,128,16], f32[2,16,160], f32[2,160,8], ", results, " }"));
  }
}

TEST(FuseAttentionTest, AConditionForAllElementsIsNoMask) {
  ExpectNoChange(FuseAttention(), Str(kReducers, R"(
    ENTRY main {
      q = f32[2,128,16] parameter(0)
      k = f32[2,160,16] parameter(1)
      v = f32[2,160,8] parameter(2)
      seen = pred[] parameter(3)
      s = f32[2,128,160] dot(q, k), lhs_batch_dims={0}, rhs_batch_dims={0},
          lhs_contracting_dims={2}, rhs_contracting_dims={2}
      low = f32[] constant(-1e30)
      hidden = f32[2,128,160] broadcast(low), dimensions={}
      x = f32[2,128,160] select(seen, s, hidden)
)",
                                      kWeights, R"(
      ROOT y = f32[2,128,8] dot(w, v), lhs_batch_dims={0}, rhs_batch_dims={0},
          lhs_contracting_dims={2}, rhs_contracting_dims={1}
    })"));
}

// Attention, or its gradient for known largest scores and divisors, as composites.
constexpr std::string_view kComposites = R"(
    attention {
      q = f32[2,128,16] parameter(0)
      k = f32[2,160,16] parameter(1)
      v = f32[2,160,8] parameter(2)
      x = f32[2,128,160] dot(q, k), lhs_batch_dims={0}, rhs_batch_dims={0},
          lhs_contracting_dims={2}, rhs_contracting_dims={2}
      zero = f32[] constant(0)
      none = f32[] constant(-inf)
      m = f32[2,128] reduce(x, none), dimensions={2}, to_apply=largest
      mb = f32[2,128,160] broadcast(m), dimensions={0,1}
      c = f32[2,128,160] subtract(x, mb)
      e = f32[2,128,160] exponential(c)
      l = f32[2,128] reduce(e, zero), dimensions={2}, to_apply=sum
      lb = f32[2,128,160] broadcast(l), dimensions={0,1}
      w = f32[2,128,160] divide(e, lb)
      y = f32[2,128,8] dot(w, v), lhs_batch_dims={0}, rhs_batch_dims={0},
          lhs_contracting_dims={2}, rhs_contracting_dims={1}
      ROOT r = (f32[2,128,8], f32[2,128], f32[2,128]) tuple(y, m, l)
    }
    gradient {
      q = f32[2,128,16] parameter(0)
      k = f32[2,160,16] parameter(1)
      v = f32[2,160,8] parameter(2)
      m = f32[2,128] parameter(3)
      l = f32[2,128] parameter(4)
      dy = f32[2,128,8] parameter(5)
      zero = f32[] constant(0)
      x = f32[2,128,160] dot(q, k), lhs_batch_dims={0}, rhs_batch_dims={0},
          lhs_contracting_dims={2}, rhs_contracting_dims={2}
      mb = f32[2,128,160] broadcast(m), dimensions={0,1}
      c = f32[2,128,160] subtract(x, mb)
      e = f32[2,128,160] exponential(c)
      lb = f32[2,128,160] broadcast(l), dimensions={0,1}
      w = f32[2,128,160] divide(e, lb)
      dw = f32[2,128,160] dot(dy, v), lhs_batch_dims={0}, rhs_batch_dims={0},
          lhs_contracting_dims={2}, rhs_contracting_dims={2}
      t = f32[2,128,160] multiply(dw, w)
      mean = f32[2,128] reduce(t, zero), dimensions={2}, to_apply=sum
      means = f32[2,128,160] broadcast(mean), dimensions={0,1}
      d = f32[2,128,160] subtract(dw, means)
      ds = f32[2,128,160] multiply(w, d)
      dq = f32[2,128,16] dot(ds, k), lhs_batch_dims={0}, rhs_batch_dims={0},
          lhs_contracting_dims={2}, rhs_contracting_dims={1}
      ROOT r = (f32[2,128,16]) tuple(dq)
    }
)";

// Of a part of a computation, too, and whoever reads the weights of equal instructions.
TEST(FuseAttentionTest, ACompositeIsAFusionWhateverElseTheModuleComputes) {
  ExpectPass(FuseAttention(/*is_whole_module=*/false), Str(kReducers, kComposites, R"(
    // CHECK-LABEL: ENTRY
    // CHECK-NOT:   call(
    // CHECK-DAG:   [[F:%fusion[.0-9]*]] = (f32[2,128,8], f32[2,128], f32[2,128]) fusion(%stored, %k, %v), kind=kCustom
    // CHECK-DAG:   [[M:%[a-z0-9.-]+]] = f32[2,128] get-tuple-element([[F]]), index=1
    // CHECK-DAG:   [[L:%[a-z0-9.-]+]] = f32[2,128] get-tuple-element([[F]]), index=2
    // CHECK-DAG:   f32[2,128,16] fusion(%stored, %k, %v, %dy, [[M]], [[L]]), kind=kCustom
    ENTRY main {
      stored = f32[128,2,16] parameter(0)
      k = f32[2,160,16] parameter(1)
      v = f32[2,160,8] parameter(2)
      dy = f32[2,128,8] parameter(3)
      other = f32[2,128,16] parameter(4)
      q = f32[2,128,16] transpose(stored), dimensions={1,0,2}
      all = (f32[2,128,8], f32[2,128], f32[2,128]) call(q, k, v), to_apply=attention,
          is_composite=true
      y = f32[2,128,8] get-tuple-element(all), index=0
      m = f32[2,128] get-tuple-element(all), index=1
      l = f32[2,128] get-tuple-element(all), index=2
      slopes = (f32[2,128,16]) call(q, k, v, m, l, dy), to_apply=gradient, is_composite=true
      dq = f32[2,128,16] get-tuple-element(slopes), index=0
      x = f32[2,128,160] dot(q, k), lhs_batch_dims={0}, rhs_batch_dims={0},
          lhs_contracting_dims={2}, rhs_contracting_dims={2}
      more = (f32[2,128,8], f32[2,128], f32[2,128]) call(other, k, v), to_apply=attention,
          is_composite=true
      z = f32[2,128,8] get-tuple-element(more), index=0
      ROOT r = (f32[2,128,8], f32[2,128,16], f32[2,128,160], f32[2,128,8]) tuple(y, dq, x, z)
    })"));
}

// What is between the operands and the results of 16-bit floats is in f32, and the factor of a result
// is part of the fusion.
TEST(FuseAttentionTest, ACompositeOf16BitFloatsIsAFusionThatComputesInF32) {
  for (const std::string& half : {std::string("bf16"), std::string("f16")}) {
    std::string text = Str(kReducers, R"(
    // CHECK-LABEL: ENTRY
    // CHECK:       ROOT {{.*}} = HALF[2,128,8] fusion(%q, %stored, %v), kind=kCustom
    attention {
      q = HALF[2,128,16] parameter(0)
      k = HALF[2,160,16] parameter(1)
      v = HALF[2,160,8] parameter(2)
      quarter = HALF[] constant(0.25)
      factor = HALF[2,128,16] broadcast(quarter), dimensions={}
      scaled = HALF[2,128,16] multiply(q, factor)
      narrow = HALF[2,128,160] dot(scaled, k), lhs_batch_dims={0}, rhs_batch_dims={0},
          lhs_contracting_dims={2}, rhs_contracting_dims={2}
      x = f32[2,128,160] convert(narrow)
)",
                           kWeights, R"(
      rounded = HALF[2,128,160] convert(w)
      ROOT y = HALF[2,128,8] dot(rounded, v), lhs_batch_dims={0}, rhs_batch_dims={0},
          lhs_contracting_dims={2}, rhs_contracting_dims={1}
    }
    ENTRY main {
      q = HALF[2,128,16] parameter(0)
      stored = HALF[160,2,16] parameter(1)
      v = HALF[2,160,8] parameter(2)
      k = HALF[2,160,16] transpose(stored), dimensions={1,0,2}
      ROOT y = HALF[2,128,8] call(q, k, v), to_apply=attention, is_composite=true
    })");
    for (std::size_t at; (at = text.find("HALF")) != std::string::npos;) text.replace(at, 4, half);
    // The values are not those of the instructions, which round between steps.
    const std::unique_ptr<hlo::Module> module = ParseHlo(text);
    EXPECT_TRUE(*FuseAttention(/*is_whole_module=*/false).Run(*module));
    EXPECT_TRUE(hlo::Verify(*module).ok()) << module->ToString();
    EXPECT_EQ(FileCheckError(text, hlo::ToString(*module, {.layouts = false, .metadata = false})),
              "");
    EXPECT_FALSE(*FuseAttention(/*is_whole_module=*/false).Run(*module));
  }
}

TEST(FuseAttentionTest, PlainInstructionsStayWhereASyncMayCutThem) {
  ExpectNoChange(FuseAttention(/*is_whole_module=*/false),
                 Str(kReducers, "ENTRY main {", kProducts, kWeights, R"(
      ROOT y = f32[2,128,8] dot(w, v), lhs_batch_dims={0}, rhs_batch_dims={0},
          lhs_contracting_dims={2}, rhs_contracting_dims={1}
    })"));
}

// Two products and a kernel between them are faster.
TEST(FuseAttentionTest, ShortSequencesStay) {
  std::string text = Str(kReducers, "ENTRY main {", kProducts, kWeights, R"(
      ROOT y = f32[2,128,8] dot(w, v), lhs_batch_dims={0}, rhs_batch_dims={0},
          lhs_contracting_dims={2}, rhs_contracting_dims={1}
    })");
  ExpectPass(FuseAttention(), text);
  for (std::size_t at; (at = text.find("128")) != std::string::npos;) text.replace(at, 3, "32");
  ExpectNoChange(FuseAttention(), text);
}

}  // namespace
}  // namespace lazuli::cpu
