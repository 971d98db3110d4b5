#include "lowering/transforms/vjp.h"

#include <map>
#include <set>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/hlo/verifier.h"
#include "tests/lowering/transforms/derivative_samples.h"

namespace lazuli::lowering {
namespace {

using hlo::ErrorOf;
using ::testing::HasSubstr;

using Literals = std::vector<ir::Literal>;

Literals RandomTangents(const Literals& of, std::mt19937& random) {
  Literals tangents;
  for (const ir::Literal& leaf : LeavesOf(ir::Literal::Tuple(of))) {
    if (IsDifferentiable(leaf.shape()))
      tangents.push_back(RandomInput(leaf.shape(), random, -1, 1));
  }
  return tangents;
}

Literals Joined(const Literals& x, const Literals& y) {
  Literals all = x;
  all.insert(all.end(), y.begin(), y.end());
  return all;
}

// What is wrong with the cotangents of a program beside its tangents: the products with random
// tangents must be equal. Empty if nothing is.
std::string ProblemOfCotangents(const hlo::Module& module, const Literals& x,
                                std::mt19937& random) {
  const auto jvp = Jvp(module);
  const auto gradient = Gradient(module);
  const auto vjp = Vjp(module);
  for (const absl::Status& status : {jvp.status(), gradient.status(), vjp.status()}) {
    if (!status.ok()) return ErrorOf(status);
  }
  for (const hlo::Module* made : {gradient->get(), vjp->forward.get(), vjp->backward.get()})
    EXPECT_TRUE(hlo::Verify(*made).ok()) << hlo::Verify(*made) << "\n" << made->ToString();
  const auto results = ValuesOf(module, x);
  if (!results.ok()) return Str("not evaluated: ", ErrorOf(results.status()));
  const Literals v = RandomTangents(x, random), u = RandomTangents(*results, random);
  const auto pushed = ValuesOf(**jvp, Joined(x, v));
  if (!pushed.ok()) return ErrorOf(pushed.status());
  const Literals jv(pushed->begin() + static_cast<std::ptrdiff_t>(results->size()), pushed->end());
  const auto once = ValuesOf(**gradient, Joined(x, u));
  const auto forward = ValuesOf(*vjp->forward, x);
  for (const absl::Status& status : {once.status(), forward.status()}) {
    if (!status.ok()) return ErrorOf(status);
  }
  const Literals kept(forward->begin() + static_cast<std::ptrdiff_t>(results->size()),
                      forward->end());
  EXPECT_EQ(kept.size(), vjp->residual_count);
  const auto twice = ValuesOf(*vjp->backward, Joined(kept, u));
  if (!twice.ok()) return ErrorOf(twice.status());
  const double wanted = InnerProduct(u, jv);
  for (const Literals& cotangents : {*once, *twice}) {
    const double product = InnerProduct(cotangents, v);
    if (std::abs(product - wanted) > 1e-9 * (1 + std::abs(wanted)))
      return Str("the product with tangents is ", product, ", not ", wanted);
  }
  return "";
}

// Uses without cotangents, with a part of the problem.
const std::map<std::string, std::string> kWithoutCotangents = {
    {"reduce-precision", "the product with tangents"},  // it rounds
    {"topk customcall called", "not evaluated: "},
    {"custom-call unknown", "custom-call %r: no derivative of custom-call \"foo\""},
    {"infeed", "not evaluated: "},
    {"outfeed", "not evaluated: "},
    {"recv", "not evaluated: "},
    {"send", "send %s: no derivative of send"},
    {"collective-reduce", "no derivative of collective-reduce"},
    {"ragged-all-to-all", "no derivative of ragged-all-to-all"},
    {"scaled-dot", "scaled-dot %r: no derivative of scaled-dot"},
    {"ragged-dot", "no reverse-mode derivative of ragged-dot"},
    // Of arrays whose sizes are known only when they run.
    {"dynamic-reshape", "no reverse-mode derivative of dynamic-reshape"},
    {"set-dimension-size", "no reverse-mode derivative of set-dimension-size"},
    {"all-reduce tuple", "no reverse-mode derivative of all-reduce"},  // of several arrays
    {"collective-broadcast", "no reverse-mode derivative of collective-broadcast"},
};

TEST(VjpTest, EveryUseOfAnOpcodeHasCotangentsThatFitItsTangents) {
  for (const auto& [name, text] : DerivativeTexts()) {
    const auto module = ParseInDoublePrecision(text);
    if (module == nullptr) continue;
    std::mt19937 random(7);
    const Literals x = ArgumentsOf(name, *module, random);
    const std::string problem = ProblemOfCotangents(*module, x, random);
    const auto exception = kWithoutCotangents.find(name);
    if (exception == kWithoutCotangents.end())
      EXPECT_EQ(problem, "") << name;
    else
      EXPECT_THAT(problem, HasSubstr(exception->second)) << name;
  }
}

// Gradients are programs, too.
TEST(VjpTest, GradientsHaveCotangents) {
  const std::set<std::string> sample = {
      "tanh",           "power two",        "dot two",     "convolution small",     "cholesky",
      "gather windows", "scatter maximum",  "sort",        "reduce-window min",     "while stack",
      "while nested",   "conditional left", "reduce both", "triangular-solve right"};
  std::size_t tested = 0;
  for (const auto& [name, text] : DerivativeTexts()) {
    if (!sample.contains(name)) continue;
    ++tested;
    const auto module = ParseInDoublePrecision(text);
    ASSERT_NE(module, nullptr) << name;
    std::mt19937 random(7);
    Literals x = ArgumentsOf(name, *module, random);
    const auto results = ValuesOf(*module, x);
    ASSERT_TRUE(results.ok()) << name;
    for (const ir::Literal& u : RandomTangents(*results, random)) x.push_back(u);
    const auto gradient = Gradient(*module);
    ASSERT_TRUE(gradient.ok()) << gradient.status();
    EXPECT_EQ(ProblemOfCotangents(**gradient, x, random), "") << name;
  }
  EXPECT_EQ(tested, sample.size());
}

// The values that a program of two devices gives, one for each device.
Literals OnTwoDevices(const hlo::Module& module, const Literals& x, const Literals& y = {}) {
  std::vector<std::vector<const ir::Literal*>> arguments(2);
  for (std::size_t device = 0; device < 2; ++device) {
    arguments[device].push_back(&x[device]);
    if (!y.empty()) arguments[device].push_back(&y[device]);
  }
  const auto results = hlo::EvaluateOnDevices(module, arguments);
  EXPECT_TRUE(results.ok()) << results.status();
  Literals all;
  for (const ir::Literal& result : *results) all.push_back(LeavesOf(result)[0]);
  return all;
}

// Products of values and cotangents, added up over the devices, stay the same.
TEST(VjpTest, CotangentsGoBackThroughCollectives) {
  const std::tuple<const char*, const char*, const char*> collectives[] = {
      {"f64[4]", "f64[4]", "all-reduce(x), replica_groups={{0,1}}, to_apply=add"},
      {"f64[2,3]", "f64[2,6]", "all-gather(x), replica_groups={{0,1}}, dimensions={1}"},
      {"f64[2,6]", "f64[2,3]",
       "reduce-scatter(x), replica_groups={{0,1}}, dimensions={1}, to_apply=add"},
      {"f64[4]", "f64[4]", "all-to-all(x), replica_groups={{0,1}}, dimensions={0}"},
      {"f64[4]", "f64[4]", "collective-permute(x), source_target_pairs={{0,1}}"}};
  std::mt19937 random(7);
  for (const auto& [operand, result, collective] : collectives) {
    SCOPED_TRACE(collective);
    const auto module = hlo::ParseModule(
        Str("HloModule m, replica_count=2\nadd { a = f64[] parameter(0) b = f64[] parameter(1) ",
            "ROOT s = f64[] add(a, b) }\nENTRY e { x = ", operand,
            " parameter(0) ROOT r = ", result, " ", collective, " }"));
    ASSERT_TRUE(module.ok()) << module.status();
    const auto gradient = Gradient(**module);
    ASSERT_TRUE(gradient.ok()) << gradient.status();
    Literals x, ct;
    for (int device = 0; device < 2; ++device) {
      x.push_back(RandomInput((*module)->entry()->parameters()[0]->shape(), random, -1, 1));
      ct.push_back(RandomInput((*module)->entry()->root()->shape(), random, -1, 1));
    }
    const double forth = InnerProduct(OnTwoDevices(**module, x), ct);
    EXPECT_GT(std::abs(forth), 1e-3);
    EXPECT_NEAR(forth, InnerProduct(x, OnTwoDevices(**gradient, x, ct)), 1e-9);
  }
}

constexpr char kUnknownCount[] = R"(HloModule m
more { p = (f32[], f32[]) parameter(0)
 x = f32[] get-tuple-element(p), index=0
 n = f32[] constant(9)
 ROOT r = pred[] compare(x, n), direction=LT }
next { p = (f32[], f32[]) parameter(0)
 x = f32[] get-tuple-element(p), index=0
 y = f32[] get-tuple-element(p), index=1
 z = f32[] multiply(x, y)
 ROOT r = (f32[], f32[]) tuple(z, y) }
ENTRY e { x = f32[] parameter(0)
 y = f32[] parameter(1)
 q = (f32[], f32[]) tuple(x, y)
 w = (f32[], f32[]) while(q), condition=more, body=next, metadata={op_name="grow" source_file="train.py" source_line=31}
 ROOT r = f32[] get-tuple-element(w), index=0 })";

TEST(VjpTest, LoopOfUnknownLengthIsAnErrorThatNamesItsLine) {
  const auto module = hlo::Parse(kUnknownCount);
  EXPECT_EQ(ErrorOf(Gradient(*module).status()),
            "grow: no reverse-mode derivative of a while loop whose number of steps is not known "
            "before it runs; forward mode (jvp) has one (train.py:31)");
}

TEST(VjpTest, LoopOfUnknownLengthHasTangents) {
  const auto module = hlo::Parse(kUnknownCount);
  const auto jvp = Jvp(*module);
  ASSERT_TRUE(jvp.ok()) << jvp.status();
  // 1.5 * 2 * 2 * 2: three steps, so the derivatives are 8 and 1.5 * 3 * 4.
  const auto values = ValuesOf(**jvp, {ir::Literal::Scalar(1.5f), ir::Literal::Scalar(2.f),
                                       ir::Literal::Scalar(1.f), ir::Literal::Scalar(1.f)});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(values->at(0).AsDouble(0), 12);
  EXPECT_EQ(values->at(1).AsDouble(0), 26);
}

TEST(VjpTest, OnlyWantedParametersHaveCotangents) {
  const auto module = hlo::Parse(R"(HloModule m
ENTRY e { x = f32[] parameter(0)
 i = s32[] parameter(1)
 y = f32[] parameter(2)
 ROOT r = f32[] multiply(x, y) })");
  const auto gradient = Gradient(*module, {false, false, true});
  ASSERT_TRUE(gradient.ok()) << gradient.status();
  EXPECT_EQ((*gradient)->entry()->root()->shape().ToString(), "(f32[])");
  EXPECT_EQ(ErrorOf(Gradient(*module, {false, true, true}).status()),
            "argument 1 is s32[]: only floats and complex numbers have derivatives");
  EXPECT_EQ(ErrorOf(Gradient(*module, {true}).status()), "1 flags for 3 arguments");
}

}  // namespace
}  // namespace lazuli::lowering
