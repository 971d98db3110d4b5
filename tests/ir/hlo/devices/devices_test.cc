// Groups of devices, permutations and shardings: as text, as values and as bytes.

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/hlo/devices/collective.h"
#include "ir/hlo/proto/proto.h"
#include "ir/hlo/text/cursor.h"
#include "ir/hlo/text/printer.h"
#include "tests/ir/hlo/hlo_text.h"

namespace lazuli::hlo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

template <class T>
T Value(std::string_view text) {
  Cursor in(text);
  T value;
  EXPECT_TRUE(Parse(in, &value) && in.AtEnd()) << text << "\n" << in.Error();
  return value;
}

template <class T>
std::string MistakeIn(std::string_view text) {
  Cursor in(text);
  T value;
  if (Parse(in, &value)) return "none";
  const std::string message(Message(in.Error()));
  return message.substr(0, message.find('\n'));
}

std::unique_ptr<Module> AsBytesAndBack(const Module& module) {
  auto again = ParseModuleProto(SerializeModuleProto(module));
  EXPECT_TRUE(again.ok()) << again.status() << "\n" << ToString(module);
  return again.ok() ? *std::move(again) : module.Clone();
}

std::unique_ptr<Module> WithRoot(std::string_view root, std::string_view header = "") {
  return Parse(Str("HloModule m", header, R"(
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
ENTRY e { x = f32[4] parameter(0)
  t = token[] after-all()
  ROOT r = )",
                   root, " }"));
}

std::vector<Dims> GroupsIn(std::string_view text) {
  const auto groups = Listed(Value<ReplicaGroups>(text));
  EXPECT_TRUE(groups.ok()) << groups.status();
  return groups.ok() ? *groups : std::vector<Dims>();
}
std::string WhyNoGroups(std::string_view text) {
  return std::string(Message(Listed(Value<ReplicaGroups>(text)).status()));
}

TEST(ReplicaGroupsTest, Forms) {
  EXPECT_THAT(GroupsIn("{}"), IsEmpty());
  EXPECT_THAT(GroupsIn("{{0,1},{2}}"), ElementsAre(Dims{0, 1}, Dims{2}));
  EXPECT_THAT(GroupsIn("[2,4]<=[8]"), ElementsAre(Dims{0, 1, 2, 3}, Dims{4, 5, 6, 7}));
  EXPECT_THAT(GroupsIn("[2,4]<=[4,2]T(1,0)"), ElementsAre(Dims{0, 2, 4, 6}, Dims{1, 3, 5, 7}));
  EXPECT_THAT(GroupsIn("mesh['a'=2,'b'=2] {'a'}"), ElementsAre(Dims{0, 2}, Dims{1, 3}));
  EXPECT_THAT(GroupsIn("mesh['a'=2,'b'=2] {'b','a'}"), ElementsAre(Dims{0, 2, 1, 3}));
  EXPECT_THAT(GroupsIn("mesh['a'=2,'b'=2], device_ids=(3,1,0,2) {'a'}"),
              ElementsAre(Dims{3, 0}, Dims{1, 2}));
}

TEST(ReplicaGroupsTest, PartsOfAnAxisAreItsDigits) {
  const auto same = [](std::string_view mesh, std::string_view counted) {
    EXPECT_EQ(GroupsIn(mesh), GroupsIn(counted)) << mesh;
  };
  same("mesh['a'=8] {'a'}", "[1,8]<=[8]");
  same("mesh['a'=8] {'a':(1)2}", "[4,2]<=[2,4]T(1,0)");
  same("mesh['a'=8] {'a':(1)4}", "[2,4]<=[4,2]T(1,0)");
  same("mesh['a'=8] {'a':(2)2}", "[4,2]<=[2,2,2]T(0,2,1)");
  same("mesh['a'=8] {'a':(4)2}", "[4,2]<=[8]");
  same("mesh['a'=8] {'a':(1)2,'a':(4)2}", "[2,4]<=[2,2,2]T(1,0,2)");
  same("mesh['a'=8] {'a':(4)2,'a':(1)2}", "[2,4]<=[2,2,2]T(1,2,0)");
  same("mesh['a'=4,'b'=2], device_ids=([2,4]T(1,0)) {'b'}", "{{0,4},{1,5},{2,6},{3,7}}");
  EXPECT_THAT(GroupsIn("mesh['a'=6,'b'=6] {'a':(3)2,'b':(3)2}")[0], ElementsAre(0, 1, 6, 7));
}

TEST(ReplicaGroupsTest, MalformedOnesSayWhy) {
  EXPECT_EQ(WhyNoGroups("{{0,1},{1}}"),
            "replica_groups={{0,1},{1}} are not groups of devices: 1 is there twice");
  EXPECT_THAT(WhyNoGroups("{{-1}}"), HasSubstr("there is no device -1"));
  EXPECT_THAT(WhyNoGroups("[2,4]<=[4]"), HasSubstr("there are 4 numbers for 2 groups of 4"));
  EXPECT_THAT(WhyNoGroups("[1,4]<=[4]T(1)"), HasSubstr("[4] does not order its dimensions"));
  EXPECT_THAT(WhyNoGroups("[1,0]<=[0]"), HasSubstr("[0] is not an array of devices"));
  EXPECT_THAT(WhyNoGroups("[1,1]<=[1048576,1048576]"), HasSubstr("is not an array of devices"));
  EXPECT_THAT(WhyNoGroups("mesh['a'=8] {'a':(3)2}"),
              HasSubstr("'a':(3)2 is not a part of an axis of mesh['a'=8]"));
  EXPECT_THAT(WhyNoGroups("mesh['a'=30] {'a':(6)5,'a':(10)3}"), HasSubstr("overlap"));
  EXPECT_THAT(WhyNoGroups("mesh['a'=2], device_ids=(0) {'a'}"),
              HasSubstr("has 1 devices for 2 places"));
}

TEST(ReplicaGroupsTest, MistakesHaveAPlace) {
  using G = ReplicaGroups;
  EXPECT_EQ(MistakeIn<G>("{{0,a}}"), "1:5: expected a whole number");
  EXPECT_EQ(MistakeIn<G>("{0}"), "1:2: expected '{'");
  EXPECT_EQ(MistakeIn<G>("[2]<=[2]"), "1:3: expected ','");
  EXPECT_EQ(MistakeIn<G>("[2,1]<=2"), "1:8: expected '['");
  EXPECT_EQ(MistakeIn<G>("mesh['a'=2] {'b'}"), "1:14: the mesh has no axis 'b'");
  EXPECT_EQ(MistakeIn<G>("0,1"),
            "1:1: expected groups of devices: {{0,1},{2,3}}, [2,2]<=[4] or mesh['a'=4] {'a'}");
  EXPECT_EQ(MistakeIn<DevicePairs>("{{0,1},{2}}"), "1:10: expected ','");
  const auto module = ParseModule(
      "ENTRY e { x = f32[2] parameter(0)\n  ROOT r = f32[2] all-gather(x), replica_groups={{0,a}}, "
      "dimensions={0} }");
  EXPECT_THAT(std::string(Message(module.status())), HasSubstr("2:53: expected a whole number"));
}

// Every attribute of the families, read, printed where XLA has it, and held by bytes.
TEST(CollectiveAttrsTest, RoundTrip) {
  for (const char* root : {
           "f32[4]{0} all-reduce(%x), channel_id=1, replica_groups={{0,1},{2,3}}, "
           "constrain_layout=true, use_global_device_ids=true, to_apply=%add",
           "f32[4]{0} all-reduce(%x), replica_groups=mesh['a'=2,'b'=2] {'b'}, to_apply=%add",
           "f32[4]{0} all-reduce(%x), replica_groups=mesh['a'=4], device_ids=([2,2]T(1,0)) "
           "{'a':(1)2}, to_apply=%add",
           "f32[4]{0} all-reduce(%x), replica_groups={}, to_apply=%add",
           "f32[4]{0} all-reduce(%x), to_apply=%add",
           "f32[8]{0} all-gather(%x), channel_id=1, replica_groups=[1,2]<=[2], dimensions={0}, "
           "use_global_device_ids=true",
           "f32[2]{0} reduce-scatter(%x), channel_id=1, replica_groups=[2,2]<=[2,2]T(1,0), "
           "use_global_device_ids=true, dimensions={0}, to_apply=%add",
           "f32[4]{0} all-to-all(%x), replica_groups={{0,1}}, dimensions={0}",
           "f32[4]{0} collective-permute(%x), channel_id=3, source_target_pairs={{0,1},{1,0}}",
           "f32[4]{0} collective-permute(%x), source_target_pairs={}",
           "(f32[4]{0}, u32[], token[]) send(%x, %t), channel_id=2, is_host_transfer=true",
           "((f32[4]{0}), token[]) infeed(%t), infeed_config=\"a\\\"b\"",
           "token[] outfeed(%x, %t), outfeed_shape=f32[4]{0}, outfeed_config=\"c\"",
           "f32[4]{0} domain(%x), domain={kind=\"sharding\", entry={maximal device=0}, "
           "exit={devices=[2]0,1}}",
       }) {
    const auto module = WithRoot(root);
    const std::string printed = module->entry()->root()->ToString();
    EXPECT_EQ(printed, Str("%r = ", root));
    const auto again = AsBytesAndBack(*module);
    EXPECT_EQ(again->entry()->root()->ToString(), printed);
    EXPECT_TRUE(Equal(*again, *module)) << root;
    EXPECT_TRUE(Equal(*module->Clone(), *module)) << root;
  }
}

TEST(CollectiveAttrsTest, Values) {
  const auto module = WithRoot(
      "f32[4] all-reduce(x), use_global_device_ids=true, replica_groups=[1,2]<=[2], channel_id=7, "
      "to_apply=add");
  const auto& attrs = module->entry()->root()->attrs_as<CollectiveAttrs>();
  EXPECT_EQ(attrs.channel_id, 7);
  EXPECT_EQ(attrs.replica_groups, ReplicaGroups(CountedGroups{1, 2, {{2}, {0}}}));
  EXPECT_TRUE(attrs.use_global_device_ids);
  EXPECT_FALSE(attrs.constrain_layout);
  const auto permuted =
      WithRoot("f32[4] collective-permute(x), source_target_pairs={{0,1},{1,0}}, channel_id=1",
               ", replica_count=2, num_partitions=2");
  EXPECT_THAT(permuted->entry()->root()->attrs_as<PermuteAttrs>().source_target_pairs,
              ElementsAre(Pair(0, 1), Pair(1, 0)));
  EXPECT_THAT(*PairsOf(*permuted->entry()->root()),
              ElementsAre(Pair(0, 1), Pair(2, 3), Pair(1, 0), Pair(3, 2)));
}

TEST(DeviceCountTest, HeaderSaysHowMany) {
  const auto module = WithRoot(
      "f32[4] negate(x)", ", num_partitions=2, frontend_attributes={a=\"b\"}, replica_count=3");
  EXPECT_EQ(module->replica_count(), 3);
  EXPECT_EQ(module->num_partitions(), 2);
  EXPECT_EQ(DeviceCount(*module), 6);
  EXPECT_THAT(
      ToString(*module),
      HasSubstr("->f32[4]{0}}, replica_count=3, num_partitions=2, frontend_attributes={a="));
  EXPECT_EQ(DeviceCount(*module->Clone()), 6);
  EXPECT_FALSE(Equal(*module, *WithRoot("f32[4] negate(x)", ", frontend_attributes={a=\"b\"}")));
  const auto why = [](std::string_view header) {
    const std::string message(Message(
        ParseModule(Str("HloModule m", header, "\nENTRY e { x = f32[] parameter(0) }")).status()));
    return message.substr(0, message.find('\n'));
  };
  EXPECT_EQ(why(", replica_count=0"), "1:28: expected a count of 1 or more, not 0");
  EXPECT_EQ(why(", replica_count=1048576, num_partitions=2"),
            "1:52: a module is for 1048576 devices at most");
}

TEST(ShardingTest, Values) {
  using Type = Sharding::Type;
  const auto tiled =
      Value<Sharding>("{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate shard_like 7}");
  EXPECT_EQ(tiled.type, Type::kTiled);
  EXPECT_THAT(tiled.tiles, ElementsAre(4, 1, 2));
  EXPECT_EQ(tiled.iota, (DeviceIota{{2, 4}, {1, 0}}));
  EXPECT_TRUE(tiled.replicates_last);
  EXPECT_EQ(tiled.group, (Sharding::ShardGroup{true, 7}));
  const auto listed =
      Value<Sharding>("{devices=[1,2,2]3,2,1,0 last_tile_dims={manual, unreduced}}");
  EXPECT_THAT(listed.devices, ElementsAre(3, 2, 1, 0));
  EXPECT_THAT(listed.last_types, ElementsAre(Type::kManual, Type::kUnreduced));
  const auto tuple = Value<Sharding>("{{replicated}, {maximal device=3}}");
  ASSERT_EQ(tuple.type, Type::kTuple);
  EXPECT_EQ(tuple.tuple[1].type, Type::kMaximal);
  EXPECT_THAT(tuple.tuple[1].devices, ElementsAre(3));
  const auto named = Value<Sharding>("{mesh['a'=2,'b'=4], [{'b':(2)2, ?}, {}], replicated={'a'}}");
  ASSERT_TRUE(named.mesh);
  EXPECT_EQ(named.mesh->dims[0].axes[0], (AxisPart{1, 2, 2}));
  EXPECT_FALSE(named.mesh->dims[0].closed);
  EXPECT_TRUE(named.mesh->dims[1].closed);
  EXPECT_EQ(named.mesh->replicated[0], (AxisPart{0, 0, 0}));
  EXPECT_EQ(Value<Sharding>("{mesh[a=2,b=4], [{b:(2)2, ?}, {}], replicated={a}}"), named);
  const auto most = Value<Sharding>("{mesh['x'=2,'y'=2], unreduced=max{'x', 'y'}}");
  EXPECT_EQ(most.mesh->unreduced_kind, "max");
  EXPECT_EQ(most.mesh->unreduced.size(), 2u);
  EXPECT_EQ(ToString(most), "{mesh['x'=2,'y'=2], unreduced=max{'x', 'y'}}");
  const auto noted = Value<Sharding>("{manual metadata={op_name=\"x\" source_line=4}}");
  EXPECT_EQ(noted.metadata[0].op_name, "x");
  EXPECT_EQ(noted.metadata[0].source_line, 4);
}

TEST(ShardingTest, TextAndBytesRoundTrip) {
  for (const char* text : {
           "{replicated}",
           "{manual}",
           "{unknown shard_as 1}",
           "{unreduced}",
           "{maximal device=3}",
           "{}",
           "{{replicated}, {devices=[2,1]0,1}}",
           "{devices=[2,2]0,1,2,3}",
           "{devices=[2,1,2]<=[4] last_tile_dim_replicate}",
           "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dims={manual, replicated}}",
           "{replicated metadata={op_name=\"x\" source_file=\"f.py\" source_line=4 "
           "stack_frame_id=2}}",
           "{replicated metadata={{op_name=\"x\"}, {op_type=\"t\"}}}",
           "{maximal_mesh[device_id=3]}",
           "{mesh['x'=2], replicated}",
           "{mesh['x'=2], unreduced={'x'}}",
           "{mesh['a'=2,'b'=2], device_ids=(3,2,1,0), [{'a', ?}, {}], replicated={'b'}}",
           "{mesh['a'=4,'b'=2], device_ids=([2,4]T(1,0)), [{'a':(1)2, 'b'}, {'a':(2)2}]}",
           "{mesh['a'=4], [{?}, {}], unreduced={'a'}, manual={'a'}, metadata={{op_name=\"x\"}}}",
       }) {
    EXPECT_EQ(ToString(Value<Sharding>(text)), text);
    const auto module = WithRoot(Str("f32[4] negate(x), sharding=", text));
    ASSERT_TRUE(module->entry()->root()->sharding());
    EXPECT_EQ(*module->entry()->root()->sharding(), Value<Sharding>(text));
    EXPECT_THAT(ToString(*module), HasSubstr(Str(", sharding=", text)));
    const auto again = AsBytesAndBack(*module);
    EXPECT_TRUE(Equal(*again, *module)) << text << "\n" << ToString(*again);
    EXPECT_TRUE(Equal(*module->Clone(), *module));
    EXPECT_FALSE(Equal(*module, *WithRoot("f32[4] negate(x)")));
  }
}

TEST(ShardingTest, MistakesHaveAPlace) {
  EXPECT_EQ(MistakeIn<Sharding>("replicated"), "1:1: expected '{'");
  EXPECT_EQ(MistakeIn<Sharding>("{replicate}"),
            "1:2: expected a kind of sharding, such as replicated or devices=[2]0,1");
  EXPECT_EQ(MistakeIn<Sharding>("{maximal}"), "1:9: expected 'device='");
  EXPECT_EQ(MistakeIn<Sharding>("{devices=[]0}"), "1:11: expected a whole number");
  EXPECT_EQ(MistakeIn<Sharding>("{devices=[2]0,1 last_tile_dims={many}}"),
            "1:33: expected a kind of sharding, such as replicated or devices=[2]0,1");
  EXPECT_EQ(MistakeIn<Sharding>("{{replicated}, {{manual}}}"),
            "1:17: a tuple of shardings lies in another");
  EXPECT_EQ(MistakeIn<Sharding>("{mesh['a'=2], [{'b'}]}"), "1:17: the mesh has no axis 'b'");
  EXPECT_EQ(MistakeIn<Sharding>("{mesh['a'=2], shared={'a'}}"),
            "1:15: a sharding by a mesh has no 'shared'");
  EXPECT_EQ(MistakeIn<Sharding>("{manual metadata={op_name=x}}"), "1:27: expected a quoted string");
  EXPECT_EQ(MistakeIn<Sharding>(std::string(100000, '{')),
            "1:3: a tuple of shardings lies in another");
  const auto module =
      ParseModule("ENTRY e {\n  x = f32[2] parameter(0), sharding={devices=[2]0,}\n}");
  EXPECT_THAT(std::string(Message(module.status())), HasSubstr("2:51: expected a whole number"));
}

// --- values at random

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}

  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  bool Coin() { return Below(2) == 0; }
  Dims Numbers(int64_t least = 0) {
    Dims numbers(static_cast<std::size_t>(least + Below(4)));
    for (int64_t& n : numbers) n = Below(10) == 0 ? -Below(1 << 20) : Below(16);
    return numbers;
  }
  DeviceIota Iota() {
    DeviceIota iota{Numbers(1), {}};
    iota.order = NaturalOrder(iota.dims.size());
    std::shuffle(iota.order.begin(), iota.order.end(), random_);
    return iota;
  }
  Mesh DrawMesh() {
    Mesh mesh;
    for (const char* name : {"a", "b", "c.1", "_d"}) {
      if (mesh.axes.empty() || Coin()) mesh.axes.push_back({name, 1 + Below(8)});
    }
    if (Below(3) == 0) mesh.device_ids = Numbers(1);
    if (mesh.device_ids.empty() && Below(3) == 0) mesh.iota = Iota();
    return mesh;
  }
  std::vector<AxisPart> Parts(const Mesh& mesh, int64_t least = 0) {
    std::vector<AxisPart> parts(static_cast<std::size_t>(least + Below(3)));
    for (AxisPart& part : parts) {
      part.axis = Below(std::ssize(mesh.axes));
      if (Coin()) part.before = 1 + Below(4), part.size = 1 + Below(4);
    }
    return parts;
  }
  ReplicaGroups Groups() {
    switch (Below(4)) {
      case 0: {
        ListedGroups listed;
        for (int64_t n = Below(4); n > 0; --n) listed.groups.push_back(Numbers());
        return listed;
      }
      case 1:
        return CountedGroups{Below(9), Below(9), Iota()};
      case 2: {
        MeshGroups along{DrawMesh(), {}};
        along.axes = Parts(along.mesh, 1);
        return along;
      }
      default:
        return {};
    }
  }
  Sharding::Type Plain() {
    constexpr Sharding::Type kPlain[] = {Sharding::Type::kReplicated, Sharding::Type::kManual,
                                         Sharding::Type::kUnknown, Sharding::Type::kUnreduced};
    return kPlain[Below(4)];
  }
  Sharding DrawSharding(bool of_tuple = false) {
    Sharding s;
    const int64_t kind = Below(of_tuple ? 4 : 5);
    if (kind == 4) {
      s.type = Sharding::Type::kTuple;
      for (int64_t n = Below(4); n > 0; --n) s.tuple.push_back(DrawSharding(true));
      return s;
    }
    for (int64_t n = std::max<int64_t>(0, Below(5) - 2); n > 0; --n) {
      SourceNote& note = s.metadata.emplace_back();
      note.op_name = "x\"\n" + std::to_string(Below(9));
      note.source_line = Below(3);
      if (Coin()) note.source_file = "f.py", note.stack_frame_id = Below(4);
    }
    if (kind == 3) {
      s.mesh.emplace().mesh = DrawMesh();
      for (int64_t n = Below(3); n > 0; --n) s.mesh->dims.push_back({Parts(s.mesh->mesh), Coin()});
      s.mesh->replicated = Parts(s.mesh->mesh);
      s.mesh->unreduced = Parts(s.mesh->mesh);
      s.mesh->manual = Parts(s.mesh->mesh);
      return s;
    }
    if (Coin()) s.group = {Coin(), Below(9)};
    s.type = Plain();
    if (kind == 1) s.type = Sharding::Type::kMaximal, s.devices = {Below(9)};
    if (kind == 2) {
      s.type = Sharding::Type::kTiled;
      s.tiles = Numbers(1);
      if (Coin())
        s.iota = Iota();
      else
        s.devices = Numbers(1);
      s.replicates_last = Coin();
      for (int64_t n = Below(3); n > 0; --n) s.last_types.push_back(Plain());
    }
    return s;
  }

 private:
  std::mt19937_64 random_;
};

TEST(DevicesPropertyTest, WhatIsWrittenIsReadBack) {
  Draw draw(7);
  for (int round = 0; round < 2000; ++round) {
    const ReplicaGroups groups = draw.Groups();
    const Sharding sharding = draw.DrawSharding();
    EXPECT_EQ(Value<Sharding>(ToString(sharding)), sharding) << ToString(sharding);
    Module module("m");
    Computation* const entry = module.AddComputation("e");
    module.set_entry(entry);
    Instruction* const x = entry->AddParameter(0, Shape(DType::kF32, {2}));
    x->set_sharding(sharding);
    CollectiveAttrs attrs;
    attrs.replica_groups = groups;
    if (draw.Coin()) attrs.channel_id = 1 + draw.Below(9);
    attrs.use_global_device_ids = draw.Coin();
    entry->Add(Opcode::kCollectiveBroadcast, x->shape(), {x}, attrs);
    const std::string text = ToString(module);
    const auto read = ParseModule(text);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ((*read)->entry()->root()->attrs_as<CollectiveAttrs>(), attrs) << text;
    const auto again = AsBytesAndBack(module);
    EXPECT_EQ(again->entry()->root()->attrs_as<CollectiveAttrs>(), attrs) << text;
    EXPECT_EQ(again->entry()->parameters()[0]->sharding(), x->sharding()) << text;
    EXPECT_EQ(ToString(*again), text);
  }
}

}  // namespace
}  // namespace lazuli::hlo
