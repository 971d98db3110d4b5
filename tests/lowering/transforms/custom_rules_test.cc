#include "lowering/transforms/custom_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/evaluator/custom_calls.h"
#include "ir/support/status.h"
#include "lowering/transforms/batch.h"
#include "lowering/transforms/jvp.h"
#include "lowering/transforms/vjp.h"
#include "tests/lowering/transforms/derivative_samples.h"

namespace lazuli::lowering {
namespace {

// y = x^2 for two numbers, which counts its calls.
int calls = 0;
absl::StatusOr<ir::Literal> Square(const hlo::Instruction& i,
                                   absl::Span<const ir::Literal* const> operands) {
  ++calls;
  ir::Literal result(i.shape());
  const auto x = operands[0]->data<double>();
  for (std::size_t k = 0; k < x.size(); ++k) result.mutable_data<double>()[k] = x[k] * x[k];
  return result;
}

CustomCallRules::Module Text(const std::string& text) {
  LAZULI_ASSIGN_OR_RETURN(std::unique_ptr<hlo::Module> module, hlo::ParseModule(text));
  return std::shared_ptr<const hlo::Module>(std::move(module));
}
// Of the operand, the result and a vector: twice the operand times the vector.
CustomCallRules::Module TwiceTimes(const hlo::Instruction& /*i*/) {
  return Text(R"(ENTRY e { x = f64[2] parameter(0) y = f64[2] parameter(1) v = f64[2] parameter(2)
    d = f64[2] add(x, x) m = f64[2] multiply(d, v) ROOT r = (f64[2]) tuple(m) })");
}

std::unique_ptr<hlo::Module> Program(const std::string& target) {
  return *hlo::ParseModule(
      "ENTRY e { x = f64[2] parameter(0) ROOT y = f64[2] custom-call(x), "
      "custom_call_target=\"" +
      target + "\" }");
}

ir::Literal Vector(double a, double b) {
  ir::Literal value(ir::Shape(ir::DType::kF64, {2}));
  value.mutable_data<double>()[0] = a;
  value.mutable_data<double>()[1] = b;
  return value;
}
std::vector<double> Last(const hlo::Module& module, const std::vector<ir::Literal>& arguments) {
  auto values = ValuesOf(module, arguments);
  if (!values.ok()) {
    ADD_FAILURE() << values.status();
    return {};
  }
  const auto numbers = DoublesOf(values->back());
  return {numbers.begin(), numbers.end()};
}

using ::testing::ElementsAre;

TEST(CustomRulesTest, ARuleOfEitherModeServesBoth) {
  for (const bool forward : {true, false}) {
    const std::string target = forward ? "custom_rules_test.jvp" : "custom_rules_test.vjp";
    hlo::RegisterCustomCall(target, Square);
    CustomCallRules rules;
    (forward ? rules.tangent : rules.cotangent) = TwiceTimes;
    RegisterCustomCallRules(target, rules);
    const auto jvp = Jvp(*Program(target));
    const auto vjp = Gradient(*Program(target));
    ASSERT_TRUE(jvp.ok() && vjp.ok()) << jvp.status() << vjp.status();
    EXPECT_THAT(Last(**jvp, {Vector(3, 5), Vector(1, 10)}), ElementsAre(6, 100));
    EXPECT_THAT(Last(**vjp, {Vector(3, 5), Vector(1, 10)}), ElementsAre(6, 100));
  }
}

TEST(CustomRulesTest, ARuleForBatchesIsOneCall) {
  const std::string target = "custom_rules_test.batch";
  hlo::RegisterCustomCall(target, Square);
  const ir::Literal x = [] {
    ir::Literal value(ir::Shape(ir::DType::kF64, {3, 2}));
    for (int k = 0; k < 6; ++k) value.mutable_data<double>()[static_cast<std::size_t>(k)] = k;
    return value;
  }();
  const auto run = [&] {
    const auto batched = Batch(*Program(target), {true}, 3);
    EXPECT_TRUE(batched.ok()) << batched.status();
    calls = 0;
    return Last(*batched->module, {x});
  };
  EXPECT_THAT(run(), ElementsAre(0, 1, 4, 9, 16, 25));
  EXPECT_EQ(calls, 3);
  CustomCallRules rules;
  rules.batch = [&](const hlo::Instruction&, const std::vector<bool>& batched, int64_t size) {
    EXPECT_EQ(batched, std::vector<bool>{true});
    EXPECT_EQ(size, 3);
    return Text(
        "ENTRY e { x = f64[3,2] parameter(0) y = f64[3,2] custom-call(x), "
        "custom_call_target=\"custom_rules_test.batch\" ROOT r = (f64[3,2]) tuple(y) }");
  };
  RegisterCustomCallRules(target, rules);
  EXPECT_THAT(run(), ElementsAre(0, 1, 4, 9, 16, 25));
  EXPECT_EQ(calls, 1);
}

TEST(CustomRulesTest, TheErrorOfARuleNamesTheInstruction) {
  const std::string target = "custom_rules_test.fails";
  CustomCallRules rules;
  rules.tangent = [](const hlo::Instruction&) -> CustomCallRules::Module {
    return ir::InvalidArgument("no rule today");
  };
  RegisterCustomCallRules(target, rules);
  const auto jvp = Jvp(*Program(target));
  EXPECT_THAT(hlo::ErrorOf(jvp.status()), ::testing::HasSubstr("custom-call %y: no rule today"));
}

}  // namespace
}  // namespace lazuli::lowering
