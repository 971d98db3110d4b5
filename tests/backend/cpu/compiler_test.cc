// What compiled programs look like: which thunks are chained, where arrays change their layout, and
// where they lie.
#include "backend/cpu/compiler.h"

#include <fstream>
#include <ranges>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/cpu/codegen/kernel.h"
#include "backend/cpu/runtime/library.h"
#include "tests/support/hlo_test.h"

namespace lazuli::cpu {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using testing::ElementsAre;

ThunkProgram Compile(std::string_view text) {
  CompileOptions options;
  options.num_threads = 2;
  auto program = CompileModule(ParseHlo(text), options);
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

std::string LeNetStep() {
  std::ifstream file("tests/backend/corpus/lenet_step.hlo");
  std::stringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

// Kinds of the thunks in each chain.
std::vector<std::vector<std::string>> Chains(const ThunkProgram& program) {
  std::vector<std::vector<std::string>> chains;
  for (const auto& thunk : program.entry().thunks) {
    if (thunk->members().empty()) continue;
    chains.emplace_back();
    for (const auto& member : thunk->members()) chains.back().emplace_back(member->info().kind);
  }
  return chains;
}

const Instruction* First(const ThunkProgram& program, Opcode opcode) {
  for (const Instruction* i : program.module->entry()->PostOrder())
    if (i->opcode() == opcode) return i;
  return nullptr;
}

// What lies on a path from `from` to `to`, without the ends.
std::vector<const Instruction*> Between(const ThunkProgram& program, const Instruction* from,
                                        const Instruction* to) {
  const std::vector<Instruction*> order = program.module->entry()->PostOrder();
  std::set<const Instruction*> after{from}, before{to};
  for (const Instruction* i : order) {
    for (const Instruction* operand : i->operands())
      if (after.contains(operand)) after.insert(i);
  }
  for (const Instruction* i : order | std::views::reverse) {
    if (before.contains(i)) before.insert(i->operands().begin(), i->operands().end());
  }
  std::vector<const Instruction*> between;
  for (const Instruction* i : order) {
    if (i != from && i != to && after.contains(i) && before.contains(i)) between.push_back(i);
  }
  return between;
}

bool Optimises() { return KernelsAvailable() && HasOneDnn(); }

TEST(CompilerTest, LeNetChangesNoLayoutBetweenTheFirstConvolutionAndTheFlatten) {
  if (!Optimises()) GTEST_SKIP() << "needs LLVM and oneDNN";
  const ThunkProgram program = Compile(LeNetStep());
  const Instruction* flatten = nullptr;
  for (const Instruction* i : program.module->entry()->PostOrder()) {
    if (i->opcode() == Opcode::kReshape && i->shape().rank() == 2) flatten = i;
    if (flatten != nullptr) break;
  }
  ASSERT_NE(flatten, nullptr);
  const auto between = Between(program, First(program, Opcode::kConvolution), flatten);
  std::vector<Opcode> opcodes;
  for (const Instruction* i : between) {
    if (i->opcode() != Opcode::kGetTupleElement) opcodes.push_back(i->opcode());
    if (i->opcode() != Opcode::kFusion) continue;
    for (const auto& inner : i->to_apply()->instructions())
      EXPECT_NE(inner->opcode(), Opcode::kCopy) << i->name();
  }
  // Bias and ReLU, convolution, bias and ReLU, pooling, and the one reorder that flattening needs.
  EXPECT_THAT(opcodes, ElementsAre(Opcode::kFusion, Opcode::kConvolution, Opcode::kFusion,
                                   Opcode::kFusion, Opcode::kCopy));
  EXPECT_EQ(program.stats.reorders, 2);  // and one for the gradient on its way back
}

// A step of three images: what is no product or convolution is fused into as many loops.
TEST(CompilerTest, LeNetIsSoManyKernelsAndCalls) {
  if (!Optimises()) GTEST_SKIP() << "needs LLVM and oneDNN";
  const ThunkProgram program = Compile(LeNetStep());
  EXPECT_EQ(program.stats.kernels, 23);
  EXPECT_EQ(program.stats.library_calls, 11);
  EXPECT_EQ(program.stats.evaluator_thunks, 0);
}

TEST(CompilerTest, WhatFollowsAConvolutionIsDoneImageByImage) {
  if (!Optimises()) GTEST_SKIP() << "needs LLVM and oneDNN";
  const ThunkProgram program = Compile(LeNetStep());
  // From the first ReLU to the reorder; three images do not fill parts of the first convolution.
  EXPECT_THAT(Chains(program),
              ElementsAre(ElementsAre("kernel", "convolution", "kernel", "kernel", "copy")));
}

TEST(CompilerTest, RowsOfAProductGetTheirBiasAndActivationAtOnce) {
  if (!Optimises()) GTEST_SKIP() << "needs LLVM and oneDNN";
  const ThunkProgram program = Compile(R"(
    ENTRY main {
      x = f32[512,64] parameter(0)
      w = f32[64,96] parameter(1)
      b = f32[96] parameter(2)
      d = f32[512,96] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      c = f32[512,96] broadcast(b), dimensions={1}
      s = f32[512,96] add(d, c)
      ROOT t = f32[512,96] tanh(s)
    })");
  EXPECT_THAT(Chains(program), ElementsAre(ElementsAre("matmul", "kernel")));
}

// The sum over the batch needs all images.
TEST(CompilerTest, AReductionOverTheBatchEndsAChain) {
  if (!Optimises()) GTEST_SKIP() << "needs LLVM and oneDNN";
  const ThunkProgram program = Compile(R"(
    add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
    ENTRY main {
      x = f32[8,16,20,20] parameter(0)
      w = f32[16,16,3,3] parameter(1)
      zero = f32[] constant(0)
      c = f32[8,16,18,18] convolution(x, w), window={size=3x3}, dim_labels=bf01_oi01->bf01
      n = f32[8,16,18,18] negate(c)
      s = f32[16] reduce(c, zero), dimensions={0,2,3}, to_apply=add
      b = f32[8,16,18,18] broadcast(s), dimensions={1}
      ROOT r = f32[8,16,18,18] multiply(n, b)
    })");
  EXPECT_THAT(Chains(program), ElementsAre(ElementsAre("copy", "convolution")));
}

// The gradient of pooling lies where the pooled array did, which nobody needs any more.
TEST(CompilerTest, TheGradientOfPoolingTakesThePooledArraysMemory) {
  if (!KernelsAvailable()) GTEST_SKIP() << "needs LLVM";
  const ThunkProgram program = Compile(R"(
    ge { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = pred[] compare(a, b), direction=GE }
    add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
    ENTRY main {
      x = f32[64,64] parameter(0)
      s = f32[32,32] parameter(1)
      zero = f32[] constant(0)
      e = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      g = f32[64,64] select-and-scatter(e, s, zero), window={size=2x2 stride=2x2}, select=ge, scatter=add
      ROOT d = f32[64,64] dot(g, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    })");
  std::set<int64_t> offsets;
  for (const BufferUse& use : program.entry().thunks[1]->uses()) {
    if (!use.in_place) continue;
    for (const FrameBuffer& temporary : program.entry().temporaries)
      if (temporary.buffer == use.buffer) offsets.insert(temporary.offset);
  }
  EXPECT_EQ(program.entry().thunks[1]->info().kind, "kernel");
  EXPECT_EQ(offsets.size(), 1U);
}

// As many bytes, but each result would cover an element that is still to be read.
TEST(CompilerTest, WiderResultsTakeNoOperandsMemory) {
  if (!KernelsAvailable()) GTEST_SKIP() << "needs LLVM";
  const auto offsets = [](std::string_view result) {
    const ThunkProgram program = Compile(Str(R"(
      less_s32 { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT r = pred[] compare(a, b), direction=LT }
      less_s64 { a = s64[] parameter(0)  b = s64[] parameter(1)  ROOT r = pred[] compare(a, b), direction=LT }
      ENTRY main {
        x = f32[4,4] parameter(0)
        v = f32[4] parameter(1)
        e = f32[4] dot(x, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        )",
                                             result, "}"));
    std::set<int64_t> found;
    for (const auto& thunk : program.entry().thunks) {
      if (thunk->info().kind != "kernel") continue;
      for (const BufferUse& use : thunk->uses()) {
        for (const FrameBuffer& temporary : program.entry().temporaries)
          if (temporary.buffer == use.buffer) found.insert(temporary.offset);
      }
    }
    return found.size();
  };
  EXPECT_EQ(offsets(R"(
        s = f32[2] slice(e), slice={[0:2]}
        r = s64[2] convert(s)
        ROOT d = s64[2] sort(r), dimensions={0}, to_apply=less_s64)"),
            2U);
  EXPECT_EQ(offsets(R"(
        r = s32[4] convert(e)
        ROOT d = s32[4] sort(r), dimensions={0}, to_apply=less_s32)"),
            1U);
}

TEST(CompilerTest, AChainWorksInPlaceWhereEachPartDoes) {
  if (!Optimises()) GTEST_SKIP() << "needs LLVM and oneDNN";
  const ThunkProgram program = Compile(R"(
    ENTRY main {
      x = f32[8,16,20,20] parameter(0)
      w = f32[16,16,3,3] parameter(1)
      c = f32[8,16,18,18] convolution(x, w), window={size=3x3}, dim_labels=bf01_oi01->bf01
      n = f32[8,16,18,18] negate(c)
      d = f32[8,16,16,16] convolution(n, w), window={size=3x3}, dim_labels=bf01_oi01->bf01
      ROOT e = f32[8,16,16,16] exponential(d)
    })");
  ASSERT_EQ(Chains(program).size(), 1U);
  // Packed weights come on top; the negated array lies where the convolution's result did.
  const int64_t one = 8 * 16 * 18 * 18 * 4, two = 8 * 16 * 16 * 16 * 4, x = 8 * 16 * 20 * 20 * 4;
  EXPECT_LT(program.entry().frame_bytes, x + one + two + 200000);
}

// Conditionals with the same conditional in both of their branches, and so on.
std::string NestedConditionals(int depth) {
  std::string text = "c0 { p = f32[8] parameter(0) ROOT r = f32[8] add(p, p) }\n";
  for (int k = 1; k < depth; ++k) {
    text += Str("c", k, " { p = f32[8] parameter(0) k = f32[] constant(", k, ") b = f32[8] ",
                "broadcast(k), dimensions={} q = f32[8] subtract(p, b) s = f32[1] slice(p), ",
                "slice={[0:1]} t = f32[] reshape(s) g = pred[] compare(t, k), direction=GT ROOT r ",
                "= f32[8] conditional(g, q, p), true_computation=c", k - 1, ", false_computation=c",
                k - 1, " }\n");
  }
  return text + Str("ENTRY e { p = f32[8] parameter(0) ROOT r = f32[8] call(p), to_apply=c",
                    depth - 1, " }");
}

TEST(CompilerTest, EqualBranchesAreCompiledOnce) {
  const int64_t one = Compile(NestedConditionals(4)).stats.kernels;
  const int64_t more = Compile(NestedConditionals(12)).stats.kernels;
  EXPECT_LE(more, 3 * one + 3) << "not 2^8 times as many";
}

// Below some level the evaluator goes on. Time that grows with the cube of the depth would not
// end.
TEST(CompilerTest, DeepNestsCompile) {
  EXPECT_GT(Compile(NestedConditionals(400)).stats.kernels, 0);
}

// Loops and branches have sequences of thunks over the program's one table, each with a frame.
TEST(CompilerTest, ALoopsBodyIsASequenceOfTheSameProgram) {
  if (!KernelsAvailable()) GTEST_SKIP() << "needs LLVM";
  const ThunkProgram program = Compile(R"(
    goes_on { s = (f32[64,64], f32[]) parameter(0)
      x = f32[] get-tuple-element(s), index=1
      zero = f32[] constant(0)
      ROOT r = pred[] compare(x, zero), direction=GT }
    body { s = (f32[64,64], f32[]) parameter(0)
      p = f32[64,64] get-tuple-element(s), index=0
      x = f32[] get-tuple-element(s), index=1
      d = f32[64,64] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      t = f32[64,64] tanh(d)
      e = f32[64,64] dot(t, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      one = f32[] constant(1)
      y = f32[] subtract(x, one)
      ROOT r = (f32[64,64], f32[]) tuple(e, y) }
    ENTRY main { p = f32[64,64] parameter(0)
      n = f32[] constant(3)
      s = (f32[64,64], f32[]) tuple(p, n)
      w = (f32[64,64], f32[]) while(s), condition=goes_on, body=body
      ROOT r = f32[64,64] get-tuple-element(w), index=0 })");
  ASSERT_EQ(program.sequences.size(), 3U);
  const bool first = program.sequences[1]->name == "body";
  const ThunkSequence& body = *program.sequences[first ? 1 : 2];
  EXPECT_EQ(body.name, "body");
  EXPECT_GE(body.frame_bytes, 64 * 64 * 4);
  EXPECT_GE(program.entry().frame_bytes, body.frame_bytes) << "the frame lies in the caller's";
  for (const FrameBuffer& temporary : body.temporaries)
    EXPECT_EQ(program.slot(temporary.buffer).sequence, body.index);
  EXPECT_EQ(program.stats.evaluator_thunks, 0);
}

}  // namespace
}  // namespace lazuli::cpu
