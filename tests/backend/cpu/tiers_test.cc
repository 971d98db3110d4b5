// Kernels that are interpreted at first and compiled later: which runs get code, from whom, and that no
// value tells which of the two ran.
#include <cstdlib>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/client/registry.h"
#include "backend/cpu/codegen/background_compiler.h"
#include "backend/cpu/codegen/generate_kernel.h"
#include "backend/cpu/cpu_client.h"
#include "ir/support/data_memory.h"
#include "ir/support/metrics.h"
#include "ir/support/status.h"
#include "tests/support/fork.h"
#include "tests/support/hlo_test.h"

namespace lazuli::cpu {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t kAll = int64_t{1} << 62;

// A program of one kernel, with its input {1, 2, 3} and constants that no other test has: equal
// kernels share their code.
class TiersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    RegisterCpu();
    device_ = *FindDevice("cpu");
    WaitForBackground();
    const Literal x = Literal::FromValues<float>({3}, {1, 2, 3});
    x_ = *device_.client->FromHost({x.raw(), &x.shape()}, {}, device_);
  }
  ExecutablePtr Compile(float factor, int64_t interpreted_ops) const {
    return *device_.client->Compile(ParseHlo(ir::Str(R"(
      ENTRY main {
        x = f32[3] parameter(0)
        c = f32[] constant()",
                                                     factor, R"()
        b = f32[3] broadcast(c), dimensions={}
        e = f32[3] multiply(x, b), metadata={op_type="aten__mul" source_file="scale.py" source_line=7}
        ROOT r = f32[3] add(e, x), metadata={op_type="aten__add" source_file="scale.py" source_line=8}
      })")),
                                    {.interpreted_ops = interpreted_ops});
  }
  absl::StatusOr<std::vector<float>> Run(Executable& executable) const {
    LAZULI_ASSIGN_OR_RETURN(
        const Buffers results,
        executable.Execute({.buffers = {&x_, 1}, .scalars = {}, .donated = {}}));
    const Literal value = *device_.client->ToHost(*results[0]);
    return std::vector<float>(value.data<float>().begin(), value.data<float>().end());
  }

  Device device_;
  BufferPtr x_;
};

class Counted {
 public:
  explicit Counted(ir::Counter counter) : counter_(counter), before_(ir::Get(counter)) {}
  int64_t get() const { return ir::Get(counter_) - before_; }

 private:
  ir::Counter counter_;
  int64_t before_;
};

TEST_F(TiersTest, OneRunNeedsNoCompile) {
  const Counted compiled(ir::Counter::kKernels), interpreted(ir::Counter::kInterpretedKernels),
      runs(ir::Counter::kKernelInterpretations);
  const auto executable = Compile(101, kAll);
  EXPECT_THAT(executable->ToString(), HasSubstr(" interpreted"));
  EXPECT_THAT(*Run(*executable), ElementsAre(102, 204, 306));
  WaitForBackground();
  EXPECT_EQ(compiled.get(), 0);
  EXPECT_EQ(interpreted.get(), 1);
  EXPECT_EQ(runs.get(), 1);
}

TEST_F(TiersTest, TheSecondRunHasItCompiledInTheBackground) {
  const Counted compiled(ir::Counter::kKernels), runs(ir::Counter::kKernelInterpretations),
      background(ir::Counter::kBackgroundKernels);
  const auto executable = Compile(102, kAll);
  for (int run = 0; run < 2; ++run) EXPECT_THAT(*Run(*executable), ElementsAre(103, 206, 309));
  WaitForBackground();
  EXPECT_EQ(compiled.get(), 1);
  EXPECT_EQ(background.get(), 1);
  EXPECT_EQ(runs.get(), 2);
  EXPECT_THAT(executable->ToString(), Not(HasSubstr(" interpreted")));
  EXPECT_THAT(*Run(*executable), ElementsAre(103, 206, 309));
  EXPECT_EQ(runs.get(), 2);
}

// Equal layers share a kernel, which then runs more than once in the first run.
TEST_F(TiersTest, TwoEqualKernelsOfOneProgramDoNotMakeASecondRun) {
  const Counted compiled(ir::Counter::kKernels), interpreted(ir::Counter::kInterpretedKernels),
      runs(ir::Counter::kKernelInterpretations);
  const auto executable = *device_.client->Compile(ParseHlo(R"(
    less { p = f32[] parameter(0)  q = f32[] parameter(1)  ROOT l = pred[] compare(p, q), direction=LT }
    ENTRY main {
      x = f32[3] parameter(0)
      a = f32[3] tanh(x)
      b = f32[3] reverse(a), dimensions={0}
      s = f32[3] sort(b), dimensions={0}, to_apply=less
      c = f32[3] tanh(s)
      ROOT r = f32[3] reverse(c), dimensions={0}
    })"),
                                                   {.interpreted_ops = kAll});
  EXPECT_TRUE(Run(*executable).ok());
  WaitForBackground();
  EXPECT_EQ(interpreted.get(), 1);
  EXPECT_EQ(runs.get(), 2);
  EXPECT_EQ(compiled.get(), 0);
}

TEST_F(TiersTest, AKernelOfTwoProgramsThatRunIsCompiled) {
  const Counted compiled(ir::Counter::kKernels);
  const auto first = Compile(110, kAll);
  EXPECT_TRUE(Run(*first).ok());
  const auto second = Compile(110, kAll);
  WaitForBackground();
  EXPECT_EQ(compiled.get(), 0);  // nobody ran the second
  EXPECT_TRUE(Run(*second).ok());
  WaitForBackground();
  EXPECT_EQ(compiled.get(), 1);
}

TEST_F(TiersTest, WhatCostsMoreThanTheBoundIsCompiledAtOnce) {
  const Counted compiled(ir::Counter::kKernels), runs(ir::Counter::kKernelInterpretations);
  EXPECT_THAT(*Run(*Compile(103, 5)), ElementsAre(104, 208, 312));
  EXPECT_THAT(*Run(*Compile(104, 0)), ElementsAre(105, 210, 315));
  EXPECT_EQ(compiled.get(), 2);
  EXPECT_EQ(runs.get(), 0);
}

TEST_F(TiersTest, AProgramThatNeedsTheCodeGivesItToAllThatShareIt) {
  const auto first = Compile(105, kAll);
  const auto second = Compile(105, 0);
  const Counted runs(ir::Counter::kKernelInterpretations);
  EXPECT_THAT(*Run(*first), ElementsAre(106, 212, 318));
  EXPECT_THAT(*Run(*second), ElementsAre(106, 212, 318));
  EXPECT_EQ(runs.get(), 0);
}

TEST_F(TiersTest, SavedProgramsHaveTheirCode) {
  const auto executable = Compile(106, kAll);
  const auto read = device_.client->Deserialize(*executable->Serialize());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT((*read)->ToString(), Not(HasSubstr(" interpreted")));
  EXPECT_THAT(*Run(**read), ElementsAre(107, 214, 321));
}

TEST_F(TiersTest, ACompileThatFailsInTheBackgroundIsTheErrorOfTheNextRunWithItsLine) {
  const auto executable = Compile(107, kAll);
  EXPECT_TRUE(Run(*executable).ok());
  FailNextKernel(absl::InternalError("no code for this kernel"));
  EXPECT_TRUE(Run(*executable).ok());
  WaitForBackground();
  for (int run = 0; run < 2; ++run) {
    const absl::Status status = Run(*executable).status();
    EXPECT_THAT(std::string(ir::Message(status)), HasSubstr("no code for this kernel"));
    EXPECT_THAT(std::string(ir::Message(status)), HasSubstr("scale.py:8"));
  }
}

// The evaluator wants memory for values; the code of the kernel does not.
TEST_F(TiersTest, WithoutMemoryForTheEvaluatorTheKernelIsCompiled) {
  const Counted compiled(ir::Counter::kKernels);
  const auto executable = Compile(108, kAll);
  int faults = 0;
  for (bool reached = true; reached && faults < 20; ++faults) {
    const ir::ScopedDataFault fault(faults);
    const auto values = Run(*executable);
    reached = fault.happened();
    if (values.ok())
      EXPECT_THAT(*values, ElementsAre(109, 218, 327));
    else
      EXPECT_TRUE(absl::IsResourceExhausted(values.status())) << values.status();
  }
  WaitForBackground();
  EXPECT_EQ(compiled.get(), 1);
}

TEST_F(TiersTest, ALoopDoesNotInterpretItsBodyForLong) {
  const Counted runs(ir::Counter::kKernelInterpretations);
  const auto executable = *device_.client->Compile(ParseHlo(R"(
    body {
      s = (s32[], f32[3], f32[3,3]) parameter(0)
      i = s32[] get-tuple-element(s), index=0
      x = f32[3] get-tuple-element(s), index=1
      w = f32[3,3] get-tuple-element(s), index=2
      one = s32[] constant(1)
      next = s32[] add(i, one)
      y = f32[3] dot(w, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      t = f32[3] tanh(y)
      half = f32[] constant(0.625)
      h = f32[3] broadcast(half), dimensions={}
      z = f32[3] multiply(t, h)
      ROOT r = (s32[], f32[3], f32[3,3]) tuple(next, z, w)
    }
    condition {
      s = (s32[], f32[3], f32[3,3]) parameter(0)
      i = s32[] get-tuple-element(s), index=0
      n = s32[] constant(50000)
      ROOT c = pred[] compare(i, n), direction=LT
    }
    ENTRY main {
      x = f32[3] parameter(0)
      zero = s32[] constant(0)
      unit = f32[] constant(0.1)
      w = f32[3,3] broadcast(unit), dimensions={}
      s = (s32[], f32[3], f32[3,3]) tuple(zero, x, w)
      l = (s32[], f32[3], f32[3,3]) while(s), condition=condition, body=body
      ROOT r = f32[3] get-tuple-element(l), index=1
    })"),
                                                   {.interpreted_ops = kAll});
  EXPECT_TRUE(Run(*executable).ok());
  EXPECT_LT(runs.get(), 50000);
}

TEST_F(TiersTest, RunsMayOverlapWithTheCompile) {
  const auto executable = Compile(109, kAll);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int run = 0; run < 200; ++run) {
        const auto values = Run(*executable);
        ASSERT_TRUE(values.ok()) << values.status();
        ASSERT_THAT(*values, ElementsAre(110, 220, 330));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(TiersTest, AForkWaitsForTheCompileAndTheChildHasACompilerOfItsOwn) {
  std::vector<ExecutablePtr> executables;
  for (int k = 0; k < 8; ++k) {
    executables.push_back(Compile(static_cast<float>(200 + k), kAll));
    for (int run = 0; run < 2; ++run) ASSERT_TRUE(Run(*executables.back()).ok());
  }
  EXPECT_TRUE(test::InChild([&] {
    const auto own = Compile(300, kAll);
    bool good = true;
    for (int run = 0; run < 3; ++run) good &= Run(*own).ok() && Run(*executables[0]).ok();
    WaitForBackground();
    return good && own->ToString().find(" interpreted") == std::string::npos;
  }));
  WaitForBackground();
  for (const ExecutablePtr& executable : executables)
    EXPECT_THAT(executable->ToString(), Not(HasSubstr(" interpreted")));
}

TEST_F(TiersTest, AProcessMayEndWhileKernelsAreCompiled) {
  EXPECT_EXIT(
      {
        std::vector<ExecutablePtr> executables;
        for (int k = 0; k < 8; ++k) {
          executables.push_back(Compile(static_cast<float>(400 + k), kAll));
          for (int run = 0; run < 2; ++run) {
            if (!Run(*executables.back()).ok()) std::abort();
          }
        }
        std::exit(3);
      },
      testing::ExitedWithCode(3), "");
}

// A kernel of a structure and constant of its own, in as many sizes as somebody wants.
class SizesTest : public TiersTest {
 protected:
  ExecutablePtr OfSize(int64_t n, float factor, backend::CompileOptions options = {}) const {
    return *device_.client->Compile(
        ParseHlo(ir::Str("ENTRY main { x = f32[", n, "] parameter(0)  c = f32[] constant(", factor,
                         ")  b = f32[", n, "] broadcast(c), dimensions={}  ROOT r = f32[", n,
                         "] multiply(x, b) }")),
        options);
  }
  float LastOf(Executable& executable, int64_t n) const {
    std::vector<float> values(static_cast<std::size_t>(n));
    std::iota(values.begin(), values.end(), 1.0F);
    const Literal x = Literal::FromValues<float>({n}, values);
    const BufferPtr buffer = *device_.client->FromHost({x.raw(), &x.shape()}, {}, device_);
    const Buffers results =
        *executable.Execute({.buffers = {&buffer, 1}, .scalars = {}, .donated = {}});
    return device_.client->ToHost(*results[0])->data<float>().back();
  }
};

TEST_F(SizesTest, TheSecondSizeHasCodeForAll) {
  const Counted compiled(ir::Counter::kKernels), generic(ir::Counter::kGenericKernels);
  const auto first = OfSize(50, 401);
  EXPECT_THAT(first->ToString(), Not(HasSubstr("of any size")));
  EXPECT_EQ(generic.get(), 0);
  for (const int64_t n : {70, 71, 1000}) {
    const auto next = OfSize(n, 401);
    EXPECT_THAT(next->ToString(), HasSubstr("of any size"));
    EXPECT_EQ(LastOf(*next, n), 401.0F * static_cast<float>(n));
  }
  EXPECT_EQ(LastOf(*first, 50), 401 * 50);
  EXPECT_EQ(generic.get(), 1);
  EXPECT_EQ(compiled.get(), 2);
}

TEST_F(SizesTest, TheSameSizeAgainIsNotAnother) {
  const Counted generic(ir::Counter::kGenericKernels);
  for (int k = 0; k < 3; ++k) EXPECT_EQ(LastOf(*OfSize(50, 402), 50), 402 * 50);
  EXPECT_EQ(generic.get(), 0);
}

TEST_F(SizesTest, TwoSizesInOneProgramShareCode) {
  const Counted compiled(ir::Counter::kKernels), generic(ir::Counter::kGenericKernels);
  const auto executable = *device_.client->Compile(ParseHlo(R"(
    ENTRY main {
      x = f32[100] parameter(0)
      y = f32[300] parameter(1)
      c = f32[] constant(403)
      b = f32[100] broadcast(c), dimensions={}
      d = f32[300] broadcast(c), dimensions={}
      p = f32[100] multiply(x, b)
      q = f32[300] multiply(y, d)
      ROOT r = (f32[100], f32[300]) tuple(p, q)
    })"),
                                                   {});
  EXPECT_EQ(compiled.get(), 1);
  EXPECT_EQ(generic.get(), 1);
}

TEST_F(SizesTest, ZeroMeansThatNoneIsSharedAndOneThatAllAre) {
  const Counted generic(ir::Counter::kGenericKernels);
  for (const int64_t n : {50, 70, 90}) OfSize(n, 404, {.generic_from = 0});
  EXPECT_EQ(generic.get(), 0);
  EXPECT_THAT(OfSize(50, 405, {.generic_from = 1})->ToString(), HasSubstr("of any size"));
  EXPECT_EQ(generic.get(), 1);
}

TEST_F(SizesTest, KernelsThatMayWaitAreInterpretedUntilThatCostsMilliseconds) {
  const Counted compiled(ir::Counter::kKernels), runs(ir::Counter::kKernelInterpretations);
  const backend::CompileOptions waits{.interpreted_ops = kAll};
  int64_t n = 50;
  EXPECT_EQ(LastOf(*OfSize(n, 406, waits), n), 406.0F * static_cast<float>(n));
  WaitForBackground();
  EXPECT_EQ(compiled.get(), 0);
  for (; compiled.get() == 0 && n < 100000; n += 500) {
    EXPECT_EQ(LastOf(*OfSize(n, 406, waits), n), 406.0F * static_cast<float>(n));
    WaitForBackground();
  }
  const int64_t interpreted = runs.get();
  for (int more = 0; more < 5; ++more, n += 500)
    EXPECT_EQ(LastOf(*OfSize(n, 406, waits), n), 406.0F * static_cast<float>(n));
  WaitForBackground();
  EXPECT_EQ(compiled.get(), 1);
  EXPECT_EQ(runs.get(), interpreted);
}

TEST_F(SizesTest, SavedProgramsHaveTheirNumbers) {
  OfSize(50, 407);
  const auto executable = OfSize(70, 407);
  const auto read = device_.client->Deserialize(*executable->Serialize());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ((*read)->ToString(), executable->ToString());
  EXPECT_EQ(LastOf(**read, 70), 407 * 70);
}

}  // namespace
}  // namespace lazuli::cpu
