// degenerate_hlo FOLDER: writes each use of tests/backend/clients/degenerate_uses.h as a module of
// its own, FOLDER/OPCODE.TYPE.N.hlo, over the types that jaxlib computes with.
#include <fstream>
#include <iostream>
#include <string>

#include "ir/hlo/text/printer.h"
#include "tests/backend/clients/degenerate_uses.h"

int main(int argc, char** argv) {
  using lazuli::ir::DType;
  if (argc != 2) {
    std::cerr << "usage: degenerate_hlo FOLDER\n";
    return 2;
  }
  for (int o = 0; o < lazuli::hlo::NumOpcodes(); ++o) {
    const auto opcode = static_cast<lazuli::hlo::Opcode>(o);
    for (const DType dtype : {DType::kF32, DType::kS32, DType::kPred, DType::kC64}) {
      const auto uses = lazuli::DegenerateUses(opcode, dtype);
      for (std::size_t i = 0; i < uses.size(); ++i) {
        const auto module = lazuli::ModuleOf(absl::MakeConstSpan(uses).subspan(i, 1));
        std::ofstream(std::string(argv[1]) + "/" + std::string(lazuli::hlo::OpcodeText(opcode)) +
                      "." + std::string(lazuli::ir::DTypeText(dtype)) + "." + std::to_string(i) +
                      ".hlo")
            << lazuli::hlo::ToString(*module);
      }
    }
  }
  return 0;
}
