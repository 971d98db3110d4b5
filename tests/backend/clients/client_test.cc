#include "tests/backend/clients/client_test.h"

#include <cstring>
#include <sstream>

#include "backend/client/registry.h"
#include "backend/cpu/cpu_client.h"
#include "backend/interpreter/interpreter.h"
#include "backend/npu/npu_client.h"
#include "ir/hlo/text/parser.h"
#include "ir/support/flags.h"
#include "ir/support/status.h"
#include "ir/types/leaves.h"

namespace lazuli {
namespace {

// The number of leading parameters that are passed as buffers.
std::size_t BufferCount(const std::vector<ir::Literal>& arguments) {
  std::size_t count = arguments.size();
  while (count > 0 && arguments[count - 1].shape().IsScalar() &&
         arguments[count - 1].byte_size() <= 8)
    --count;
  return count;
}

}  // namespace

absl::StatusOr<backend::ExecutablePtr> CompileOn(std::string_view platform, std::string_view hlo,
                                                 const backend::CompileOptions& options) {
  cpu::RegisterCpu();
  interpreter::RegisterInterpreter();
  npu::RegisterNpu();
  LAZULI_RETURN_IF_ERROR(ir::SetFlag("NPU_STRICT", "1"));
  LAZULI_ASSIGN_OR_RETURN(backend::ComputationClient * client, backend::FindClient(platform));
  LAZULI_ASSIGN_OR_RETURN(auto module, hlo::ParseModule(hlo));
  return client->Compile(std::move(module), options);
}

absl::StatusOr<RunResult> RunOn(std::string_view platform, std::string_view hlo,
                                const std::vector<ir::Literal>& parameters,
                                const backend::CompileOptions& options) {
  LAZULI_ASSIGN_OR_RETURN(const auto executable, CompileOn(platform, hlo, options));
  return RunExecutable(platform, *executable, parameters);
}

absl::StatusOr<RunResult> RunExecutable(std::string_view platform, backend::Executable& executable,
                                        const std::vector<ir::Literal>& parameters) {
  std::vector<ir::Literal> arguments;
  for (const ir::Literal& parameter : parameters) {
    ir::ForEachLeaf(parameter, [&](const ir::Literal& leaf) { arguments.push_back(leaf); });
  }
  LAZULI_ASSIGN_OR_RETURN(backend::ComputationClient * client, backend::FindClient(platform));
  const std::size_t num_buffers = BufferCount(arguments);
  std::vector<backend::BufferPtr> buffers;
  std::vector<uint64_t> scalars;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const ir::Literal& argument = arguments[i];
    if (i >= num_buffers) {
      scalars.push_back(0);
      std::memcpy(&scalars.back(), argument.raw(), static_cast<std::size_t>(argument.byte_size()));
      continue;
    }
    const backend::HostView view{argument.raw(), &argument.shape()};
    LAZULI_ASSIGN_OR_RETURN(auto buffer, client->FromHost(view, {}, client->devices()[0]));
    buffers.push_back(std::move(buffer));
  }
  LAZULI_ASSIGN_OR_RETURN(
      auto outputs, executable.Execute({.buffers = buffers, .scalars = scalars, .donated = {}}));
  RunResult result{{}, executable.stats(), executable.ToString()};
  for (const auto& output : outputs) {
    LAZULI_ASSIGN_OR_RETURN(ir::Literal literal, client->ToHost(*output));
    result.outputs.push_back(std::move(literal));
  }
  return result;
}

std::map<std::string, std::string> HeaderOf(std::string_view hlo) {
  std::map<std::string, std::string> header;
  std::istringstream lines{std::string(hlo)};
  for (std::string line; std::getline(lines, line) && line.starts_with("// ");) {
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) header[line.substr(3, colon - 3)] = line.substr(colon + 2);
  }
  return header;
}

}  // namespace lazuli
