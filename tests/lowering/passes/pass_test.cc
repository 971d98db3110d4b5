#include "lowering/passes/pass.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>

#include <gmock/gmock.h>

#include "ir/hlo/dump/module_dump.h"
#include "ir/hlo/text/printer.h"
#include "ir/support/flags.h"
#include "ir/support/metrics.h"
#include "ir/support/runtime.h"
#include "ir/support/status.h"
#include "lowering/passes/cse.h"
#include "lowering/passes/dce.h"
#include "lowering/passes/pipelines.h"
#include "lowering/passes/registry.h"
#include "lowering/passes/rewriter.h"
#include "tests/support/hlo_test.h"
#include "tests/support/pass_test.h"

namespace lazuli::lowering {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kTwoAdds = R"(
  HloModule adds
  ENTRY main {
    p = f32[4] parameter(0)
    a = f32[4] add(p, p)
    b = f32[4] add(p, p)
    ROOT m = f32[4] multiply(a, b)
  })";

// What is true of the bound's 4 elements is not of the 2 that are there.
TEST(PassTest, SizesThatAreKnownWhenAProgramRunsStay) {
  const auto module = ParseHlo(R"(
    ENTRY main {
      p = f32[4] parameter(0)
      n = s32[] constant(2)
      d = f32[<=4] set-dimension-size(p, n), dimensions={0}
      ROOT s = s32[] get-dimension-size(d), dimensions={0}
    })");
  PassPipeline pipeline("p");
  AddSimplificationPipeline(pipeline);
  EXPECT_FALSE(*pipeline.Run(*module));
}

class FakePass final : public Pass {
 public:
  explicit FakePass(std::string_view name, std::function<absl::StatusOr<bool>(hlo::Module&)> run)
      : name_(name), run_(std::move(run)) {}
  std::string_view name() const override { return name_; }
  absl::StatusOr<bool> Run(hlo::Module& module) override { return run_(module); }

 private:
  std::string_view name_;
  std::function<absl::StatusOr<bool>(hlo::Module&)> run_;
};

// Sets a flag for one test.
class ScopedFlag {
 public:
  ScopedFlag(std::string_view variable, std::string_view value, std::string_view after)
      : variable_(variable), after_(after) {
    EXPECT_TRUE(SetFlag(variable, value).ok());
  }
  ~ScopedFlag() { EXPECT_TRUE(SetFlag(variable_, after_).ok()); }

 private:
  std::string_view variable_, after_;
};

int64_t Named(std::string_view name) {
  for (const auto& [key, value] : NamedCounters()) {
    if (key == name) return value;
  }
  return 0;
}

TEST(PassPipelineTest, RunsPassesInOrderAndSaysWhetherAnyChanged) {
  const auto module = ParseHlo(kTwoAdds);
  std::vector<std::string> order;
  PassPipeline pipeline("test");
  for (std::string_view name : {"first", "second"}) {
    pipeline.Add<FakePass>(name, [&order, name](hlo::Module&) {
      order.emplace_back(name);
      return false;
    });
  }
  EXPECT_FALSE(*pipeline.Run(*module));
  EXPECT_THAT(order, ElementsAre("first", "second"));
  pipeline.Add<Cse>();
  const int64_t before = Named("pass.cse.changed");
  EXPECT_TRUE(*pipeline.Run(*module));
  EXPECT_EQ(Named("pass.cse.changed"), before + 1);
}

TEST(PassPipelineTest, RepeatsUntilNothingChangesOrTheBound) {
  const ScopedFlag verify("LAZULI_VERIFY_PASSES", "false", "false");
  const auto module = ParseHlo(kTwoAdds);
  int runs = 0;
  PassPipeline bounded("bounded", 5);
  bounded.Add<FakePass>("restless", [&runs](hlo::Module&) { return ++runs > 0; });
  EXPECT_TRUE(*bounded.Run(*module));
  EXPECT_EQ(runs, 5);
  runs = 0;
  PassPipeline settling("settling", 5);
  settling.Add<FakePass>("settles", [&runs](hlo::Module&) { return ++runs < 3; });
  EXPECT_TRUE(*settling.Run(*module));
  EXPECT_EQ(runs, 3);
}

TEST(PassPipelineTest, StopsAtAnError) {
  const auto module = ParseHlo(kTwoAdds);
  PassPipeline pipeline("test");
  pipeline.Add<FakePass>("fails", [](hlo::Module&) { return Internal("no"); });
  pipeline.Add<FakePass>("never", [](hlo::Module&) -> absl::StatusOr<bool> {
    ADD_FAILURE();
    return false;
  });
  EXPECT_EQ(Message(pipeline.Run(*module).status()), "no");
}

TEST(PassPipelineTest, LeavesOutDisabledPasses) {
  const ScopedFlag disable("LAZULI_DISABLE_PASSES", "dce, cse", "");
  const auto module = ParseHlo(kTwoAdds);
  PassPipeline pipeline("test");
  pipeline.Add<Cse>();
  EXPECT_FALSE(*pipeline.Run(*module));
  EXPECT_EQ(module->instruction_count(), 4);
}

TEST(PassPipelineTest, DisablingAPassThatDoesNotExistIsAnErrorAndNamesTheNearest) {
  const auto message = [](std::string_view disabled,
                          std::string_view flag = "LAZULI_DISABLE_PASSES") {
    const ScopedFlag disable(flag, disabled, "");
    PassPipeline pipeline("test");
    pipeline.Add<FakePass>("mine", [](hlo::Module&) { return false; });
    const absl::Status status = pipeline.Run(*ParseHlo(kTwoAdds)).status();
    return std::string(Message(status));
  };
  EXPECT_EQ(message("nonsense, cse"),
            "LAZULI_DISABLE_PASSES: there is no pass nonsense; the nearest is mine");
  EXPECT_EQ(message("dce, fold_constant"),
            "LAZULI_DISABLE_PASSES: there is no pass fold_constant; the nearest is fold_constants");
  EXPECT_EQ(message("transposes"),
            "LAZULI_DISABLE_PASSES: there is no pass transposes; the nearest is fold_transposes");
  EXPECT_EQ(message("fusoin", "--xla_disable_hlo_passes"),
            "--xla_disable_hlo_passes: there is no pass fusoin; the nearest is fusion");
  EXPECT_EQ(message("mine"), "");  // of this pipeline only
}

TEST(PassPipelineTest, VerificationFindsAPassThatBreaksTheModule) {
  const ScopedFlag verify("LAZULI_VERIFY_PASSES", "true", "false");
  const auto module = ParseHlo(kTwoAdds);
  PassPipeline pipeline("test");
  pipeline.Add<FakePass>("breaks", [](hlo::Module& m) {
    *m.entry()->root()->mutable_shape() = Shape(DType::kF32, {5});
    return true;
  });
  const absl::Status status = pipeline.Run(*module).status();
  EXPECT_THAT(std::string(Message(status)), HasSubstr("after pass breaks on adds: "));
}

TEST(PassPipelineTest, VerificationFindsAPassThatLiesAboutChanges) {
  const ScopedFlag verify("LAZULI_VERIFY_PASSES", "true", "false");
  const auto module = ParseHlo(kTwoAdds);
  PassPipeline boasts("test"), hides("test");
  boasts.Add<FakePass>("boasts", [](hlo::Module&) { return true; });
  EXPECT_EQ(Message(boasts.Run(*module).status()),
            "after pass boasts on adds: it reports a change but made none");
  hides.Add<FakePass>("hides", [](hlo::Module& m) {
    EXPECT_TRUE(Cse().Run(m).ok());
    return false;
  });
  EXPECT_EQ(Message(hides.Run(*module).status()),
            "after pass hides on adds: it reports no change but made one");
}

std::vector<std::string> FilesIn(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.insert(entry.path().filename());
  return {names.begin(), names.end()};
}

TEST(PassPipelineTest, DumpsWhatChangedInAFolderOfTheModule) {
  const std::filesystem::path folder = ::testing::TempDir() + "/lazuli_dumps";
  std::filesystem::remove_all(folder);
  const ScopedFlag dump("LAZULI_DUMP_DIR", folder.string(), "");
  const auto module = ParseHlo(kTwoAdds);
  PassPipeline pipeline("outer");
  pipeline.Add<Dce>();
  pipeline.Add<PassPipeline>("inner").Add<Cse>();
  ASSERT_TRUE(pipeline.Run(*module).ok());
  EXPECT_THAT(FilesIn(folder / "adds"), ElementsAre("00.before.hlo", "01.cse.hlo"));
  std::ifstream in(folder / "adds" / "01.cse.hlo");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), hlo::ToString(*module));
  std::filesystem::remove_all(folder);
}

TEST(PassPipelineTest, ADumpThatCannotBeWrittenIsSaidOnceAndStopsNothing) {
  for (const char* const variable : {"LAZULI_DUMP_DIR", "TF_DUMP_GRAPH_PREFIX"}) {
    const std::string folder = Str("/proc/lazuli/", variable);
    const ScopedFlag dump(variable, folder, "");
    const auto module = ParseHlo(kTwoAdds);
    PassPipeline pipeline("test");
    pipeline.Add<Cse>();
    ::testing::internal::CaptureStderr();
    const auto changed = pipeline.Run(*module);
    const std::string said = ::testing::internal::GetCapturedStderr();
    ASSERT_TRUE(changed.ok()) << changed.status();
    EXPECT_TRUE(*changed);
    EXPECT_THAT(said, HasSubstr(Str("lazuli: ", variable, ": cannot make the folder ", folder)));
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1);
  }
}

// Changes what `changes` says.
std::unique_ptr<FakePass> Renaming(std::string_view name, bool changes) {
  return std::make_unique<FakePass>(name, [changes](hlo::Module& module) {
    if (changes) module.entry()->AddConstant(Literal::Scalar<float>(1));
    return changes;
  });
}

TEST(PassPipelineTest, FilesAroundThePassesThatARegularExpressionNames) {
  const ir::Runtime::Scope scope;
  const std::filesystem::path folder = ::testing::TempDir() + "/lazuli_pass_files";
  std::filesystem::remove_all(folder);
  const ScopedFlag to("--xla_dump_to", folder.string(), "");
  const ScopedFlag passes("--xla_dump_hlo_pass_re", "^(b|c|d)$", "");
  const ScopedFlag verify("LAZULI_VERIFY_PASSES", "0", "0");
  const auto module = ParseHlo(kTwoAdds);
  {
    const hlo::ModuleDump dump(*module, "cpu");
    PassPipeline pipeline("outer");
    pipeline.Add(Renaming("a", true));
    pipeline.Add(Renaming("b", true));
    pipeline.Add(Renaming("c", false));
    auto& inner = pipeline.Add<PassPipeline>("inner");
    inner.Add(Renaming("d", true));
    inner.Add(Renaming("e", true));
    ASSERT_TRUE(pipeline.Run(*module).ok());
  }
  EXPECT_THAT(
      FilesIn(folder),
      ElementsAre("module_0001.adds.0000.outer.after_a.before_b.txt",
                  "module_0001.adds.0001.outer.after_b.before_c.txt",
                  "module_0001.adds.0002.inner.after_pipeline-start.before_d.txt",
                  "module_0001.adds.0003.inner.after_d.before_e.txt",
                  "module_0001.adds.before_optimizations.txt", "module_0001.adds.debug_options"));
  std::filesystem::remove_all(folder);
}

TEST(PassPipelineTest, FilesOfOnePipeline) {
  const ir::Runtime::Scope scope;
  const std::filesystem::path folder = ::testing::TempDir() + "/lazuli_pipeline_files";
  std::filesystem::remove_all(folder);
  const ScopedFlag to("--xla_dump_to", folder.string(), "");
  const ScopedFlag passes("--xla_dump_hlo_pass_re", ".*", "");
  const ScopedFlag pipelines("--xla_dump_hlo_pipeline_re", "^inner$", "");
  const ScopedFlag verify("LAZULI_VERIFY_PASSES", "0", "0");
  const auto module = ParseHlo(kTwoAdds);
  {
    const hlo::ModuleDump dump(*module, "cpu");
    PassPipeline pipeline("outer");
    pipeline.Add(Renaming("a", true));
    pipeline.Add<PassPipeline>("inner").Add(Renaming("d", true));
    ASSERT_TRUE(pipeline.Run(*module).ok());
  }
  EXPECT_EQ(FilesIn(folder).size(), 4u);
  std::filesystem::remove_all(folder);
}

TEST(PassPipelineTest, OnePassIsShown) {
  const auto show = [](std::string_view level) {
    const ScopedFlag flag("LAZULI_DEBUG", level, "0");
    const auto module = ParseHlo(kTwoAdds);
    PassPipeline pipeline("test");
    pipeline.Add<Cse>();
    pipeline.Add<Dce>();
    ::testing::internal::CaptureStderr();
    EXPECT_TRUE(pipeline.Run(*module).ok());
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(show("0,cse=3"), "lazuli: cse changed adds: 4 -> 3 instructions\n");
  EXPECT_EQ(show("0,dce=5"), "");  // it changed nothing
  EXPECT_THAT(show("0,cse=4"), HasSubstr("instructions\nafter cse:\nHloModule adds"));
  EXPECT_THAT(show("0,cse=5"), HasSubstr("instructions\nbefore cse:\nHloModule adds"));

  const ScopedFlag flag("LAZULI_DEBUG", "2,ces=5", "0");
  const auto module = ParseHlo(kTwoAdds);
  EXPECT_EQ(Message(PassPipeline("test").Run(*module).status()),
            "LAZULI_DEBUG: there is no pass ces; the nearest is cse");
}

TEST(RegistryTest, EveryPassHasItsOwnNameAndDocumentation) {
  std::string last;
  for (const PassRow& row : RegisteredPasses()) {
    EXPECT_LT(last, row.name);
    last = row.name;
    EXPECT_EQ(row.make()->name(), row.name);
    EXPECT_FALSE(row.doc.empty());
  }
}

TEST(RegistryTest, UnknownNamesListTheKnown) {
  EXPECT_EQ(Message(MakePass("ces").status()),
            "there is no pass ces; there are cse, dce, drop_layouts, expand_scans, fold_constants, "
            "fold_transposes, inline_calls, jitter, join_async, pipeline, "
            "reduce_vector_products, simplify, "
            "split_complex_products, unroll_reductions, widen_products");
}

TEST(SimplificationPipelineTest, PassesFeedEachOther) {
  PassPipeline pipeline("test");
  AddSimplificationPipeline(pipeline);
  ExpectPass(pipeline, R"(
    scale {
      x = f32[2,3] parameter(0)
      two = f32[] constant(2)
      half = f32[] constant(0.5)
      b2 = f32[2,3] broadcast(two), dimensions={}
      bh = f32[2,3] broadcast(half), dimensions={}
      one = f32[2,3] multiply(b2, bh)
      ROOT y = f32[2,3] multiply(x, one)
    }
    ENTRY main {
      x = f32[2,3] parameter(0)
      w = f32[4,3] parameter(1)
      s = f32[2,3] call(x), to_apply=scale
      t = f32[3,4] transpose(w), dimensions={1,0}
      // CHECK-NOT:  scale
      // CHECK:      %[[D:.*]] = f32[2,4] dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={1}
      // CHECK-NEXT: ROOT {{.*}} add(%[[D]], %[[D]])
      d = f32[2,4] dot(s, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      e = f32[2,4] dot(x, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT r = f32[2,4] add(d, e)
    })");
}

TEST(RewriterTest, GivesNewInstructionsTheMetadataOfTheirOrigin) {
  const auto module = ParseHlo(R"(
    ENTRY main {
      p = f32[4] parameter(0)
      ROOT a = f32[4] add(p, p), metadata={op_type="aten__add" source_file="net.cc" source_line=7}
    })");
  {
    Rewriter r(module->entry());
    hlo::Instruction* const a = module->entry()->root();
    r.set_origin(a);
    r.Replace(a, r.Add(hlo::Opcode::kMultiply, a->shape(), {a->operand(0), r.Full(a->shape(), 2)}));
    EXPECT_TRUE(r.IsErased(a));
  }
  EXPECT_EQ(module->entry()->root()->opcode(), hlo::Opcode::kMultiply);
  EXPECT_EQ(module->entry()->root()->metadata().source_line, 7);
  EXPECT_EQ(module->instruction_count(), 4);
}

TEST(RewriterTest, ErasesWhatOnlyTheReplacedUsed) {
  const auto module = ParseHlo(R"(
    ENTRY main {
      p = f32[4] parameter(0)
      shared = f32[4] negate(p)
      only = f32[4] exponential(shared)
      old = f32[4] add(only, only)
      ROOT r = f32[4] multiply(old, shared)
    })");
  {
    Rewriter r(module->entry());
    r.Replace(module->entry()->Find("old"), module->entry()->Find("p"));
    EXPECT_EQ(module->entry()->Find("shared")->users().size(), 1u);
  }
  EXPECT_EQ(module->instruction_count(), 3);
}

TEST(RewriterTest, UnusedAdditionsLeaveNoTrace) {
  const auto module = ParseHlo(kTwoAdds);
  const std::string before = hlo::ToString(*module);
  {
    Rewriter r(module->entry());
    r.Full(Shape(DType::kF32, {4}), 1);
    EXPECT_FALSE(r.changed());
  }
  EXPECT_EQ(hlo::ToString(*module), before);
}

// Passes are linear and need no stack: a chain of a million instructions, each of which goes away.
TEST(PassesTest, SimplifyAChainOfAMillionInstructions) {
  constexpr int64_t kLength = 1'000'000;
  hlo::Module module("chain");
  hlo::Computation* const entry = module.AddComputation("main");
  module.set_entry(entry);
  const Shape shape(DType::kF32, {4});
  hlo::Instruction* const p = entry->AddParameter(0, shape);
  hlo::Instruction* const one = entry->AddConstant(Literal::Scalar(1.0f));
  hlo::Instruction* const ones =
      entry->Add(hlo::Opcode::kBroadcast, shape, {one}, hlo::DimensionsAttrs{});
  hlo::Instruction* x = entry->Add(hlo::Opcode::kExponential, shape, {p});
  for (int64_t i = 0; i < kLength / 2; ++i) {
    x = entry->Add(hlo::Opcode::kMultiply, shape, {x, ones});
    x = entry->Add(hlo::Opcode::kNegate, shape, {entry->Add(hlo::Opcode::kNegate, shape, {x})});
  }
  entry->set_root(x);
  PassPipeline pipeline("test");
  AddSimplificationPipeline(pipeline);
  const ScopedFlag verify("LAZULI_VERIFY_PASSES", "false", "false");
  ASSERT_TRUE(pipeline.Run(module).ok());
  EXPECT_EQ(module.instruction_count(), 2);
  EXPECT_EQ(module.entry()->root()->opcode(), hlo::Opcode::kExponential);
}

}  // namespace
}  // namespace lazuli::lowering
