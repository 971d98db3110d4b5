// Control flow, errors, custom calls, long programs.

#include "ir/evaluator/evaluator.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "ir/evaluator/custom_calls.h"
#include "tests/ir/evaluator/run.h"
#include "tests/support/small_stack.h"

namespace lazuli {
namespace {

using ir::Literal;
using ir::Str;
using testing::HasSubstr;

TEST(EvaluatorTest, WhileRunsUntilItsConditionFails) {
  EXPECT_EQ(EvalText(R"(
    cond { s = (s32[], s32[]) parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] constant(5)
           ROOT r = pred[] compare(i, n), direction=LT }
    body { s = (s32[], s32[]) parameter(0) i = s32[] get-tuple-element(s), index=0 x = s32[] get-tuple-element(s), index=1
           one = s32[] constant(1) j = s32[] add(i, one) y = s32[] multiply(x, j) ROOT t = (s32[], s32[]) tuple(j, y) }
    ENTRY e { z = s32[] constant(0) o = s32[] constant(1) s = (s32[], s32[]) tuple(z, o)
      ROOT r = (s32[], s32[]) while(s), condition=cond, body=body })"),
            "( 5, 120 )");
}

// Values of XLA's CPU for these scans.
TEST(EvaluatorTest, ScanCarriesFromOnePositionToTheNext) {
  constexpr std::string_view kScan = R"(
    f { x = f32[] parameter(0) c = f32[] parameter(1) s = f32[] add(x, c) p = f32[] multiply(s, x)
        ROOT r = (f32[], f32[]) tuple(p, s) }
    ENTRY e { x = f32[4] constant({1, 2, 3, 4}) c = f32[] constant(10)
      ROOT r = (f32[4], f32[]) scan(x, c), dimensions={0}, num_carries=1, to_apply=f)";
  EXPECT_EQ(EvalText(ir::Str(kScan, " }")), "( {11, 26, 48, 80}, 20 )");
  EXPECT_EQ(EvalText(ir::Str(kScan, ", is_reverse=true }")), "( {20, 38, 51, 56}, 20 )");
}

TEST(EvaluatorTest, ScanAlongAnyDimensionAndWithoutInputs) {
  EXPECT_EQ(EvalText(R"(
    f { x = s32[2] parameter(0) c = s32[2] parameter(1) s = s32[2] add(x, c) ROOT r = (s32[2], s32[2]) tuple(s, s) }
    ENTRY e { x = s32[2,3] constant({{1, 2, 3}, {4, 5, 6}}) c = s32[2] constant({0, 100})
      ROOT r = (s32[2,3], s32[2]) scan(x, c), dimensions={1}, num_carries=1, is_associative=true, to_apply=f })"),
            "( { { 1, 3, 6 }, { 104, 109, 115 } }, {6, 115} )");
  EXPECT_EQ(EvalText(R"(
    f { c = s32[] parameter(0) s = s32[] add(c, c) ROOT r = (s32[], s32[]) tuple(s, s) }
    ENTRY e { c = s32[] constant(1)
      ROOT r = (s32[4], s32[]) scan(c), dimensions={0}, num_carries=1, to_apply=f })"),
            "( {2, 4, 8, 16}, 16 )");
}

TEST(EvaluatorTest, RaggedAllToAllOfOneDeviceMovesSlicesOfRows) {
  constexpr std::string_view kExchange = R"(
    ENTRY e { x = s32[4,2] constant({{1, 2}, {3, 4}, {5, 6}, {7, 8}}) y = s32[3,2] constant({{0, 0}, {0, 0}, {0, 0}})
      from = s32[2] constant({3, 0}) size = s32[2] constant({1, 2}) to = s32[2] parameter(0)
      ROOT r = s32[3,2] ragged-all-to-all(x, y, from, size, to, size), replica_groups={{0}} })";
  EXPECT_EQ(EvalText(kExchange, {Literal::FromValues<int32_t>({2}, {0, 1})}),
            "{ { 7, 8 }, { 1, 2 }, { 3, 4 } }");
  EXPECT_THAT(ErrorOf(kExchange, {Literal::FromValues<int32_t>({2}, {0, 2})}),
              HasSubstr("slice 1 of 2 rows from 0 to 2 is not within s32[4,2] and s32[3,2]"));
}

constexpr char kBranches[] = R"(
    a { x = s32[] parameter(0) ROOT r = s32[] negate(x) }
    b { x = s32[] parameter(0) ROOT r = s32[] add(x, x) }
    ENTRY e { i = s32[] parameter(0) x = s32[] constant(7)
      ROOT r = s32[] conditional(i, x, x), branch_computations={a, b} })";

TEST(EvaluatorTest, ConditionalPicksABranch) {
  EXPECT_EQ(EvalText(kBranches, {Literal::Scalar(0)}), "-7");
  EXPECT_EQ(EvalText(kBranches, {Literal::Scalar(1)}), "14");
  EXPECT_EQ(EvalText(kBranches, {Literal::Scalar(-1)}), "14") << "out of range is the last branch";
  EXPECT_EQ(EvalText(R"(
    a { x = s32[] parameter(0) ROOT r = s32[] negate(x) }
    b { x = s32[] parameter(0) ROOT r = s32[] add(x, x) }
    ENTRY e { i = pred[] constant(true) x = s32[] constant(7)
      ROOT r = s32[] conditional(i, x, x), true_computation=a, false_computation=b })"),
            "-7");
}

TEST(EvaluatorTest, CallMapAndFusion) {
  EXPECT_EQ(EvalText(R"(
    f { x = s32[] parameter(0) y = s32[] parameter(1) d = s32[] subtract(x, y) ROOT r = s32[] multiply(d, x) }
    g { x = s32[3] parameter(0) ROOT r = s32[3] negate(x) }
    ENTRY e { a = s32[3] constant({5, 6, 7}) b = s32[3] constant({1, 2, 3})
      m = s32[3] map(a, b), dimensions={0}, to_apply=f
      n = s32[3] call(m), to_apply=g
      ROOT r = s32[3] fusion(n), kind=kLoop, calls=g })"),
            "{20, 24, 28}");
}

TEST(EvaluatorTest, ErrorsNameInstructionAndSource) {
  EXPECT_EQ(ErrorOf(R"(ENTRY e { x = f32[] constant(1)
    ROOT r = f32[] custom-call(x), custom_call_target="nowhere", metadata={op_type="aten::foo" op_name="model/foo" source_file="train.py" source_line=31} })"),
            "model/foo: no custom call named \"nowhere\" is registered (train.py:31)");
  EXPECT_EQ(ErrorOf(R"(
    f { x = f32[] parameter(0) ROOT bad = f32[] custom-call(x), custom_call_target="nowhere" }
    ENTRY e { x = f32[] constant(1) ROOT r = f32[] call(x), to_apply=f, metadata={source_file="outer.py" source_line=1} })"),
            "custom-call %bad: no custom call named \"nowhere\" is registered");
}

TEST(EvaluatorTest, ArgumentsAreChecked) {
  const char* identity = "ENTRY main { ROOT p = f32[2] parameter(0) }";
  EXPECT_EQ(ErrorOf(identity), "main takes 1 arguments, not 0");
  EXPECT_EQ(ErrorOf(identity, {Literal::Scalar(1.0f)}), "main: argument 0 is f32[], not f32[2]");
}

constexpr char kCheck[] = R"(ENTRY e { i = s64[3] parameter(0) n = s64[] constant(10)
    ROOT r = s64[3] custom-call(i, n), custom_call_target="lazuli.check_index_range", custom_call_has_side_effect=true,
      metadata={op_type="aten::nll_loss" source_file="train.py" source_line=7} })";

TEST(CustomCallTest, CheckIndexRangeReturnsItsIndicesOrFails) {
  EXPECT_EQ(EvalText(kCheck, {Literal::FromValues<int64_t>({3}, {0, 9, 5})}), "{0, 9, 5}");
  auto failed = TryEval(kCheck, {Literal::FromValues<int64_t>({3}, {0, 12, -1})});
  EXPECT_EQ(failed.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(ir::Message(failed.status()),
            "aten::nll_loss: index 12 is out of range [0, 10) (train.py:7)");
  EXPECT_EQ(ErrorOf(kCheck, {Literal::FromValues<int64_t>({3}, {0, 1, -1})}),
            "aten::nll_loss: index -1 is out of range [0, 10) (train.py:7)");
}

TEST(CustomCallTest, ShardingIsTheIdentity) {
  EXPECT_EQ(EvalText(R"(ENTRY e { x = f32[2] constant({1, 2})
    ROOT r = f32[2] custom-call(x), custom_call_target="Sharding" })"),
            "{1, 2}");
}

TEST(CustomCallTest, RegisteredTargetsRunAndAreChecked) {
  hlo::RegisterCustomCall("twice",
                          [](const hlo::Instruction&,
                             absl::Span<const Literal* const> operands) -> absl::StatusOr<Literal> {
                            return Literal::Scalar(2 * operands[0]->data<float>()[0]);
                          });
  EXPECT_EQ(EvalText("ENTRY e { x = f32[] constant(4) ROOT r = f32[] custom-call(x), "
                     "custom_call_target=\"twice\" }"),
            "8");
  EXPECT_THAT(ErrorOf("ENTRY e { x = f32[] constant(4) ROOT r = f32[2] custom-call(x), "
                      "custom_call_target=\"twice\" }"),
              HasSubstr("custom call \"twice\" returned f32[], not f32[2]"));
}

TEST(EvaluatorTest, CollectivesOfOneProcessAreIdentities) {
  EXPECT_EQ(EvalText(R"(
    add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
    ENTRY e { x = f32[2] constant({1, 2}) y = f32[2] all-reduce(x), replica_groups={}, to_apply=add
      r = u32[] replica-id() f = f32[] convert(r) b = f32[2] broadcast(f), dimensions={} ROOT z = f32[2] add(y, b) })"),
            "{1, 2}");
}

std::string Collective(std::string_view call) {
  return "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"
         "ENTRY e { x = f32[2] constant({1, 2}) ROOT r = " +
         std::string(call) + " }";
}

TEST(EvaluatorTest, CollectivesOfOneParticipantAreIdentities) {
  constexpr auto* kAllReduceByGlobalIds =
      "f32[2] all-reduce(x), replica_groups={{0}}, channel_id=1, use_global_device_ids=true, "
      "to_apply=add";
  for (std::string_view call :
       {"f32[2] all-reduce(x), replica_groups={{1,2},{0}}, to_apply=add", kAllReduceByGlobalIds,
        "f32[2] all-reduce(x), replica_groups=[2,1]<=[2], to_apply=add",
        "f32[2] all-gather(x), replica_groups={{0}}, dimensions={0}",
        "f32[2] reduce-scatter(x), replica_groups={}, dimensions={0}, to_apply=add",
        "f32[2] all-to-all(x), replica_groups={{0}}, dimensions={0}",
        "f32[2] collective-permute(x), source_target_pairs={{0,0},{1,2}}",
        "f32[2] collective-broadcast(x), replica_groups={{0}}"}) {
    EXPECT_EQ(EvalText(Collective(call)), "{1, 2}") << call;
  }
  for (std::string_view call : {"f32[2] collective-permute(x), source_target_pairs={}",
                                "f32[2] collective-permute(x), source_target_pairs={{1,2}}",
                                "f32[2] collective-broadcast(x), replica_groups={{1,2}}"}) {
    EXPECT_EQ(EvalText(Collective(call)), "{0, 0}") << call;
  }
}

TEST(EvaluatorTest, CollectivesOfSeveralParticipantsAreErrors) {
  struct Case {
    std::string_view call, error;
  };
  for (const Case& c :
       {Case{"f32[2] all-reduce(x), replica_groups={{0,1}}, to_apply=add",
             "all-reduce %r: all-reduce between 2 devices, replica_groups={{0,1}}; this program "
             "runs on one"},
        Case{"f32[2] all-reduce(x), replica_groups=[2,4]<=[8], to_apply=add",
             "between 4 devices, replica_groups=[2,4]<=[8]"},
        Case{"f32[4] all-gather(x), replica_groups={{0,1}}, dimensions={0}", "between 2 devices"},
        Case{"f32[4] all-gather(x), replica_groups={{0}}, dimensions={0}",
             "all-gather makes f32[2], not f32[4]"},
        Case{"f32[1] reduce-scatter(x), replica_groups={{1,0}}, dimensions={0}, to_apply=add",
             "between 2 devices"},
        Case{"(f32[2], f32[2]) all-to-all(x, x), replica_groups={{0,1}}", "between 2 devices"},
        Case{"f32[2] all-reduce(x), replica_groups={{1,2}}, to_apply=add",
             "device 0 is in none of the groups, replica_groups={{1,2}}"},
        Case{"f32[2] collective-permute(x), source_target_pairs={{0,1},{1,0}}",
             "between 2 devices, source_target_pairs={{0,1},{1,0}}; this program runs on one"},
        Case{"f32[2] all-reduce(x), replica_groups={{0,0}}, to_apply=add",
             "replica_groups={{0,0}} are not groups of devices: 0 is there twice"}}) {
    EXPECT_THAT(ErrorOf(Collective(c.call)), HasSubstr(c.error)) << c.call;
  }
}

// Empty groups are everybody, whom the header counts.
TEST(EvaluatorTest, CollectivesOfEverybodyAskTheModuleHowManyThatAre) {
  const auto all_reduce = [](std::string_view header, std::string_view attributes) {
    return "HloModule m, " + std::string(header) + "\n" +
           Collective("f32[2] all-reduce(x), to_apply=add, replica_groups={}" +
                      std::string(attributes));
  };
  EXPECT_EQ(EvalText(all_reduce("num_partitions=4", "")), "{1, 2}");
  EXPECT_THAT(ErrorOf(all_reduce("replica_count=2", "")), HasSubstr("between 2 devices"));
  EXPECT_THAT(ErrorOf(all_reduce("num_partitions=4", ", channel_id=1")),
              HasSubstr("between 4 devices"));
}

TEST(EvaluatorTest, AsynchronousCallsRunAtTheirStart) {
  EXPECT_EQ(EvalText(R"(
    f { x = f32[2] parameter(0) ROOT r = f32[2] negate(x) }
    ENTRY e { x = f32[2] constant({1, 2})
      s = ((f32[2]), f32[2], u32[]) async-start(x), calls=f
      u = ((f32[2]), f32[2], u32[]) async-update(s)
      ROOT r = f32[2] async-done(u) })"),
            "{-1, -2}");
}

TEST(EvaluatorTest, LongChainsNeedNoStackAndLittleMemory) {
  hlo::Module module("chain");
  hlo::Computation* entry = module.AddComputation("main");
  module.set_entry(entry);
  const ir::Shape shape(ir::DType::kS32, {1 << 16});
  hlo::Instruction* x = entry->AddParameter(0, shape);
  hlo::Instruction* sum = x;
  // 20,000 values of 256 KiB would be 5 GiB together.
  for (int i = 0; i < 20000; ++i) sum = entry->Add(hlo::Opcode::kAdd, shape, {sum, x});
  const Literal one = Literal::Full(shape, 1);
  auto result = hlo::Evaluate(module, {&one});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->data<int32_t>()[77], 20001);
}

// A computation "c<depth - 1>" that calls the one below by `call`, and so on.
std::string Nest(int depth, std::string_view innermost, std::string_view call) {
  std::string text = Str("c0 { p = s32[2] parameter(0) ROOT r = s32[2] ", innermost, " }\n");
  for (int k = 1; k < depth; ++k) {
    text += Str("c", k, " { p = s32[2] parameter(0) one = s32[] constant(1) b = s32[2] ",
                "broadcast(one), dimensions={} q = s32[2] add(p, b) yes = pred[] constant(true) ",
                "ROOT r = s32[2] ", call, "c", k - 1, " }\n");
  }
  return text + Str("ENTRY e { yes = pred[] constant(true) q = s32[2] constant({0, 0}) ",
                    "ROOT r = s32[2] ", call, "c", depth - 1, " }");
}

TEST(EvaluatorTest, NestsOfCallsBranchesAndLoopsNeedNoStack) {
  test::RunInSmallStack([] {
    const int depth = 6500;
    EXPECT_EQ(EvalText(Nest(depth, "negate(p)", "call(q), to_apply=")), "{-6499, -6499}");
    EXPECT_EQ(EvalText("leaf { p = s32[2] parameter(0) ROOT r = s32[2] negate(p) }\n" +
                       Nest(depth, "negate(p)",
                            "conditional(yes, q, q), false_computation=leaf, true_computation=")),
              "{-6499, -6499}");
    // One turn of each loop: the state is {turns left, ...} of which the body leaves none.
    EXPECT_EQ(EvalText("any { p = s32[2] parameter(0) s = s32[1] slice(p), slice={[0:1]} "
                       "v = s32[] reshape(s) z = s32[] constant(0) "
                       "ROOT r = pred[] compare(v, z), direction=GE }\n" +
                       Nest(depth, "negate(p)", "while(q), condition=any, body=")),
              "{-6499, -6499}");
  });
}

// A reduction whose reducer is a reduction whose reducer ...
std::string NestOfReductions(int depth) {
  std::string text =
      "c0 { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] add(a, b) }\n";
  for (int k = 1; k < depth; ++k) {
    text += Str("c", k, " { a = s32[] parameter(0) b = s32[] parameter(1) v = s32[1] reshape(b) ",
                "ROOT r = s32[] reduce(v, a), dimensions={0}, to_apply=c", k - 1, " }\n");
  }
  return text + Str("ENTRY e { v = s32[3] constant({1, 2, 3}) z = s32[] constant(0) ",
                    "ROOT r = s32[] reduce(v, z), dimensions={0}, to_apply=c", depth - 1, " }");
}

TEST(EvaluatorTest, NestsOfRegionsAreLimited) {
  test::RunInSmallStack([] {
    EXPECT_EQ(EvalText(NestOfReductions(30)), "6");
    EXPECT_THAT(ErrorOf(NestOfReductions(2000)), HasSubstr("more than 32 regions in regions"));
  });
}

TEST(EvaluatorTest, TokensAndBarriersPassThrough) {
  EXPECT_EQ(
      EvalText(
          R"(ENTRY e { x = f32[] constant(3) t = token[] after-all() y = f32[] add-dependency(x, t)
    u = (f32[], f32[]) tuple(x, y) b = (f32[], f32[]) opt-barrier(u) ROOT r = f32[] get-tuple-element(b), index=1 })"),
      "3");
}

}  // namespace
}  // namespace lazuli
