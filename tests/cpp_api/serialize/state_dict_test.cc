#include "lazuli/state_dict.h"

#include <string>
#include <vector>

#include "tests/support/expect_error.h"
#include <lazuli/lazuli.h>

namespace lazuli {
namespace {

using Floats = std::vector<float>;
using testing::ElementsAre;

struct Net : nn::Module {
  nn::Linear fc{2, 2};
  nn::BatchNorm1d norm{2};
  Net() { register_modules({{"fc", fc}, {"norm", norm}}); }
};

TEST(StateDictTest, HasParametersAndBuffersByName) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : Net().state_dict().tensors) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("fc.bias", "fc.weight", "norm.bias", "norm.num_batches_tracked",
                                 "norm.running_mean", "norm.running_var", "norm.weight"));
}

TEST(StateDictTest, IsWalkedByName) {
  const StateDict state = Net().state_dict();
  std::int64_t elements = 0;
  for (const auto& [name, tensor] : state) elements += tensor.numel();
  EXPECT_EQ(elements, 15);
  EXPECT_EQ(state.size(), 7U);
  EXPECT_TRUE(state.contains("fc.bias"));
  EXPECT_FALSE(state.contains("bias"));
}

TEST(StateDictTest, HoldsStatesUnderNames) {
  Net net;
  optim::Adam opt(net.parameters(), {.lr = 0.25});
  for (const Tensor& p : net.parameters()) p.sum().backward();
  opt.step();
  StateDict checkpoint;
  checkpoint.insert("model", net.state_dict());
  checkpoint.insert("optimizer", opt.state_dict());
  checkpoint.metadata["epoch"] = "3";
  EXPECT_TRUE(checkpoint.contains("model.fc.weight"));
  Net other;
  other.load_state_dict(checkpoint.part("model"));
  EXPECT_TRUE(equal(other.fc.weight, net.fc.weight));
  optim::Adam again(other.parameters());
  again.load_state_dict(checkpoint.part("optimizer"));
  EXPECT_EQ(again.lr(), 0.25);
  EXPECT_EQ(again.state_dict().metadata, opt.state_dict().metadata);
  EXPECT_ERROR(kNotFound, "StateDict: it has no part \"mode\"", checkpoint.part("mode"));
}

TEST(StateDictTest, LoadingCopiesIntoTheSameTensors) {
  const Net from;
  Net to;
  const Tensor weight = to.fc.weight;
  to.load_state_dict(from.state_dict());
  EXPECT_EQ(weight.to_vector<float>(), from.fc.weight.to_vector<float>());
  EXPECT_TRUE(weight.is_same(to.parameters()[0]));
  EXPECT_TRUE(weight.requires_grad());
  EXPECT_FALSE(weight.is_same(from.fc.weight));
}

TEST(StateDictTest, NamesThatOnlyOneSideHasAreReportedOrErrors) {
  Net net;
  StateDict state = net.state_dict();
  state.tensors.erase("fc.bias");
  state.tensors["head.weight"] = ones({1});
  EXPECT_ERROR(kInvalidArgument,
               "Module: the state does not fit: missing from the state: fc.bias; unexpected in the "
               "state: head.weight",
               net.load_state_dict(state));
  const LoadReport report = net.load_state_dict(state, {.strict = false});
  EXPECT_THAT(report.missing, ElementsAre("fc.bias"));
  EXPECT_THAT(report.unexpected, ElementsAre("head.weight"));
}

TEST(StateDictTest, OtherDtypesAreConverted) {
  Net net;
  StateDict state = Net().state_dict();
  state.tensors["norm.weight"] = tensor({0.5, -2.0});  // f64
  state.tensors["fc.bias"] = tensor<std::int64_t>({3, 4});
  net.load_state_dict(state);
  EXPECT_EQ(net.norm.weight.dtype(), kFloat32);
  EXPECT_THAT(net.norm.weight.to_vector<float>(), ElementsAre(0.5, -2));
  EXPECT_THAT(net.fc.bias.to_vector<float>(), ElementsAre(3, 4));
}

TEST(StateDictTest, DimsThatDifferAreErrorsAndNothingIsCopied) {
  Net net;
  const Floats before = net.fc.bias.to_vector<float>();
  StateDict state = Net().state_dict();
  state.tensors["fc.weight"] = ones({2, 3});
  state.tensors["norm.weight"] = ones({3}, kFloat64);
  EXPECT_ERROR(kInvalidArgument,
               "Module: the state does not fit: fc.weight is f32[2,3] in the state and f32[2,2] "
               "here; norm.weight is f64[3] in the state and f32[2] here",
               net.load_state_dict(state, {.strict = false}));
  EXPECT_EQ(net.fc.bias.to_vector<float>(), before);
}

}  // namespace
}  // namespace lazuli
