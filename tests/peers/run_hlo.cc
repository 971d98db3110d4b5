// run_hlo FILE.hlo FOLDER DEVICE: runs a module on FOLDER/p0.bin, p1.bin, ... (row-major bytes) and
// writes FOLDER/o0.bin, ...
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "backend/client/registry.h"
#include "backend/cpu/cpu_client.h"
#include "backend/interpreter/interpreter.h"
#include "ir/hlo/text/parser.h"

namespace lazuli {
namespace {

using ir::Str;

std::string ReadBytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

absl::Status Run(const std::string& file, const std::string& folder,
                 const std::string& device_name) {
  LAZULI_ASSIGN_OR_RETURN(auto module, hlo::ParseModule(ReadBytes(file)));
  LAZULI_ASSIGN_OR_RETURN(const backend::Device device, backend::FindDevice(device_name));
  std::vector<backend::BufferPtr> inputs;
  for (const hlo::Instruction* parameter : module->entry()->parameters()) {
    const ir::Shape shape = parameter->shape().WithDefaultLayout();
    const std::string path = Str(folder, "/p", inputs.size(), ".bin"), bytes = ReadBytes(path);
    if (static_cast<int64_t>(bytes.size()) != shape.byte_size()) {
      return ir::InvalidArgument(path, " has ", bytes.size(), " bytes, ", shape, " needs ",
                                 shape.byte_size());
    }
    LAZULI_ASSIGN_OR_RETURN(backend::BufferPtr buffer,
                            device.client->FromHost({bytes.data(), &shape}, nullptr, device));
    inputs.push_back(std::move(buffer));
  }
  LAZULI_ASSIGN_OR_RETURN(backend::CompileOptions options, backend::CompileOptions::FromFlags());
  LAZULI_ASSIGN_OR_RETURN(auto executable, device.client->Compile(std::move(module), options));
  LAZULI_ASSIGN_OR_RETURN(
      auto outputs,
      executable->Execute({.buffers = inputs, .scalars = {}, .donated = {}, .device = device}));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    LAZULI_ASSIGN_OR_RETURN(const ir::Literal value, device.client->ToHost(*outputs[i]));
    std::ofstream out(Str(folder, "/o", i, ".bin"), std::ios::binary);
    out.write(reinterpret_cast<const char*>(value.raw()), value.byte_size());
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace lazuli

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: run_hlo FILE.hlo FOLDER DEVICE\n";
    return 2;
  }
  lazuli::interpreter::RegisterInterpreter();
  lazuli::cpu::RegisterCpu();
  if (const absl::Status status = lazuli::Run(argv[1], argv[2], argv[3]); !status.ok()) {
    std::cerr << "run_hlo: " << lazuli::ir::Message(status) << "\n";
    return 1;
  }
  return 0;
}
