#include "lowering/transforms/jvp.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/hlo/verifier.h"
#include "tests/lowering/transforms/derivative_samples.h"

namespace lazuli::lowering {
namespace {

using hlo::ErrorOf;
using ::testing::HasSubstr;

std::vector<ir::Literal> Moved(const std::vector<ir::Literal>& from,
                               const std::vector<ir::Literal>& along, double step) {
  std::vector<ir::Literal> moved;
  std::size_t next = 0;
  for (const ir::Literal& value : from) {
    moved.push_back(value.Clone());
    if (!IsDifferentiable(value.shape())) continue;
    ir::Literal direction = along[next++];
    const std::span<double> d = DoublesOf(direction), m = DoublesOf(moved.back());
    for (std::size_t i = 0; i < m.size(); ++i) m[i] += step * d[i];
  }
  return moved;
}

// What is wrong with the tangents of a program: an error, or the first that differs; empty if nothing
// is.
std::string ProblemOfTangents(const hlo::Module& module, const std::vector<ir::Literal>& x,
                              std::mt19937& random) {
  const auto jvp = Jvp(module);
  if (!jvp.ok()) return ErrorOf(jvp.status());
  EXPECT_TRUE(hlo::Verify(**jvp).ok()) << hlo::Verify(**jvp);
  std::vector<ir::Literal> v;
  for (const ir::Literal& leaf : LeavesOf(ir::Literal::Tuple(x))) {
    if (IsDifferentiable(leaf.shape())) v.push_back(RandomInput(leaf.shape(), random, -1, 1));
  }
  constexpr double kStep = 1e-5;
  const auto ups = ValuesOf(module, Moved(x, v, kStep));
  if (!ups.ok()) return Str("not evaluated: ", ErrorOf(ups.status()));
  const auto downs = ValuesOf(module, Moved(x, v, -kStep));
  std::vector<ir::Literal> arguments = x;
  arguments.insert(arguments.end(), v.begin(), v.end());
  auto values = ValuesOf(**jvp, arguments);
  if (!values.ok()) return ErrorOf(values.status());
  std::vector<ir::Literal> up = *ups, down = *downs, both = *values;
  std::size_t next = up.size();
  for (std::size_t k = 0; k < up.size(); ++k) {
    if (!IsDifferentiable(up[k].shape())) continue;
    const std::span<double> a = DoublesOf(up[k]), b = DoublesOf(down[k]);
    const std::span<double> t = DoublesOf(both.at(next++));
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double difference = (a[i] - b[i]) / (2 * kStep);
      if (std::abs(difference - t[i]) > 1e-6 * (1 + std::abs(t[i])))
        return Str("element ", i, " of result ", k, " has the tangent ", t[i], ", not ",
                   difference);
    }
  }
  return next == both.size() ? "" : "results without values";
}

// Uses whose tangents are not those of differences, with a part of the problem.
const std::map<std::string, std::string> kOtherTangents = {
    {"clamp", "the tangent 0, not"},        // equal bounds: 0 for each, as in JAX
    {"reduce-precision", "not 0"},          // steps, which are taken for what they round
    {"rng uniform", "the tangent 0, not"},  // other numbers at each evaluation
    {"rng normal", "the tangent 0, not"},
    {"topk customcall called", "not evaluated: "},
    {"custom-call unknown", "custom-call %r: no derivative of custom-call \"foo\""},
    {"infeed", "not evaluated: "},
    {"outfeed", "not evaluated: "},
    {"recv", "not evaluated: "},
    {"send", "send %s: no derivative of send"},  // to other devices
    {"collective-reduce", "collective-reduce %r: no derivative of collective-reduce"},
    {"ragged-all-to-all", "ragged-all-to-all %r: no derivative of ragged-all-to-all"},
    // Its operands are narrow floats, whose tangents would be as narrow.
    {"scaled-dot", "scaled-dot %r: no derivative of scaled-dot"},
};

TEST(JvpTest, EveryUseOfAnOpcodeHasTheTangentOfFiniteDifferences) {
  for (const auto& [name, text] : DerivativeTexts()) {
    const auto module = ParseInDoublePrecision(text);
    if (module == nullptr) continue;
    std::mt19937 random(7);
    const std::vector<ir::Literal> x = ArgumentsOf(name, *module, random);
    const std::string problem = ProblemOfTangents(*module, x, random);
    const auto exception = kOtherTangents.find(name);
    if (exception == kOtherTangents.end())
      EXPECT_EQ(problem, "") << name;
    else
      EXPECT_THAT(problem, HasSubstr(exception->second)) << name;
  }
}

}  // namespace
}  // namespace lazuli::lowering
