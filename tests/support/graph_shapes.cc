#include "tests/support/graph_shapes.h"

#include <functional>
#include <string_view>
#include <utility>

#include "ir/support/str.h"

namespace lazuli {
namespace {

using ir::Str;

constexpr std::string_view kAdd =
    "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }\n";

// y0 and z0 are the parameters; `level` writes y(k + 1), and what else it wants, of y(k).
std::string Levels(std::string_view shape, int size, const std::function<std::string(int)>& level) {
  std::string text =
      Str(kAdd, "ENTRY main {\n  y0 = ", shape, " parameter(0)\n  z0 = ", shape,
          " parameter(1)\n  zero = f32[] constant(0)\n  half = f32[] constant(0.5)\n");
  if (shape != "f32[]") text += Str("  halves = ", shape, " broadcast(half), dimensions={}\n");
  for (int k = 0; k < size; ++k) text += level(k);
  return text + Str("  ROOT r = ", shape, " negate(y", size, ")\n}\n");
}

std::string Nest(int levels, std::string_view type, std::string_view first,
                 const std::function<std::string(int)>& level, std::string_view top) {
  std::string text = Str("level0 { x = ", type, " parameter(0)  ", first, " }\n");
  for (int k = 1; k < levels; ++k)
    text += Str("level", k, " { x = ", type, " parameter(0)  ", level(k - 1), " }\n");
  return text + Str("ENTRY main { x = ", type, " parameter(0)  ", top, levels - 1, " }\n");
}

std::string Line(std::string_view name, std::string_view shape, std::string_view rest) {
  return Str("  ", name, " = ", shape, " ", rest, "\n");
}

}  // namespace

std::vector<GraphShape> FlatGraphs(int size) {
  constexpr std::string_view kVector = "f32[8]", kMatrix = "f32[8,8]", kScalar = "f32[]";
  std::vector<GraphShape> graphs;
  const auto add = [&](std::string name, std::string_view shape,
                       const std::function<std::string(int)>& level) {
    graphs.push_back({std::move(name), Levels(shape, size, level)});
  };
  const auto y = [](int k) { return Str("y", k); };
  add("doubling", kVector,
      [&](int k) { return Line(y(k + 1), kVector, Str("add(y", k, ", y", k, ")")); });
  add("doubling_scalars", kScalar,
      [&](int k) { return Line(y(k + 1), kScalar, Str("add(y", k, ", y", k, ")")); });
  add("squaring", kVector,
      [&](int k) { return Line(y(k + 1), kVector, Str("multiply(y", k, ", y", k, ")")); });
  add("fibonacci", kVector, [&](int k) {
    return Line(y(k + 1), kVector, k == 0 ? "add(y0, z0)" : Str("add(y", k, ", y", k - 1, ")"));
  });
  add("ladder", kVector, [&](int k) {
    return Line(y(k + 1), kVector, Str("add(y", k, ", z", k, ")")) +
           Line(Str("z", k + 1), kVector, Str("multiply(y", k, ", z", k, ")"));
  });
  add("diamonds", kVector, [&](int k) {
    return Line(Str("a", k), kVector, Str("tanh(y", k, ")")) +
           Line(Str("b", k), kVector, Str("negate(y", k, ")")) +
           Line(y(k + 1), kVector, Str("subtract(a", k, ", b", k, ")"));
  });
  add("selections", kVector, [&](int k) {
    return Line(Str("p", k), "pred[8]", Str("compare(y", k, ", halves), direction=GT")) +
           Line(Str("a", k), kVector, Str("add(y", k, ", halves)")) +
           Line(y(k + 1), kVector, Str("select(p", k, ", y", k, ", a", k, ")"));
  });
  add("wide_sum", kVector, [&](int k) {
    return Line(Str("v", k), kScalar, Str("constant(", k, ")")) +
           Line(Str("b", k), kVector, Str("broadcast(v", k, "), dimensions={}")) +
           Line(Str("t", k), kVector, Str("multiply(z0, b", k, ")")) +
           Line(y(k + 1), kVector, Str("add(y", k, ", t", k, ")"));
  });
  add("many_readers", kVector, [&](int k) {
    return Line(Str("t", k), kVector, Str("power(z0, y", k, ")")) +
           Line(y(k + 1), kVector, Str("add(t", k, ", z0)"));
  });
  add("transposes", kMatrix, [&](int k) {
    return Line(Str("t", k), kMatrix, Str("transpose(y", k, "), dimensions={1,0}")) +
           Line(y(k + 1), kMatrix, Str("add(y", k, ", t", k, ")"));
  });
  add("reversals", kMatrix, [&](int k) {
    return Line(Str("t", k), kMatrix, Str("reverse(y", k, "), dimensions={", k % 2, "}")) +
           Line(y(k + 1), kMatrix, Str("add(y", k, ", t", k, ")"));
  });
  // Element i of the last level is a sum of 2^size elements of the first.
  add("shifts", kVector, [&](int k) {
    const int by = 1 << k % 3;
    return Line(Str("l", k), Str("f32[", 8 - by, "]"),
                Str("slice(y", k, "), slice={[", by, ":8]}")) +
           Line(Str("r", k), Str("f32[", by, "]"), Str("slice(y", k, "), slice={[0:", by, "]}")) +
           Line(Str("m", k), kVector, Str("concatenate(l", k, ", r", k, "), dimensions={0}")) +
           Line(y(k + 1), kVector, Str("add(y", k, ", m", k, ")"));
  });
  add("halves", kVector, [&](int k) {
    return Line(Str("l", k), "f32[4]", Str("slice(y", k, "), slice={[0:4]}")) +
           Line(Str("r", k), "f32[4]", Str("slice(y", k, "), slice={[4:8]}")) +
           Line(Str("m", k), "f32[4]", Str("add(l", k, ", r", k, ")")) +
           Line(y(k + 1), kVector, Str("concatenate(m", k, ", m", k, "), dimensions={0}"));
  });
  add("reductions", kVector, [&](int k) {
    return Line(Str("m", k), kScalar, Str("reduce(y", k, ", zero), dimensions={0}, to_apply=add")) +
           Line(Str("b", k), kVector, Str("broadcast(m", k, "), dimensions={}")) +
           Line(y(k + 1), kVector, Str("subtract(y", k, ", b", k, ")"));
  });
  add("products", kMatrix, [&](int k) {
    return Line(
               Str("d", k), kMatrix,
               Str("dot(y", k, ", y", k, "), lhs_contracting_dims={1}, rhs_contracting_dims={0}")) +
           Line(y(k + 1), kMatrix, Str("add(d", k, ", d", k, ")"));
  });
  add("tuples", kVector, [&](int k) {
    return Line(Str("t", k), "(f32[8], f32[8])", Str("tuple(y", k, ", y", k, ")")) +
           Line(Str("a", k), kVector, Str("get-tuple-element(t", k, "), index=0")) +
           Line(Str("b", k), kVector, Str("get-tuple-element(t", k, "), index=1")) +
           Line(y(k + 1), kVector, Str("add(a", k, ", b", k, ")"));
  });
  add("conversions", kVector, [&](int k) {
    return Line(Str("w", k), "f64[8]", Str("convert(y", k, ")")) +
           Line(Str("n", k), kVector, Str("convert(w", k, ")")) +
           Line(y(k + 1), kVector, Str("add(n", k, ", y", k, ")"));
  });
  return graphs;
}

std::vector<NestedGraph> NestedGraphs(int levels) {
  constexpr std::string_view kVector = "f32[4]", kState = "(s32[], f32[4])";
  std::vector<NestedGraph> graphs;
  const auto add = [&](std::string name, std::string hlo, bool runs_twice) {
    NestedGraph graph;
    graph.name = std::move(name);
    graph.hlo = std::move(hlo);
    graph.runs_twice = runs_twice;
    graphs.push_back(std::move(graph));
  };
  constexpr std::string_view kFirst = "ROOT r = f32[4] negate(x)";
  constexpr std::string_view kTop = "ROOT r = f32[4] call(x), to_apply=level";
  add("calls_in_a_row",
      Nest(
          levels, kVector, kFirst,
          [](int f) {
            return Str("y = f32[4] call(x), to_apply=level", f,
                       "  ROOT r = f32[4] call(y), to_apply=level", f);
          },
          kTop),
      true);
  add("equal_calls",
      Nest(
          levels, kVector, kFirst,
          [](int f) {
            return Str("y = f32[4] call(x), to_apply=level", f,
                       "  z = f32[4] call(x), to_apply=level", f, "  ROOT r = f32[4] add(y, z)");
          },
          kTop),
      true);
  add("fusions",
      Nest(
          levels, kVector, kFirst,
          [](int f) {
            return Str("y = f32[4] fusion(x), kind=kLoop, calls=level", f,
                       "  ROOT r = f32[4] fusion(y), kind=kLoop, calls=level", f);
          },
          kTop),
      true);
  add("branches",
      Nest(
          levels, kVector, kFirst,
          [](int f) {
            return Str(
                "e = f32[1] slice(x), slice={[0:1]}  s = f32[] reshape(e)  zero = f32[] "
                "constant(0)  g = pred[] compare(s, zero), direction=GT  ROOT r = f32[4] "
                "conditional(g, x, x), true_computation=level",
                f, ", false_computation=level", f);
          },
          kTop),
      false);
  add("loops",
      "c { s = (s32[], f32[4]) parameter(0)  i = s32[] get-tuple-element(s), index=0  n = s32[] "
      "constant(0)  ROOT r = pred[] compare(i, n), direction=LT }\n" +
          Nest(
              levels, kState,
              "i = s32[] get-tuple-element(x), index=0  v = f32[4] get-tuple-element(x), index=1  "
              "one = s32[] constant(1)  j = s32[] add(i, one)  n = f32[4] negate(v)  ROOT r = "
              "(s32[], f32[4]) tuple(j, n)",
              [](int f) {
                return Str("w = (s32[], f32[4]) while(x), condition=c, body=level", f,
                           "  ROOT r = (s32[], f32[4]) while(w), condition=c, body=level", f);
              },
              "ROOT r = (s32[], f32[4]) while(x), condition=c, body=level"),
      false);
  return graphs;
}

}  // namespace lazuli
