#include "lowering/passes/join_async.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/hlo/verifier.h"
#include "tests/support/hlo_test.h"
#include "tests/support/pass_test.h"

namespace lazuli::lowering {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(JoinAsyncTest, HalvesAreOne) {
  ExpectPass(JoinAsync(), R"(
    sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
    twice { a = f32[4] parameter(0) b = f32[4] parameter(1) c = f32[4] add(a, b) ROOT d = f32[4] negate(c) }
    ENTRY main {
      // CHECK-LABEL: ENTRY
      // CHECK-NOT: -start
      // CHECK-DAG: %[[R:.*]] = f32[4] all-reduce(%x), replica_groups={}, to_apply=%sum
      // CHECK-DAG: %[[G:.*]] = f32[4] all-gather(%[[R]]), replica_groups={}, dimensions={0}
      // CHECK-DAG: %[[P:.*]] = f32[4] collective-permute(%[[G]]), source_target_pairs={{[{][{]}}0,0}}
      // CHECK-DAG: %[[C:.*]] = f32[4] copy(%[[P]])
      // CHECK-DAG: %[[A:.*]] = f32[4] add(%[[C]], %x)
      // CHECK: ROOT {{.*}} f32[4] negate(%[[A]])
      // CHECK-NOT: -done
      x = f32[4] parameter(0)
      r0 = f32[4] all-reduce-start(x), replica_groups={}, to_apply=sum
      r = f32[4] all-reduce-done(r0)
      g0 = (f32[4], f32[4]) all-gather-start(r), replica_groups={}, dimensions={0}
      g = f32[4] all-gather-done(g0)
      p0 = (f32[4], f32[4], u32[], u32[]) collective-permute-start(g), source_target_pairs={{0,0}}
      p = f32[4] collective-permute-done(p0)
      c0 = (f32[4], f32[4], u32[]) copy-start(p)
      c = f32[4] copy-done(c0)
      s0 = ((f32[4], f32[4]), f32[4], u32[]) async-start(c, x), calls=twice
      s1 = ((f32[4], f32[4]), f32[4], u32[]) async-update(s0)
      ROOT s = f32[4] async-done(s1)
    })");
}

std::string Joined(std::string_view text, bool changes = true) {
  const auto module = ParseHlo(text);
  const auto changed = JoinAsync().Run(*module);
  EXPECT_TRUE(changed.ok()) << changed.status();
  EXPECT_EQ(*changed, changes);
  EXPECT_TRUE(hlo::Verify(*module).ok()) << hlo::Verify(*module);
  return module->ToString();
}

constexpr char kChannel[] = R"(HloModule m, replica_count=3
  ENTRY main {
    x = f32[4] parameter(0) t = token[] after-all()
    v = (f32[4], u32[], token[]) recv(t), channel_id=2, frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,2}},other="a,b"}
    s = (f32[4], u32[], token[]) send(x, t), channel_id=2, control-predecessors={v}, frontend_attributes={other="a,b",_xla_send_recv_source_target_pairs="{{0,1},{1,2}}"}
    w = (f32[4], token[]) recv-done(v), channel_id=2, control-predecessors={s}
    u = token[] send-done(s), channel_id=2
    y = f32[4] get-tuple-element(w), index=0 z = token[] get-tuple-element(w), index=1
    ROOT r = (f32[4], token[]) tuple(y, z) })";

// Of a channel, whatever else orders its parts.
TEST(JoinAsyncTest, SendAndReceiveAreAPermutation) {
  const std::string text = Joined(kChannel);
  EXPECT_THAT(text, HasSubstr("collective-permute(%x), source_target_pairs={{0,1},{1,2}}"));
  for (const char* gone : {"send", "recv"}) EXPECT_THAT(text, Not(HasSubstr(gone)));
  std::string partitioned = kChannel;
  partitioned.replace(partitioned.find("replica_count"), 13, "num_partitions");
  EXPECT_THAT(Joined(partitioned),
              HasSubstr("collective-permute(%x), channel_id=2, source_target_pairs={{0,1},{1,2}}"));
}

// The other end is in the program of another device, which then has the same permutation.
TEST(JoinAsyncTest, AnEndAloneIsItsPartOfAPermutation) {
  const std::string sends = Joined(R"(ENTRY main {
      x = f32[4] parameter(0) t = token[] after-all()
      s = (f32[4], u32[], token[]) send(x, t), channel_id=2, frontend_attributes={_xla_send_recv_source_target_pairs={{0,1}}}
      u = token[] send-done(s), channel_id=2
      ROOT r = (f32[4], token[]) tuple(x, u) })");
  EXPECT_THAT(sends, HasSubstr("collective-permute(%x), source_target_pairs={{0,1}}"));
  EXPECT_THAT(sends, HasSubstr("tuple(%x, %t)"));
  const std::string receives = Joined(R"(ENTRY main {
      x = f32[4] parameter(0) t = token[] after-all()
      v = (f32[4], u32[], token[]) recv(t), channel_id=2, frontend_attributes={_xla_send_recv_source_target_pairs={{0,1}}}
      ROOT w = (f32[4], token[]) recv-done(v), channel_id=2 })");
  EXPECT_THAT(receives, HasSubstr("collective-permute(%broadcast.6), source_target_pairs={{0,1}}"));
  EXPECT_THAT(receives, HasSubstr("tuple(%collective-permute.7, %t)"));
  for (const std::string& text : {sends, receives}) {
    for (const char* gone : {"send(", "recv(", "-done"}) EXPECT_THAT(text, Not(HasSubstr(gone)));
  }
}

// What comes behind a token comes behind it, whatever it computes from.
TEST(JoinAsyncTest, EndsAloneKeepTheirOrder) {
  const std::string text = Joined(R"(ENTRY main {
      x = f32[4] parameter(0) t = token[] after-all() y = f32[4] negate(x)
      s = (f32[4], u32[], token[]) send(y, t), channel_id=2, frontend_attributes={_xla_send_recv_source_target_pairs={{0,1}}}
      d = token[] send-done(s), channel_id=2
      v = (f32[4], u32[], token[]) recv(d), channel_id=3, frontend_attributes={_xla_send_recv_source_target_pairs={{1,0}}}
      ROOT w = (f32[4], token[]) recv-done(v), channel_id=3 })");
  EXPECT_THAT(text, ::testing::ContainsRegex(
                        "source_target_pairs=..1,0.., control-predecessors=.%collective-permute"));
}

TEST(JoinAsyncTest, WhatIsBetweenTheHalvesKeepsThemApart) {
  // What is sent depends on what was received: no permutation does that.
  Joined(R"(
    ENTRY main {
      t = token[] after-all()
      v = (f32[4], u32[], token[]) recv(t), channel_id=2, frontend_attributes={_xla_send_recv_source_target_pairs={{0,1}}}
      w = (f32[4], token[]) recv-done(v), channel_id=2
      y = f32[4] get-tuple-element(w), index=0 n = f32[4] negate(y)
      s = (f32[4], u32[], token[]) send(n, t), channel_id=2, frontend_attributes={_xla_send_recv_source_target_pairs={{0,1}}}
      u = token[] send-done(s), channel_id=2
      ROOT r = (f32[4], token[]) tuple(y, u)
    })",
         false);
  // To the host, and with an order that would be lost.
  for (const std::string_view change :
       {"is_host_transfer=true, channel_id=2", "channel_id=2, control-predecessors"}) {
    std::string text = kChannel;
    if (change.ends_with("predecessors"))
      text.replace(text.find("y = "), 4, "q = f32[4] negate(x), control-predecessors={s} y = ");
    else
      text.replace(text.find("channel_id=2"), 12, change);
    Joined(text, false);
  }
}

}  // namespace
}  // namespace lazuli::lowering
