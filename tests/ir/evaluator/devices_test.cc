// Programs that several devices run together: what the evaluator gives each of them.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/evaluator/evaluator.h"
#include "ir/support/flags.h"
#include "ir/support/status.h"
#include "tests/support/hlo_test.h"

namespace lazuli::hlo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The results of a program with one parameter f32[n] on as many devices as there are arguments.
std::vector<std::string> OnDevices(const std::string& text, const std::vector<Literal>& arguments) {
  const auto module = ParseHlo(text);
  std::vector<std::vector<const Literal*>> given;
  for (const Literal& argument : arguments) given.push_back({&argument});
  const auto results = EvaluateOnDevices(*module, given);
  if (!results.ok()) return {std::string(Message(results.status()))};
  std::vector<std::string> texts;
  for (const Literal& result : *results) texts.push_back(result.ToString());
  return texts;
}

Literal F32(const std::vector<float>& values) {
  return Literal::FromValues<float>({static_cast<int64_t>(values.size())}, values);
}

std::string Program(const std::string& call) {
  return R"(HloModule m, replica_count=2
    add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
    first { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] subtract(a, b) }
    ENTRY e { x = f32[4] parameter(0) ROOT r = )" +
         call + " }";
}

const std::vector<Literal>& Two() {
  static const std::vector<Literal> values{F32({1, 2, 3, 4}), F32({10, 20, 30, 40})};
  return values;
}

TEST(DevicesTest, AllReduceJoinsInTheOrderOfTheGroup) {
  EXPECT_THAT(OnDevices(Program("f32[4] all-reduce(x), replica_groups={}, to_apply=add"), Two()),
              ElementsAre("{11, 22, 33, 44}", "{11, 22, 33, 44}"));
  EXPECT_THAT(
      OnDevices(Program("f32[4] all-reduce(x), replica_groups={{1,0}}, to_apply=first"), Two()),
      ElementsAre("{9, 18, 27, 36}", "{9, 18, 27, 36}"));
  EXPECT_THAT(
      OnDevices(Program("f32[4] all-reduce(x), replica_groups={{0},{1}}, to_apply=add"), Two()),
      ElementsAre("{1, 2, 3, 4}", "{10, 20, 30, 40}"));
}

TEST(DevicesTest, PartsAreGatheredScatteredAndExchanged) {
  EXPECT_THAT(
      OnDevices(Program("f32[8] all-gather(x), replica_groups={{0,1}}, dimensions={0}"), Two()),
      ElementsAre("{1, 2, 3, 4, 10, 20, 30, 40}", "{1, 2, 3, 4, 10, 20, 30, 40}"));
  EXPECT_THAT(OnDevices(Program("f32[2] reduce-scatter(x), replica_groups={{0,1}}, "
                                "dimensions={0}, to_apply=add"),
                        Two()),
              ElementsAre("{11, 22}", "{33, 44}"));
  EXPECT_THAT(
      OnDevices(Program("f32[4] all-to-all(x), replica_groups={{0,1}}, dimensions={0}"), Two()),
      ElementsAre("{1, 2, 10, 20}", "{3, 4, 30, 40}"));
}

TEST(DevicesTest, ATupleOfPartsIsExchanged) {
  const std::string text = R"(HloModule m, replica_count=2
    ENTRY e { x = f32[4] parameter(0) y = f32[4] negate(x)
      ROOT r = (f32[4], f32[4]) all-to-all(x, y), replica_groups={{0,1}} })";
  EXPECT_THAT(OnDevices(text, Two()), ElementsAre("( {1, 2, 3, 4}, {10, 20, 30, 40} )",
                                                  "( {-1, -2, -3, -4}, {-10, -20, -30, -40} )"));
}

TEST(DevicesTest, PermutesAndBroadcastsGiveZerosToWhomNobodySends) {
  EXPECT_THAT(
      OnDevices(Program("f32[4] collective-permute(x), source_target_pairs={{0,1}}"), Two()),
      ElementsAre("{0, 0, 0, 0}", "{1, 2, 3, 4}"));
  EXPECT_THAT(
      OnDevices(Program("f32[4] collective-permute(x), source_target_pairs={{0,1},{1,0}}"), Two()),
      ElementsAre("{10, 20, 30, 40}", "{1, 2, 3, 4}"));
  EXPECT_THAT(
      OnDevices(Program("f32[4] collective-permute(x), source_target_pairs={{1,1}}"), Two()),
      ElementsAre("{0, 0, 0, 0}", "{10, 20, 30, 40}"));
  EXPECT_THAT(OnDevices(Program("f32[4] collective-broadcast(x), replica_groups={{1,0}}"), Two()),
              ElementsAre("{10, 20, 30, 40}", "{10, 20, 30, 40}"));
  EXPECT_THAT(OnDevices(Program("f32[4] collective-broadcast(x), replica_groups={{1}}"), Two()),
              ElementsAre("{0, 0, 0, 0}", "{10, 20, 30, 40}"));
}

TEST(DevicesTest, RaggedSlicesGoWhereTheirSenderSays) {
  // Device d sends its first d + 1 rows to device 0 at row 2d, and the next one to device 1 at row d.
  const std::string text = R"(HloModule m, replica_count=2
    ENTRY e { x = f32[4] parameter(0) zero = f32[] constant(0) out = f32[4] broadcast(zero), dimensions={}
      d = u32[] replica-id() i = s32[] convert(d) one = s32[] constant(1) two = s32[] constant(2)
      n = s32[] add(i, one) n1 = s32[1] reshape(n) one1 = s32[1] reshape(one) i1 = s32[1] reshape(i)
      z = s32[] constant(0) z1 = s32[1] reshape(z) t = s32[] multiply(i, two) t1 = s32[1] reshape(t)
      starts = s32[2] concatenate(z1, n1), dimensions={0}
      sizes = s32[2] concatenate(n1, one1), dimensions={0}
      targets = s32[2] concatenate(t1, i1), dimensions={0}
      ROOT r = f32[4] ragged-all-to-all(x, out, starts, sizes, targets, sizes), replica_groups={{0,1}} })";
  EXPECT_THAT(OnDevices(text, Two()), ElementsAre("{1, 0, 10, 20}", "{2, 30, 0, 0}"));
}

TEST(DevicesTest, StartsHaveTheirResultsInPlace) {
  const std::string text = R"(HloModule m, replica_count=2
    add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
    ENTRY e { x = f32[4] parameter(0)
      g = (f32[4], f32[8]) all-gather-start(x), replica_groups={{0,1}}, dimensions={0}
      gd = f32[8] all-gather-done(g)
      p = (f32[8], f32[8], u32[], u32[]) collective-permute-start(gd), source_target_pairs={{0,1},{1,0}}
      pd = f32[8] collective-permute-done(p)
      s = f32[8] all-reduce-start(pd), replica_groups={{0,1}}, to_apply=add
      ROOT r = f32[8] all-reduce-done(s) })";
  EXPECT_THAT(OnDevices(text, Two()),
              ElementsAre("{2, 4, 6, 8, 20, 40, 60, 80}", "{2, 4, 6, 8, 20, 40, 60, 80}"));
}

TEST(DevicesTest, DevicesKnowTheirReplicaAndPartition) {
  const std::string text = R"(HloModule m, replica_count=2, num_partitions=2
    add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
    ENTRY e { x = f32[1] parameter(0) r = u32[] replica-id() p = u32[] partition-id()
      replicas = f32[1] all-reduce(x), replica_groups={{0,1}}, to_apply=add
      partitions = f32[1] all-reduce(x), replica_groups={{0},{1}}, to_apply=add, channel_id=1
      ROOT t = (u32[], u32[], f32[1], f32[1]) tuple(r, p, replicas, partitions) })";
  EXPECT_THAT(OnDevices(text, {F32({1}), F32({2}), F32({4}), F32({8})}),
              ElementsAre("( 0, 0, {5}, {3} )", "( 0, 1, {10}, {3} )", "( 1, 0, {5}, {12} )",
                          "( 1, 1, {10}, {12} )"));
}

TEST(DevicesTest, CollectivesMeetInLoopsAndAfterThem) {
  const std::string text = R"(HloModule m, replica_count=2
    add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
    body { s = (s32[], f32[4]) parameter(0) i = s32[] get-tuple-element(s), index=0
      v = f32[4] get-tuple-element(s), index=1 one = s32[] constant(1) n = s32[] add(i, one)
      w = f32[4] all-reduce(v), replica_groups={{0,1}}, to_apply=add ROOT t = (s32[], f32[4]) tuple(n, w) }
    less { s = (s32[], f32[4]) parameter(0) i = s32[] get-tuple-element(s), index=0
      three = s32[] constant(3) ROOT c = pred[] compare(i, three), direction=LT }
    ENTRY e { x = f32[4] parameter(0) zero = s32[] constant(0) s = (s32[], f32[4]) tuple(zero, x)
      l = (s32[], f32[4]) while(s), condition=less, body=body v = f32[4] get-tuple-element(l), index=1
      ROOT r = f32[4] collective-permute(v), source_target_pairs={{1,0}} })";
  EXPECT_THAT(OnDevices(text, Two()), ElementsAre("{44, 88, 132, 176}", "{0, 0, 0, 0}"));
}

TEST(DevicesTest, WhatIsAmissIsSaid) {
  EXPECT_THAT(
      OnDevices(Program("f32[4] all-reduce(x), replica_groups={{0,1,2}}, to_apply=add"), Two())[0],
      HasSubstr("device 2 takes part; this process has 2 devices of platform device"));
  // Device 1 fails before the collective, so device 0 need not wait for it.
  EXPECT_THAT(
      OnDevices(R"(HloModule m, replica_count=2
    add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
    ENTRY e { x = f32[4] parameter(0) d = u32[] replica-id() i = s64[] convert(d) i1 = s64[1] reshape(i)
      limit = s64[] constant(1)
      c = s64[1] custom-call(i1, limit), custom_call_target="lazuli.check_index_range"
      ROOT r = f32[4] all-reduce(x), replica_groups={{0,1}}, to_apply=add, control-predecessors={c} })",
                Two())[0],
      testing::AllOf(HasSubstr("devices device:0, device:1 do not meet: device:1 has failed"),
                     HasSubstr("index 1 is out of range [0, 1)")));
}

}  // namespace
}  // namespace lazuli::hlo
