#include "tests/support/pass_test.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "ir/evaluator/evaluator.h"
#include "ir/hlo/text/printer.h"
#include "ir/hlo/verifier.h"
#include "ir/support/status.h"
#include "tests/support/hlo_test.h"

namespace lazuli {
namespace {

std::string Printed(const hlo::Module& module) {
  return hlo::ToString(module, {.layouts = false, .metadata = false, .program_shapes = false});
}

void ExpectSameValues(const hlo::Module& before, const hlo::Module& after) {
  for (RandomValues values : {RandomValues::kTame, RandomValues::kSpecial}) {
    const std::vector<ir::Literal> arguments = RandomArguments(before, values);
    std::vector<const ir::Literal*> pointers;
    for (const ir::Literal& argument : arguments) pointers.push_back(&argument);
    const absl::StatusOr<ir::Literal> expected = hlo::Evaluate(before, pointers);
    const absl::StatusOr<ir::Literal> actual = hlo::Evaluate(after, pointers);
    ASSERT_TRUE(expected.ok()) << ir::Message(expected.status());
    ASSERT_TRUE(actual.ok()) << ir::Message(actual.status());
    ExpectSameBits(*expected, *actual);
  }
}

// Runs the pass; false (and a failure) on an error.
bool Runs(lowering::Pass& pass, hlo::Module& module, bool* changed) {
  const absl::StatusOr<bool> result = pass.Run(module);
  EXPECT_TRUE(result.ok()) << pass.name() << ": " << ir::Message(result.status());
  if (result.ok()) *changed = *result;
  return result.ok();
}

}  // namespace

void ExpectPass(lowering::Pass& pass, std::string_view text) {
  const std::unique_ptr<hlo::Module> before = ParseHlo(text);
  const std::unique_ptr<hlo::Module> after = ParseHlo(text);
  bool changed = false;
  if (!Runs(pass, *after, &changed)) return;
  const std::string printed = Printed(*after);
  SCOPED_TRACE("the module after " + std::string(pass.name()) + ":\n" + printed);
  EXPECT_TRUE(changed) << pass.name() << " reports no change";
  const absl::Status verified = hlo::Verify(*after);
  ASSERT_TRUE(verified.ok()) << ir::Message(verified);
  if (text.find("CHECK") != std::string_view::npos) {
    EXPECT_EQ(FileCheckError(text, printed), "");
  }
  ExpectSameValues(*before, *after);
  if (!Runs(pass, *after, &changed)) return;
  EXPECT_FALSE(changed) << "a second run of " << pass.name() << " changes the module again:\n"
                        << Printed(*after);
}

void ExpectNoChange(lowering::Pass& pass, std::string_view text) {
  const std::unique_ptr<hlo::Module> before = ParseHlo(text);
  const std::unique_ptr<hlo::Module> after = ParseHlo(text);
  bool changed = false;
  if (!Runs(pass, *after, &changed)) return;
  EXPECT_FALSE(changed) << pass.name() << " reports a change";
  EXPECT_EQ(Printed(*before), Printed(*after));
}

}  // namespace lazuli
