// Attention is one kernel, and one for its gradient, whose memory grows with the lengths, not with
// their product.
#include <string>

#include <gtest/gtest.h>

#include "backend/client/registry.h"
#include "backend/cpu/cpu_client.h"
#include "ir/support/str.h"
#include "tests/support/hlo_test.h"

namespace lazuli::cpu {
namespace {

// Of `n` queries and keys in each of three heads.
std::string AttentionText(int64_t n, bool gradient) {
  const std::string plane = Str("f32[3,", n, ",", n, "]"), rows = Str("f32[3,", n, "]"),
                    matrix = Str("f32[3,", n, ",32]");
  const std::string batch = "lhs_batch_dims={0}, rhs_batch_dims={0}, ";
  std::string text = Str(
      "largest { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] maximum(a, b) }\n",
      "sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }\n",
      "ENTRY main {\n", "q = ", matrix, " parameter(0)\n", "k = ", matrix, " parameter(1)\n",
      "v = ", matrix, " parameter(2)\n", "dy = ", matrix, " parameter(3)\n",
      "zero = f32[] constant(0)\n", "none = f32[] constant(-inf)\n", "i = s32[", n, ",", n,
      "] iota(), iota_dimension=0\n", "j = s32[", n, ",", n, "] iota(), iota_dimension=1\n",
      "seen = pred[", n, ",", n, "] compare(j, i), direction=LE\n", "shown = pred[3,", n, ",", n,
      "] broadcast(seen), dimensions={1,2}\n", "hidden = ", plane,
      " broadcast(none), dimensions={}\n", "s = ", plane, " dot(q, k), ", batch,
      "lhs_contracting_dims={2}, rhs_contracting_dims={2}\n", "x = ", plane,
      " select(shown, s, hidden)\n", "m = ", rows,
      " reduce(x, none), dimensions={2}, to_apply=largest\n", "mb = ", plane,
      " broadcast(m), dimensions={0,1}\n", "c = ", plane, " subtract(x, mb)\n", "e = ", plane,
      " exponential(c)\n", "l = ", rows, " reduce(e, zero), dimensions={2}, to_apply=sum\n",
      "lb = ", plane, " broadcast(l), dimensions={0,1}\n", "w = ", plane, " divide(e, lb)\n",
      gradient ? "" : "ROOT ", "y = ", matrix, " dot(w, v), ", batch,
      "lhs_contracting_dims={2}, rhs_contracting_dims={1}\n");
  if (!gradient) return text + "}";
  const std::string fill = Str(plane, " broadcast(zero), dimensions={}\n");
  return text + Str("dw = ", plane, " dot(dy, v), ", batch,
                    "lhs_contracting_dims={2}, rhs_contracting_dims={2}\n", "t = ", plane,
                    " multiply(dw, w)\n", "mean = ", rows,
                    " reduce(t, zero), dimensions={2}, to_apply=sum\n", "means = ", plane,
                    " broadcast(mean), dimensions={0,1}\n", "d = ", plane, " subtract(dw, means)\n",
                    "dx = ", plane, " multiply(w, d)\n", "zeros = ", fill, "ds = ", plane,
                    " select(shown, dx, zeros)\n", "dq = ", matrix, " dot(ds, k), ", batch,
                    "lhs_contracting_dims={2}, rhs_contracting_dims={1}\n", "dk = ", matrix,
                    " dot(ds, q), ", batch, "lhs_contracting_dims={1}, rhs_contracting_dims={1}\n",
                    "dv = ", matrix, " dot(w, dy), ", batch,
                    "lhs_contracting_dims={1}, rhs_contracting_dims={1}\n", "ROOT r = (", matrix,
                    ", ", matrix, ", ", matrix, ", ", matrix, ") tuple(y, dq, dk, dv)\n}");
}

ExecutableStats StatsOf(int64_t n, bool gradient) {
  RegisterCpu();
  const Device device = *FindDevice("cpu");
  return (*device.client->Compile(ParseHlo(AttentionText(n, gradient)), {.num_threads = 2}))
      ->stats();
}

TEST(AttentionTest, IsOneKernelAndItsGradientAnother) {
  for (const bool gradient : {false, true}) {
    const ExecutableStats stats = StatsOf(256, gradient);
    EXPECT_EQ(stats.library_calls, gradient ? 2 : 1);
    EXPECT_EQ(stats.kernels, 0);
    EXPECT_EQ(stats.evaluator_thunks, 0);
  }
}

TEST(AttentionTest, MemoryIsLinearInTheLengths) {
  for (const bool gradient : {false, true}) {
    const int64_t once = StatsOf(2048, gradient).temp_bytes,
                  twice = StatsOf(4096, gradient).temp_bytes;
    EXPECT_LE(twice, 2 * once + 4096);
    EXPECT_LT(twice, int64_t{4096} * 4096 * 4);  // the weights of one head
  }
}

}  // namespace
}  // namespace lazuli::cpu
