#include "lazuli/library.h"

#include <cmath>
#include <stdexcept>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "lazuli/lazuli.h"

namespace lazuli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> Values(const Tensor& x) { return x.to_vector<float>(); }
std::vector<HloShape> Same(const std::vector<HloShape>& in, const std::string&) { return {in[0]}; }

std::string ErrorOf(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// Multiplies by the number in its text.
void Scale(std::string_view config, const std::vector<CustomCallArray>& in,
           const std::vector<CustomCallResult>& out) {
  const float factor = std::stof(std::string(config));
  std::int64_t count = 1;
  for (const std::int64_t d : out[0].dims) count *= d;
  for (std::int64_t i = 0; i < count; ++i)
    static_cast<float*>(out[0].data)[i] = factor * static_cast<const float*>(in[0].data)[i];
}

const CustomOp& ScaleOp() {
  static const CustomOp op =
      CustomOp("library_test::scale", Same)
          .kernel(Scale)
          .gradient([](const auto&, const auto&, const auto& dy, const std::string& config) {
            return CustomOp::find("library_test::scale")(dy, config);
          });
  return op;
}

TEST(LibraryTest, OpIsANodeOfItsName) {
  const Tensor x = tensor({1.f, 2.f});
  const Tensor y = ScaleOp()({x}, "3")[0] + 1.f;
  EXPECT_THAT(debug::graph_text({y}), HasSubstr(" library_test::scale(%0), "));
  EXPECT_THAT(debug::graph_text({y}), HasSubstr("config={3}"));
  EXPECT_THAT(Values(y), ElementsAre(4, 7));
  EXPECT_THAT(debug::last_hlo(),
              HasSubstr("custom-call(%p0.1), custom_call_target=\"library_test::scale\""));
  EXPECT_THAT(debug::last_hlo(), HasSubstr("backend_config=\"3\""));
}

TEST(LibraryTest, GradientsOfAnyOrderFollowTheRule) {
  Tensor x = tensor({1.f, 2.f}).set_requires_grad(true);
  const Tensor y = (ScaleOp()({x}, "3")[0] * x).sum();
  const Tensor dx = grad({y}, {x}, {}, {.create_graph = true})[0];
  EXPECT_THAT(Values(dx), ElementsAre(6, 12));
  EXPECT_THAT(Values(grad({dx.sum()}, {x})[0]), ElementsAre(6, 6));
}

TEST(LibraryTest, BatchesAndTangentsOfAModuleWithAnOp) {
  const auto f = [](const std::vector<Tensor>& in) { return ScaleOp()(in, "2"); };
  const Tensor x = tensor({{1.f, 2.f}, {3.f, 4.f}});
  EXPECT_THAT(Values(func::vmap(f, {x})[0]), ElementsAre(2, 4, 6, 8));
  const HloModule module = HloModule::trace({{kFloat32, {2}}}, f);
  const std::vector<Tensor> made = module.jvp().call({tensor({1.f, 1.f}), tensor({5.f, 6.f})});
  EXPECT_THAT(Values(made[1]), ElementsAre(10, 12));
}

TEST(LibraryTest, BatchRuleTakesAllSamplesAtOnce) {
  int calls = 0;
  const CustomOp op =
      CustomOp("library_test::counted", Same)
          .kernel([&](std::string_view, const auto& in, const auto& out) {
            ++calls;
            Scale("2", in, out);
          })
          .batch([](const auto& in, const auto& batched, std::int64_t size, const auto&) {
            EXPECT_TRUE(batched[0]);
            EXPECT_EQ(size, 3);
            return CustomOp::find("library_test::counted")(in);
          });
  const auto f = [&](const std::vector<Tensor>& in) { return op(in); };
  EXPECT_THAT(Values(func::vmap(f, {tensor({{1.f}, {2.f}, {3.f}})})[0]), ElementsAre(2, 4, 6));
  EXPECT_EQ(calls, 1);
}

TEST(LibraryTest, KernelOfTheDeviceComesFirst) {
  const CustomOp op =
      CustomOp("library_test::where", Same)
          .kernel([](std::string_view, const auto& in, const auto& out) { Scale("10", in, out); })
          .kernel([](std::string_view, const auto& in, const auto& out) { Scale("20", in, out); },
                  "interpreter");
  EXPECT_THAT(Values(op({tensor({1.f})})[0]), ElementsAre(10));
  EXPECT_THAT(Values(op({tensor({1.f}).to(Device("interpreter:0"))})[0]), ElementsAre(20));
  EXPECT_THAT(Values(op({tensor({1.f}).to(Device("npu:0"))})[0]), ElementsAre(10));
}

TEST(LibraryTest, MistakesNameTheOp) {
  const CustomOp op("library_test::wrong", Same);
  EXPECT_THAT(ErrorOf([&] { op({tensor({1.f})}); }),
              HasSubstr("library_test::wrong: it has no kernel for cpu"));
  EXPECT_THAT(ErrorOf([] { CustomOp("library_test::wrong", Same); }),
              HasSubstr("there is an op named library_test::wrong already"));
  EXPECT_THAT(ErrorOf([] { CustomOp("wrong", Same); }), HasSubstr("an op is named library::name"));
  EXPECT_THAT(ErrorOf([] { CustomOp::find("library_test::none"); }),
              HasSubstr("there is no op named library_test::none"));
  op.kernel([](std::string_view, const auto&, const auto&) {
    throw std::runtime_error("the kernel is out of order");
  });
  EXPECT_THAT(ErrorOf([&] { op.kernel(Scale); }),
              HasSubstr("library_test::wrong: it has a kernel already"));
  const Tensor y = op({tensor({1.f})})[0];
  EXPECT_THAT(ErrorOf([&] { (void)y.to_vector<float>(); }),
              testing::AllOf(HasSubstr("library_test__wrong: the kernel is out of order"),
                             HasSubstr("library_test.cc")));
  Tensor x = tensor({1.f}).set_requires_grad(true);
  EXPECT_THAT(ErrorOf([&] { op({x}); }),
              HasSubstr("no derivative of custom-call \"library_test::wrong\""));
}

TEST(LibraryTest, EffectsRunOnceInTheOrderOfRecording) {
  std::vector<float> seen;
  const Callback note(
      [&](const auto& in, const auto&) { seen.push_back(*static_cast<const float*>(in[0].data)); },
      {.name = "note", .ordered = true});
  const Tensor x = tensor({1.f});
  note({}, {x + 1.f});
  const Tensor y = x * 5.f;
  note({}, {y});
  note({}, {x});
  sync(/*wait=*/true);
  EXPECT_THAT(seen, ElementsAre(2, 5, 1));
  EXPECT_THAT(debug::last_hlo(),
              HasSubstr("custom_call_has_side_effect=true, control-predecessors="));
  sync(/*wait=*/true);
  EXPECT_EQ(seen.size(), 3U);
}

TEST(LibraryTest, AProgramKeepsItsCallback) {
  const auto alive = std::make_shared<int>(0);
  std::weak_ptr<int> watched;
  Tensor y;
  {
    const auto counted = std::make_shared<int>(7);
    watched = counted;
    const Callback seven(
        [counted](const auto&, const auto& out) { *static_cast<int*>(out[0].data) = *counted; });
    y = seven({{kInt32, {}}}, {})[0];
  }
  EXPECT_EQ(y.item<int>(), 7);
  EXPECT_FALSE(watched.expired());
}

TEST(LibraryTest, AfterIsShownAndKept) {
  const Callback note([](const auto&, const auto&) {}, {.name = "note", .has_effects = true});
  const Tensor x = tensor({{1.f, 2.f}, {3.f, 4.f}}), product = x.matmul(x);
  Tensor done;
  {
    const After after({product});
    const Callback last([](const auto&, const auto& out) { *static_cast<int*>(out[0].data) = 1; },
                        {.name = "last", .has_effects = true});
    done = last({{kInt32, {}}}, {})[0];
  }
  EXPECT_THAT(debug::graph_text({done}), HasSubstr(" last() @ %1, "));
  EXPECT_EQ(done.item<int>(), 1);
  EXPECT_THAT(debug::last_hlo(), HasSubstr("control-predecessors={%dot."));
}

TEST(LibraryTest, AKernelMayRunPrograms) {
  const CustomOp op =
      CustomOp("library_test::nested", Same)
          .kernel([](std::string_view, const auto& in, const auto& out) {
            const Tensor x = from_data(in[0].data, in[0].dtype, in[0].dims);
            const auto values = (x * 2.f + 1.f).template to_vector<float>();
            std::copy(values.begin(), values.end(), static_cast<float*>(out[0].data));
          });
  Tensor x = tensor({1.f, 2.f});
  for (int i = 0; i < 5; ++i) {
    x = op({x})[0];
    mark_step();
  }
  EXPECT_THAT(Values(x), ElementsAre(63, 95));
}

TEST(LibraryTest, InstructionsOfHloAreOps) {
  const Tensor x = tensor({{1.f, 2.f}, {3.f, 4.f}});
  const Tensor y =
      hlo_op("dot", {x, x}, {{"lhs_contracting_dims", "{1}"}, {"rhs_contracting_dims", "{0}"}})[0];
  EXPECT_THAT(debug::graph_text({y}), HasSubstr(" hlo::dot(%0, %0), "));
  EXPECT_THAT(Values(y), ElementsAre(7, 10, 15, 22));
  EXPECT_THAT(Values(hlo_op("broadcast", {tensor({5.f})}, {{"dimensions", "{1}"}},
                            HloShape{kFloat32, {2, 1}})[0]),
              ElementsAre(5, 5));
  EXPECT_THAT(ErrorOf([&] { hlo_op("while", {x}); }),
              HasSubstr("there is no instruction of arrays while"));
  EXPECT_THAT(ErrorOf([&] { hlo_op("compare", {x, x}); }),
              HasSubstr("compare: its attribute direction is missing"));
  EXPECT_GT(hlo_opcodes().size(), 80U);
}

TEST(LibraryTest, CompositesAndBarriers) {
  const Tensor x = tensor({1.f, 2.f}).set_requires_grad(true), w = tensor({3.f, 4.f});
  const Tensor y =
      composite("test.scaled", [&](const auto& in) { return std::vector{in[0] * w}; }, {x})[0];
  EXPECT_THAT(debug::graph_text({y}), HasSubstr(" test.scaled(%0, %1), "));
  const Tensor z = optimization_barrier({y, x})[0].sum();
  EXPECT_THAT(Values(grad({z}, {x})[0]), ElementsAre(3, 4));
  EXPECT_THAT(Values(y), ElementsAre(3, 8));
}

}  // namespace
}  // namespace lazuli
