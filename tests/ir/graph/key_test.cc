#include "ir/graph/key.h"

#include <limits>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/graph/post_order.h"
#include "tests/ir/graph/test_node.h"

namespace lazuli::ir::test {
namespace {

using Words = std::vector<uint32_t>;

Words KeyOf(std::vector<Value> roots) {
  Trace trace;
  trace.roots = std::move(roots);
  TraceGraph(trace);
  KeyWriter key;
  AppendGraphKey(trace, key);
  return key.words();
}

template <class... T>
Words AttrKey(const T&... v) {
  KeyWriter key;
  (key.Append(v), ...);
  return key.words();
}

struct Attrs {
  int64_t dim;
  std::optional<DType> dtype;
  LAZULI_ATTRS(dim, dtype);
};

TEST(KeyTest, AttributesNeverRunIntoEachOther) {
  EXPECT_NE(AttrKey(Dims{1, 2}, Dims{3}), AttrKey(Dims{1}, Dims{2, 3}));
  EXPECT_NE(AttrKey(Dims{}, Dims{1}), AttrKey(Dims{1}, Dims{}));
  EXPECT_NE(AttrKey(std::string("ab"), std::string("c")),
            AttrKey(std::string("a"), std::string("bc")));
  EXPECT_NE(AttrKey(std::string("a")), AttrKey(std::string("a\0", 2)));
  EXPECT_NE(AttrKey(std::optional<int64_t>()), AttrKey(std::optional<int64_t>(0)));
  EXPECT_NE(AttrKey(std::optional<int64_t>(), int64_t{1}), AttrKey(std::optional<int64_t>(1)));
}

TEST(KeyTest, EveryValueOfAnAttributeCounts) {
  EXPECT_NE(AttrKey(int64_t{1}), AttrKey(int64_t{1} << 32 | 1));
  EXPECT_NE(AttrKey(0.0), AttrKey(-0.0));
  EXPECT_EQ(AttrKey(std::numeric_limits<double>::quiet_NaN()),
            AttrKey(std::numeric_limits<double>::quiet_NaN()));
  EXPECT_NE(AttrKey(1.0f), AttrKey(2.0f));
  EXPECT_NE(AttrKey(true), AttrKey(false));
  EXPECT_NE(AttrKey(DType::kF32), AttrKey(DType::kF64));
  EXPECT_NE(AttrKey(Attrs{1, DType::kF32}), AttrKey(Attrs{1, std::nullopt}));
  EXPECT_NE(AttrKey(Attrs{1, DType::kF32}), AttrKey(Attrs{2, DType::kF32}));
  EXPECT_NE(AttrKey(std::array<int64_t, 2>{1, 2}), AttrKey(std::array<int64_t, 2>{2, 1}));
}

TEST(KeyTest, ShapesDifferByTypeRankAndDims) {
  auto key = [](const Shape& s) { return AttrKey(s); };
  EXPECT_NE(key(Shape(DType::kF32, {2, 3})), key(Shape(DType::kF32, {3, 2})));
  EXPECT_NE(key(Shape(DType::kF32, {2, 3})), key(Shape(DType::kF32, {6})));
  EXPECT_NE(key(Shape(DType::kF32, {2})), key(Shape(DType::kS32, {2})));
  EXPECT_NE(key(Shape(DType::kF32, {1})), key(Shape(DType::kF32)));
}

// (a*b)+c and (a*c)+b visit the same leaves in the same order, with a, b, c given as outputs first.
TEST(KeyTest, WiringOfTheSameLeavesCounts) {
  const Value a = Leaf(), b = Leaf(), c = Leaf();
  const std::vector<Value> roots = {Op("t", {a}), Op("t", {b}), Op("t", {c})};
  std::vector<Value> one = roots, two = roots;
  one.push_back(Op("add", {Op("mul", {a, b}), c}));
  two.push_back(Op("add", {Op("mul", {a, c}), b}));
  EXPECT_NE(KeyOf(one), KeyOf(two));
}

TEST(KeyTest, LeavesAreSlotsNotIdentities) {
  auto graph = [](const Value& a, const Value& b) { return KeyOf({Op("sub", {a, b})}); };
  const Value a = Leaf(), b = Leaf();
  EXPECT_EQ(graph(a, b), graph(b, a));
  EXPECT_EQ(graph(a, b), graph(Leaf(), Leaf()));
  EXPECT_NE(graph(a, b), graph(a, a));  // one parameter or two
}

TEST(KeyTest, LeavesDifferByKindAndShape) {
  auto graph = [](const Value& leaf) { return KeyOf({Op("neg", {leaf})}); };
  EXPECT_NE(graph(Leaf(NodeKind::kData, Shape(DType::kF32))),
            graph(Leaf(NodeKind::kScalar, Shape(DType::kF32))));
  EXPECT_NE(graph(Leaf(NodeKind::kData, Shape(DType::kF32, {2}))),
            graph(Leaf(NodeKind::kData, Shape(DType::kF32, {3}))));
}

TEST(KeyTest, OperandOrderOutputIndexAndRootsCount) {
  const Value a = Leaf(), b = Leaf();
  const Value both = {MakeIntrusive<TestNode>(NodeKind::kOp, "pair", std::vector<Value>{a, b},
                                              std::vector<Shape>(2, Shape(DType::kF32, {2}))),
                      0};
  const Value second = {both.node, 1};
  EXPECT_NE(KeyOf({Op("neg", {both})}), KeyOf({Op("neg", {second})}));
  EXPECT_NE(KeyOf({both}), KeyOf({second}));
  EXPECT_NE(KeyOf({both, second}), KeyOf({second, both}));
  const Value x = Op("neg", {a}), y = Op("neg", {x});
  EXPECT_NE(KeyOf({y}), KeyOf({x, y}));
  EXPECT_NE(KeyOf({Op("sub", {a, x})}), KeyOf({Op("sub", {x, a})}));
}

TEST(KeyTest, AttributesOfNodesCount) {
  const Value a = Leaf();
  EXPECT_EQ(KeyOf({Op("sum", {a}, 1)}), KeyOf({Op("sum", {a}, 1)}));
  EXPECT_NE(KeyOf({Op("sum", {a}, 1)}), KeyOf({Op("sum", {a}, 2)}));
  EXPECT_NE(KeyOf({Op("sum", {a}, 1)}), KeyOf({Op("max", {a}, 1)}));
}

struct First {};
struct Second {};

// Ids of ops are the same in every process.
TEST(KeyTest, IdsOfTypesAreTheirNames) {
  static_assert(StableTypeId<First>() != StableTypeId<Second>());
  static_assert(StableTypeId<int>() == StableTypeId<int>());
}

TEST(PostOrderTest, VisitsOperandsFirstAndEachNodeOnce) {
  const Value a = Leaf(), s = Leaf(NodeKind::kScalar, Shape(DType::kF32)), b = Leaf();
  const Value x = Op("mul", {a, s}), y = Op("add", {x, b}), z = Op("add", {y, x});
  Trace trace;
  trace.roots = {z, x};
  TraceGraph(trace);
  EXPECT_THAT(trace.nodes, testing::ElementsAre(a.node.get(), s.node.get(), x.node.get(),
                                                b.node.get(), y.node.get(), z.node.get()));
  EXPECT_THAT(trace.data, testing::ElementsAre(a.node.get(), b.node.get()));
  EXPECT_THAT(trace.scalars, testing::ElementsAre(s.node.get()));
  for (std::size_t i = 0; i < trace.nodes.size(); ++i) EXPECT_EQ(trace.nodes[i]->mark_index, i);
}

TEST(PostOrderTest, ASecondTraceRenumbersIndependently) {
  const Value a = Leaf(), x = Op("neg", {a}), y = Op("abs", {x});
  Trace first, second;
  first.roots = {y};
  TraceGraph(first);
  second.roots = {x};
  TraceGraph(second);
  EXPECT_EQ(second.nodes.size(), 2u);
  EXPECT_EQ(KeyOf({y}), KeyOf({y}));
}

TEST(KeyTest, HashFollowsTheWords) {
  KeyWriter a, b;
  a.Text("one");
  b.Text("one");
  EXPECT_EQ(a.Hash(), b.Hash());
  b.Word(0);
  EXPECT_NE(a.Hash(), b.Hash());
  b.Clear();
  EXPECT_TRUE(b.words().empty());
}

}  // namespace
}  // namespace lazuli::ir::test
