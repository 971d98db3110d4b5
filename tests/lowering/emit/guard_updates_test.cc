#include "lowering/emit/guard_updates.h"

#include <gtest/gtest.h>

#include "ir/evaluator/evaluator.h"
#include "ir/hlo/verifier.h"
#include "tests/support/hlo_test.h"

namespace lazuli::lowering {
namespace {

using hlo::Opcode;

// A program of a cache s32[4], a row s32[1], a position s32[1] and a number that must not be
// negative: output 0 updates the cache, output 1 is the check.
class GuardUpdatesTest : public ::testing::Test {
 protected:
  Op cache() { return parameters_[0]; }
  Op row() { return parameters_[1]; }
  Op position() { return parameters_[2]; }
  Op checked() { return parameters_[3]; }

  Op Scattered(Op into) {
    hlo::ScatterAttrs attrs;
    attrs.update_window_dims = {0};
    attrs.scatter_dims_to_operand_dims = {0};
    return builder_.Scatter(into, position(), row(), attrs, Opcode::kAdd);
  }
  Op Updated(Op into) {
    const Op start = builder_.Reshape(position(), {});
    return builder_.DynamicUpdateSlice(into, row(), {start});
  }
  // The offender is `number` if it is negative.
  RuntimeCheck NotNegative(Op number) {
    LoweringContext context(builder_);
    const Op one = builder_.Reshape(number, {1});
    context.CheckNone(builder_.Compare(hlo::ComparisonDirection::kLt, one, builder_.ZerosLike(one)),
                      one, {"op", "", ""});
    return context.checks[0];
  }
  void Finish(Op output, const RuntimeCheck& check) {
    std::vector<Op> outputs{output};
    GuardUpdates({check}, {{.output_index = {0}, .parameter_number = 0, .parameter_index = {}}},
                 parameters_, builder_, outputs);
    outputs.push_back(check.offender);
    hlo::Computation* const entry = *builder_.Finish(builder_.Tuple(outputs));
    entry->RemoveDead();
    module_.set_entry(entry);
    ASSERT_TRUE(hlo::Verify(module_).ok()) << hlo::Verify(module_);
  }
  std::vector<int32_t> Run(int32_t number) {
    const Literal values[] = {Literal::FromValues<int32_t>({4}, {1, 2, 3, 4}),
                              Literal::FromValues<int32_t>({1}, {10}),
                              Literal::FromValues<int32_t>({1}, {2}), Literal::Scalar(number)};
    const Literal* const arguments[] = {&values[0], &values[1], &values[2], &values[3]};
    const Literal result = *hlo::Evaluate(module_, arguments);
    const auto elements = result.tuple()[0].data<int32_t>();
    return {elements.begin(), elements.end()};
  }
  // Whether the output is selected as a whole.
  bool Selects() { return module_.entry()->root()->operand(0)->opcode() == Opcode::kSelect; }

  hlo::Module module_{"m"};
  Builder builder_{&module_, "main"};
  std::vector<Op> parameters_{builder_.Parameter(0, Shape(DType::kS32, {4})),
                              builder_.Parameter(1, Shape(DType::kS32, {1})),
                              builder_.Parameter(2, Shape(DType::kS32, {1})),
                              builder_.Parameter(3, Shape(DType::kS32))};
};

using Elements = std::vector<int32_t>;

TEST_F(GuardUpdatesTest, WritesToTheParameterWriteNothing) {
  const Op square = builder_.Reshape(Scattered(cache()), {2, 2});
  Finish(Updated(builder_.Reshape(square, {4})), NotNegative(checked()));
  EXPECT_FALSE(Selects());
  EXPECT_EQ(Run(0), (Elements{1, 2, 10, 4}));
  EXPECT_EQ(Run(-1), (Elements{1, 2, 3, 4}));
}

TEST_F(GuardUpdatesTest, ACopyOfTheParameterIsTheParameter) {
  Finish(Scattered(builder_.Unary(Opcode::kCopy, cache())), NotNegative(checked()));
  EXPECT_FALSE(Selects());
  EXPECT_EQ(Run(0), (Elements{1, 2, 13, 4}));
  EXPECT_EQ(Run(-1), (Elements{1, 2, 3, 4}));
}

TEST_F(GuardUpdatesTest, OtherUpdatesAreSelected) {
  Finish(Scattered(builder_.Plus(cache(), cache())), NotNegative(checked()));
  EXPECT_TRUE(Selects());
  EXPECT_EQ(Run(0), (Elements{2, 4, 16, 8}));
  EXPECT_EQ(Run(-1), (Elements{1, 2, 3, 4}));
}

// What is written cannot wait for a check of it.
TEST_F(GuardUpdatesTest, SoAreWritesThatAreChecked) {
  const Op written = Scattered(cache());
  const Op sum = builder_.Reshape(builder_.Slice(written, {2}, {3}, {1}), {});
  Finish(written, NotNegative(builder_.Plus(sum, checked())));
  EXPECT_TRUE(Selects());
  EXPECT_EQ(Run(0), (Elements{1, 2, 13, 4}));
  EXPECT_EQ(Run(-14), (Elements{1, 2, 3, 4}));
}

}  // namespace
}  // namespace lazuli::lowering
