#include "backend/runtime/partition.h"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/evaluator/evaluator.h"
#include "ir/hlo/text/parser.h"
#include "ir/hlo/verifier.h"
#include "ir/support/status.h"
#include "ir/types/leaves.h"
#include "tests/support/hlo_test.h"

namespace lazuli::backend {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A device that has no sine.
std::optional<Refusal> NoSine(const hlo::Instruction& i) {
  if (i.opcode() != hlo::Opcode::kSine) return std::nullopt;
  return Refusal{"unsupported-op", "there is no sine"};
}

struct Placed {
  std::unique_ptr<hlo::Module> module;
  std::unique_ptr<Placement> placement;
};
Placed Place(std::string_view text, const OpFilter& filter = {}) {
  auto module = hlo::ParseModule(text);
  EXPECT_TRUE(module.ok()) << module.status();
  Placed placed{*std::move(module), nullptr};
  placed.placement = std::make_unique<Placement>(*placed.module, filter, NoSine);
  return placed;
}

std::vector<std::string> NamesIn(const Region& region) {
  std::vector<std::string> names{region.on_device ? "device" : "host"};
  for (const hlo::Instruction* i : region.instructions) names.push_back(i->name());
  return names;
}

TEST(PartitionTest, RegionsAreAsLargeAsTheyCanBeWithoutCycles) {
  const Placed placed = Place(R"(HloModule m
    ENTRY main {
      p = f32[4] parameter(0)
      q = f32[4] parameter(1)
      two = f32[4] constant({2, 2, 2, 2})
      a = f32[4] add(p, two)
      s = f32[4] sine(a)
      b = f32[4] multiply(q, two)
      t = f32[4] sine(q)
      c = f32[4] add(s, b)
      d = f32[4] subtract(b, a)
      ROOT r = (f32[4], f32[4], f32[4], f32[4]) tuple(c, d, t, p)
    })");
  const Partition partition = MakePartition(*placed.placement);
  ASSERT_EQ(partition.regions.size(), 4);
  EXPECT_THAT(NamesIn(partition.regions[0]), ElementsAre("host", "t"));
  EXPECT_THAT(NamesIn(partition.regions[1]), ElementsAre("device", "a", "b", "d"));
  EXPECT_THAT(NamesIn(partition.regions[2]), ElementsAre("host", "s"));
  EXPECT_THAT(NamesIn(partition.regions[3]), ElementsAre("device", "c"));
  EXPECT_EQ(partition.parameters, 2);
  EXPECT_EQ(partition.results.back(), 0);  // p itself
  EXPECT_EQ(partition.regions[3].inputs.size(), 2);
  EXPECT_EQ(PlacementText(*placed.placement, partition, "npu"),
            "  host region 0  t = f32[4] sine  unsupported-op: there is no sine\n"
            "  npu region 1  a = f32[4] add\n"
            "  npu region 1  b = f32[4] multiply\n"
            "  npu region 1  d = f32[4] subtract\n"
            "  host region 2  s = f32[4] sine  unsupported-op: there is no sine\n"
            "  npu region 3  c = f32[4] add\n");
}

TEST(PartitionTest, ALoopGoesAsAWhole) {
  const Placed placed = Place(R"(HloModule m
    body { s = (s32[], f32[4]) parameter(0)
      i = s32[] get-tuple-element(s), index=0
      one = s32[] constant(1)
      j = s32[] add(i, one)
      x = f32[4] get-tuple-element(s), index=1
      y = f32[4] sine(x)
      ROOT r = (s32[], f32[4]) tuple(j, y) }
    condition { s = (s32[], f32[4]) parameter(0)
      i = s32[] get-tuple-element(s), index=0
      three = s32[] constant(3)
      ROOT c = pred[] compare(i, three), direction=LT }
    ENTRY main {
      p = f32[4] parameter(0)
      a = f32[4] add(p, p)
      zero = s32[] constant(0)
      state = (s32[], f32[4]) tuple(zero, a)
      w = (s32[], f32[4]) while(state), condition=condition, body=body
      g = f32[4] get-tuple-element(w), index=1
      ROOT b = f32[4] add(g, a)
    })");
  const hlo::Instruction* const loop = placed.module->entry()->Find("w");
  const Refusal* const refusal = placed.placement->RefusalOf(*loop);
  ASSERT_NE(refusal, nullptr);
  EXPECT_EQ(refusal->code, "in-loop-body");
  EXPECT_EQ(refusal->sentence, "y inside it: there is no sine");
  const Partition partition = MakePartition(*placed.placement);
  ASSERT_EQ(partition.regions.size(), 3);
  EXPECT_THAT(NamesIn(partition.regions[1]), ElementsAre("host", "w"));
}

// Each region evaluated with what those before it gave is the module evaluated.
TEST(PartitionTest, RegionsComputeWhatTheModuleDoes) {
  const std::string text = R"(HloModule m
    add { a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT c = f32[] add(a, b) }
    both { a = f32[] parameter(0)
      b = f32[] parameter(1)
      x = f32[] parameter(2)
      y = f32[] parameter(3)
      u = f32[] add(a, x)
      v = f32[] add(b, y)
      ROOT r = (f32[], f32[]) tuple(u, v) }
    ENTRY main {
      p = (f32[4,3], (f32[4], s32[])) parameter(0)
      m = f32[4,3] get-tuple-element(p), index=0
      rest = (f32[4], s32[]) get-tuple-element(p), index=1
      v = f32[4] get-tuple-element(rest), index=0
      zero = f32[] constant(0)
      one = s32[] constant(1)
      sums = (f32[4], f32[4]) reduce(m, m, zero, zero), dimensions={1}, to_apply=both
      s = f32[4] get-tuple-element(sums), index=0
      t = f32[4] get-tuple-element(sums), index=1
      nested = ((f32[4], f32[4]), f32[4]) tuple(sums, v)
      inner = (f32[4], f32[4]) get-tuple-element(nested), index=0
      part = f32[4] get-tuple-element(inner), index=0
      w = f32[4] sine(part)
      x = f32[4] multiply(w, v)
      total = f32[] reduce(x, zero), dimensions={0}, to_apply=add
      cosine = f32[4] cosine(t)
      y = f32[4] sine(cosine)
      pair = (f32[], f32[4]) tuple(total, x)
      ROOT r = (f32[4], (f32[], f32[4]), (f32[4], f32[4]), s32[], (f32[4], s32[]))
          tuple(y, pair, sums, one, rest)
    })";
  auto parsed = hlo::ParseModule(text);
  if (!parsed.ok()) GTEST_FAIL() << parsed.status();
  const auto arguments = RandomArguments(**parsed, RandomValues::kTame);
  std::vector<const Literal*> pointers;
  for (const Literal& argument : arguments) pointers.push_back(&argument);
  const auto expected = hlo::Evaluate(**parsed, pointers);
  ASSERT_TRUE(expected.ok()) << expected.status();

  for (const char* denied : {"", "reduce", "sine,multiply", "add,reduce,cosine"}) {
    SCOPED_TRACE(denied);
    OpFilter filter;
    ASSERT_TRUE(filter.Deny(denied, "a test").ok());
    const Placed placed = Place(text, filter);
    const Partition partition = MakePartition(*placed.placement);
    std::vector<Literal> values(partition.values.size());
    std::size_t next = 0;
    for (const Literal& argument : arguments)
      ForEachLeaf(argument, [&](const Literal& leaf) { values[next++] = leaf; });
    for (const Region& region : partition.regions) {
      ASSERT_TRUE(hlo::Verify(*region.module).ok()) << region.module->ToString();
      std::vector<const Literal*> inputs;
      for (const int32_t v : region.inputs) inputs.push_back(&values[static_cast<std::size_t>(v)]);
      const auto outputs = hlo::Evaluate(*region.module, inputs);
      ASSERT_TRUE(outputs.ok()) << outputs.status() << region.module->ToString();
      std::size_t output = 0;
      ForEachLeaf(*outputs, [&](const Literal& leaf) {
        values[static_cast<std::size_t>(region.outputs[output++])] = leaf;
      });
    }
    std::size_t result = 0;
    ForEachLeaf(*expected, [&](const Literal& leaf) {
      ExpectSameBits(leaf, values[static_cast<std::size_t>(partition.results[result++])]);
    });
    EXPECT_EQ(result, partition.results.size());
  }
}

TEST(PlacementTest, WhatADeviceLacksIsAnErrorWithoutSoftPlacement) {
  const Placed placed = Place(R"(HloModule m
    ENTRY main {
      p = f32[4] parameter(0)
      a = f32[4] add(p, p)
      ROOT s = f32[4] sine(a), metadata={op_type="aten::sin" source_file="train.py" source_line=7}
    })");
  EXPECT_EQ(Message(placed.placement->CheckAllOnDevice("npu")),
            "aten::sin: npu does not run sine of f32[4]: unsupported-op: there is no sine "
            "(LAZULI_SOFT_PLACEMENT=0) (train.py:7)");
  EXPECT_EQ(placed.placement->ReasonsText(), "  unsupported-op: there is no sine: 1 sine\n");
}

TEST(OpFilterTest, DeniesAndAllowsByName) {
  OpFilter filter;
  ASSERT_TRUE(filter.Deny("sort+fft", "filter.deny").ok());
  ASSERT_TRUE(filter.Add({.denied_ops = "dot", .allowed_ops = "dot, add"}).ok());
  EXPECT_EQ(filter.WhyDenied(hlo::Opcode::kAdd), "");
  EXPECT_EQ(filter.WhyDenied(hlo::Opcode::kDot), "dot is denied by filter.deny or LAZULI_DENY_OPS");
  EXPECT_EQ(filter.WhyDenied(hlo::Opcode::kSine), "sine is not among what LAZULI_ALLOW_OPS allows");
  EXPECT_EQ(Message(OpFilter().Deny("matmul", "LAZULI_DENY_OPS")),
            "LAZULI_DENY_OPS: \"matmul\" is not an HLO opcode; they are in docs/hlo.md");
}

}  // namespace
}  // namespace lazuli::backend
