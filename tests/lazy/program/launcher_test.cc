#include "lazy/program/launcher.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/lazy/execution/failing_client.h"
#include "tests/lazy/program/program_text.h"

namespace lazuli::lazy {
namespace {

using backend::FailingClient;
using State = Launcher::State;

backend::BufferPtr BufferOf(FailingClient& client, std::initializer_list<float> values,
                            std::size_t ordinal = 0) {
  const Literal literal = Literal::FromValues<float>({static_cast<int64_t>(values.size())}, values);
  return *client.FromHost({literal.raw(), &literal.shape()}, nullptr, client.device(ordinal));
}

std::vector<float> ValuesOf(const backend::Buffer& buffer) {
  const Literal literal = *buffer.device().client->ToHost(buffer);
  const auto data = literal.data<float>();
  return {data.begin(), data.end()};
}

absl::StatusOr<backend::Buffers> RunOn(const Launcher& launcher, const backend::BufferPtr& x) {
  return launcher.RunChecked({.buffers = absl::MakeConstSpan(&x, 1), .scalars = {}, .donated = {}});
}

// The results of what runs before, while and after it compiles are the same.
TEST(LauncherTest, RunsAreInterpretedUntilItIsCompiled) {
  FailingClient client;
  Launcher launcher(CheckedDoubling(), client.device(), {});
  const backend::BufferPtr x = BufferOf(client, {3, 4});
  const auto expect_doubled = [&] {
    const auto results = RunOn(launcher, x);
    ASSERT_TRUE(results.ok()) << results.status();
    ASSERT_EQ(results->size(), 1u);
    EXPECT_THAT(ValuesOf(*(*results)[0]), testing::ElementsAre(6, 8));
  };
  EXPECT_EQ(launcher.state(), State::kInterpreting);
  EXPECT_EQ(launcher.executable(), nullptr);
  expect_doubled();
  client.HoldCompiles();
  absl::Status compiled;
  std::thread compiler([&] { compiled = launcher.Compile(); });
  while (client.compiling == 0) std::this_thread::yield();
  EXPECT_EQ(launcher.state(), State::kCompiling);
  expect_doubled();
  EXPECT_EQ(client.runs, 0);
  client.Release();
  compiler.join();
  EXPECT_TRUE(compiled.ok()) << compiled;
  EXPECT_EQ(launcher.state(), State::kCompiled);
  expect_doubled();
  EXPECT_EQ(client.runs, 1);
  backend::Executable* const executable = launcher.executable();
  EXPECT_TRUE(launcher.Compile().ok());
  EXPECT_EQ(launcher.executable(), executable);  // once
}

TEST(LauncherTest, AFailedCompileIsTheErrorOfEveryRun) {
  FailingClient client;
  client.fail_compile = true;
  Launcher launcher(CheckedDoubling(), client.device(), {});
  EXPECT_EQ(launcher.Compile().message(), "the compiler gave up");
  EXPECT_EQ(launcher.state(), State::kFailed);
  EXPECT_EQ(RunOn(launcher, BufferOf(client, {3, 4})).status().message(), "the compiler gave up");
  client.fail_compile = false;
  EXPECT_EQ(launcher.Compile().message(), "the compiler gave up");
}

TEST(LauncherTest, AFailedCheckIsAnErrorOfTheFirstTier) {
  FailingClient client;
  Launcher launcher(CheckedDoubling(), client.device(), {});
  const backend::BufferPtr x = BufferOf(client, {12, 4});
  EXPECT_EQ(RunOn(launcher, x).status().message(), "double: value 12 is above 10");
  ASSERT_TRUE(launcher.Compile().ok());
  EXPECT_EQ(RunOn(launcher, x).status().message(), "double: value 12 is above 10");
}

// In either tier.
TEST(LauncherTest, ARunWithoutADeviceTakesPlaceOnTheLaunchers) {
  FailingClient client;
  Launcher launcher(
      ProgramOf(
          "HloModule c\nENTRY e { x = f32[2] constant({1, 2}) ROOT t = (f32[2]) tuple(x) }\n"),
      client.device(1), {});
  for (const bool compiles : {false, true}) {
    if (compiles) {
      ASSERT_TRUE(launcher.Compile().ok());
    }
    const auto results = launcher.Run({.buffers = {}, .scalars = {}, .donated = {}});
    ASSERT_TRUE(results.ok()) << results.status();
    EXPECT_EQ((*results)[0]->device(), client.device(1));
  }
}

TEST(LauncherTest, OutputsThatAreLostAreAnError) {
  FailingClient client;
  Launcher launcher(CheckedDoubling(), client.device(), {});
  ASSERT_TRUE(launcher.Compile().ok());
  client.lose_outputs = true;
  EXPECT_EQ(RunOn(launcher, BufferOf(client, {3, 4})).status().message(),
            "doubling: gave 1 results, 2 were expected");
}

TEST(LauncherTest, DevicesRunTogether) {
  FailingClient client;
  const Launcher launcher(ProgramOf("HloModule sum, replica_count=2\n"
                                    "add { a = f32[] parameter(0) b = f32[] parameter(1)\n"
                                    "  ROOT c = f32[] add(a, b) }\n"
                                    "ENTRY main { x = f32[2] parameter(0)\n"
                                    "  ROOT y = f32[2] all-reduce(x), to_apply=add }\n"),
                          client.device(), {});
  const backend::BufferPtr x[] = {BufferOf(client, {1, 2}, 0), BufferOf(client, {10, 20}, 1)};
  std::vector<backend::ExecuteArgs> args;
  for (std::size_t i = 0; i < 2; ++i) {
    args.push_back({.buffers = absl::MakeConstSpan(&x[i], 1),
                    .scalars = {},
                    .donated = {},
                    .device = client.device(i)});
  }
  for (const auto& outputs : launcher.RunTogether(args)) {
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    EXPECT_THAT(ValuesOf(*(*outputs)[0]), testing::ElementsAre(11, 22));
  }
}

}  // namespace
}  // namespace lazuli::lazy
