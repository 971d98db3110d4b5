// lazuli/hlo.h: modules as users handle them.
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include <lazuli/hlo.h>
#include <lazuli/lazuli.h>

namespace lazuli {
namespace {

using test::ErrorOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kAdd = R"(HloModule adds
ENTRY main {
  p = f32[2] parameter(0)
  q = f32[2] parameter(1)
  s = f32[2] add(p, q)
  ROOT t = (f32[2], f32[2]) tuple(s, p)
})";

TEST(HloTest, RunsOnEveryDeviceAndByDefinition) {
  const HloModule module = HloModule::parse(kAdd);
  EXPECT_EQ(module.name(), "adds");
  EXPECT_THAT(module.parameters(), ElementsAre(HloShape{kFloat32, {2}}, HloShape{kFloat32, {2}}));
  for (const char* device : {"cpu", "interpreter"}) {
    const Tensor p = tensor(std::vector<float>{1, 2}, {2}, Device(device));
    const Tensor q = tensor(std::vector<float>{10, 20}, {2}, Device(device));
    const auto results = module.compile(Device(device)).run({p, q + q});
    ASSERT_EQ(results.size(), 2u);
    EXPECT_THAT(results[0].to_vector<float>(), ElementsAre(21, 42));
    EXPECT_THAT((results[1] * 2).to_vector<float>(), ElementsAre(2, 4));
    EXPECT_THAT(module.evaluate({p, q})[0].to_vector<float>(), ElementsAre(11, 22));
  }
}

// A layer as a module, with its gradient traced: trained as the layer itself is, bit for bit.
TEST(HloTest, ACallIsTrainedAsWhatItCalls) {
  const auto layer = [](const std::vector<Tensor>& p) { return tanh(matmul(p[0], p[1])); };
  const HloShape x_shape{kFloat32, {4, 3}}, w_shape{kFloat32, {3, 2}}, y_shape{kFloat32, {4, 2}};
  const auto forward = [&](const std::vector<Tensor>& p) { return std::vector{layer(p)}; };
  const auto backward = [&](const std::vector<Tensor>& p) {
    const std::vector<Tensor> in{p[0].detach().set_requires_grad(true),
                                 p[1].detach().set_requires_grad(true)};
    return grad({layer(in)}, in, {p[2]});
  };
  const HloModule module =
      HloModule::trace({x_shape, w_shape}, forward)
          .with_gradient(HloModule::trace({x_shape, w_shape, y_shape}, backward));
  const auto train = [&](bool calls) {
    manual_seed(3);
    const Tensor x = randn({4, 3}), target = randn({4, 2});
    Tensor w = randn({3, 2});
    w.set_requires_grad(true);
    for (int step = 0; step < 3; ++step) {
      const Tensor y = calls ? module.call({x, w})[0] : layer({x, w});
      const Tensor error = y - target;
      (error * error).sum().backward();
      {
        const NoGrad no_grad;
        w.sub_(w.grad() * 0.1f);
      }
      w.set_grad(Tensor());
    }
    return w.to_vector<float>();
  };
  EXPECT_EQ(train(true), train(false));
}

TEST(HloTest, ACallSaysWhatDoesNotFit) {
  const HloModule module = HloModule::parse(kAdd);
  const Tensor p = tensor({1.f, 2.f});
  EXPECT_THAT(ErrorOf([&] { (void)module.call({p}); }),
              HasSubstr("call of adds: it takes 2 arguments, not 1 ("));
  EXPECT_THAT(ErrorOf([&] { (void)module.with_gradient(module); }),
              HasSubstr("the gradient has 2 parameters, not 4"));
}

TEST(HloTest, DerivativesAreModules) {
  const HloModule module = HloModule::parse(R"(HloModule cubes
ENTRY main {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  s = f32[] multiply(x, x)
  c = f32[] multiply(s, x)
  ROOT r = f32[] multiply(c, y)
})");
  const Tensor x = full({}, 2.f), y = full({}, 5.f), one = full({}, 1.f);
  const auto values = [](const std::vector<Tensor>& results) {
    std::vector<float> all;
    for (const Tensor& result : results) all.push_back(result.to_vector<float>()[0]);
    return all;
  };
  EXPECT_THAT(values(module.jvp().evaluate({x, y, one, one})), ElementsAre(40, 68));
  EXPECT_THAT(values(module.jvp({1}).evaluate({x, y, one})), ElementsAre(40, 8));
  EXPECT_THAT(values(module.vjp().evaluate({x, y, one})), ElementsAre(60, 8));
  EXPECT_THAT(values(module.grad().evaluate({x, y})), ElementsAre(60));
  EXPECT_THAT(values(module.grad().grad().evaluate({x, y})), ElementsAre(60));
  EXPECT_THAT(values(module.value_and_grad({0, 1}).evaluate({x, y})), ElementsAre(40, 60, 8));
  EXPECT_THAT(ErrorOf([&] { (void)module.grad({2}); }),
              HasSubstr("grad: there is no argument 2: the module takes 2"));
}

TEST(HloTest, TuplesAreTheirArrays) {
  const HloModule module = HloModule::parse(R"(ENTRY main {
    p = (f32[2], (s32[])) parameter(0)
    x = f32[2] get-tuple-element(p), index=0
    t = (s32[]) get-tuple-element(p), index=1
    n = f32[2] negate(x)
    ROOT r = ((s32[]), f32[2]) tuple(t, n)
  })");
  EXPECT_THAT(module.parameters(), ElementsAre(HloShape{kFloat32, {2}}, HloShape{kInt32, {}}));
  EXPECT_THAT(module.results(), ElementsAre(HloShape{kInt32, {}}, HloShape{kFloat32, {2}}));
  const Tensor x = tensor({1.f, 2.f}), i = tensor(std::vector<int32_t>{7}, {});
  for (const auto& results : {module.compile().run({x, i}), module.evaluate({x, i})}) {
    ASSERT_EQ(results.size(), 2u);
    EXPECT_THAT(results[0].to_vector<int32_t>(), ElementsAre(7));
    EXPECT_THAT(results[1].to_vector<float>(), ElementsAre(-1, -2));
  }
  EXPECT_EQ(ErrorOf([&] { module.evaluate({x}); }), "module_main takes 2 arguments, not 1");
}

TEST(HloTest, TextAndBinaryFormReadBack) {
  const HloModule module = HloModule::parse(kAdd);
  EXPECT_EQ(HloModule::parse(module.to_string()), module);
  EXPECT_EQ(HloModule::parse(module.to_string({.percent = false, .operand_shapes = true})), module);
  EXPECT_EQ(HloModule::from_proto(module.to_proto()), module);
}

TEST(HloTest, ErrorsNameThePlace) {
  EXPECT_THAT(ErrorOf([] { HloModule::parse("ENTRY e {\n  ROOT p = f32[] ad()\n}"); }),
              HasSubstr("2:18: unknown opcode 'ad'"));
  EXPECT_THAT(ErrorOf([] { HloModule::from_proto("nonsense"); }),
              HasSubstr("the bytes are not an HloModuleProto"));
  EXPECT_EQ(ErrorOf([] { HloModule::load("nowhere.hlo"); }), "hlo: cannot read nowhere.hlo");
  const HloModule module = HloModule::parse(kAdd);
  const Tensor p = tensor({1.0f, 2.0f});
  EXPECT_THAT(ErrorOf([&] { module.compile().run({p}); }),
              HasSubstr("adds: 2 parameters expected"));
  EXPECT_THAT(ErrorOf([&] { module.evaluate({p, tensor({1.0f})}); }),
              HasSubstr("adds: argument 1 is f32[1], not f32[2]"));
  EXPECT_THAT(ErrorOf([&] { module.compile(Device("interpreter")).run({p, p}); }),
              HasSubstr("adds: argument 0 is on cpu:0, the program on interpreter:0"));
}

TEST(HloTest, ACustomCallOfTheUsers) {
  register_custom_call("hlo_test.scale", [](std::string_view config,
                                            const std::vector<CustomCallArray>& operands,
                                            const std::vector<CustomCallResult>& results) {
    if (config != "by 3") throw std::runtime_error("scale: no such config");
    for (int i = 0; i < 2; ++i) {
      static_cast<float*>(results[0].data)[i] = 3 * static_cast<const float*>(operands[0].data)[i];
    }
  });
  const auto text = [](const std::string& config) {
    return "HloModule m\nENTRY e { p = f32[2] parameter(0) ROOT c = f32[2] custom-call(p), "
           "custom_call_target=\"hlo_test.scale\", backend_config=\"" +
           config + "\" }";
  };
  for (const char* device : {"cpu", "interpreter"}) {
    const Tensor p = tensor(std::vector<float>{1, 2}, {2}, Device(device));
    EXPECT_THAT(
        HloModule::parse(text("by 3")).compile(Device(device)).run({p})[0].to_vector<float>(),
        ElementsAre(3, 6));
    EXPECT_THAT(ErrorOf([&] { HloModule::parse(text("by 4")).compile(Device(device)).run({p}); }),
                HasSubstr("scale: no such config"));
  }
}

// Adds up what it is fed until that is negative, and sends every sum.
constexpr const char* kSums = R"(HloModule sums
more { s = (f32[], s32[2], f32[], token[]) parameter(0)
  x = f32[] get-tuple-element(s), index=0
  zero = f32[] constant(0)
  ROOT c = pred[] compare(x, zero), direction=GE }
next { s = (f32[], s32[2], f32[], token[]) parameter(0)
  sum = f32[] get-tuple-element(s), index=2
  k = token[] get-tuple-element(s), index=3
  i = ((f32[], s32[2]), token[]) infeed(k)
  v = (f32[], s32[2]) get-tuple-element(i), index=0
  x = f32[] get-tuple-element(v), index=0
  y = s32[2] get-tuple-element(v), index=1
  after = token[] get-tuple-element(i), index=1
  new_sum = f32[] add(sum, x)
  both = (f32[], s32[2]) tuple(new_sum, y)
  sent = token[] outfeed(both, after), outfeed_shape=(f32[], s32[2]{0})
  ROOT r = (f32[], s32[2], f32[], token[]) tuple(x, y, new_sum, sent) }
ENTRY main {
  zero = f32[] constant(0)
  none = s32[2] constant({0, 0})
  k = token[] after-all()
  init = (f32[], s32[2], f32[], token[]) tuple(zero, none, zero, k)
  w = (f32[], s32[2], f32[], token[]) while(init), condition=more, body=next
  ROOT sum = f32[] get-tuple-element(w), index=2
})";

TEST(HloTest, ProgramsExchangeArraysWithTheHost) {
  const HloModule module = HloModule::parse(kSums);
  for (const char* name : {"cpu", "interpreter"}) {
    const Device device(name);
    const auto feed = [&](float x, int y) {
      transfer_to_infeed({tensor(std::vector<float>{x}, {}, device),
                          tensor(std::vector<int32_t>{y, -y}, {2}, device)},
                         device);
    };
    feed(3, 1);
    feed(4, 2);
    feed(-1, 3);
    EXPECT_THAT(module.compile(device).run({})[0].to_vector<float>(), ElementsAre(6));
    for (const auto& [sum, y] : {std::pair(3.0f, 1), {7.0f, 2}, {6.0f, 3}}) {
      const std::vector<Tensor> sent = transfer_from_outfeed(device);
      ASSERT_EQ(sent.size(), 2u);
      EXPECT_THAT(sent[0].to_vector<float>(), ElementsAre(sum));
      EXPECT_THAT(sent[1].to_vector<int32_t>(), ElementsAre(y, -y));
    }
    EXPECT_TRUE(transfer_from_outfeed(device).empty());
  }
}

TEST(HloTest, WhatIsNotFedIsAnErrorAndStaysInTheQueue) {
  const HloModule module = HloModule::parse(R"(ENTRY main {
    k = token[] after-all()
    i = (f32[2], token[]) infeed(k)
    ROOT x = f32[2] get-tuple-element(i), index=0
  })");
  for (const char* name : {"cpu", "interpreter"}) {
    const Device device(name);
    const auto run = [&] { return module.compile(device).run({})[0].to_vector<float>(); };
    EXPECT_EQ(ErrorOf(run), "infeed %i: nothing was transferred for it; it takes f32[2]");
    transfer_to_infeed({tensor(std::vector<float>{1, 2, 3}, {3}, device)}, device);
    EXPECT_EQ(ErrorOf(run), "infeed %i: it takes f32[2], the next transfer is (f32[3])");
    const HloModule wider = HloModule::parse(
        "ENTRY e { k = token[] after-all() ROOT i = (f32[3], token[]) infeed(k) }");
    EXPECT_THAT(wider.compile(device).run({})[0].to_vector<float>(), ElementsAre(1, 2, 3));
  }
  EXPECT_EQ(ErrorOf([] { transfer_to_infeed({Tensor()}); }),
            "transfer_to_infeed: array 0 is an undefined tensor");
}

bool TanhBecomesNegate(HloModule& module) {
  return module.rewrite([](const HloInstruction& i) -> std::string {
    return i.opcode == "tanh" ? i.shape + " negate(%" + i.operands[0] + ")" : "";
  });
}

TEST(HloTest, APassOfTheUsersRunsByNameAndInEveryProgram) {
  HloModule module =
      HloModule::parse("HloModule m\nENTRY e { p = f32[2] parameter(0) ROOT t = f32[2] tanh(p) }");
  EXPECT_THAT(ErrorOf([&] { module.run_passes({"hlo_test_swap"}); }),
              HasSubstr("there is no pass hlo_test_swap"));
  register_pass("hlo_test_swap", "tanh becomes negate.", TanhBecomesNegate);
  EXPECT_TRUE(module.run_passes({"hlo_test_swap"}));
  EXPECT_FALSE(module.run_passes({"hlo_test_swap"}));
  EXPECT_THAT(module.to_string(), HasSubstr("ROOT %t = f32[2]{0} negate(%p)"));
  EXPECT_THAT(ErrorOf([] { register_pass("hlo_test_swap", "", TanhBecomesNegate); }),
              HasSubstr("there is a pass hlo_test_swap already"));

  const Tensor x = tensor({1.0f, 2.0f});
  EXPECT_NE(tanh(x).to_vector<float>()[0], -1);
  const auto triples_only = [](HloModule& m) {
    return m.parameters() == std::vector<HloShape>{{kFloat32, {3}}} && TanhBecomesNegate(m);
  };
  register_pass("hlo_test_swap_always", "tanh becomes negate.", triples_only, true);
  const Tensor y = tensor({1.0f, 2.0f, 3.0f});
  EXPECT_THAT(tanh(y).to_vector<float>(), ElementsAre(-1, -2, -3));
  unregister_pass("hlo_test_swap_always");
  EXPECT_NE(tanh(y).to_vector<float>()[0], -1);
  unregister_pass("hlo_test_swap");
  EXPECT_THAT(ErrorOf([&] { module.run_passes({"hlo_test_swap"}); }),
              HasSubstr("there is no pass hlo_test_swap"));
  EXPECT_EQ(ErrorOf([] { unregister_pass("hlo_test_swap"); }),
            "no pass hlo_test_swap was registered");
  EXPECT_EQ(ErrorOf([] { unregister_pass("cse"); }), "no pass cse was registered");
}

TEST(HloTest, AWrongRewriteLeavesTheModuleAlone) {
  HloModule module = HloModule::parse(kAdd);
  const HloModule before = module;
  const auto wrong = [](const HloInstruction& i) {
    return std::string(i.opcode == "add" ? "f32[2] add(%nobody, %q)" : "");
  };
  EXPECT_THAT(ErrorOf([&] { module.rewrite(wrong); }), HasSubstr("no instruction 'nobody'"));
  EXPECT_EQ(module, before);
}

HloModule Scaled(const Tensor& weight) {
  return HloModule::trace(
      {{kFloat32, {2}}, {kFloat32, {2}}},
      [&](const std::vector<Tensor>& p) { return std::vector{p[0] * weight + 1, p[0] - p[1]}; },
      {{.result = 1, .parameter = 0}});
}

TEST(HloTest, ATracedFunctionIsAProgramOfItsParameters) {
  const Tensor weight = tensor({2.f, 3.f}), pending = weight + 1;
  const HloModule module = Scaled(pending);
  EXPECT_THAT(module.parameters(), ElementsAre(HloShape{kFloat32, {2}}, HloShape{kFloat32, {2}}));
  EXPECT_THAT(module.results(), ElementsAre(HloShape{kFloat32, {2}}, HloShape{kFloat32, {2}}));
  const HloExecutable program = module.compile();
  for (const float x : {1.f, 10.f}) {
    const auto results = program.run({tensor({x, x}), tensor({1.f, 2.f})});
    EXPECT_THAT(results[0].to_vector<float>(), ElementsAre(3 * x + 1, 4 * x + 1));
    EXPECT_THAT(results[1].to_vector<float>(), ElementsAre(x - 1, x - 2));
  }
  EXPECT_THAT(module.evaluate({weight, weight})[0].to_vector<float>(), ElementsAre(7, 13));
}

TEST(HloTest, AGivenUpArgumentIsWrittenOver) {
  const HloExecutable program = Scaled(tensor({1.f, 1.f})).compile();
  const Tensor x = tensor(std::vector<float>{1, 2}, {2}) + 0, y = tensor({1.f, 1.f}), z = x + 0;
  sync(true);
  EXPECT_THAT(program.run({x, y}, {0})[1].to_vector<float>(), ElementsAre(0, 1));
  EXPECT_THAT(ErrorOf([&] { x.to_vector<float>(); }), HasSubstr("donated"));
  EXPECT_THAT(z.to_vector<float>(), ElementsAre(1, 2));
  EXPECT_THAT(ErrorOf([&] { program.run({z, y}, {2}); }),
              HasSubstr("traced: there is no argument 2 to give up"));
}

TEST(HloTest, WhatARunFindsIsAnErrorOfATracedProgram) {
  const HloModule module =
      HloModule::trace({{kFloat32, {2, 3}}, {kInt64, {2}}}, [](const std::vector<Tensor>& p) {
        return std::vector{nn::functional::cross_entropy(p[0], p[1])};
      });
  EXPECT_EQ(module.results().size(), 1u);
  const Tensor logits = zeros({2, 3}), good = tensor(std::vector<int64_t>{0, 2}, {2});
  const Tensor bad = tensor(std::vector<int64_t>{0, 5}, {2});
  const HloExecutable program = HloModule(module).compile();
  EXPECT_NEAR(program.run({logits, good})[0].item<float>(), 1.0986, 1e-4);
  const auto expected = HasSubstr("cross_entropy: label 5 is out of range [0, 3) (hlo_test.cc:");
  EXPECT_THAT(ErrorOf([&] { program.run({logits, bad}); }), expected);
  EXPECT_THAT(ErrorOf([&] { module.evaluate({logits, bad}); }), expected);
}

TEST(HloTest, OpsOfATracedFunctionDoNotRunOneByOne) {
  set_eager(true);
  const HloModule module = HloModule::trace(
      {{kFloat32, {2}}}, [](const auto& p) { return std::vector{relu(p[0] * 2.0) + 1.0}; });
  set_eager(false);
  EXPECT_EQ(module.evaluate({tensor(std::vector<float>{1, -1}, {2})})[0].to_vector<float>(),
            (std::vector<float>{3, 1}));
}

TEST(HloTest, MistakesInATracedFunctionAreNamed) {
  const auto trace = [](auto record, std::vector<HloUpdate> updates = {}) {
    return ErrorOf([&] { HloModule::trace({{kFloat32, {2}}}, record, updates); });
  };
  using Tensors = std::vector<Tensor>;
  EXPECT_THAT(trace([](const Tensors& p) {
                std::ignore = (p[0] + 1).sum().item<float>();
                return p;
              }),
              HasSubstr("parameter 0 of a program that is being traced has no elements to read"));
  EXPECT_THAT(trace([](const Tensors&) { return Tensors(1); }),
              HasSubstr("trace: result 0 is an undefined tensor"));
  EXPECT_THAT(trace([](const Tensors& p) { return p; }, {{.result = 1, .parameter = 0}}),
              HasSubstr("trace: there is no result 1 or no parameter 0 to update"));
  EXPECT_THAT(trace([](const Tensors& p) { return Tensors{p[0].sum()}; }, {{}}),
              HasSubstr("trace: result 0 is f32[] and updates no parameter of f32[2]"));
  EXPECT_THAT((tensor({1.f}) + 1).to_vector<float>(), ElementsAre(2));  // as before
}

}  // namespace
}  // namespace lazuli
