// A thread that flushes subnormals, or rounds another way, parses, compiles and runs modules to the
// same bits: the mode belongs to the program, not to the thread that happens to ask.
//
// A sample of tests/backend/corpus; LAZULI_CORPUS=all takes all of it.
#include <cfenv>
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "ir/hlo/text/printer.h"
#include "ir/support/float_mode.h"
#include "tests/backend/clients/client_test.h"
#include "tests/backend/clients/corpus.h"
#include "tests/support/hlo_test.h"

namespace lazuli {
namespace {

// While it lives the thread flushes subnormals and rounds up.
class OddFloatMode {
 public:
  OddFloatMode() {
#if defined(__x86_64__)
    saved_ = _mm_getcsr();
    _mm_setcsr(0x1f80 | 0x8040 | _MM_ROUND_UP);
#endif
  }
  ~OddFloatMode() {
#if defined(__x86_64__)
    _mm_setcsr(saved_);
#endif
  }
  OddFloatMode(const OddFloatMode&) = delete;
  OddFloatMode& operator=(const OddFloatMode&) = delete;

 private:
  unsigned saved_ = 0;
};

std::vector<std::string> SampledFiles() {
  std::vector<std::string> names = CorpusNames();
  if (const char* all = std::getenv("LAZULI_CORPUS"); all != nullptr) return names;
  constexpr std::size_t kStride = 12;
  std::vector<std::string> sample;
  for (std::size_t i = 0; i < names.size(); i += kStride) sample.push_back(names[i]);
  return sample;
}

// The module with its arguments as constants, to be folded; "" where they are large.
std::string WithConstants(const std::string& text, const std::vector<ir::Literal>& arguments) {
  auto module = ParseHlo(text);
  hlo::Computation& entry = *module->entry();
  for (const ir::Literal& argument : arguments) {
    if (!argument.shape().IsArray() || argument.shape().num_elements() > 4096) return "";
  }
  for (hlo::Instruction* parameter : entry.parameters()) {
    const auto i = static_cast<std::size_t>(parameter->parameter_number());
    if (parameter != entry.root() && parameter->shape() == arguments[i].shape())
      parameter->ReplaceAllUsesWith(entry.AddConstant(arguments[i]));
  }
  return module->ToString();
}

void ExpectSameOutputs(const absl::StatusOr<RunResult>& expected,
                       const absl::StatusOr<RunResult>& actual) {
  ASSERT_TRUE(expected.ok()) << expected.status();
  ASSERT_TRUE(actual.ok()) << actual.status();
  ASSERT_EQ(actual->outputs.size(), expected->outputs.size());
  for (std::size_t i = 0; i < expected->outputs.size(); ++i) {
    SCOPED_TRACE("output " + std::to_string(i));
    ExpectSameBits(expected->outputs[i], actual->outputs[i]);
  }
}

absl::StatusOr<RunResult> RunInOddMode(std::string_view platform, std::string_view hlo,
                                       const std::vector<ir::Literal>& arguments) {
  const OddFloatMode mode;
  return RunOn(platform, hlo, arguments);
}

class FloatModeTest : public testing::TestWithParam<std::string> {};

TEST_P(FloatModeTest, OfTheCallerChangesNoBit) {
  const std::string hlo = CorpusText(GetParam());
  const auto arguments = RandomArguments(*ParseHlo(hlo), RandomValues::kSpecial);
  for (const std::string& text : {hlo, WithConstants(hlo, arguments)}) {
    if (text.empty()) continue;
    for (const char* platform : {"interpreter", "cpu"}) {
      SCOPED_TRACE(platform);
      ExpectSameOutputs(RunOn(platform, text, arguments), RunInOddMode(platform, text, arguments));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Corpus, FloatModeTest, testing::ValuesIn(SampledFiles()), CorpusTestName);

TEST(FloatModeOfTheCallerTest, DoesNotDecideWhatConstantsAre) {
  constexpr char kModule[] = R"(
    HloModule m
    ENTRY main {
      a = f32[] constant(1e-40)
      b = f32[] constant(3e-40)
      ROOT sum = f32[] add(a, b)
    })";
  for (const char* platform : {"interpreter", "cpu"}) {
    const auto result = RunInOddMode(platform, kModule, {});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->outputs[0].data<float>()[0], 1e-40f + 3e-40f);
  }
}

TEST(FloatModeOfTheCallerTest, IsTheThreadsAgainAfterwards) {
#if defined(__x86_64__)
  const OddFloatMode odd;
  const unsigned before = _mm_getcsr();
  {
    const ir::ScopedFloatMode mode;
    EXPECT_NE(_mm_getcsr() & 0xffc0, before & 0xffc0);
  }
  EXPECT_EQ(_mm_getcsr() & 0xffc0, before & 0xffc0);
#endif
}

}  // namespace
}  // namespace lazuli
