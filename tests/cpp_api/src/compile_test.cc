// Compiled functions: replayed calls have the values and effects of the function, and guards that
// fail have it recorded anew.
#include "lazuli/compile.h"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <lazuli/lazuli.h>

namespace lazuli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<float> ElementsOf(const Tensor& x) { return x.to_vector<float>(); }

TEST(CompileTest, TheThirdCallIsReplayed) {
  int runs = 0;
  const auto f = compile([&](const Tensor& x, const Tensor& y) {
    ++runs;
    return relu(x.matmul(y)) * 0.5 + x;
  });
  for (int i = 0; i < 6; ++i) {
    const Tensor x = rand({3, 3}), y = rand({3, 3});
    EXPECT_EQ(ElementsOf(f(x, y)), ElementsOf(relu(x.matmul(y)) * 0.5 + x)) << i;
  }
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(f.replays(), 4);
}

TEST(CompileTest, AReplayRecordsNoNodes) {
  const auto f = compile([](const Tensor& x) { return exp(x) + 1; });
  const Tensor x = rand({4});
  for (int i = 0; i < 3; ++i) f(x);
  sync();
  const std::int64_t before = metrics::counter("graph.nodes_recorded");
  const Tensor y = f(x);
  EXPECT_EQ(metrics::counter("graph.nodes_recorded"), before);
  EXPECT_EQ(f.replays(), 2);
}

TEST(CompileTest, ArgumentsThatAreNoTensorsAndTuplesOfResults) {
  const auto f = compile([](const std::vector<Tensor>& list, double by, bool twice) {
    return std::pair(list[0] * by, twice ? list[1] + list[1] : list[1]);
  });
  for (const double by : {2.0, 2.0, 2.0, 3.0, 3.0, 3.0, 2.0}) {
    const auto [a, b] = f(std::vector{ones({2}), ones({2})}, by, true);
    EXPECT_THAT(ElementsOf(a), ElementsAre(by, by));
    EXPECT_THAT(ElementsOf(b), ElementsAre(2, 2));
  }
  EXPECT_EQ(f.replays(), 3);
}

TEST(CompileTest, ATrainingStepIsTheLoopsBitForBit) {
  const auto train = [](bool compiled) {
    manual_seed(5);
    nn::Linear first(6, 12), second(12, 3);
    std::vector<Tensor> parameters = first.parameters();
    for (const Tensor& p : second.parameters()) parameters.push_back(p);
    optim::Adam optimizer(parameters, {.lr = 0.02});
    const auto step = [&](const Tensor& x, const Tensor& y) {
      optimizer.zero_grad();
      const Tensor hidden = dropout(relu(first.forward(x)), 0.25);
      const Tensor loss = nn::functional::cross_entropy(second.forward(hidden), y);
      loss.backward();
      optimizer.step();
      return loss.detach();
    };
    const auto call = compile(step, {.name = "step"});
    std::vector<float> values;
    for (int i = 0; i < 20; ++i) {
      const Tensor x = rand({8, 6}), y = tensor({0, 1, 2, 0, 1, 2, 0, 1}).to(kInt64);
      const Tensor loss = compiled ? call(x, y) : step(x, y);
      mark_step();
      optimizer.set_lr(0.02 / (1 + i));
      values.push_back(loss.item<float>());
    }
    for (const Tensor& p : parameters) {
      for (const float v : ElementsOf(p)) values.push_back(v);
      for (const float v : ElementsOf(p.grad())) values.push_back(v);
    }
    if (compiled) {
      EXPECT_GE(call.replays(), 15) << call.explain();
    }
    const StateDict state = optimizer.state_dict();
    EXPECT_EQ(state.metadata.at("0.step"), "20");
    return values;
  };
  const std::vector<float> plain = train(false), replayed = train(true);
  ASSERT_EQ(plain.size(), replayed.size());
  EXPECT_EQ(std::memcmp(plain.data(), replayed.data(), plain.size() * sizeof(float)), 0);
}

TEST(CompileTest, WritesAndAliases) {
  const auto f = compile([](Tensor x, const Tensor& y) {
    x.add_(y);
    return std::tuple(x, x * 2);
  });
  for (int i = 0; i < 4; ++i) {
    const Tensor x = ones({2}), y = full({2}, 2);
    const auto [same, twice] = f(x, y);
    EXPECT_TRUE(same.is_same(x));
    EXPECT_THAT(ElementsOf(x), ElementsAre(3, 3));
    EXPECT_THAT(ElementsOf(twice), ElementsAre(6, 6));
  }
  const Tensor x = ones({2});
  EXPECT_THAT(ElementsOf(std::get<1>(f(x, x))), ElementsAre(4, 4));
  EXPECT_EQ(f.replays(), 2);
}

TEST(CompileTest, OtherShapesAndModesAreRecordedAndExplained) {
  const auto f = compile([](const Tensor& x) { return x + 1; });
  for (int i = 0; i < 3; ++i) f(ones({2}));
  f(ones({3}));
  EXPECT_THAT(f.explain(), HasSubstr("argument 0 is f32[3]"));
  {
    const NoGrad no_grad;
    f(ones({2}));
  }
  EXPECT_THAT(f.explain(), HasSubstr("grad mode is another one"));
  EXPECT_EQ(f.replays(), 1);
}

TEST(CompileTest, AReadIsRefusedWithItsLine) {
  const auto f = compile([](const Tensor& x) { return x * x.sum().item<float>(); });
  for (int i = 1; i < 5; ++i) EXPECT_THAT(ElementsOf(f(full({1}, i))), ElementsAre(i * i));
  EXPECT_EQ(f.replays(), 0);
  EXPECT_THAT(f.explain(), HasSubstr("compile_test.cc"));
}

TEST(CompileTest, AScheduleInsideIsSteppedInEachCall) {
  Tensor w = ones({2}).requires_grad_();
  optim::SGD optimizer({w}, {.lr = 1});
  optim::StepLR schedule(optimizer, {.step_size = 2});
  const auto step = compile([&](const Tensor& x) {
    optimizer.zero_grad();
    (w * x).sum().backward();
    optimizer.step();
    schedule.step();
  });
  for (int i = 0; i < 6; ++i) step(ones({2}));
  EXPECT_EQ(schedule.steps(), 6);
  EXPECT_EQ(step.replays(), 0);
  EXPECT_THAT(step.explain(), HasSubstr("it steps a schedule, which a replay would not"));
}

TEST(CompileTest, AFailedCheckTakesNoUpdates) {
  Tensor count = zeros({}), table = zeros({3, 1});
  const auto f = compile([&](const Tensor& index) {
    count.add_(1);
    return table.index_select(0, index);
  });
  for (int i = 0; i < 4; ++i) f(tensor({0}));
  sync();
  EXPECT_EQ(count.item<float>(), 4);
  EXPECT_THROW(ElementsOf(f(tensor({7}))), Error);
  EXPECT_EQ(count.item<float>(), 4);
  f(tensor({1}));
  EXPECT_EQ(count.item<float>(), 5);
}

TEST(CompileTest, DonatedArgumentsGiveTheirMemory) {
  const auto f = compile([](const Tensor& x, const Tensor& y) { return x * 2 + y; },
                         {.name = "scaled", .donate = {0}});
  Tensor x = ones({64, 64});
  const Tensor y = ones({64, 64});
  for (int i = 0; i < 5; ++i) {
    sync(/*wait=*/true);
    const std::int64_t before = metrics::counter("buffer.donations");
    const Tensor given = x;
    x = f(given, y);
    sync(/*wait=*/true);
    if (i > 2) {
      EXPECT_EQ(metrics::counter("buffer.donations"), before + 1) << i;
    }
    EXPECT_THROW(ElementsOf(given), Error);
  }
  EXPECT_THAT(ElementsOf(x)[0], 63);
  EXPECT_EQ(f.replays(), 3);
}

TEST(CompileTest, APositionToDonateIsThatOfATensor) {
  for (const std::int64_t argument : {std::int64_t{-1}, std::int64_t{1}, std::int64_t{1} << 32}) {
    const auto f = compile([](const Tensor& x) { return x * 2; }, {.donate = {argument}});
    try {
      f(ones({2}));
      ADD_FAILURE() << argument;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("compile: argument " + std::to_string(argument) +
                                                   " is given up, but there are 1 tensors"));
    }
  }
}

TEST(CompileTest, ThreadsShareWhatIsKnown) {
  Tensor weight = ones({3});
  const auto f = compile([&](const Tensor& x) { return (x * weight).sum(); });
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) wrong += f(full({3}, t + i)).item<float>() != 3 * (t + i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GE(f.replays(), 15);
}

}  // namespace
}  // namespace lazuli
