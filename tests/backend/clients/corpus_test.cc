// Every module of tests/backend/corpus gives the same values on the CPU and on the NPU as on the
// interpreter.
//
// Headers of a file: "tolerance: rtol [atol]" (without one, the same bits), "values: special"
// (arguments with infinities, NaN, ...), and counts that the CPU's compiler must reach with LLVM
// and oneDNN: "kernels", "library_calls", "reorders", "evaluator_thunks".
#include "tests/backend/clients/corpus.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/client/registry.h"
#include "backend/cpu/codegen/kernel.h"
#include "backend/cpu/runtime/library.h"
#include "backend/npu/npu_buffer.h"
#include "backend/runtime/placement.h"
#include "ir/hlo/proto/proto.h"
#include "ir/hlo/text/parser.h"
#include "ir/hlo/text/printer.h"
#include "tests/backend/clients/client_test.h"
#include "tests/support/hlo_test.h"

namespace lazuli {
namespace {

class CorpusTest : public testing::TestWithParam<std::string> {};

void CompareOutputs(const std::map<std::string, std::string>& header, const RunResult& expected,
                    const RunResult& actual) {
  ASSERT_EQ(actual.outputs.size(), expected.outputs.size());
  double rtol = 0, atol = 0;
  if (header.contains("tolerance")) std::istringstream(header.at("tolerance")) >> rtol >> atol;
  for (std::size_t i = 0; i < expected.outputs.size(); ++i) {
    SCOPED_TRACE("output " + std::to_string(i));
    if (rtol > 0) {
      ExpectClose(expected.outputs[i], actual.outputs[i], rtol, atol);
    } else {
      ExpectSameBits(expected.outputs[i], actual.outputs[i]);
    }
  }
}

// The NPU adds in an order of its own: lane by lane, and in tiles of the array's rows.
void WidenForNpu(const std::string& hlo, std::map<std::string, std::string>& header) {
  for (const char* op :
       {"dot(", "convolution(", "reduce(", "reduce-window(", "select-and-scatter("}) {
    if (hlo.find(op) == std::string::npos || header.contains("tolerance")) continue;
    header["tolerance"] = "2e-5 2e-5";
  }
}

// The executable that is made of the bytes of a CPU's one has the same thunks and gives the same bits.
void ExpectSavedRunsAlike(const backend::Executable& executable, const RunResult& expected,
                          const std::vector<ir::Literal>& arguments) {
  const auto bytes = executable.Serialize();
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const auto read = (*backend::FindClient("cpu"))->Deserialize(*bytes);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ((*read)->ToString(), expected.text);
  const auto actual = RunExecutable("cpu", **read, arguments);
  ASSERT_TRUE(actual.ok()) << actual.status();
  ASSERT_EQ(actual->outputs.size(), expected.outputs.size());
  for (std::size_t i = 0; i < expected.outputs.size(); ++i)
    ExpectSameBits(expected.outputs[i], actual->outputs[i]);
}

// A kernel that is interpreted gives the bits that its code gives. To compile the program for the second
// time makes the code of the kernels of the first.
void ExpectInterpretedRunsAlike(const std::string& hlo, const std::vector<ir::Literal>& arguments) {
  const auto executable = CompileOn("cpu", hlo, {.interpreted_ops = int64_t{1} << 62});
  ASSERT_TRUE(executable.ok()) << executable.status();
  const auto interpreted = RunExecutable("cpu", **executable, arguments);
  ASSERT_TRUE(interpreted.ok()) << interpreted.status();
  const auto again = CompileOn("cpu", hlo);
  ASSERT_TRUE(again.ok()) << again.status();
  const auto compiled = RunExecutable("cpu", **executable, arguments);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  EXPECT_EQ(compiled->text, (*again)->ToString());  // the same but for the tier, which is gone
  for (std::size_t i = 0; i < compiled->outputs.size(); ++i)
    ExpectSameBits(compiled->outputs[i], interpreted->outputs[i]);
}

// Code that takes the sizes as arguments gives the bits of code that knows them.
void ExpectGenericRunsAlike(const std::string& hlo, const RunResult& expected,
                            const std::vector<ir::Literal>& arguments) {
  const auto generic = RunOn("cpu", hlo, arguments, {.generic_from = 1});
  ASSERT_TRUE(generic.ok()) << generic.status();
  ASSERT_EQ(generic->outputs.size(), expected.outputs.size());
  for (std::size_t i = 0; i < expected.outputs.size(); ++i)
    ExpectSameBits(expected.outputs[i], generic->outputs[i]);
}

TEST_P(CorpusTest, DevicesAgreeWithInterpreter) {
  const std::string hlo = CorpusText(GetParam());
  const auto header = HeaderOf(hlo);
  const bool special = header.contains("values") && header.at("values") == "special";
  auto module = hlo::ParseModule(hlo);
  ASSERT_TRUE(module.ok()) << module.status();
  const auto arguments =
      RandomArguments(**module, special ? RandomValues::kSpecial : RandomValues::kTame);
  const auto expected = RunOn("interpreter", hlo, arguments);
  ASSERT_TRUE(expected.ok()) << expected.status();
  {
    const auto npu = RunOn("npu", hlo, arguments, {.op_filter = false});
    ASSERT_TRUE(npu.ok()) << npu.status();
    SCOPED_TRACE(npu->text);
    auto wider = header;
    WidenForNpu(hlo, wider);
    CompareOutputs(wider, *expected, *npu);
  }
  ExpectInterpretedRunsAlike(hlo, arguments);
  const auto compiled = CompileOn("cpu", hlo);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  const auto actual = RunExecutable("cpu", **compiled, arguments);
  ASSERT_TRUE(actual.ok()) << actual.status();
  SCOPED_TRACE(actual->text);
  CompareOutputs(header, *expected, *actual);
  ExpectSavedRunsAlike(**compiled, *actual, arguments);
  ExpectGenericRunsAlike(hlo, *actual, arguments);
  if (!cpu::KernelsAvailable() || !cpu::HasOneDnn()) return;
  const auto& stats = actual->stats;
  const std::map<std::string, int64_t> counts = {{"kernels", stats.kernels},
                                                 {"library_calls", stats.library_calls},
                                                 {"reorders", stats.reorders},
                                                 {"evaluator_thunks", stats.evaluator_thunks}};
  for (const auto& [name, count] : counts) {
    if (!header.contains(name)) continue;
    EXPECT_EQ(count, std::stoll(header.at(name))) << name;
  }
}

TEST(CorpusTest, OtherDevicesSayThatTheirProgramsCannotBeSaved) {
  const auto executable = CompileOn("interpreter", "ENTRY main { ROOT x = f32[2] parameter(0) }");
  EXPECT_EQ((*executable)->Serialize().status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ((*backend::FindClient("interpreter"))->Deserialize("").status().message(),
            "programs of interpreter cannot be saved");
}

// What the first NPU has moved to and from the host until now.
npu::CardTotals NpuTotals() {
  backend::ComputationClient* const client = *backend::FindClient("npu");
  const float one = 1;
  const ir::Shape shape(ir::DType::kF32, {1});
  const backend::BufferPtr buffer = *client->FromHost({&one, &shape}, {}, client->devices()[0]);
  npu::CardTotals totals = static_cast<const npu::NpuBuffer&>(*buffer).block().card()->totals();
  --totals.loads;  // this buffer's own
  totals.load_bytes -= 4;
  return totals;
}

// Arrays that the steps of an executable's text pass between host and device: "  1 host (v3, v4) -> (v9) of 2 ops".
struct Passed {
  int64_t to_host = 0, from_host = 0, constants = 0;
};
Passed PassedOf(const std::string& text) {
  Passed passed;
  std::istringstream lines(text.substr(text.find("\nsteps:\n")));
  for (std::string line; std::getline(lines, line) && line != "placement:";) {
    const std::size_t arrow = line.find(") -> (");
    if (arrow == std::string::npos) continue;
    if (line.find(" host (") != std::string::npos) {
      passed.to_host += std::count(line.begin(), line.begin() + static_cast<int64_t>(arrow), 'v');
      passed.from_host += std::count(line.begin() + static_cast<int64_t>(arrow),
                                     line.begin() + static_cast<int64_t>(line.find(") of ")), 'v');
    } else if (line.find(", 0 bytes of constants") == std::string::npos) {
      ++passed.constants;
    }
  }
  return passed;
}

// Whatever a device is not allowed to run, the host runs, and each array that passes between them is a transfer: a training
// step with opcodes denied, one at a time. LAZULI_SWEEP=all denies each that there is.
TEST(PlacementTest, AStepIsTheSameWithAnOpcodeOnTheHost) {
  const std::string hlo = CorpusText("lenet_step");
  auto module = hlo::ParseModule(hlo);
  ASSERT_TRUE(module.ok()) << module.status();
  const auto arguments = RandomArguments(**module, RandomValues::kTame);
  const auto expected = RunOn("interpreter", hlo, arguments);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const auto arrays = std::count_if(arguments.begin(), arguments.end(),
                                    [](const ir::Literal& a) { return !a.shape().IsScalar(); });
  std::set<std::string> opcodes;
  for (const auto& i : (*module)->entry()->instructions()) {
    if (!backend::GoesWithItsUsers(*i)) opcodes.emplace(hlo::OpcodeText(i->opcode()));
  }
  EXPECT_GT(opcodes.size(), 10);
  const char* const sweep = std::getenv("LAZULI_SWEEP");
  if (sweep == nullptr || std::string_view(sweep) != "all")
    opcodes = {"convolution", "dot", "maximum", "select-and-scatter"};
  for (const std::string& opcode : opcodes) {
    SCOPED_TRACE(opcode);
    const npu::CardTotals before = NpuTotals();
    const auto actual = RunOn("npu", hlo, arguments, {.denied_ops = opcode, .op_filter = false});
    ASSERT_TRUE(actual.ok()) << actual.status();
    const npu::CardTotals after = NpuTotals();
    CompareOutputs(HeaderOf(hlo), *expected, *actual);
    EXPECT_GT(actual->stats.kernels, 0);
    const Passed passed = PassedOf(actual->text);
    EXPECT_GT(passed.from_host, 0);
    constexpr int64_t kScalars = 1;  // all of them are one transfer
    EXPECT_EQ(after.loads - before.loads - 1,
              arrays + kScalars + passed.constants + passed.from_host);
    EXPECT_EQ(after.stores - before.stores,
              static_cast<int64_t>(expected->outputs.size()) + passed.to_host);
    // What the CPU is not allowed to run, the evaluator runs there.
    const auto cpu =
        RunOn("cpu", hlo, arguments, {.fallback = backend::Fallback::kAllow, .denied_ops = opcode});
    ASSERT_TRUE(cpu.ok()) << cpu.status();
    CompareOutputs(HeaderOf(hlo), *expected, *cpu);
    // These are no code of their own: another name of the same memory, a convolution's flag.
    if (opcode == "reshape" || opcode == "reverse") continue;
    EXPECT_GT(cpu->stats.evaluator_thunks, 0);
  }
  const auto refused =
      RunOn("cpu", hlo, arguments, {.fallback = backend::Fallback::kError, .denied_ops = "dot"});
  EXPECT_THAT(std::string(refused.status().message()),
              ::testing::HasSubstr("dot is denied by LAZULI_DENY_OPS"));
}

// In every print mode: the module, and what the CPU's compiler made of it.
TEST_P(CorpusTest, PrintedModulesReadBack) {
  const std::string text = CorpusText(GetParam());
  const auto executable = CompileOn("cpu", text);
  ASSERT_TRUE(executable.ok()) << executable.status();
  const std::string compiled = (*executable)->ToString();
  for (const std::string& original : {text, compiled.substr(0, compiled.find("\nthunks: "))}) {
    const auto module = hlo::ParseModule(original);
    ASSERT_TRUE(module.ok()) << module.status() << original;
    for (const hlo::PrintOptions& options : {hlo::PrintOptions{}, hlo::PrintOptions::Short(),
                                             hlo::PrintOptions{.operand_shapes = true}}) {
      const std::string printed = hlo::ToString(**module, options);
      const auto again = hlo::ParseModule(printed);
      ASSERT_TRUE(again.ok()) << again.status() << printed;
      EXPECT_TRUE(hlo::Equal(**module, **again)) << printed;
      EXPECT_EQ(hlo::ToString(**again, options), printed);
    }
    const auto proto = hlo::ParseModuleProto(hlo::SerializeModuleProto(**module));
    ASSERT_TRUE(proto.ok()) << proto.status();
    EXPECT_EQ(hlo::ToString(**proto), hlo::ToString(**module));
  }
}

INSTANTIATE_TEST_SUITE_P(Corpus, CorpusTest, testing::ValuesIn(CorpusNames()), CorpusTestName);

}  // namespace
}  // namespace lazuli
