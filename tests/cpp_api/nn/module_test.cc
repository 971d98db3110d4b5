#include <string>
#include <utility>
#include <vector>

#include "tests/support/expect_error.h"
#include <lazuli/lazuli.h>

namespace lazuli {
namespace {

using testing::ElementsAre;
using testing::Pair;

struct Mlp : nn::Module {
  nn::Linear fc1{3, 4}, fc2{4, 2};
  Mlp() { register_modules({{"fc1", fc1}, {"fc2", fc2}}); }
  Tensor forward(const Tensor& x) const { return fc2(relu(fc1(x))); }
};

std::vector<std::string> Names(const std::vector<std::pair<std::string, Tensor>>& named) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : named) names.push_back(name);
  return names;
}

void SetTo(Tensor tensor, double value) {
  const NoGrad no_grad;
  tensor.fill_(value);
}
float First(const Tensor& tensor) { return tensor.to_vector<float>()[0]; }

TEST(ModuleTest, NamesParametersByTheirPathAndGivesThemThoseNames) {
  const Mlp net;
  EXPECT_THAT(Names(net.named_parameters()),
              ElementsAre("fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"));
  EXPECT_EQ(net.fc2.bias.name(), "fc2.bias");
  EXPECT_EQ(net.parameters().size(), 4u);
  EXPECT_EQ(net.num_parameters(), 3 * 4 + 4 + 4 * 2 + 2);
}

TEST(ModuleTest, TheOutermostModuleNamesLast) {
  struct Outer : nn::Module {
    Mlp body;
    nn::Linear head{2, 1};
    Outer() { register_modules({{"body", body}, {"head", head}}); }
  };
  const Outer net;
  EXPECT_EQ(net.body.fc1.weight.name(), "body.fc1.weight");
  EXPECT_EQ(net.named_parameters().back().first, "head.bias");
}

TEST(ModuleTest, CopiesShareParameters) {
  const Mlp net;
  const Mlp copy = net;  // NOLINT: a copy is what is tested
  EXPECT_TRUE(copy.fc1.weight.is_same(net.fc1.weight));
  EXPECT_TRUE(copy.parameters()[3].is_same(net.fc2.bias));
  SetTo(copy.fc1.weight, 7);
  EXPECT_EQ(First(net.fc1.weight), 7);
  Mlp assigned;
  assigned = net;
  EXPECT_TRUE(assigned.parameters()[0].is_same(net.fc1.weight));
}

TEST(ModuleTest, ClonesHaveTheirOwnParametersWithEqualValues) {
  Mlp net;
  Mlp copy = nn::clone(net);
  EXPECT_EQ(copy.fc1.weight.to_vector<float>(), net.fc1.weight.to_vector<float>());
  EXPECT_TRUE(copy.parameters()[0].is_same(copy.fc1.weight)) << "the clone holds what it uses";
  EXPECT_TRUE(copy.fc1.parameters()[1].is_same(copy.fc1.bias));
  EXPECT_TRUE(copy.fc1.weight.requires_grad());
  EXPECT_EQ(copy.fc2.weight.name(), "fc2.weight");
  SetTo(copy.fc1.weight, 7);
  EXPECT_NE(First(net.fc1.weight), 7);
  copy.eval();
  EXPECT_TRUE(net.is_training());
}

TEST(ModuleTest, ClonesCoverContainersParametersAndBuffersOfUsers) {
  struct Custom : nn::Module {
    std::vector<nn::Linear> layers;
    nn::Parameter scale = register_parameter("scale", ones({2}));
    nn::Parameter mean = register_buffer("mean", zeros({2}));
    nn::Sequential head{nn::Linear(2, 2), nn::ReLU()};
    Custom() {
      for (int i = 0; i < 3; ++i) {
        layers.emplace_back(2, 2);
        register_module("layer" + std::to_string(i), layers.back());
      }
      register_module("head", head);
    }
  };
  const Custom net;
  const Custom copy = nn::clone(net);
  for (const Tensor& p : copy.parameters()) {
    for (const Tensor& original : net.parameters()) EXPECT_FALSE(p.is_same(original));
  }
  EXPECT_TRUE(copy.parameters()[0].is_same(copy.scale));
  EXPECT_TRUE(copy.named_parameters()[3].second.is_same(copy.layers[1].weight));
  EXPECT_TRUE(copy.named_parameters().back().second.is_same(copy.head[0].get<nn::Linear>()->bias));
  EXPECT_TRUE(copy.named_buffers()[0].second.is_same(copy.mean));
  EXPECT_FALSE(copy.mean.is_same(net.mean));
  EXPECT_FALSE(copy.mean.requires_grad());
}

TEST(ModuleTest, ATensorInTwoModulesIsOneParameterAlsoOfAClone) {
  struct Tied : nn::Module {
    nn::Linear in{3, 3}, out{3, 3};
    Tied() {
      out = in;
      register_modules({{"in", in}, {"out", out}});
    }
  };
  const Tied net;
  EXPECT_EQ(net.parameters().size(), 2u);
  const Tied copy = nn::clone(net);
  EXPECT_TRUE(copy.in.weight.is_same(copy.out.weight));
  EXPECT_FALSE(copy.in.weight.is_same(net.in.weight));
}

TEST(ModuleTest, TrainingModeReachesModulesInside) {
  Mlp net;
  EXPECT_TRUE(net.fc2.is_training());
  net.eval();
  EXPECT_FALSE(net.fc2.is_training());
  net.train();
  EXPECT_TRUE(net.fc2.is_training());
}

TEST(ModuleTest, ZeroGradDropsGradients) {
  Mlp net;
  sum(net.forward(ones({1, 3}))).backward();
  EXPECT_TRUE(net.fc1.weight.grad().defined());
  net.zero_grad();
  for (const Tensor& p : net.parameters()) EXPECT_FALSE(p.grad().defined());
}

TEST(ModuleTest, MovingKeepsTheTensorsAndTheirNames) {
  Mlp net;
  const std::vector<Tensor> before = net.parameters();
  const std::vector<float> weight = net.fc1.weight.to_vector<float>();
  sum(net.forward(ones({1, 3}))).backward();
  const Device interpreter("interpreter");
  net.to(interpreter);
  EXPECT_TRUE(net.parameters()[0].is_same(before[0])) << "optimisers hold these";
  EXPECT_EQ(net.fc1.weight.device(), interpreter);
  EXPECT_EQ(net.fc1.weight.to_vector<float>(), weight);
  EXPECT_EQ(net.fc1.weight.name(), "fc1.weight");
  EXPECT_TRUE(net.fc1.weight.requires_grad());
  EXPECT_EQ(net.fc1.weight.grad().device(), interpreter);
  EXPECT_EQ(net.forward(ones({1, 3}, kFloat32, interpreter)).device(), interpreter);
}

TEST(ModuleTest, AnAbsentParameterIsNotListed) {
  struct Custom : nn::Module {
    nn::Parameter bias = register_parameter("bias", {});
  };
  EXPECT_TRUE(Custom().parameters().empty());
}

TEST(ModuleTest, WhatIsUnregisteredIsForgottenAndItsNameFree) {
  nn::Module module;
  module.register_parameter("scale", ones({1}));
  module.register_buffer("mean", zeros({1}));
  module.register_module("fc", nn::Linear(1, 1));
  EXPECT_TRUE(module.unregister("scale"));
  EXPECT_FALSE(module.unregister("scale"));
  EXPECT_TRUE(module.unregister("mean"));
  EXPECT_TRUE(module.unregister("fc"));
  EXPECT_TRUE(module.parameters().empty());
  EXPECT_TRUE(module.named_buffers().empty());
  module.register_parameter("scale", zeros({3}));
  EXPECT_EQ(module.num_parameters(), 3);
}

TEST(ModuleTest, WrongRegistrationsAreErrors) {
  Mlp net;
  EXPECT_ERROR(kInvalidArgument, "register_module: the module has a 'fc1' already",
               net.register_module("fc1", nn::ReLU()));
  EXPECT_ERROR(kInvalidArgument, "register_module: the name is empty",
               net.register_modules({{"", nn::ReLU()}}));
  EXPECT_ERROR(kInvalidArgument,
               "register_parameter: 'a.b' has a dot, which separates the names of modules",
               net.register_parameter("a.b", ones({1})));
  EXPECT_ERROR(kInvalidArgument, "register_module: 'self' contains the module it is registered in",
               net.register_module("self", net));
  EXPECT_ERROR(kInvalidArgument, "set_requires_grad: gradients need floats, not s64[2]",
               net.register_parameter("count", ones({2}, kInt64)));
  EXPECT_EQ(net.parameters().size(), 4u) << "nothing was registered";
}

}  // namespace
}  // namespace lazuli
