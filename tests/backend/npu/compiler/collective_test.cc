// Collectives on several devices of one machine: values against their definition, cycles against
// the closed form of a ring, whatever the order in which devices get there.

#include "ir/hlo/devices/collective.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/npu/compiler/supported.h"
#include "backend/npu/sim/cost.h"
#include "ir/support/status.h"
#include "tests/backend/npu/compiler/compiled.h"

namespace lazuli::npu {
namespace {

using testing::HasSubstr;
using Numbers = std::vector<int32_t>;

Config MachineOf(int count, int64_t spm_kb = 1024, Topology topology = Topology::kRing) {
  Config config;
  config.devices = count;
  config.spm.kb = spm_kb;
  config.link.topology = topology;
  config.dram.mb = 64;
  return config;
}

struct RanOnAll {
  std::vector<std::vector<std::byte>> results;  // by device
  int64_t cycles = 0;
  std::string error;
};

RanOnAll RunOnAll(std::string_view hlo, const Config& config,
                  const std::function<std::vector<std::byte>(int device, int64_t bytes)>& input,
                  const RunOptions& options = {}) {
  RanOnAll ran;
  const auto program = CompileSimplified(*ParseHlo(hlo), config);
  if (!program.ok()) {
    ran.error = Message(program.status());
    return ran;
  }
  auto machine = *Machine::Create(config);
  auto fault = machine->Load(*program);
  for (int d = 0; d < config.devices && !fault; ++d) {
    const auto bytes = input(d, program->Find("p0")->bytes());
    EXPECT_TRUE(machine->WriteSymbol(d, "p0", bytes).ok());
  }
  if (!fault) fault = machine->Run(options);
  if (fault) {
    ran.error = Message(ToStatus(*fault));
    return ran;
  }
  ran.cycles = machine->cycles();
  for (int d = 0; d < config.devices; ++d) ran.results.push_back(*machine->ReadSymbol(d, "r0"));
  return ran;
}

int32_t DrawFor(int device, std::size_t at) {
  return static_cast<int32_t>((static_cast<uint32_t>(device) * 7919u + static_cast<uint32_t>(at)) *
                                  2654435761u >>
                              12) -
         (1 << 19);
}
std::vector<std::byte> DrawnFor(int device, int64_t bytes) {
  std::vector<std::byte> data(static_cast<std::size_t>(bytes));
  for (std::size_t i = 0; i * 4 < data.size(); ++i) {
    const int32_t value = DrawFor(device, i);
    std::memcpy(data.data() + i * 4, &value, 4);
  }
  return data;
}
Numbers IntegersOf(const std::vector<std::byte>& bytes) {
  Numbers values(bytes.size() / 4);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// What a collective of s32[2, 12, 6], or one like it, gives device `self`.
Numbers ExpectedOf(const hlo::Instruction& i, int devices, int self) {
  using hlo::Opcode;
  const Shape &from = i.operand(0)->shape(), &to = i.shape();
  const auto value = [&](int64_t device, int64_t at) {
    return DrawFor(static_cast<int>(device), static_cast<std::size_t>(at));
  };
  Numbers result(static_cast<std::size_t>(to.num_elements()), 0);
  if (i.opcode() == Opcode::kCollectivePermute) {
    const auto pairs = *hlo::PairsOf(i);
    for (const auto& [source, target] : pairs) {
      if (target != self) continue;
      for (std::size_t k = 0; k < result.size(); ++k)
        result[k] = value(source, static_cast<int64_t>(k));
    }
    return result;
  }
  hlo::Dims group;
  const std::vector<hlo::Dims> groups = *hlo::GroupsOf(i);
  for (const hlo::Dims& candidate : groups) {
    if (std::find(candidate.begin(), candidate.end(), self) != candidate.end()) group = candidate;
  }
  const auto rank =
      static_cast<int64_t>(std::find(group.begin(), group.end(), self) - group.begin());
  const auto p = static_cast<int64_t>(group.size());
  EXPECT_LE(p, devices);
  const hlo::Dims& dimensions = i.attrs_as<hlo::CollectiveAttrs>().dimensions;
  int64_t behind = 1;  // elements behind one of the dimension
  const int64_t d = dimensions.empty() ? 0 : dimensions[0];
  for (int64_t k = d + 1; k < from.rank(); ++k) behind *= from.dim(k);
  for (int64_t k = 0; k < to.num_elements(); ++k) {
    int32_t& out = result[static_cast<std::size_t>(k)];
    const int64_t at = k / behind % to.dim(d), outer = k / behind / to.dim(d), in = k % behind;
    const auto place = [&](int64_t along) { return (outer * from.dim(d) + along) * behind + in; };
    const auto sum = [&](int64_t element) {
      int32_t total = 0;
      for (const int64_t member : group) total += value(member, element);
      return total;
    };
    switch (i.opcode()) {
      case Opcode::kAllReduce:
        out = sum(k);
        break;
      case Opcode::kReduceScatter:
        out = sum(place(rank * to.dim(d) + at));
        break;
      case Opcode::kAllGather:
        out = value(group[static_cast<std::size_t>(at / from.dim(d))], place(at % from.dim(d)));
        break;
      case Opcode::kAllToAll: {
        const int64_t part = from.dim(d) / p;
        out = value(group[static_cast<std::size_t>(at / part)], place(rank * part + at % part));
        break;
      }
      default:  // broadcast
        out = group.empty() ? 0 : value(group[0], k);
    }
  }
  return result;
}

std::string ExchangeModule(std::string_view call, std::string_view in = "s32[2,12,6]",
                           int replicas = 1) {
  return Str("HloModule m, replica_count=", replicas,
             "\nadd { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }\n",
             "ENTRY e { x = ", in, " parameter(0) ROOT r = ", call, " }");
}

void ExpectExchanged(const std::string& hlo, const Config& config) {
  const auto module = ParseHlo(hlo);
  const hlo::Instruction& root = *module->entry()->root();
  for (const uint64_t jitter : {uint64_t{0}, uint64_t{3}, uint64_t{17}}) {
    const RanOnAll ran = RunOnAll(hlo, config, DrawnFor, {.jitter = jitter});
    ASSERT_EQ(ran.error, "") << hlo;
    for (int d = 0; d < config.devices; ++d)
      ASSERT_EQ(IntegersOf(ran.results[static_cast<std::size_t>(d)]),
                ExpectedOf(root, static_cast<int>(config.devices), d))
          << "device " << d << " jitter " << jitter << "\n"
          << hlo;
  }
}

TEST(NpuCollectiveTest, EveryKindOverGroupsAndDimensions) {
  for (const Topology topology : {Topology::kRing, Topology::kTorus}) {
    for (const int64_t kb : {1024, 2}) {  // in one block, in several
      const Config six = MachineOf(6, kb, topology);
      for (const std::string_view groups :
           {"{{0,1,2,3,4,5}}", "{}", "[2,3]<=[3,2]T(1,0)", "{{5,0},{1,4},{3,2}}"}) {
        const int64_t p = groups[1] == '2' ? 3 : groups.find("5,0") != groups.npos ? 2 : 6;
        const std::string by = Str(", replica_groups=", groups);
        const std::string add = by + ", to_apply=add";
        ExpectExchanged(ExchangeModule("s32[2,12,6] all-reduce(x)" + add, "s32[2,12,6]", 6), six);
        for (int d = 1; d < 3; ++d) {
          const std::string along = Str(", dimensions={", d, "}");
          const auto dims = [&](int64_t at_1, int64_t at_2) {
            return Str("s32[2,", d == 1 ? at_1 : 12, ",", d == 2 ? at_2 : 6, "] ");
          };
          ExpectExchanged(ExchangeModule(Str(dims(12 * p, 6 * p), "all-gather(x)", by, along),
                                         "s32[2,12,6]", 6),
                          six);
          ExpectExchanged(ExchangeModule(Str(dims(12 / p, 6 / p), "reduce-scatter(x)", add, along),
                                         "s32[2,12,6]", 6),
                          six);
          ExpectExchanged(
              ExchangeModule(Str(dims(12, 6), "all-to-all(x)", by, along), "s32[2,12,6]", 6), six);
        }
      }
      ExpectExchanged(
          ExchangeModule("s32[700] all-reduce(x), to_apply=add, replica_groups={}", "s32[700]", 6),
          six);
      ExpectExchanged(
          ExchangeModule(
              "s32[700] collective-permute(x), source_target_pairs={{0,1},{1,0},{4,5},{2,2}}",
              "s32[700]", 6),
          six);
      ExpectExchanged(
          ExchangeModule("s32[700] collective-broadcast(x), replica_groups={{2,0,5},{1,4}}",
                         "s32[700]", 6),
          six);
    }
  }
}

// Halves of collectives, and transfers through a channel, are the messages of what they are together.
TEST(NpuCollectiveTest, HalvesAndChannelsAreTheSameMessages) {
  const auto runs = [](std::string_view body) {
    return RunOnAll(Str("HloModule m, replica_count=3\nadd { a = s32[] parameter(0) b = s32[] "
                        "parameter(1) ROOT c = s32[] add(a, b) }\nENTRY e { x = s32[700] "
                        "parameter(0) ",
                        body, " }"),
                    MachineOf(3), DrawnFor);
  };
  constexpr std::string_view kPermute =
      "ROOT r = s32[700] collective-permute(x), source_target_pairs={{0,1},{1,2}}";
  const std::string_view whole_and_halves[][2] = {
      {"ROOT r = s32[700] all-reduce(x), replica_groups={}, to_apply=add",
       "s = s32[700] all-reduce-start(x), replica_groups={}, to_apply=add ROOT r = s32[700] "
       "all-reduce-done(s)"},
      {"ROOT r = s32[2100] all-gather(x), replica_groups={}, dimensions={0}",
       "s = (s32[700], s32[2100]) all-gather-start(x), replica_groups={}, dimensions={0} ROOT r = "
       "s32[2100] all-gather-done(s)"},
      {kPermute,
       "s = (s32[700], s32[700]) collective-permute-start(x), source_target_pairs={{0,1},{1,2}} "
       "ROOT r = s32[700] collective-permute-done(s)"},
      {kPermute, R"(
        t = token[] after-all()
        v = (s32[700], u32[], token[]) recv(t), channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,2}}}
        s = (s32[700], u32[], token[]) send(x, t), channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,2}}}
        w = (s32[700], token[]) recv-done(v), channel_id=1 u = token[] send-done(s), channel_id=1
        ROOT r = s32[700] get-tuple-element(w), index=0)"}};
  for (const auto& [whole, halves] : whole_and_halves) {
    const RanOnAll expected = runs(whole), actual = runs(halves);
    ASSERT_EQ(expected.error, "") << whole;
    ASSERT_EQ(actual.error, "") << halves;
    EXPECT_EQ(actual.results, expected.results) << halves;
    EXPECT_EQ(actual.cycles, expected.cycles) << halves;
  }
}

// Everything else of a program goes on around them: in loops, behind each other, with other groups.
TEST(NpuCollectiveTest, ProgramsOfSeveralInAnyOrder) {
  constexpr char kLoop[] = R"(HloModule m, replica_count=4
    add { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }
    more { s = (s32[], s32[300]) parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] constant(3) ROOT p = pred[] compare(i, n), direction=LT }
    body {
      s = (s32[], s32[300]) parameter(0) i = s32[] get-tuple-element(s), index=0 x = s32[300] get-tuple-element(s), index=1
      pairs = s32[300] all-reduce(x), replica_groups={{0,1},{2,3}}, to_apply=add
      moved = s32[300] collective-permute(pairs), source_target_pairs={{0,2},{2,1},{1,0}}
      sum = s32[300] all-reduce(moved), replica_groups={{0,2},{3,1}}, to_apply=add
      one = s32[] constant(1) next = s32[] add(i, one) ROOT t = (s32[], s32[300]) tuple(next, sum) }
    ENTRY e {
      x = s32[300] parameter(0) zero = s32[] constant(0) t = (s32[], s32[300]) tuple(zero, x)
      w = (s32[], s32[300]) while(t), condition=more, body=body y = s32[300] get-tuple-element(w), index=1
      ROOT r = s32[300] all-reduce(y), replica_groups={}, to_apply=add })";
  std::vector<Numbers> x;
  for (int d = 0; d < 4; ++d) x.push_back(IntegersOf(DrawnFor(d, 1200)));
  const auto plus = [](Numbers a, const Numbers& b) {
    for (std::size_t i = 0; i < a.size(); ++i)
      a[i] = static_cast<int32_t>(static_cast<uint32_t>(a[i]) + static_cast<uint32_t>(b[i]));
    return a;
  };
  for (int round = 0; round < 3; ++round) {
    const std::vector<Numbers> pairs = {plus(x[0], x[1]), plus(x[0], x[1]), plus(x[2], x[3]),
                                        plus(x[2], x[3])};
    const std::vector<Numbers> moved = {pairs[1], pairs[2], pairs[0], Numbers(300)};
    x = {plus(moved[0], moved[2]), plus(moved[1], moved[3]), plus(moved[0], moved[2]),
         plus(moved[1], moved[3])};
  }
  const Numbers expected = plus(plus(x[0], x[1]), plus(x[2], x[3]));
  for (uint64_t jitter = 0; jitter < 12; ++jitter) {
    const RanOnAll ran = RunOnAll(kLoop, MachineOf(4), DrawnFor, {.jitter = jitter});
    ASSERT_EQ(ran.error, "");
    for (int d = 0; d < 4; ++d)
      ASSERT_EQ(IntegersOf(ran.results[static_cast<std::size_t>(d)]), expected) << jitter;
  }
}

TEST(NpuCollectiveTest, EveryTypeAndReducer) {
  for (const std::string_view type : {"f32", "bf16", "s8", "u8", "u32", "s64", "u64", "pred"}) {
    for (const std::string_view op : {"add", "maximum", "minimum", "multiply", "and"}) {
      const bool logical = op == "and", floats = type[0] == 'f' || type[0] == 'b';
      if ((logical && floats) || (type == "pred" && !logical) || (type == "u8" && op != "add"))
        continue;
      const std::string hlo =
          Str("HloModule m, replica_count=2\nf { a = ", type, "[] parameter(0) b = ", type,
              "[] parameter(1) ROOT c = ", type, "[] ", op, "(a, b) }\nENTRY e { x = ", type,
              "[37] parameter(0) ROOT r = ", type,
              "[37] all-reduce(x), replica_groups={}, to_apply=f }");
      // The same of two operands of one device.
      const std::string alone = Str("ENTRY e { x = ", type, "[37] parameter(0) y = ", type,
                                    "[37] parameter(1) ROOT r = ", type, "[37] ", op, "(x, y) }");
      const auto module = ParseHlo(alone);
      const std::vector<Literal> arguments = RandomArguments(*module, RandomValues::kTame);
      const Literal expected = *RunCompiled(*module, {{&arguments[0], &arguments[1]}}, Config());
      if (WhyNot(*ParseHlo(hlo)->entry()->root(), MachineOf(2))) {
        EXPECT_TRUE(WhyNot(*module->entry()->root(), MachineOf(2))) << type << " " << op;
        continue;
      }
      const RanOnAll ran = RunOnAll(hlo, MachineOf(2), [&](int device, int64_t bytes) {
        const std::byte* data = arguments[static_cast<std::size_t>(device)].raw();
        return std::vector<std::byte>(data, data + bytes);
      });
      ASSERT_EQ(ran.error, "") << hlo;
      for (const std::vector<std::byte>& result : ran.results)
        EXPECT_EQ(std::memcmp(result.data(), expected.raw(), result.size()), 0) << hlo;
    }
  }
}

// Number 18 of docs/npu.md, of a compiled program: on a ring, and as many bytes in fewer steps on a
// torus.
TEST(NpuCollectiveTest, AllReduceTakesWhatTheClosedFormSays) {
  for (int p = 2; p <= 16; ++p) {
    const int64_t chunk = 2048;
    const std::string hlo =
        Str("HloModule m, replica_count=", p,
            "\nadd { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n",
            "ENTRY e { x = f32[", chunk * p, "] parameter(0) ROOT r = f32[", chunk * p,
            "] all-reduce(x), replica_groups={}, to_apply=add }");
    const auto input = [](int device, int64_t bytes) {
      std::vector<float> values(static_cast<std::size_t>(bytes) / 4);
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = std::ldexp(static_cast<float>(DrawFor(device, i)), device % 5 - 18);
      std::vector<std::byte> data(static_cast<std::size_t>(bytes));
      std::memcpy(data.data(), values.data(), data.size());
      return data;
    };
    const RanOnAll ran = RunOnAll(hlo, MachineOf(p), input);
    ASSERT_EQ(ran.error, "");
    std::vector<std::vector<float>> x(static_cast<std::size_t>(p));
    for (int d = 0; d < p; ++d) {
      const auto data = input(d, chunk * p * 4);
      x[static_cast<std::size_t>(d)].resize(static_cast<std::size_t>(chunk * p));
      std::memcpy(x[static_cast<std::size_t>(d)].data(), data.data(), data.size());
    }
    for (std::size_t i = 0; i < static_cast<std::size_t>(chunk * p); i += 61) {
      const int c = static_cast<int>(static_cast<int64_t>(i) / chunk);
      float sum = x[static_cast<std::size_t>((c + 1) % p)][i];
      for (int k = 2; k <= p; ++k) sum += x[static_cast<std::size_t>((c + k) % p)][i];
      for (const auto& result : ran.results) {
        float value = 0;
        std::memcpy(&value, result.data() + i * 4, 4);
        ASSERT_EQ(value, sum) << p << " " << i;
      }
    }
    const Config config;
    const auto steps = static_cast<double>(2 * (p - 1));
    const Cost message = LinkCost(config, chunk * 4, 1),
               addition = VectorCost(config, chunk, InitiationInterval(config, chunk, 1, 0, 3));
    const double copy =
        static_cast<double>(config.dma.issue) + static_cast<double>(4 * chunk * p) / 25.6 + 100;
    const double form = 2 * copy + steps * static_cast<double>(message.total()) +
                        steps / 2 * static_cast<double>(addition.total());
    EXPECT_NEAR(static_cast<double>(ran.cycles), form, 0.02 * form) << p;
    if (p == 4 || p == 6 || p == 9 || p == 16) {
      const RanOnAll torus = RunOnAll(hlo, MachineOf(p, 1024, Topology::kTorus), input);
      ASSERT_EQ(torus.error, "");
      EXPECT_LT(torus.cycles, ran.cycles) << p;
    }
  }
}

TEST(NpuCollectiveTest, WhatDoesNotFitSaysSo) {
  const auto reason = [](const std::string& hlo, const Config& config) {
    const auto refusal = WhyNot(*ParseHlo(hlo)->entry()->root(), config);
    return refusal ? refusal->sentence : "";
  };
  EXPECT_EQ(reason(ExchangeModule("s32[4] all-reduce(x), replica_groups={{0,1,2}}, to_apply=add",
                                  "s32[4]"),
                   MachineOf(2)),
            "replica_groups={{0,1,2}} name device 2, there are 2 NPUs (NPU_SET=devices=N)");
  EXPECT_EQ(
      reason(ExchangeModule("s32[4] collective-permute(x), source_target_pairs={{0,1}}", "s32[4]"),
             MachineOf(1)),
      "source_target_pairs={{0,1}} name device 1, there is 1 NPU (NPU_SET=devices=N)");
  EXPECT_EQ(
      reason(ExchangeModule("s32[4] all-reduce(x), replica_groups={{0,0}}, to_apply=add", "s32[4]"),
             MachineOf(2)),
      "replica_groups={{0,0}} are not groups of devices: 0 is there twice");
}

// A message that never arrives is an error that names both devices and the instruction.
TEST(NpuCollectiveTest, ALostMessageIsALinkTimeout) {
  const std::string hlo =
      ExchangeModule("s32[64] all-reduce(x), replica_groups={}, to_apply=add", "s32[64]", 3);
  const RanOnAll ran = RunOnAll(hlo, MachineOf(3), DrawnFor, {.lose_put = 2});
  EXPECT_THAT(ran.error, HasSubstr("LINK_TIMEOUT"));
  EXPECT_THAT(ran.error, HasSubstr("all-reduce r"));
}

TEST(NpuCollectiveTest, WhatIsGatheredHasAPartOfEachMember) {
  const auto module = ParseHlo(
      "ENTRY e { x = f32[5,1] parameter(0) "
      "ROOT g = f32[5,8] all-gather(x), replica_groups={{0}}, dimensions={1} }");
  const auto refusal = WhyNot(*module->entry()->root(), Config());
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->sentence, "f32[5,8] is not 1 times f32[5,1]");
}

TEST(NpuCollectiveTest, ReducersAreOfTheOperandsType) {
  const auto module = ParseHlo(
      "add { a = u64[] parameter(0) b = u64[] parameter(1) ROOT c = u64[] add(a, b) } "
      "ENTRY e { x = bf16[8] parameter(0) "
      "ROOT g = bf16[8] all-reduce(x), replica_groups={{0}}, to_apply=add }");
  const auto refusal = WhyNot(*module->entry()->root(), Config());
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->sentence, "the reducer is of another type than the operands");
}

}  // namespace
}  // namespace lazuli::npu
