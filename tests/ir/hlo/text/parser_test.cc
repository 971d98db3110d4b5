#include "ir/hlo/text/parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/hlo/proto/proto.h"
#include "ir/hlo/text/printer.h"
#include "ir/hlo/verifier.h"
#include "tests/ir/hlo/hlo_text.h"

namespace lazuli::hlo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

// --- forms of text

TEST(ParserTest, OldAndNewOperandStylesMix) {
  const auto module = Parse(R"(HloModule m
ENTRY %e {
  %p = f32[2]{0} parameter(0)
  q = f32[2] parameter(1)
  %s = add(f32[2]{0} %p, q)
  ROOT r = f32[2] multiply(f32[2] s, %p)
})");
  EXPECT_THAT(module->entry()->root()->operands(),
              ElementsAre(module->entry()->Find("s"), module->entry()->Find("p")));
}

TEST(ParserTest, SpacesAndCommentsMayBeAnywhere) {
  const auto module = Parse(
      "// a module\nHloModule m /* named m */ , is_scheduled=true\n\n\nENTRY e{/*body*/p=f32[2 , "
      "3] {1, 0}parameter( 0 )\n"
      "ROOT /*r*/ r\t= f32 [2,3] // shape\n negate( /*index=5*/ p ) , metadata={ op_name=\"x\" "
      "}\r\n}");
  EXPECT_TRUE(module->is_scheduled());
  EXPECT_EQ(module->entry()->root()->metadata().op_name, "x");
}

TEST(ParserTest, LastComputationIsTheEntryAndLastInstructionTheRoot) {
  const auto module =
      Parse("a { p = f32[] parameter(0) }\nb { q = f32[] parameter(0)\n r = f32[] negate(q) }");
  EXPECT_EQ(module->entry()->name(), "b");
  EXPECT_EQ(module->entry()->root()->name(), "r");
  EXPECT_EQ(module->name(), "module_b");
}

TEST(ParserTest, ALoneInstructionIsAModule) {
  for (const char* text :
       {"f32[4] add(f32[4] %x, f32[4] %y)", "f32[4] add(f32[4], f32[4])",
        "%sum = f32[4] add(f32[4] x, f32[4] y)", "sum = add(f32[4]{0} x, f32[4] y)"}) {
    const auto module = Parse(text);
    EXPECT_EQ(module->entry()->parameters().size(), 2u) << text;
    EXPECT_EQ(module->entry()->root()->shape(), Shape(DType::kF32, {4})) << text;
  }
}

TEST(ParserTest, NestedOperands) {
  const auto module = Parse(
      "ENTRY e { p = f32[2] parameter(0)\n ROOT r = f32[2] add(negate(p), f32[2] sine(cosine(p))) "
      "}");
  EXPECT_EQ(module->entry()->instruction_count(), 5);
  EXPECT_EQ(module->entry()->root()->operand(0)->name(), "negate.anon");
}

TEST(ParserTest, InlineComputations) {
  const auto module = Parse(R"(ENTRY e { x = f32[4] parameter(0)
    z = f32[] constant(0)
    ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply={
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    } })");
  EXPECT_EQ(module->entry()->root()->to_apply()->root()->opcode(), Opcode::kAdd);
  EXPECT_FALSE(module->entry()->root()->to_apply()->IsEntry());
}

TEST(ParserTest, FrameTablesGiveSourceLines) {
  const auto module = Parse(R"(HloModule m

FileNames
1 "model.py"
2 "train.py"

FunctionNames
1 "forward"

FileLocations
1 {file_name_id=2 function_name_id=1 line=7 end_line=7 column=1 end_column=3}
2 {file_name_id=1 function_name_id=1 line=42}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=1}

ENTRY e {
  p = f32[] parameter(0), metadata={op_name="x" stack_frame_id=2}
  ROOT n = f32[] negate(p), metadata={op_name="n" stack_frame_id=9}
})");
  const Metadata& metadata = module->entry()->Find("p")->metadata();
  EXPECT_EQ(metadata.source_file, "model.py");
  EXPECT_EQ(metadata.source_line, 42);
  EXPECT_EQ(module->entry()->root()->metadata().source_file, "");
}

TEST(ParserTest, FrameTablesComeBackFromTextAndProto) {
  const std::string text = R"(HloModule m, entry_computation_layout={(f32[])->f32[]}

FileNames
1 "model.py"
2 "train.py"

FunctionNames
1 "forward"
2 "main"

FileLocations
1 {file_name_id=2 function_name_id=2 line=7 end_line=7 column=0 end_column=0}
2 {file_name_id=1 function_name_id=1 line=42 end_line=42 column=0 end_column=0}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}

ENTRY %e (p: f32[]) -> f32[] {
  ROOT %p = f32[] parameter(0), metadata={op_name="x" source_file="model.py" source_line=42 stack_frame_id=2}
}
)";
  const auto module = Parse(text);
  EXPECT_EQ(module->ToString(), text);
  EXPECT_EQ(module->Clone()->ToString(), text);
  EXPECT_THAT(module->stack_frames().Text(2),
              ElementsAre("forward (model.py:42)", "main (train.py:7)"));
  const auto again = ParseModuleProto(SerializeModuleProto(*module));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->ToString(), text);
}

TEST(ParserTest, MetadataMembersInAnyOrderWithOrWithoutCommas) {
  const auto module = Parse(
      "ENTRY e { ROOT p = f32[] parameter(0), metadata={source_line=3, op_type=\"a\\\"b\\n\" "
      "profile_type={1} "
      "source_file=\"f.cc\" scheduling_name=\"s\" op_name='q'} }");
  const Metadata& metadata = module->entry()->root()->metadata();
  EXPECT_EQ(metadata.op_type, "a\"b\n");
  EXPECT_EQ(metadata.op_name, "q");
  EXPECT_EQ(metadata.source_file, "f.cc");
  EXPECT_EQ(metadata.source_line, 3);
}

TEST(ParserTest, UnknownAttributesAreKeptAsWritten) {
  const auto module = Parse(R"(HloModule m, replica_count=2, frontend_attributes={a="}"}
ENTRY e { p = f32[2] parameter(0), parameter_replication={true}, sharding={devices=[2,1]<=[2] last_tile_dim_replicate}
  ROOT c = f32[2] custom-call(p), custom_call_target="t", new_thing=[2,4]<=[4,2]T(1,0), schedule=SCHEDULE_LATEST, backend_config={index = 0 : ui64, s = "}"}, origin={{"x" {0}}}
})");
  EXPECT_THAT(module->extra_attrs(), ElementsAre(Pair("frontend_attributes", "{a=\"}\"}")));
  EXPECT_THAT(module->entry()->root()->extra_attrs(),
              ElementsAre(Pair("new_thing", "[2,4]<=[4,2]T(1,0)"),
                          Pair("schedule", "SCHEDULE_LATEST"), Pair("origin", "{{\"x\" {0}}}"),
                          Pair("backend_config", "{index = 0 : ui64, s = \"}\"}")));
  EXPECT_THAT(module->entry()->root()->ToString(),
              HasSubstr("new_thing=[2,4]<=[4,2]T(1,0), schedule=SCHEDULE_LATEST, origin={{\"x\" "
                        "{0}}}, backend_config={"));
}

TEST(ParserTest, WarnsOfAttributesThatNobodyKnows) {
  std::vector<std::string> warnings;
  const auto module = ParseModule(
      "ENTRY e {\n  ROOT p = f32[2] parameter(0), shine=7, sharding={replicated}, origin={}\n}",
      &warnings);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_THAT(warnings, ElementsAre("2:33: unknown attribute 'shine' is kept as it is"));
}

TEST(ParserTest, CollectivesKeepTheirAttributes) {
  const auto module = Parse(R"(add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
ENTRY e { p = f32[2] parameter(0)
  ROOT r = f32[2] all-reduce(p), channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=add })");
  EXPECT_THAT(module->entry()->root()->ToString(),
              HasSubstr("all-reduce(%p), channel_id=1, replica_groups={{0,1},{2,3}}, "
                        "use_global_device_ids=true, to_apply=%add"));
}

TEST(ParserTest, NamesBehindAPaddingMayBeginWithAnX) {
  const auto module = Parse(R"(ENTRY e { p = f32[4] parameter(0)
  c = f32[] constant(0)
  d = f32[6] pad(p, c), padding=1_1
  x.1 = f32[6] negate(d)
  ROOT y = f32[8] pad(x.1, c), padding=1_1_0 })");
  EXPECT_EQ(module->entry()->instruction_count(), 5);
}

TEST(ParserTest, AliasesWithAndWithoutKind) {
  const auto module = Parse(
      R"(HloModule m, input_output_alias={ {0}: (1, {}, must-alias), {1}: (0, {}) }, buffer_donor={ (0, {}) }
ENTRY e { p = f32[2] parameter(0)
  q = f32[2] parameter(1)
  ROOT t = (f32[2], f32[2]) tuple(q, p) })");
  EXPECT_THAT(module->aliases(), ElementsAre(Alias{{0}, 1, {}, true}, Alias{{1}, 0, {}, false}));
}

TEST(ParserTest, AliasesInsideTuples) {
  const auto module = Parse(R"(HloModule m, input_output_alias={ {0,1}: (0, {2}, may-alias) }
ENTRY e { p = (f32[], f32[], f32[2]) parameter(0)
  x = f32[2] get-tuple-element(p), index=2
  t = (f32[2], f32[2]) tuple(x, x)
  ROOT r = ((f32[2], f32[2])) tuple(t) })");
  EXPECT_THAT(module->aliases(), ElementsAre(Alias{{0, 1}, 0, {2}, false}));
  EXPECT_THAT(ToString(*module), HasSubstr("input_output_alias={ {0,1}: (0, {2}, may-alias) }"));
}

TEST(ParserTest, EntryLayoutIsKeptWhereItSaysMore) {
  const char* text =
      "HloModule m, entry_computation_layout={(f32[2,3]{0,1})->f32[2,3]{1,0}}\n"
      "ENTRY e { p = f32[2,3]{1,0} parameter(0)\n ROOT n = f32[2,3]{1,0} negate(p) }";
  EXPECT_THAT(ToString(*Parse(text)),
              HasSubstr("entry_computation_layout={(f32[2,3]{0,1})->f32[2,3]{1,0}}"));
  EXPECT_EQ(Parse(text)->extra_attrs().size(), 1u);
}

TEST(ParserTest, AsyncSugarBecomesAWrappedComputation) {
  const auto module = Parse(R"(ENTRY e { x = f32[4] parameter(0)
    s = ((f32[4], f32[4]), f32[4], s32[]) add-start(x, x)
    u = ((f32[4], f32[4]), f32[4], s32[]) add-update(s)
    ROOT d = f32[4] add-done(u) })");
  const Instruction* start = module->entry()->Find("s");
  EXPECT_EQ(start->opcode(), Opcode::kAsyncStart);
  EXPECT_EQ(start->to_apply()->root()->opcode(), Opcode::kAdd);
  EXPECT_EQ(module->entry()->root()->opcode(), Opcode::kAsyncDone);
}

TEST(ParserTest, SignatureResultIsCompared) {
  Parse("ENTRY %e (p: f32[2,3]) -> f32[2,3] { p = f32[2,3]{0,1} parameter(0) }");
  EXPECT_THAT(
      ErrorOf(ParseModule("ENTRY e (p: f32[2]) -> f32[3] { p = f32[2] parameter(0) }").status()),
      HasSubstr("computation 'e' declares the result f32[3], its root is f32[2]"));
}

// --- shapes

TEST(ParseShapeTest, EveryForm) {
  for (const char* text :
       {"f32[]", "f32[2,3]", "f32[2,3]{0,1}", "(f32[2], (s32[], pred[0]), token[])", "()",
        "f32[4,<=5]", "f8e4m3b11fnuz[7]", "token[]", "opaque[]"}) {
    const auto shape = ParseShape(text);
    ASSERT_TRUE(shape.ok()) << shape.status();
    std::string printed;
    shape->AppendTo(printed, Shape::Layouts::kOther);
    EXPECT_EQ(printed, text);
  }
}

TEST(ParseShapeTest, LayoutDetailsOfOtherDevicesAreDropped) {
  EXPECT_EQ(ParseShape("f32[2,3]{0,1:T(8,128)(2,1)S(1)E(4)}")->ToString(true), "f32[2,3]{0,1}");
  EXPECT_EQ(ParseShape("f32[]{:T(128)}")->ToString(true), "f32[]");
  EXPECT_EQ(ParseShape("f32[2,3]{:T(8,128)D(D,C)}")->ToString(true), "f32[2,3]{1,0}");
}

struct Refused {
  const char* text;
  const char* error;  // without the line that follows
};

std::string FirstLine(const absl::Status& status) {
  const std::string message = ErrorOf(status);
  return message.substr(0, message.find('\n'));
}

TEST(ParseShapeTest, Errors) {
  for (const Refused& c : {
           Refused{"", "1:1: expected a shape"},
           Refused{"f33[2]", "1:1: unknown element type 'f33'"},
           Refused{"f32", "1:4: expected '['"},
           Refused{"f32[2", "1:6: expected ','"},
           Refused{"f32[-2]", "1:1: dimension -2 of f32[-2] is negative"},
           Refused{"f32[?]", "1:5: dimensions without a bound are not supported"},
           Refused{"f32[99999999999999999999]", "1:5: the number is out of range"},
           Refused{"f32[1000000,1000000]",
                   "1:1: f32[1000000,1000000] is larger than 1099511627776 bytes"},
           Refused{"f32[2,3]{0}", "1:9: layout of 1 dimensions for f32[2,3]"},
           Refused{"f32[2,3]{0,0}",
                   "1:9: the layout {0,0} does not order the dimensions of f32[2,3]"},
           Refused{"f32[2,3]{0,2}",
                   "1:9: the layout {0,2} does not order the dimensions of f32[2,3]"},
           Refused{"f32[2]{0:T(8", "1:11: the bracket is not closed"},
           Refused{"token[2]", "1:1: token has no dimensions"},
           Refused{"b(f32[2])", "1:1: buffer types are not supported"},
           Refused{"(f32[], ", "1:9: expected a shape"},
           Refused{"f32[] x", "1:7: expected nothing after the shape"},
       }) {
    EXPECT_EQ(FirstLine(ParseShape(c.text).status()), c.error) << c.text;
  }
  EXPECT_THAT(FirstLine(ParseShape(std::string(100, '(')).status()),
              HasSubstr("tuples are nested deeper than 64"));
}

// --- errors

TEST(ParserErrorTest, ShowsTheLineAndACaret) {
  EXPECT_EQ(ErrorOf(ParseModule("HloModule m\n\nENTRY e {\n  ROOT r = f32[] ad(x)\n}").status()),
            "4:18: unknown opcode 'ad'\n"
            "  ROOT r = f32[] ad(x)\n"
            "                 ^");
}

TEST(ParserErrorTest, ShowsAPartOfALongLine) {
  std::string text = "ENTRY e { ROOT c = f32[10000] constant({";
  for (int i = 0; i < 9999; ++i) text += "1, ";
  const std::string error = ErrorOf(ParseModule(text + "x}) }").status());
  EXPECT_LT(error.size(), 400u);
  EXPECT_THAT(error, HasSubstr("expected a number, not 'x'"));
  const std::size_t caret = error.rfind('\n');
  const std::size_t line = error.rfind('\n', caret - 1);
  EXPECT_EQ(error[line + (error.size() - 1 - caret)], 'x');
}

TEST(ParserErrorTest, EveryMistakeHasASentence) {
  for (const Refused& c : {
           Refused{"", "1:1: the text has no computation"},
           Refused{"HloModule", "1:10: expected a name"},
           Refused{"HloModule m, is_scheduled=maybe", "1:27: expected true or false, not 'maybe'"},
           Refused{"HloModule m, a=1, a=2", "1:19: attribute 'a' is given twice"},
           Refused{"HloModule m /* no end", "1:13: the comment is not closed"},
           Refused{"ENTRY e {", "1:10: expected '}' after computation 'e'"},
           Refused{"ENTRY e { }", "1:7: computation 'e' is empty"},
           Refused{"ENTRY e { p = f32[] parameter(0) } ENTRY f { p = f32[] parameter(0) }",
                   "1:42: two computations are marked ENTRY"},
           Refused{"e { p = f32[] parameter(0) } e { p = f32[] parameter(0) }",
                   "1:30: two computations are named 'e'"},
           Refused{"ENTRY e { p = f32[] parameter(0) p = f32[] parameter(1) }",
                   "1:34: two instructions of computation 'e' are named 'p'"},
           Refused{"ENTRY e { ROOT p = f32[] parameter(0) ROOT q = f32[] parameter(1) }",
                   "1:39: computation 'e' has two instructions marked ROOT"},
           Refused{"ENTRY e { p = f32[] parameter(0) q = f32[] parameter(0) }",
                   "1:54: computation 'e' has two parameters 0"},
           Refused{"ENTRY e { p = f32[] parameter(1) }",
                   "1:7: computation 'e' has parameter 1 but no parameter 0"},
           Refused{"ENTRY e { p = f32[] parameter(-1) }",
                   "1:31: parameter number -1 is out of range"},
           Refused{"ENTRY e { p = f32[] parameter(1000000000) }",
                   "1:31: parameter number 1000000000 is out of range"},
           Refused{"ENTRY e { r = f32[] negate(p) p = f32[] parameter(0) }",
                   "1:28: computation 'e' has no instruction 'p' before this"},
           Refused{"ENTRY e { p = f32[] parameter(0) r = f32[] negate(s32[] p) }",
                   "1:57: operand 'p' is f32[], not s32[]"},
           Refused{"ENTRY e { p = f32[] parameter(0) r = f32[] negate(p }", "1:53: expected ')'"},
           Refused{"ENTRY e { p = f32[] parameter(0) r = f32[] call(p), to_apply=f }",
                   "1:62: there is no computation 'f' before this"},
           Refused{"ENTRY e { p = f32[] parameter(0) r = f32[] call(p) }",
                   "1:34: call: calls 1 computations, not 0"},
           Refused{"ENTRY e { p = f32[] parameter(0) r = f32[] negate(p), a=1, a=2 }",
                   "1:60: attribute 'a' is given twice"},
           Refused{"ENTRY e { p = f32[2] parameter(0) r = f32[2] reverse(p), dimensions={1} }",
                   "1:35: reverse: dimension 1 of dimensions={1} is out of range for rank 1"},
           Refused{"ENTRY e { p = f32[2] parameter(0) r = pred[2] compare(p, p) }",
                   "1:35: compare: attribute 'direction' is missing"},
           Refused{"ENTRY e { p = f32[2] parameter(0) r = pred[2] compare(p, p), direction=XX }",
                   "1:72: 'XX' is not a value of direction"},
           Refused{"ENTRY e { p = (f32[]) parameter(0) r = f32[] get-tuple-element(p) }",
                   "1:36: get-tuple-element: attribute 'index' is missing"},
           Refused{"ENTRY e { p = f32[2,2] parameter(0) r = f32[2] sort(p), dimensions={0,1} }",
                   "1:68: expected one dimension, not 2"},
           Refused{"ENTRY e { p = f32[1,2,2] parameter(0) r = f32[] convolution(p, p), "
                   "window={size=2x2}, "
                   "dim_labels=b0f_0io->b0b }",
                   "1:98: 'b0f_0io->b0b' are not dimension labels such as b01f_01io->b01f"},
           Refused{"ENTRY e { p = f32[1,2,2] parameter(0) r = f32[] convolution(p, p), "
                   "window={size=2x2 stride=1} }",
                   "1:92: 1 values for a window of 2 dimensions"},
           Refused{"ENTRY e { p = f32[1,2,2] parameter(0) r = f32[] convolution(p, p), "
                   "window={sise=2} }",
                   "1:76: a window has no 'sise'"},
           Refused{"ENTRY e { c = constant(1) }",
                   "1:11: constant: the result's shape must be declared"},
           Refused{"ENTRY e { c = token[] constant() }", "1:32: token[] has no constants"},
           Refused{"ENTRY e { p = f32[] parameter(0), metadata={op_name=x} }",
                   "1:53: expected a quoted string"},
           Refused{"ENTRY e { p = f32[] parameter(0), metadata={op_name=\"x} }",
                   "1:53: the string is not closed"},
           Refused{"ENTRY e { p = f32[] parameter(0), metadata={op_name=\"\\q\"} }",
                   "1:53: the string has an escape that does not exist"},
           Refused{"HloModule m, entry_computation_layout={(f32[3])->f32[2]}\nENTRY e { p = f32[2] "
                   "parameter(0) }",
                   "1:39: entry_computation_layout does not fit computation 'e'"},
           Refused{"f32[4] add(f32[4] x, f32[4] y) more",
                   "1:32: expected nothing after the instruction"},
       }) {
    EXPECT_EQ(FirstLine(ParseModule(c.text).status()), c.error) << c.text;
  }
}

TEST(ParserErrorTest, WhatTheVerifierFindsIsReported) {
  EXPECT_EQ(
      ErrorOf(
          ParseModule(
              "HloModule m, input_output_alias={ {}: (3, {}) }\nENTRY e { p = f32[] parameter(0) }")
              .status()),
      "alias of parameter 3: the entry has 1");
}

TEST(ParserErrorTest, DeepTextIsRefusedNotFollowed) {
  std::string operands, computations;
  for (int i = 0; i < 100000; ++i) operands += "negate(";
  EXPECT_THAT(
      FirstLine(ParseModule("ENTRY e { p = f32[] parameter(0) r = f32[] " + operands).status()),
      HasSubstr("operands are nested deeper than 100"));
  for (int i = 0; i < 100000; ++i)
    computations += "p = f32[] parameter(0) r = f32[] call(p), to_apply={";
  EXPECT_THAT(FirstLine(ParseModule("ENTRY e {" + computations).status()),
              HasSubstr("computations are nested deeper than 100"));
}

TEST(ParserTest, ManyComputationsInAChain) {
  std::string text = "f0 { p = f32[] parameter(0) }\n";
  for (int i = 1; i < 20000; ++i) {
    text += Str("f", i, " { p = f32[] parameter(0)\n ROOT r = f32[] call(p), to_apply=f", i - 1,
                " }\n");
  }
  const auto module = Parse(text);
  EXPECT_EQ(module->PostOrder().size(), 20000u);
  EXPECT_FALSE(module->entry()->root()->HasSideEffect());
  EXPECT_TRUE(Equal(*module, *module->Clone()));
}

}  // namespace
}  // namespace lazuli::hlo
