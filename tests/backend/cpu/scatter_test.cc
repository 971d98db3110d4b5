// Gathers and scatters of more windows than are looked at at a time, by several threads: what the
// evaluator gives, to the bit, equal places in the order of their updates.
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "backend/client/registry.h"
#include "backend/cpu/cpu_client.h"
#include "ir/evaluator/evaluator.h"
#include "ir/support/flags.h"
#include "tests/support/hlo_test.h"

namespace lazuli::cpu {
namespace {

// Positions, some of them out of range; numbers of many magnitudes, whose sum depends on the order.
Literal Random(const Shape& shape, std::mt19937& random) {
  Literal literal(shape);
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    const double scale = std::ldexp(1.0, static_cast<int>(random() % 20));
    literal.SetFromDouble(i, ir::IsIntegral(shape.dtype())
                                 ? static_cast<double>(random() % 12) - 1
                                 : static_cast<double>(random() % 1000) * scale / 7);
  }
  return literal;
}

void ExpectAgrees(std::string_view text) {
  RegisterCpu();
  ASSERT_TRUE(ir::SetFlag("LAZULI_NUM_THREADS", "3").ok());
  const Device device = *FindDevice("cpu");
  const auto module = ParseHlo(text);
  std::mt19937 random(1);
  std::vector<Literal> values;
  for (const hlo::Instruction* parameter : module->entry()->parameters())
    values.push_back(Random(parameter->shape(), random));
  std::vector<const Literal*> arguments;
  std::vector<BufferPtr> buffers;
  for (const Literal& value : values) {
    arguments.push_back(&value);
    buffers.push_back(*device.client->FromHost({value.raw(), &value.shape()}, {}, device));
  }
  const Literal expected = *hlo::Evaluate(*module, arguments);
  const auto executable = *device.client->Compile(ParseHlo(text), *CompileOptions::FromFlags());
  EXPECT_EQ(executable->stats().evaluator_thunks, 0);
  const auto results = *executable->Execute({.buffers = buffers, .scalars = {}, .donated = {}});
  ExpectSameBits(expected, *device.client->ToHost(*results[0]));
  ASSERT_TRUE(ir::SetFlag("LAZULI_NUM_THREADS", "0").ok());
}

TEST(ScatterTest, WindowsOfManyRuns) {
  ExpectAgrees(R"(
    add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
    ENTRY main {
      x = f32[8,40,10,10] parameter(0)
      i = s32[700,2] parameter(1)
      u = f32[700,8,40] parameter(2)
      ROOT s = f32[8,40,10,10] scatter(x, i, u), update_window_dims={1,2}, inserted_window_dims={2,3}, scatter_dims_to_operand_dims={2,3}, index_vector_dim=1, to_apply=add
    })");
}

TEST(ScatterTest, WindowsOfOneRun) {
  ExpectAgrees(R"(
    add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
    ENTRY main {
      x = f32[10,1000] parameter(0)
      i = s64[700] parameter(1)
      u = f32[700,1000] parameter(2)
      ROOT s = f32[10,1000] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
    })");
}

TEST(ScatterTest, TheLastOfEqualPlacesStays) {
  ExpectAgrees(R"(
    second { a = f32[] parameter(0)  ROOT b = f32[] parameter(1) }
    ENTRY main {
      x = f32[10,33,2] parameter(0)
      i = s32[700] parameter(1)
      u = f32[700,33] parameter(2)
      ROOT s = f32[10,33,2] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0,2}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=second
    })");
}

TEST(GatherTest, WindowsOfLongRuns) {
  ExpectAgrees(R"(
    ENTRY main {
      x = f32[10,4,50] parameter(0)
      i = s32[700] parameter(1)
      ROOT g = f32[700,3,50] gather(x, i), offset_dims={1,2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3,50}
    })");
}

}  // namespace
}  // namespace lazuli::cpu
