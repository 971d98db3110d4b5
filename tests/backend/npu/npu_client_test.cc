#include "backend/npu/npu_client.h"

#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/client/registry.h"
#include "backend/interpreter/interpreter.h"
#include "backend/npu/sim/namespace.h"
#include "ir/hlo/text/parser.h"
#include "ir/support/flags.h"
#include "ir/support/runtime.h"
#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::string_view kSquares =
    R"(HloModule squares, input_output_alias={ {0}: (0, {}, may-alias) }
  ENTRY main {
    x = f32[1000] parameter(0)
    y = f32[1000] parameter(1)
    s = f32[] parameter(2)
    b = f32[1000] broadcast(s), dimensions={}
    z = f32[1000] multiply(x, y), metadata={op_type="aten::mul" source_file="train.py" source_line=41}
    w = f32[1000] add(z, b), metadata={op_type="aten::add" source_file="train.py" source_line=41}
    ROOT r = (f32[1000], f32[1000]) tuple(w, y)
  })";

// A client of its own for each test, with these values of NPU_SET and NPU_INJECT.
class NpuClientTest : public testing::Test {
 protected:
  void Start(std::string_view set = "", std::string_view inject = "") {
    ASSERT_TRUE(SetFlag("NPU_SET", set).ok());
    ASSERT_TRUE(SetFlag("NPU_INJECT", inject).ok());
    ASSERT_TRUE(SetFlag("NPU_STRICT", "1").ok());
    interpreter::RegisterInterpreter();
    RegisterNpu();
    const auto client = backend::FindClient("npu");
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *client;
  }
  ~NpuClientTest() override {
    SetFlag("NPU_SET", "").IgnoreError();
    SetFlag("NPU_INJECT", "").IgnoreError();
  }

  backend::ExecutablePtr Compile(std::string_view text, backend::CompileOptions options = {}) {
    options.op_filter = false;
    auto module = hlo::ParseModule(text);
    EXPECT_TRUE(module.ok()) << module.status();
    auto executable = client_->Compile(*std::move(module), options);
    EXPECT_TRUE(executable.ok()) << executable.status();
    return executable.ok() ? *executable : nullptr;
  }
  backend::BufferPtr Full(float value, int64_t n = 1000, int device = 0) {
    const std::vector<float> values(static_cast<std::size_t>(n), value);
    const Shape shape(DType::kF32, {n});
    auto buffer = client_->FromHost({values.data(), &shape}, {}, client_->devices()[device]);
    EXPECT_TRUE(buffer.ok()) << buffer.status();
    return *std::move(buffer);
  }
  float First(const Buffer& buffer) {
    const auto literal = client_->ToHost(buffer);
    EXPECT_TRUE(literal.ok()) << literal.status();
    return literal.ok() ? literal->data<float>()[0] : -1;
  }
  static uint64_t Cell(float value) {
    uint64_t cell = 0;
    std::memcpy(&cell, &value, 4);
    return cell;
  }

  ir::Runtime::Scope scope_;
  backend::ComputationClient* client_ = nullptr;
};

TEST_F(NpuClientTest, RunsOnTheDeviceOfItsArguments) {
  Start("devices=2");
  const auto squares = Compile(kSquares);
  EXPECT_EQ(squares->stats().kernels, 1);
  const std::vector<uint64_t> scalars = {Cell(0.5F)};
  for (const int device : {0, 1}) {
    const std::vector<BufferPtr> buffers = {Full(3, 1000, device), Full(4, 1000, device)};
    const auto outputs = squares->Execute({.buffers = buffers, .scalars = scalars, .donated = {}});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    EXPECT_EQ(outputs->at(0)->device().ToString(), Str("npu:", device));
    EXPECT_EQ(outputs->at(0)->host_data(), nullptr);
    EXPECT_EQ(First(*outputs->at(0)), 12.5F);
    EXPECT_EQ(First(*outputs->at(1)), 4);  // a copy of the argument
    EXPECT_NE(outputs->at(1), buffers[1]);
  }
  const std::vector<BufferPtr> mixed = {Full(3, 1000, 0), Full(4, 1000, 1)};
  EXPECT_EQ(
      Message(squares->Execute({.buffers = mixed, .scalars = scalars, .donated = {}}).status()),
      "squares: argument 1 lies on npu:1, others on npu:0");
}

TEST_F(NpuClientTest, DonatedMemoryIsFreeAgain) {
  Start();
  const auto squares = Compile(kSquares);
  std::vector<BufferPtr> buffers = {Full(3), Full(4)};
  const std::vector<uint64_t> scalars = {Cell(0)};
  const auto in_use = [&] { return client_->memory_stats(client_->devices()[0])->bytes_in_use; };
  const int64_t before = in_use();
  const std::vector<uint8_t> donated = {1, 0};
  {
    const auto outputs =
        squares->Execute({.buffers = buffers, .scalars = scalars, .donated = donated});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    EXPECT_EQ(in_use(), before + 4032);  // two results, less the argument
    EXPECT_EQ(Message(client_->ToHost(*buffers[0]).status()),
              "the buffer has been donated to a run");
    EXPECT_EQ(
        Message(squares->Execute({.buffers = buffers, .scalars = scalars, .donated = {}}).status()),
        "a buffer of f32[1000] was donated to an earlier run");
  }
  buffers.clear();
  EXPECT_EQ(in_use(), 0);
}

// A step as training has it: weights that are updated where they lie, and a result besides.
TEST_F(NpuClientTest, DonatedArgumentsAreUpdatedWhereTheyLie) {
  Start();
  const auto step = Compile(
      R"(HloModule step, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }
    ENTRY main {
      w = f32[50000] parameter(0)
      v = f32[50000] parameter(1)
      g = f32[50000] parameter(2)
      u = f32[50000] add(v, g)
      x = f32[50000] subtract(w, u)
      ROOT r = (f32[50000], f32[50000]) tuple(x, u)
    })");
  constexpr int64_t kBytes = 200000;
  const auto in_use = [&] { return client_->memory_stats(client_->devices()[0])->bytes_in_use; };
  const auto peak = [&] { return client_->memory_stats(client_->devices()[0])->peak_bytes; };
  const std::vector<uint8_t> donated = {1, 1, 0};
  std::vector<BufferPtr> buffers = {Full(9, 50000), Full(1, 50000), Full(2, 50000)};
  const int64_t before = in_use();
  for (int i = 1; i <= 3; ++i) {
    auto outputs = step->Execute({.buffers = buffers, .scalars = {}, .donated = donated});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    buffers = {outputs->at(0), outputs->at(1), buffers[2]};
  }
  EXPECT_EQ(First(*buffers[0]), 9 - 3 - 5 - 7);
  EXPECT_EQ(First(*buffers[1]), 7);
  EXPECT_EQ(in_use(), before);
  EXPECT_EQ(peak(), before);  // a step allocates nothing

  // Who still holds them keeps them: the run updates copies.
  auto kept = step->Execute({.buffers = buffers, .scalars = {}, .donated = {}});
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(First(*buffers[0]), -6);
  EXPECT_EQ(First(*buffers[1]), 7);
  EXPECT_EQ(First(*kept->at(0)), -15);
  EXPECT_EQ(First(*kept->at(1)), 9);
  EXPECT_EQ(peak(), before + 2 * kBytes);

  // One array for two arguments, of which one is given up: it is read until the end.
  const std::vector<BufferPtr> same = {buffers[0], buffers[1], buffers[0]};
  auto both =
      step->Execute({.buffers = same, .scalars = {}, .donated = std::vector<uint8_t>{1, 1, 0}});
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(First(*both->at(0)), -7);
  EXPECT_EQ(First(*both->at(1)), 1);
}

// What a result replaces is still read behind it.
TEST_F(NpuClientTest, ArgumentsThatAreReadAgainAreNotUpdatedInPlace) {
  Start();
  const auto step = Compile(R"(HloModule step, input_output_alias={ {0}: (0, {}, may-alias) }
    ENTRY main {
      w = f32[64,64] parameter(0)
      x = f32[64,64] parameter(1)
      u = f32[64,64] add(w, x)
      d = f32[64,64] dot(u, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT r = (f32[64,64], f32[64,64]) tuple(u, d)
    })");
  const std::vector<float> ones(64 * 64, 1);
  const Shape shape(DType::kF32, {64, 64});
  std::vector<BufferPtr> buffers;
  for (int i = 0; i < 2; ++i)
    buffers.push_back(*client_->FromHost({ones.data(), &shape}, {}, client_->devices()[0]));
  const auto outputs =
      step->Execute({.buffers = buffers, .scalars = {}, .donated = std::vector<uint8_t>{1, 0}});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ(First(*outputs->at(0)), 2);
  EXPECT_EQ(First(*outputs->at(1)), 128);
}

struct FaultCase {
  const char* inject;
  std::vector<const char*> said;
};
class NpuFaultTest : public NpuClientTest, public testing::WithParamInterface<FaultCase> {};
INSTANTIATE_TEST_SUITE_P(
    Npu, NpuFaultTest,
    testing::Values(FaultCase{"trap:1", {"aten::", "npu:0: TRAP at device 0, core 0, pc ", "41)"}},
                    FaultCase{"memory:1", {"aten::", "npu:0: ECC at device 0, core 0, pc ", "41)"}},
                    FaultCase{"link:1", {"npu:0: LINK_TIMEOUT at device 0", "does not answer"}}));

TEST_P(NpuFaultTest, NamesPlaceOpAndLineAndTheNextRunGoesOn) {
  Start("", GetParam().inject);
  const auto squares = Compile(kSquares);
  const std::vector<BufferPtr> buffers = {Full(3), Full(4)};
  const std::vector<uint64_t> scalars = {Cell(0)};
  const backend::ExecuteArgs args{.buffers = buffers, .scalars = scalars, .donated = {}};
  EXPECT_TRUE(squares->Execute(args).ok());
  const auto failed = squares->Execute(args);
  for (const char* part : GetParam().said)
    EXPECT_THAT(std::string(Message(failed.status())), HasSubstr(part));
  const auto outputs = squares->Execute(args);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ(First(*outputs->at(0)), 12);
}

TEST_F(NpuClientTest, MemoryThatIsNotThereIsAnErrorBeforeAnythingRuns) {
  Start("dram.mb=1");
  const auto squares = Compile(R"(HloModule m
    ENTRY main {
      x = f32[100000] parameter(0)
      y = f32[100000] negate(x)
      ROOT r = (f32[100000], f32[100000]) tuple(y, x) })");
  const std::vector<BufferPtr> buffers = {Full(3, 100000)};
  const auto failed = squares->Execute({.buffers = buffers, .scalars = {}, .donated = {}});
  EXPECT_EQ(failed.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Message(failed.status())),
              AllOf(HasSubstr("npu:0: out of memory: 400000 bytes for"),
                    HasSubstr("400000 bytes of 1 x an array of the host")));
  EXPECT_EQ(client_->memory_stats(client_->devices()[0])->bytes_in_use, 400000);
}

TEST_F(NpuClientTest, ManyThreadsRunOneProgram) {
  Start();
  const auto squares = Compile(kSquares, {.denied_ops = "add"});
  EXPECT_EQ(squares->stats().library_calls, 1);  // the host's part
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const std::vector<uint64_t> scalars = {Cell(static_cast<float>(t))};
      for (int i = 0; i < 5; ++i) {
        const std::vector<BufferPtr> buffers = {Full(static_cast<float>(i)), Full(2)};
        const auto outputs =
            squares->Execute({.buffers = buffers, .scalars = scalars, .donated = {}});
        ASSERT_TRUE(outputs.ok()) << outputs.status();
        EXPECT_EQ(First(*outputs->at(0)), static_cast<float>(2 * i + t));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Each has the one before as both operands: the paths through them double.
TEST_F(NpuClientTest, ManySquaresInARowCompileInNoTime) {
  Start();
  std::string text = "HloModule m\nENTRY main {\n  x0 = f32[1000] parameter(0)\n";
  for (int i = 1; i <= 60; ++i)
    text += Str("  x", i, " = f32[1000] multiply(x", i - 1, ", x", i - 1, ")\n");
  const auto squares = Compile(text + "  ROOT r = f32[1000] negate(x60)\n}");
  EXPECT_EQ(squares->stats().kernels, 1);
  const std::vector<BufferPtr> buffers = {Full(1)};
  const auto outputs = squares->Execute({.buffers = buffers, .scalars = {}, .donated = {}});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ(First(*outputs->at(0)), -1);
}

TEST_F(NpuClientTest, SmallProgramsStayOnTheHostAndTheTextSaysWhy) {
  Start();
  auto module = hlo::ParseModule(kSquares);
  const auto executable = client_->Compile(*std::move(module), {});
  ASSERT_TRUE(executable.ok()) << executable.status();
  EXPECT_EQ((*executable)->stats().kernels, 0);
  EXPECT_THAT((*executable)->ToString(),
              HasSubstr("tiny: the program has 2000 operations, filter.min_flops is 100000"));
}

TEST_F(NpuClientTest, WithoutSoftPlacementWhatItLacksIsAnError) {
  Start();
  auto module = hlo::ParseModule(R"(HloModule m
    ENTRY main { x = f64[1000] parameter(0)
      ROOT y = f64[1000] negate(x), metadata={op_type="aten::neg" source_file="train.py" source_line=3} })");
  const auto failed = client_->Compile(*std::move(module), {.soft_placement = false});
  EXPECT_THAT(std::string(Message(failed.status())),
              AllOf(HasSubstr("aten::neg: npu does not run negate of f64[1000]: unsupported-dtype"),
                    HasSubstr("(train.py:3)")));
}

}  // namespace
}  // namespace lazuli::npu
