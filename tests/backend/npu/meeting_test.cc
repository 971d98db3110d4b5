// Collectives between cards, each with a thread and a queue of its own: values, simulated time, and
// what becomes of those who wait for somebody that does not come.

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/client/registry.h"
#include "backend/interpreter/interpreter.h"
#include "backend/npu/compiler/compile.h"
#include "backend/npu/compiler/lower_collective.h"
#include "backend/npu/npu_client.h"
#include "backend/npu/sim/fabric.h"
#include "ir/hlo/text/parser.h"
#include "ir/support/flags.h"
#include "ir/support/runtime.h"
#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

void OnThreads(int count, const std::function<void(int)>& f) {
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) threads.emplace_back(f, t);
  for (std::thread& thread : threads) thread.join();
}

std::string SumOver(std::string_view groups) {
  return Str(
      "HloModule m\nadd { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) "
      "}\n",
      "ENTRY e { x = s32[64] parameter(0) ROOT r = s32[64] all-reduce(x), replica_groups=", groups,
      ", to_apply=add }");
}

// Cards with an array each.
class FabricTest : public testing::Test {
 protected:
  explicit FabricTest(int devices = 4) {
    config_.devices = devices;
    config_.dram.mb = 4;
    for (int d = 0; d < devices; ++d) {
      cards_.push_back(*Card::Create(config_, Str("npu:", d)));
      x_.push_back(*cards_.back()->Allocate(256, "x"));
      r_.push_back(*cards_.back()->Allocate(256, "r"));
    }
    fabric_ = std::make_unique<Fabric>(cards_);
  }
  void Set(int device, int32_t value) {
    const std::vector<int32_t> values(64, value);
    cards_[static_cast<std::size_t>(device)]->Write(x_[static_cast<std::size_t>(device)],
                                                    std::as_bytes(std::span(values)));
  }
  int32_t Get(int device) {
    int32_t value = 0;
    std::memcpy(&value,
                cards_[static_cast<std::size_t>(device)]->at(r_[static_cast<std::size_t>(device)]),
                4);
    return value;
  }
  std::shared_ptr<const CheckedProgram> Sum(std::string_view groups) {
    const auto program =
        Compile(**hlo::ParseModule(SumOver(groups)), config_, nullptr, {.one_group = true});
    EXPECT_TRUE(program.ok()) << program.status();
    auto checked = std::make_shared<CheckedProgram>();
    EXPECT_FALSE(CheckProgram(*program, config_, *checked).has_value());
    return checked;
  }
  std::string Run(int device, const std::vector<int>& members,
                  const std::shared_ptr<const CheckedProgram>& program, std::string what = "sum",
                  int milliseconds = 20000) {
    const std::vector<uint64_t> places = {x_[static_cast<std::size_t>(device)],
                                          r_[static_cast<std::size_t>(device)]};
    const auto fault = fabric_->Run({members, device, program, places, std::move(what)},
                                    std::chrono::milliseconds(milliseconds));
    return fault ? fault->ToString() : "";
  }

  Config config_;
  std::vector<std::shared_ptr<Card>> cards_;
  std::vector<uint64_t> x_, r_;
  std::unique_ptr<Fabric> fabric_;
};

TEST_F(FabricTest, AMeetingBeginsWhenTheLastCardIsThere) {
  for (int d = 0; d < 4; ++d) Set(d, 10 + d);
  for (int i = 0; i < 5; ++i) Set(2, 12);  // this one is late
  const auto sum = Sum("{{0,1,2}}");
  const double late = cards_[2]->totals().seconds();
  OnThreads(3, [&](int d) { EXPECT_EQ(Run(d, {0, 1, 2}, sum), ""); });
  for (int d = 0; d < 3; ++d) {
    EXPECT_EQ(Get(d), 33);
    const CardTotals totals = cards_[static_cast<std::size_t>(d)]->totals();
    EXPECT_EQ(totals.launches, 1);
    EXPECT_DOUBLE_EQ(totals.seconds(), cards_[2]->totals().seconds()) << d;
    EXPECT_EQ(totals.wait_seconds > 0, d != 2);
    EXPECT_GT(totals.run_seconds, 0);
    EXPECT_EQ(totals.counters.link_bytes, 4 * 22 * 4);  // 2 (p - 1) chunks of 22 elements
  }
  EXPECT_GT(cards_[2]->totals().seconds(), late);
  EXPECT_EQ(cards_[3]->totals().launches, 0);
}

// Groups that come and go in any order: every card runs through its own of them, at its own pace.
TEST_F(FabricTest, ManyMeetingsOfGroupsAtRandomEnd) {
  const std::vector<std::vector<int>> groups = {{0, 1}, {2, 3},       {0, 2},
                                                {1, 3}, {0, 1, 2, 3}, {1, 2, 3}};
  std::vector<std::shared_ptr<const CheckedProgram>> programs;
  for (const std::vector<int>& group : groups) {
    std::string text;
    for (const int d : group) text += Str(text.empty() ? "{{" : ",", d);
    programs.push_back(Sum(text + "}}"));
  }
  std::mt19937 random(5);  // NOLINT: the same every time
  std::vector<std::size_t> order(60);
  for (std::size_t& o : order) o = random() % groups.size();
  for (int d = 0; d < 4; ++d) Set(d, 1 << d);
  OnThreads(4, [&](int d) {
    std::mt19937 pace(static_cast<unsigned>(d));
    for (const std::size_t o : order) {
      const std::vector<int>& group = groups[o];
      if (std::find(group.begin(), group.end(), d) == group.end()) continue;
      if (pace() % 3 == 0) std::this_thread::yield();
      ASSERT_EQ(Run(d, group, programs[o]), "");
      int sum = 0;
      for (const int member : group) sum += 1 << member;
      ASSERT_EQ(Get(d), sum);
    }
  });
}

TEST_F(FabricTest, WhoWaitsInVainGetsALinkTimeout) {
  const auto pair = Sum("{{0,1}}");
  EXPECT_EQ(
      Run(0, {0, 1}, pair, "all-reduce r", 10),
      "LINK_TIMEOUT at device 0: all-reduce r of npu:0, npu:1: npu:1 has not come within 0.01 s "
      "(NPU_LINK_TIMEOUT)");
  // The other one, once it comes, learns at once that nobody is there any more.
  EXPECT_EQ(
      Run(1, {0, 1}, pair, "all-reduce r"),
      "LINK_TIMEOUT at device 1: all-reduce r of npu:0, npu:1: npu:0 does not come: it has waited "
      "for npu:1");
  fabric_->Miss({0, 1}, 1, "TRAP at pc 3");
  EXPECT_EQ(
      Run(0, {0, 1}, pair, "all-reduce r"),
      "LINK_TIMEOUT at device 0: all-reduce r of npu:0, npu:1: npu:1 does not come: TRAP at pc 3");
  // And the next one is as if nothing had been.
  Set(0, 4);
  Set(1, 5);
  OnThreads(2, [&](int d) { EXPECT_EQ(Run(d, {0, 1}, pair), ""); });
  EXPECT_EQ(Get(0), 9);
}

TEST_F(FabricTest, WhoComesWithSomethingElseIsAnError) {
  const auto pair = Sum("{{0,1}}"), other = Sum("{{1,0}}");
  OnThreads(2, [&](int d) {
    EXPECT_THAT(Run(d, {0, 1}, d == 0 ? pair : other, Str("sum.", d)),
                HasSubstr("npu:0 is at sum.0, npu:1 is at sum.1"));
  });
}

// The platform's: modules with collectives between other instructions.
class NpuMeetingTest : public testing::Test {
 protected:
  void Start(std::string_view set, std::string_view inject = "") {
    ASSERT_TRUE(SetFlag("NPU_SET", set).ok());
    ASSERT_TRUE(SetFlag("NPU_INJECT", inject).ok());
    ASSERT_TRUE(SetFlag("NPU_STRICT", "1").ok());
    interpreter::RegisterInterpreter();
    RegisterNpu();
    client_ = *backend::FindClient("npu");
  }
  ~NpuMeetingTest() override {
    SetFlag("NPU_SET", "").IgnoreError();
    SetFlag("NPU_INJECT", "").IgnoreError();
  }
  // The one result, or the error.
  absl::StatusOr<float> RunOn(int device, std::string_view text, float value) {
    LAZULI_ASSIGN_OR_RETURN(auto module, hlo::ParseModule(text));
    LAZULI_ASSIGN_OR_RETURN(const auto executable, client_->Compile(std::move(module), {}));
    const std::vector<float> values(1000, value);
    const Shape shape(DType::kF32, {1000});
    LAZULI_ASSIGN_OR_RETURN(
        const BufferPtr buffer,
        client_->FromHost({values.data(), &shape}, {},
                          client_->devices()[static_cast<std::size_t>(device)]));
    const std::vector<BufferPtr> buffers = {buffer};
    LAZULI_ASSIGN_OR_RETURN(
        const Buffers outputs,
        executable->Execute({.buffers = buffers, .scalars = {}, .donated = {}}));
    LAZULI_ASSIGN_OR_RETURN(const Literal literal, client_->ToHost(*outputs[0]));
    return literal.data<float>()[999];
  }

  ir::Runtime::Scope scope_;
  backend::ComputationClient* client_ = nullptr;
};

// Small, and with something that only the host has: the collectives stay on the devices all the same.
constexpr std::string_view kMeeting = R"(HloModule m
  add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
  less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }
  ENTRY e {
    x = f32[1000] parameter(0) y = f32[1000] add(x, x)
    s = f32[1000] all-reduce(y), replica_groups={{0,1,2}}, to_apply=add, metadata={op_type="aten::sum" source_file="train.py" source_line=7}
    z = f32[1000] sort(s), dimensions={0}, to_apply=less
    m = f32[1000] collective-permute(z), source_target_pairs={{0,1},{1,2}}
    ROOT r = f32[1000] add(m, y) })";

TEST_F(NpuMeetingTest, CollectivesBetweenHostAndDeviceParts) {
  Start("devices=3");
  OnThreads(3, [&](int d) {
    for (int step = 0; step < 3; ++step) {
      const auto value = RunOn(d, kMeeting, static_cast<float>(1 + d + step));
      ASSERT_TRUE(value.ok()) << value.status();
      const auto sum = static_cast<float>(2 * (1 + 2 + 3) + 6 * step);
      EXPECT_EQ(*value, (d == 0 ? 0 : sum) + static_cast<float>(2 * (1 + d + step)));
    }
  });
}

// Three rounds, at each of which all meet twice.
constexpr std::string_view kLoop = R"(HloModule m
  add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
  more { s = (s32[], f32[1000]) parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] constant(3) ROOT p = pred[] compare(i, n), direction=LT }
  body {
    s = (s32[], f32[1000]) parameter(0) i = s32[] get-tuple-element(s), index=0 x = f32[1000] get-tuple-element(s), index=1
    one = s32[] constant(1) next = s32[] add(i, one)
    y = f32[1000] all-reduce(x), replica_groups={GROUPS}, to_apply=add, metadata={op_type="aten::sum" source_file="train.py" source_line=7}
    z = f32[1000] add(y, x)
    w = f32[1000] collective-permute(z), source_target_pairs={PAIRS} ROOT t = (s32[], f32[1000]) tuple(next, w) }
  ENTRY e {
    x = f32[1000] parameter(0) zero = s32[] constant(0) t = (s32[], f32[1000]) tuple(zero, x)
    l = (s32[], f32[1000]) while(t), condition=more, body=body y = f32[1000] get-tuple-element(l), index=1
    ROOT r = f32[1000] add(y, y) })";

std::string LoopOf(const std::string& groups, const std::string& pairs) {
  std::string text(kLoop);
  text.replace(text.find("GROUPS"), 6, groups);
  text.replace(text.find("PAIRS"), 5, pairs);
  return text;
}

TEST_F(NpuMeetingTest, CollectivesInsideALoop) {
  Start("devices=4");
  struct Case {
    std::string groups, pairs;
    std::vector<std::vector<int>> summed;
    std::vector<int> source;  // of each device's value; -1: none
  };
  const std::vector<Case> cases = {
      {"{0,1,2}", "{0,1},{1,2},{2,0}", {{0, 1, 2}}, {2, 0, 1, -1}},  // one group
      {"{0,1},{2,3}", "{0,1},{1,0},{2,3},{3,2}", {{0, 1}, {2, 3}}, {1, 0, 3, 2}},
      {"{0,1},{2,3}", "{3,0},{0,3},{1,2},{2,1}", {{0, 1}, {2, 3}}, {3, 2, 1, 0}}};
  for (const Case& c : cases) {
    std::vector<float> values = {1, 2, 3, 4};
    for (int round = 0; round < 3; ++round) {
      std::vector<float> sums(4, 0);
      for (const std::vector<int>& group : c.summed) {
        for (const int d : group) {
          for (const int other : group)
            sums[static_cast<std::size_t>(d)] += values[static_cast<std::size_t>(other)];
          sums[static_cast<std::size_t>(d)] += values[static_cast<std::size_t>(d)];
        }
      }
      for (std::size_t d = 0; d < 4; ++d)
        values[d] = c.source[d] < 0 ? 0 : sums[static_cast<std::size_t>(c.source[d])];
    }
    OnThreads(4, [&](int d) {
      const auto value = RunOn(d, LoopOf(c.groups, c.pairs), static_cast<float>(1 + d));
      ASSERT_TRUE(value.ok()) << value.status();
      if (c.source[static_cast<std::size_t>(d)] >= 0) {
        EXPECT_EQ(*value, 2 * values[static_cast<std::size_t>(d)]) << c.groups << " " << d;
      }
    });
  }
}

TEST_F(NpuMeetingTest, LoopsOfWhichNobodyKnowsWhoRunsThemAreAnError) {
  Start("devices=6");
  EXPECT_THAT(
      std::string(Message(RunOn(0, LoopOf("{0,1},{2,3}", "{1,2},{2,1}"), 1).status())),
      AllOf(HasSubstr("aten::sum: all-reduce y (train.py:7) and collective-permute w inside "
                      "while l are between different devices, and neither is between all"),
            HasSubstr("train.py:7")));
}

// Each device has a program of its own, which has one end of a channel.
TEST_F(NpuMeetingTest, ChannelsBetweenDifferentPrograms) {
  Start("devices=3");
  const auto send = [](std::string_view value, int channel, std::string_view pair) {
    return Str("sent", channel, " = (f32[1000], u32[], token[]) send(", value,
               ", t), channel_id=", channel,
               ", frontend_attributes={_xla_send_recv_source_target_pairs={{", pair, "}}} ended",
               channel, " = token[] send-done(sent", channel, "), channel_id=", channel, "\n");
  };
  const auto recv = [](std::string_view value, int channel, std::string_view pair) {
    return Str("got", channel, " = (f32[1000], u32[], token[]) recv(t), channel_id=", channel,
               ", frontend_attributes={_xla_send_recv_source_target_pairs={{", pair, "}}} w",
               channel, " = (f32[1000], token[]) recv-done(got", channel, "), channel_id=", channel,
               " ", value, " = f32[1000] get-tuple-element(w", channel, "), index=0\n");
  };
  const std::string head =
      "HloModule m\nENTRY e { x = f32[1000] parameter(0) t = token[] after-all()\n";
  // A pipeline of three stages, and what the last one found goes back to the first.
  const std::string programs[] = {Str(head, "y = f32[1000] add(x, x)\n", send("y", 1, "0,1"),
                                      recv("b", 3, "2,0"), "ROOT r = f32[1000] add(b, x) }"),
                                  Str(head, recv("a", 1, "0,1"), "y = f32[1000] multiply(a, x)\n",
                                      send("y", 2, "1,2"), "ROOT r = f32[1000] negate(y) }"),
                                  Str(head, recv("a", 2, "1,2"), "y = f32[1000] subtract(a, x)\n",
                                      send("y", 3, "2,0"), "ROOT r = f32[1000] negate(y) }")};
  const float expected[] = {2 * 3 * 5 - 7 + 3, -2 * 3 * 5, -(2 * 3 * 5 - 7)};
  const float inputs[] = {3, 5, 7};
  OnThreads(3, [&](int d) {
    for (int step = 0; step < 2; ++step) {
      const auto value = RunOn(d, programs[d], inputs[d]);
      ASSERT_TRUE(value.ok()) << value.status();
      EXPECT_EQ(*value, expected[d]) << d;
    }
  });
}

TEST_F(NpuMeetingTest, AFaultOfOneIsAnErrorOfAllWhoWaitForIt) {
  for (const std::string_view inject : {"link:0", "trap:0"}) {
    const ir::Runtime::Scope fresh;
    Start("devices=3", inject);
    OnThreads(3, [&](int d) {
      const auto failed = RunOn(d, kMeeting, 1);
      EXPECT_THAT(std::string(Message(failed.status())),
                  AllOf(HasSubstr("npu:"), HasSubstr(inject == "link:0" ? "LINK_TIMEOUT" : "TRAP"),
                        HasSubstr("train.py:7")))
          << inject << d;
      const auto value = RunOn(d, kMeeting, 1);  // the next one goes on
      ASSERT_TRUE(value.ok()) << value.status();
      EXPECT_EQ(*value, d == 0 ? 2 : 8);
    });
  }
}

TEST_F(NpuMeetingTest, DevicesThatAreNotThereAreAnErrorOfTheCompile) {
  Start("devices=2");
  EXPECT_THAT(
      std::string(Message(RunOn(0, kMeeting, 1).status())),
      AllOf(
          HasSubstr("replica_groups={{0,1,2}} name device 2, there are 2 NPUs (NPU_SET=devices=N)"),
          HasSubstr("train.py:7")));
}

}  // namespace
}  // namespace lazuli::npu
