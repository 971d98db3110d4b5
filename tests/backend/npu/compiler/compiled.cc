#include "tests/backend/npu/compiler/compiled.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ir/evaluator/evaluator.h"
#include "ir/support/status.h"
#include "ir/types/leaves.h"
#include "lowering/passes/pass.h"
#include "lowering/passes/pipelines.h"
#include "tests/backend/npu/sim/invariants.h"

namespace lazuli::npu {
namespace {

std::span<const std::byte> BytesOf(const Literal& literal) {
  return {literal.raw(), static_cast<std::size_t>(literal.byte_size())};
}

absl::Status WriteParameters(Machine& machine, absl::Span<const Literal* const> arguments) {
  int number = 0;
  absl::Status status;
  for (const Literal* argument : arguments) {
    ForEachLeaf(*argument, [&](const Literal& leaf) {
      const std::string name = Str("p", number++);
      if (leaf.byte_size() > 0 && machine.program().Find(name) != nullptr)
        status.Update(machine.WriteSymbol(0, name, BytesOf(leaf)));
    });
  }
  return status;
}

}  // namespace

absl::StatusOr<Program> CompileSimplified(const hlo::Module& module, const Config& config,
                                          CompileReport* report) {
  const std::unique_ptr<hlo::Module> simple = module.Clone();
  lowering::PassPipeline pipeline("npu");
  lowering::AddSimplificationPipeline(pipeline);
  LAZULI_RETURN_IF_ERROR(pipeline.Run(*simple).status());
  return Compile(*simple, config, report, {.verify = true});
}

absl::StatusOr<Literal> RunCompiled(const hlo::Module& module,
                                    absl::Span<const Literal* const> arguments,
                                    const Config& config, const RunOptions& options,
                                    int64_t* cycles) {
  LAZULI_ASSIGN_OR_RETURN(const Program program, CompileSimplified(module, config));
  LAZULI_ASSIGN_OR_RETURN(const Program read, FromFile(ToFile(program)));
  LAZULI_ASSIGN_OR_RETURN(auto machine, Machine::Create(config));
  if (auto fault = machine->Load(read)) return ToStatus(*fault);
  LAZULI_RETURN_IF_ERROR(WriteParameters(*machine, arguments));
  if (auto fault = machine->Run(options)) return ToStatus(*fault);
  if (cycles != nullptr) *cycles = machine->cycles();
  if (options.timing)
    ExpectInvariants(read, config, machine->counters(0), machine->cycles(), false);
  std::vector<Literal> leaves;
  absl::Status status;
  const Shape shape = module.entry()->root()->shape().WithDefaultLayout();
  ForEachLeaf(shape, [&](const Shape& leaf) {
    const std::string name = Str("r", leaves.size());
    leaves.emplace_back(leaf);
    if (leaf.num_elements() == 0) return;
    auto bytes = machine->ReadSymbol(0, name);
    status.Update(bytes.status());
    if (bytes.ok()) std::copy(bytes->begin(), bytes->end(), leaves.back().mutable_raw());
  });
  LAZULI_RETURN_IF_ERROR(status);
  std::size_t next = 0;
  return FromLeaves(shape, leaves, &next);
}

void ExpectCompiled(const hlo::Module& module, const Expectation& expectation) {
  const std::vector<Literal> arguments = RandomArguments(module, expectation.values);
  std::vector<const Literal*> pointers;
  for (const Literal& argument : arguments) pointers.push_back(&argument);
  const auto expected = hlo::Evaluate(module, pointers);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const auto actual = RunCompiled(module, pointers, expectation.config);
  ASSERT_TRUE(actual.ok()) << actual.status() << "\n" << module.ToString();
  const auto delayed = RunCompiled(module, pointers, expectation.config, {.jitter = 7});
  ASSERT_TRUE(delayed.ok()) << delayed.status() << "\n" << module.ToString();
  ExpectSameBits(*actual, *delayed);
  if (expectation.rtol == 0 && expectation.atol == 0)
    ExpectSameBits(*expected, *actual);
  else
    ExpectClose(*expected, *actual, expectation.rtol, expectation.atol);
  if (testing::Test::HasFailure()) ADD_FAILURE() << module.ToString();
}

void ExpectCompiled(std::string_view hlo, const Expectation& expectation) {
  ExpectCompiled(*ParseHlo(hlo), expectation);
}

}  // namespace lazuli::npu
