#include "backend/interpreter/interpreter.h"

#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "backend/client/registry.h"
#include "tests/support/hlo_test.h"

namespace lazuli::interpreter {
namespace {

using testing::HasSubstr;

Device TheDevice() {
  RegisterInterpreter(2);
  return *FindDevice("interpreter:0");
}
ComputationClient& Client() { return *TheDevice().client; }

BufferPtr Import(const Literal& literal) {
  return *Client().FromHost({literal.raw(), &literal.shape()}, {}, TheDevice());
}
ExecutablePtr Compiled(std::string_view text) { return *Client().Compile(ParseHlo(text), {}); }

ExecuteArgs Args(absl::Span<const BufferPtr> buffers, absl::Span<const uint64_t> scalars) {
  ExecuteArgs args;
  args.buffers = buffers;
  args.scalars = scalars;
  return args;
}

std::string ErrorOf(const absl::StatusOr<Buffers>& result) {
  return result.ok() ? "no error" : std::string(Message(result.status()));
}

constexpr char kScaled[] = R"(HloModule scaled
  ENTRY main { x = f32[2] parameter(0), metadata={op_name="weight"} s = f32[] parameter(1) n = s32[] parameter(2)
    b = f32[2] broadcast(s), dimensions={} y = f32[2] multiply(x, b) m = s32[] negate(n)
    ROOT t = (f32[2], s32[]) tuple(y, m) })";

TEST(InterpreterTest, RunsBuffersAndScalars) {
  const BufferPtr x = Import(Literal::FromValues<float>({2}, {1.5, -2}));
  uint64_t cells[2] = {0, static_cast<uint32_t>(-7)};
  const float scale = 4;
  std::memcpy(&cells[0], &scale, 4);
  auto outputs = Compiled(kScaled)->Execute(Args({x}, cells));
  ASSERT_EQ(ErrorOf(outputs), "no error");
  ASSERT_EQ(outputs->size(), 2u);
  EXPECT_EQ(Client().ToHost(*(*outputs)[0])->ToString(), "{6, -8}");
  EXPECT_EQ(Client().ToHost(*(*outputs)[1])->ToString(), "7");
  EXPECT_EQ((*outputs)[0]->device(), TheDevice());
}

TEST(InterpreterTest, ArgumentErrorsNameTheParameter) {
  const BufferPtr wrong = Import(Literal::FromValues<float>({3}, {1, 2, 3}));
  const uint64_t cells[3] = {};
  const ExecutablePtr executable = Compiled(kScaled);
  EXPECT_EQ(ErrorOf(executable->Execute(Args({wrong}, absl::MakeConstSpan(cells, 2)))),
            "scaled: argument 0 (weight) is f32[3], not f32[2]");
  EXPECT_EQ(ErrorOf(executable->Execute(Args({wrong}, absl::MakeConstSpan(cells, 1)))),
            "scaled takes 3 arguments, not 1 buffers and 1 scalars");
  EXPECT_EQ(ErrorOf(executable->Execute(Args({}, cells))),
            "scaled: argument 0 is f32[2], not a scalar");
}

TEST(InterpreterTest, BorrowsMemoryThatComesWithADeleter) {
  const float values[2] = {1, 2};
  const Shape shape(DType::kF32, {2});
  int deleted = 0;
  BufferPtr buffer = *Client().FromHost({values, &shape}, [&deleted] { ++deleted; }, TheDevice());
  EXPECT_EQ(buffer->host_data(), reinterpret_cast<const std::byte*>(values));
  EXPECT_EQ(deleted, 0);
  buffer.reset();
  EXPECT_EQ(deleted, 1);
}

TEST(InterpreterTest, CopiesMemoryWithoutADeleter) {
  float values[2] = {1, 2};
  const Shape shape(DType::kF32, {2});
  const BufferPtr buffer = *Client().FromHost({values, &shape}, {}, TheDevice());
  values[0] = 9;
  EXPECT_EQ(Client().ToHost(*buffer)->ToString(), "{1, 2}");
}

TEST(InterpreterTest, RefusesWhatItCannotDo) {
  CompileOptions flushing;
  flushing.flush_subnormals = true;
  EXPECT_THAT(std::string(Message(Client().Compile(ParseHlo(kScaled), flushing).status())),
              HasSubstr("cannot flush subnormals"));
  CompileOptions elsewhere;
  elsewhere.device_assignment = {0, 7};
  EXPECT_THAT(std::string(Message(Client().Compile(ParseHlo(kScaled), elsewhere).status())),
              HasSubstr("interpreter has no device 7"));
}

TEST(InterpreterTest, AProgramWithoutInputsRunsWhereTheRunOrTheAssignmentSays) {
  CompileOptions second;
  second.device_assignment = {1};
  const auto executable =
      Client().Compile(ParseHlo("ENTRY main { ROOT c = f32[] constant(1) }"), second);
  ASSERT_TRUE(executable.ok()) << executable.status();
  const auto results = (*executable)->Execute({});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ((*results)[0]->device().ordinal, 1);
  const auto named =
      (*executable)
          ->Execute({.buffers = {}, .scalars = {}, .donated = {}, .device = Client().devices()[0]});
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ((*named)[0]->device().ordinal, 0);
}

TEST(InterpreterTest, FailedRunsSayWhere) {
  const BufferPtr index = Import(Literal::FromValues<int64_t>({1}, {3}));
  const uint64_t limit = 3;
  EXPECT_EQ(ErrorOf(Compiled(R"(ENTRY main { i = s64[1] parameter(0) n = s64[] parameter(1)
      ROOT r = s64[1] custom-call(i, n), custom_call_target="lazuli.check_index_range",
        metadata={op_name="loss" source_file="a.py" source_line=4} })")
                        ->Execute(Args({index}, {&limit, 1}))),
            "loss: index 3 is out of range [0, 3) (a.py:4)");
}

TEST(InterpreterTest, CountsItsMemory) {
  const int64_t before = Client().memory_stats(TheDevice())->bytes_in_use;
  {
    const BufferPtr buffer = Import(Literal(Shape(DType::kF32, {100})));
    EXPECT_EQ(Client().memory_stats(TheDevice())->bytes_in_use, before + 400);
  }
  EXPECT_EQ(Client().memory_stats(TheDevice())->bytes_in_use, before);
}

TEST(InterpreterTest, HasSeveralDevices) {
  TheDevice();
  EXPECT_EQ(FindDevice("interpreter:1")->ToString(), "interpreter:1");
  EXPECT_FALSE(*FindDevice("interpreter:1") == TheDevice());
}

}  // namespace
}  // namespace lazuli::interpreter
