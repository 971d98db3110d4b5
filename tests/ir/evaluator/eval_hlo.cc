// eval_hlo FILE DIR: evaluates the module of FILE with arguments DIR/p0.bin, p1.bin, ... (row-major
// elements) and writes the leaves of its result to DIR/out0.bin, out1.bin, ...; prints their
// shapes, one per line. For xla_differential.py.

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "ir/evaluator/evaluator.h"
#include "ir/hlo/text/parser.h"

namespace lazuli {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void WriteLeaves(const ir::Literal& value, const std::string& directory, int& next) {
  if (value.shape().IsTuple()) {
    for (const ir::Literal& element : value.tuple()) WriteLeaves(element, directory, next);
    return;
  }
  std::ofstream file(ir::Str(directory, "/out", next++, ".bin"), std::ios::binary);
  if (value.shape().IsArray())
    file.write(reinterpret_cast<const char*>(value.raw()), value.byte_size());
  std::puts(value.shape().ToString().c_str());
}

absl::Status Run(const std::string& path, const std::string& directory) {
  LAZULI_ASSIGN_OR_RETURN(const auto module, hlo::ParseModule(ReadFile(path)));
  std::vector<ir::Literal> arguments;
  for (const hlo::Instruction* parameter : module->entry()->parameters()) {
    const std::string bytes = ReadFile(ir::Str(directory, "/p", arguments.size(), ".bin"));
    if (static_cast<int64_t>(bytes.size()) != parameter->shape().byte_size())
      return ir::InvalidArgument("argument ", arguments.size(), " has ", bytes.size(), " bytes");
    arguments.push_back(ir::Literal::Foreign(parameter->shape(), bytes.data(), {}).Clone());
  }
  std::vector<const ir::Literal*> pointers;
  for (const ir::Literal& argument : arguments) pointers.push_back(&argument);
  LAZULI_ASSIGN_OR_RETURN(const ir::Literal result, hlo::Evaluate(*module, pointers));
  int next = 0;
  WriteLeaves(result, directory, next);
  return absl::OkStatus();
}

}  // namespace
}  // namespace lazuli

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: eval_hlo FILE DIR\n", stderr);
    return 2;
  }
  const absl::Status status = lazuli::Run(argv[1], argv[2]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(lazuli::ir::Message(status)).c_str());
  return 1;
}
