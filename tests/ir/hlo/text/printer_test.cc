#include "ir/hlo/text/printer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/hlo/proto/proto.h"
#include "tests/ir/hlo/hlo_text.h"

namespace lazuli::hlo {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Everything a default text has: header, signatures, layouts, literals, metadata.
constexpr const char* kText =
    R"(HloModule m, input_output_alias={ {1}: (0, {}, may-alias) }, entry_computation_layout={(f32[2,3]{0,1}, f32[3]{0})->(f32[2]{0}, f32[2,3]{0,1})}

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %r = f32[] add(%a, %b)
}

ENTRY %main (x: f32[2,3], bias: f32[3]) -> (f32[2], f32[2,3]) {
  %x = f32[2,3]{0,1} parameter(0), sharding={replicated}, metadata={op_name="conv1.weight"}
  %bias = f32[3]{0} parameter(1)
  %zero = f32[] constant(-0.0)
  %sum.3 = f32[2]{0} reduce(%x, %zero), dimensions={1}, to_apply=%add, metadata={op_type="aten__sum" op_name="loss/sum" source_file="a \"b\".cc" source_line=12}
  %big = f32[2,6]{1,0} constant({ { 1, 2, 3, 4, 5, 6 }, { inf, -inf, nan, 0.1, 1e-45, 3.40282347e+38 } })
  %y = f32[2,3]{0,1} custom-call(%x, %big), custom_call_target="t", control-predecessors={%sum.3}, backend_config={"a":"}"}
  ROOT %t = (f32[2]{0}, f32[2,3]{0,1}) tuple(%sum.3, %y)
}
)";

std::string Canonical() {
  std::string text = kText;
  return text.replace(text.find("1e-45"), 5, "1.4013e-45");
}

TEST(PrinterTest, DefaultTextIsTheStableCore) { EXPECT_EQ(ToString(*Parse(kText)), Canonical()); }

TEST(PrinterTest, ShortTextKeepsOnlyWhatMatters) {
  EXPECT_EQ(ToString(*Parse(kText), PrintOptions::Short()),
            R"(HloModule m, input_output_alias={ {1}: (0, {}, may-alias) }

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

ENTRY main {
  x = f32[2,3]{0,1} parameter(0), sharding={replicated}
  bias = f32[3] parameter(1)
  zero = f32[] constant(-0.0)
  sum.3 = f32[2] reduce(x, zero), dimensions={1}, to_apply=add
  big = f32[2,6] constant({ { 1, 2, 3, 4, 5, 6 }, { inf, -inf, nan, 0.1, 1.4013e-45, 3.40282347e+38 } })
  y = f32[2,3]{0,1} custom-call(x, big), custom_call_target="t", control-predecessors={sum.3}, backend_config={"a":"}"}
  ROOT t = (f32[2], f32[2,3]{0,1}) tuple(sum.3, y)
}
)");
}

TEST(PrinterTest, OptionsOneByOne) {
  const auto module = Parse(kText);
  EXPECT_THAT(ToString(*module, {.operand_shapes = true}),
              HasSubstr("reduce(f32[2,3]{0,1} %x, f32[] %zero)"));
  EXPECT_THAT(ToString(*module, {.large_constants = false}),
              HasSubstr("%big = f32[2,6]{1,0} constant({...})"));
  EXPECT_THAT(ToString(*module, {.large_constants = false}),
              HasSubstr("%zero = f32[] constant(-0.0)"));
  EXPECT_THAT(ToString(*module, {.metadata = false}), Not(HasSubstr("metadata")));
  EXPECT_THAT(ToString(*module, {.program_shapes = false}), HasSubstr("ENTRY %main {"));
}

TEST(PrinterTest, CanonicalNamesDependOnStructureOnly) {
  const PrintOptions canonical{.metadata = false, .canonical_names = true};
  const std::string text = ToString(*Parse(kText), canonical);
  EXPECT_THAT(text, HasSubstr("%v3 = f32[2]{0} reduce(%v0, %v2), dimensions={1}, to_apply=%c0\n"));
  std::string renamed = kText;
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>{"%sum.3", "%other"}, {"%add", "%plus"}}) {
    for (std::size_t at; (at = renamed.find(from)) != std::string::npos;)
      renamed.replace(at, from.size(), to);
  }
  EXPECT_EQ(ToString(*Parse(renamed), canonical), text);
}

TEST(PrinterTest, OneInstructionIsOneLine) {
  const auto module = Parse(kText);
  EXPECT_EQ(module->entry()->Find("bias")->ToString(), "%bias = f32[3]{0} parameter(1)");
  EXPECT_EQ(module->entry()->root()->ToString(),
            "%t = (f32[2]{0}, f32[2,3]{0,1}) tuple(%sum.3, %y)");
}

TEST(PrinterTest, AttributesOfEveryFamilyAreSpelledAsXlaDoes) {
  struct Case {
    const char* name;
    const char* text;
  };
  // As jaxlib 0.10 prints the same instructions.
  for (
      const Case& c : {
          Case{"slice stride", "slice={[0:4:2]}"},
          Case{"pad interior", "padding=1_1_1x0_2_0"},
          Case{
              "gather",
              "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
              "slice_sizes={1,6}, indices_are_sorted=true"},
          Case{
              "scatter",
              "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
              "index_vector_dim=1, indices_are_sorted=true, unique_indices=true, "
              "to_apply=%add_f32"},
          Case{"sort2", "dimensions={0}, is_stable=true, to_apply=%sortcmp2"},
          Case{"topk", "k=2, largest=true"},
          Case{"select-and-scatter",
               "window={size=2x2 stride=2x2}, select=%ge_f32, scatter=%add_f32"},
          Case{"reduce-window full",
               "window={size=2x2 stride=1x2 pad=1_1x1_1 lhs_dilate=1x2 rhs_dilate=1x2}"},
          Case{"while", "condition=%cond_c, body=%body_c"},
          Case{"conditional pred", "true_computation=%br, false_computation=%br"},
          Case{"conditional idx", "branch_computations={%br, %br}"},
          Case{"fusion", "kind=kLoop, calls=%bin4"},
          Case{"fft", "fft_type=IFFT, fft_length={4}"},
          Case{"rng normal", "distribution=rng_normal"},
          Case{"rbg rng_philox", "algorithm=rng_philox"},
          Case{"bn-grad", "epsilon=0.001, feature_index=1"},
          Case{"triangular-solve", "left_side=true, lower=true, transpose_a=NO_TRANSPOSE"},
      }) {
    for (const auto& [name, text] : OpcodeTexts()) {
      if (name == c.name) {
        EXPECT_THAT(Parse(text)->entry()->root()->ToString(), HasSubstr(c.text));
      }
    }
  }
}

TEST(PrinterTest, UnreachedComputationsArePrintedToo) {
  const auto module = Parse("f { p = f32[] parameter(0) }\nENTRY e { p = f32[] parameter(0) }");
  EXPECT_THAT(ToString(*module), HasSubstr("%f (p: f32[]) -> f32[] {"));
}

TEST(PrinterTest, UnreachedComputationsComeBehindWhatTheyCall) {
  const auto module = Parse(
      "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n"
      "g { p = f32[] parameter(0) ROOT r = f32[] call(p, p), to_apply=add }\n"
      "f { p = f32[] parameter(0) ROOT r = f32[] call(p), to_apply=g }\n"
      "ENTRY e { p = f32[] parameter(0) ROOT r = f32[] call(p, p), to_apply=add }");
  EXPECT_TRUE(Equal(*module, *Parse(ToString(*module))));
  const auto proto = ParseModuleProto(SerializeModuleProto(*module));
  ASSERT_TRUE(proto.ok()) << proto.status();
  EXPECT_EQ(ToString(**proto), ToString(*module));
}

TEST(DotTest, ShowsEveryInstructionAndEdge) {
  EXPECT_EQ(
      ToDot(*Parse("HloModule m\nENTRY e { p = f32[2] parameter(0)\n c = f32[2] constant({1, 2})\n"
                   "ROOT r = f32[2] add(p, c), metadata={source_file=\"a.cc\" source_line=3} }")),
      R"(digraph "m" {
  rankdir=TB;
  node [shape=box, style=filled];
  subgraph "cluster_e" {
    label="ENTRY e";
    n1 [label="parameter 0\np\nf32[2]", fillcolor=orange];
    n2 [label="constant {1, 2}\nc\nf32[2]", fillcolor=lightgray];
    n3 [label="add\nr\nf32[2]\na.cc:3", fillcolor=lightyellow, penwidth=2];
    n1 -> n3 [headlabel="0"];
    n2 -> n3 [headlabel="1"];
  }
}
)");
}

}  // namespace
}  // namespace lazuli::hlo
