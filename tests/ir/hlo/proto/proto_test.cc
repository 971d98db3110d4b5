// HloModuleProto: what is written reads back equal, and no bytes do harm.
#include "ir/hlo/proto/proto.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>
#include <protozero/pbf_writer.hpp>

#include "ir/hlo/text/printer.h"
#include "ir/hlo/verifier.h"
#include "tests/ir/hlo/hlo_text.h"

namespace lazuli::hlo {
namespace {

std::unique_ptr<Module> Parse(std::string_view text) {
  auto module = ParseModule(text);
  EXPECT_TRUE(module.ok()) << module.status();
  return *std::move(module);
}

// Everything but what has no field: names of threads, attributes about debugging.
void ExpectRoundTrip(const std::string& text) {
  const auto module = Parse(text);
  const auto again = ParseModuleProto(SerializeModuleProto(*module));
  ASSERT_TRUE(again.ok()) << again.status() << "\n" << text;
  EXPECT_EQ(ToString(**again), ToString(*module));
}

TEST(ProtoTest, JaxlibsModulesRoundTrip) {
  for (const auto& [name, text] : SampleTexts()) {
    SCOPED_TRACE(name);
    ExpectRoundTrip(text);
  }
}

TEST(ProtoTest, EveryUseOfAnOpcodeRoundTrips) {
  for (const auto& [name, text] : OpcodeTexts()) {
    SCOPED_TRACE(name);
    if (name == "topk old") continue;  // its comparator has no field any more
    ExpectRoundTrip(text);
  }
}

TEST(ProtoTest, WhatIsKeptForOthersRoundTrips) {
  constexpr const char* kAttributes[] = {
      "sharding={replicated}",
      "sharding={maximal device=3}",
      "sharding={manual}",
      "sharding={devices=[2,2]0,1,2,3}",
      "sharding={devices=[2,2]0,1,2,3 shard_as 3}",
      "sharding={devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate shard_like 7}",
      "sharding={devices=[1,2,2]<=[4] last_tile_dims={manual, replicated}}",
      "sharding={replicated metadata={op_name=\"x\" source_file=\"f.py\" source_line=4}}",
      "sharding={replicated metadata={{op_name=\"x\"}, {op_type=\"t\"}}}",
      "sharding={{replicated}, {mesh['a'=2], [{'a'}]}, {maximal_mesh[device_id=0]}}",
      "sharding={maximal_mesh[device_id=3]}",
      "sharding={mesh['x'=2], replicated}",
      "sharding={mesh['a'=2,'b'=2], device_ids=(3,2,1,0), [{'a', ?}, {}], replicated={'b'}}",
      "sharding={mesh['a'=4,'b'=2], device_ids=([2,4]T(1,0)), [{'a':(1)2, 'b'}, {'a':(2)2}]}",
      "sharding={mesh['a'=4,'b'=2], [{?}, {}], unreduced={'b'}, manual={'a'}}",
      "sharding={mesh['a'=4], [{'a'}, {}], metadata={{op_name=\"x\"}}}",
      "origin={{\"x\"}}",
      "origin={{\"t\" {0,1}}}",
      "origin={({\"a\"}, ({\"b\" {1}}, {}))}",
      "origin={[synthetic_call]}",
      "statistics={visualizing_index=1,a=1.5,b=2}",
      "frontend_attributes={k=\"v\",z={a = 1 : i32}}",
      "result_accuracy={mode=highest}",
      "result_accuracy={tolerance={atol=0.1, rtol=0.25, ulps=3}}",
      "backend_config={\"a\":1}",
      "backend_config=\"text\"",
  };
  for (const char* attribute : kAttributes) {
    ExpectRoundTrip(
        Str("ENTRY e { x = f32[4,4] parameter(0)\n ROOT r = f32[4,4] tanh(x), ", attribute, " }"));
  }
  for (const char* attribute :
       {"is_scheduled=true", "buffer_donor={ (0, {}), (1, {2,0}) }",
        "frontend_attributes={a=\"b\"}",
        "input_output_alias={ {0}: (0, {}, must-alias), {1,0}: (1, {2}, may-alias) }"}) {
    ExpectRoundTrip(Str("HloModule m, ", attribute, R"(
ENTRY e { x = f32[] parameter(0)
  y = (f32[], f32[], f32[]) parameter(1)
  t = (f32[]) tuple(x)
  ROOT r = (f32[], (f32[])) tuple(x, t) })"));
  }
}

TEST(ProtoTest, LiteralsOfEveryType) {
  for (int t = 0; t < kNumArrayDTypes; ++t) {
    const auto dtype = static_cast<DType>(t);
    if (dtype == DType::kF8E8M0FNU) continue;  // has no zero
    std::string zero = "0", one = "1";
    if (IsComplex(dtype)) zero = "(0, -1)", one = "(1, 0.5)";
    ExpectRoundTrip(Str("HloModule m\nENTRY e { ROOT c = ", DTypeText(dtype), "[2,2] constant({{",
                        zero, ",", one, "},{", one, ",", zero, "}}) }"));
  }
}

TEST(ProtoTest, ThePublicFieldNumbers) {
  const std::string bytes =
      SerializeModuleProto(*Parse("HloModule m\nENTRY e { ROOT p = s4[2] parameter(0) }"));
  EXPECT_EQ(bytes.substr(0, 6), (std::string{0x0a, 1, 'm', 0x12, 1, 'e'}));
  EXPECT_NE(bytes.find("\x12\x09parameter"), std::string::npos);
  EXPECT_NE(bytes.find(std::string("\x10\x15\x1a\x01\x02", 5)), std::string::npos);  // s4[2]
}

std::string ParseError(std::string_view bytes) {
  const auto module = ParseModuleProto(bytes);
  EXPECT_FALSE(module.ok());
  return std::string(Message(module.status()));
}

// A module of one computation "e" with these instructions.
template <class F>
std::string ModuleOf(F&& instructions, int64_t root = 1) {
  std::string bytes;
  protozero::pbf_writer module(bytes);
  {
    protozero::pbf_writer computation(module, 3);
    computation.add_string(1, "e");
    instructions(computation);
    computation.add_int64(5, 7);
    computation.add_int64(6, root);
  }
  module.add_int64(6, 7);
  return bytes;
}

template <class F>
void AddInstruction(protozero::pbf_writer& computation, const char* name, const char* opcode,
                    int64_t id, F&& fields) {
  protozero::pbf_writer i(computation, 2);
  i.add_string(1, name);
  i.add_string(2, opcode);
  {
    protozero::pbf_writer shape(i, 3);
    shape.add_int64(2, 11);
  }
  i.add_int64(35, id);
  fields(i);
}

TEST(ProtoTest, ErrorsNameThePlace) {
  EXPECT_EQ(ParseError(""), "the bytes are not an HloModuleProto: they have no computation");
  EXPECT_EQ(ParseError("nonsense").find("the bytes are not an HloModuleProto: "), 0u);
  const auto nothing = [](protozero::pbf_writer&) {};
  EXPECT_EQ(ParseError(ModuleOf(nothing)), "e: the root has id 1, which no instruction has");
  EXPECT_EQ(ParseError(ModuleOf([&](auto& c) { AddInstruction(c, "x", "ad", 1, nothing); })),
            "e: x: unknown opcode 'ad'");
  EXPECT_EQ(ParseError(ModuleOf([&](auto& c) {
              AddInstruction(c, "x", "negate", 1, [](auto& i) { i.add_int64(36, 2); });
            })),
            "e: x: computation e has no instruction of id 2 before this");
  EXPECT_EQ(ParseError(ModuleOf([&](auto& c) {
              AddInstruction(c, "x", "parameter", 1, [](auto& i) { i.add_int64(9, 1 << 30); });
            })),
            "e: x: parameter number 1073741824 is out of range");
  EXPECT_EQ(ParseError(ModuleOf([&](auto& c) { AddInstruction(c, "x", "constant", 1, nothing); })),
            "e: x: the constant has no value");
  EXPECT_EQ(ParseError(ModuleOf([&](auto& c) {
              AddInstruction(c, "x", "parameter", 1, nothing);
              AddInstruction(c, "y", "negate", 1, [](auto& i) { i.add_int64(36, 1); });
            })),
            "e: y: two instructions have id 1");
  EXPECT_EQ(ParseError(ModuleOf([&](auto& c) {
              AddInstruction(c, "x", "parameter", 1, [](auto& i) { i.add_string(9, "0"); });
            })),
            "e: x: field 9 has wire type 2, not 0");
  EXPECT_EQ(ParseError(ModuleOf([&](auto& c) {
              AddInstruction(c, "x", "reduce", 1, [](auto& i) { i.add_int64(38, 3); });
            })),
            "e: x: there is no computation of id 3 before this");
  std::string other = ModuleOf([&](auto& c) { AddInstruction(c, "x", "parameter", 1, nothing); });
  protozero::pbf_writer(other).add_message(4, std::string("\x12\x02\x10\x01"));  // -> pred[]
  EXPECT_EQ(ParseError(other), "host_program_shape does not fit computation e");
}

// A shape of 32 bytes may declare terabytes, and tuples may lie in tuples without end.
TEST(ProtoTest, ShapesAreBounded) {
  const auto with_shape = [](const std::string& shape) {
    return ModuleOf([&](auto& c) {
      AddInstruction(c, "x", "parameter", 1, [&](auto& i) { i.add_message(3, shape); });
    });
  };
  std::string large;
  protozero::pbf_writer(large).add_int64(2, 11);
  const int64_t dims[] = {1000000, 1000000};
  protozero::pbf_writer(large).add_packed_int64(3, std::begin(dims), std::end(dims));
  EXPECT_EQ(ParseError(with_shape(large)),
            "e: x: f32[1000000,1000000] is larger than 1099511627776 bytes");
  std::string deep;
  for (int i = 0; i < 100000; ++i) {
    std::string outer;
    protozero::pbf_writer shape(outer);
    shape.add_int64(2, 13);
    if (!deep.empty()) shape.add_message(4, deep);
    deep = i < 1000 ? outer : deep;
  }
  EXPECT_EQ(ParseError(with_shape(deep)), "e: x: tuples are nested deeper than 64");
}

TEST(ProtoTest, DamagedBytesAreRefusedOrMakeAValidModule) {
  std::mt19937 random(4);
  std::vector<std::string> modules;
  for (const auto& [name, text] : OpcodeTexts())
    modules.push_back(SerializeModuleProto(*Parse(text)));
  for (int round = 0; round < 20; ++round) {
    for (std::string bytes : modules) {
      for (std::size_t n = random() % 3 + 1; n > 0; --n)
        bytes[random() % bytes.size()] = static_cast<char>(random());
      if (random() % 4 == 0) bytes.resize(random() % bytes.size());
      const auto module = ParseModuleProto(bytes);
      if (!module.ok()) continue;
      EXPECT_TRUE(Verify(**module).ok());
      EXPECT_TRUE(ParseModuleProto(SerializeModuleProto(**module)).ok());
      EXPECT_TRUE(ParseModule(ToString(**module)).ok()) << ToString(**module);
    }
  }
}

}  // namespace
}  // namespace lazuli::hlo
