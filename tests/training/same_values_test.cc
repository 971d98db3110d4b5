// Laziness changes when work happens, never what it computes.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/training/train.h"

namespace lazuli::test {
namespace {

// Run by the tests below in a process of its own, because flags are read once a process. Prints all
// bits of what it computes.
TEST(SameValuesTest, DISABLED_PrintLosses) {
  manual_seed(1);
  SmallLeNet net;
  optim::SGD sgd(net.parameters(), {.lr = 0.05, .momentum = 0.9, .weight_decay = 1e-3});
  data::DataLoader train = Digits(220);
  for (const float loss : TrainEpoch(net, sgd, train)) std::printf("SGD %a\n", loss);
  optim::Adam adam(net.parameters());
  for (const float loss : TrainEpoch(net, adam, train)) std::printf("Adam %a\n", loss);
  for (const Tensor& p : net.parameters()) std::printf("sum %a\n", sum(p).item<float>());
  std::printf("graphs %lld\n", static_cast<long long>(Compilations()));
}

struct Losses {
  std::string lines;
  int graphs = 0;
};

Losses LossesWith(const std::string& environment) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string command =
      "env " + environment + " '" + self +
      "' --gtest_also_run_disabled_tests --gtest_filter='*PrintLosses' 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  Losses losses;
  std::string everything;
  std::array<char, 256> line;
  while (std::fgets(line.data(), line.size(), pipe)) {
    const std::string text = line.data();
    everything += text;
    if (text.rfind("SGD ", 0) == 0 || text.rfind("Adam ", 0) == 0 || text.rfind("sum ", 0) == 0) {
      losses.lines += text;
    }
    if (text.rfind("graphs ", 0) == 0) losses.graphs = std::atoi(text.c_str() + 7);
  }
  EXPECT_EQ(pclose(pipe), 0) << everything;
  return losses;
}

void ExpectSameWithASyncAfterEveryOp(const std::string& device) {
  const std::string environment = "PJRT_DEVICE=" + device;
  const Losses lazy = LossesWith(environment);
  const Losses eager = LossesWith(environment + " LAZULI_MAX_GRAPH_NODES=0");
  EXPECT_GT(lazy.lines.size(), 100u);
  EXPECT_EQ(lazy.lines, eager.lines);
  EXPECT_GT(eager.graphs, 5 * lazy.graphs) << "the graphs really were cut";
}

TEST(SameValuesTest, WithASyncAfterEveryOpOnTheCpu) { ExpectSameWithASyncAfterEveryOp("cpu"); }

TEST(SameValuesTest, WithASyncAfterEveryOpOnTheInterpreter) {
  ExpectSameWithASyncAfterEveryOp("interpreter");
}

TEST(SameValuesTest, TheInterpreterIsCloseToTheCpu) {
  manual_seed(1);
  SmallLeNet net;
  data::DataLoader test = Digits(50, /*train=*/false);
  const auto it = test.begin();
  const std::vector<float> cpu = net.forward(it->x).to_vector<float>();
  const Device interpreter("interpreter");
  net.to(interpreter);
  const std::vector<float> reference = net.forward(it->x.to(interpreter)).to_vector<float>();
  EXPECT_THAT(cpu, testing::Pointwise(testing::FloatNear(1e-5f), reference));
}

}  // namespace
}  // namespace lazuli::test
