#include "tools/npu/program.h"

#include <cstdlib>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "backend/npu/sim/assembler.h"
#include "backend/npu/sim/numerics.h"
#include "ir/support/flags.h"
#include "ir/support/status.h"
#include "tools/npz.h"
#include "tools/tool.h"

namespace lazuli::tools {
namespace {

using ir::Str;

absl::StatusOr<ir::DType> DTypeOf(const npu::Symbol& symbol) {
  const auto dtype = ir::ParseDType(npu::TypeName(symbol.type));
  if (!dtype.has_value() || symbol.type == npu::Type::kS4)
    return ir::Unimplemented(symbol.name, ": arrays of ", npu::TypeName(symbol.type),
                             " cannot be read or written");
  return *dtype;
}

absl::StatusOr<ir::Shape> ShapeOf(const npu::Symbol& symbol) {
  LAZULI_ASSIGN_OR_RETURN(const ir::DType dtype, DTypeOf(symbol));
  return ir::Shape(dtype, ir::Dims(symbol.dims.begin(), symbol.dims.end()));
}

// Small numbers: floats in [-1, 1), integers in [-4, 4), or [0, 2) where there are no others.
std::vector<std::byte> Drawn(const npu::Symbol& symbol, std::mt19937_64& random) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(symbol.bytes()));
  const auto width = static_cast<std::size_t>(npu::TypeBytes(symbol.type));
  for (std::size_t at = 0; at + width <= bytes.size(); at += width) {
    const auto draw = static_cast<int64_t>(random() >> 40);
    uint64_t bits = 0;
    const float value = static_cast<float>(draw - (1 << 23)) / static_cast<float>(1 << 23);
    switch (symbol.type) {
      case npu::Type::kF32:
        bits = std::bit_cast<uint32_t>(value);
        break;
      case npu::Type::kBf16:
        bits = npu::ToBf16(value);
        break;
      case npu::Type::kF16:
        bits = 0x3c00;
        break;
      case npu::Type::kPred:
        bits = static_cast<uint64_t>(draw & 1);
        break;
      case npu::Type::kU8:
      case npu::Type::kU32:
        bits = static_cast<uint64_t>(draw & 7);
        break;
      default:
        bits = static_cast<uint64_t>((draw & 7) - 4);
        break;
    }
    std::memcpy(bytes.data() + at, &bits, width);
  }
  return bytes;
}

bool IsInput(const npu::Symbol& s) {
  return s.kind == npu::SymbolKind::kIn || s.kind == npu::SymbolKind::kInOut;
}
bool IsOutput(const npu::Symbol& s) {
  return s.kind == npu::SymbolKind::kOut || s.kind == npu::SymbolKind::kInOut;
}

}  // namespace

absl::StatusOr<npu::Program> LoadProgram(const std::string& file) {
  LAZULI_ASSIGN_OR_RETURN(const std::string bytes, ReadAll(file));
  if (file.ends_with(".s")) return npu::Assemble(bytes, file);
  auto program = npu::FromFile(bytes);
  if (!program.ok()) return ir::Prefixed(program.status(), Str(file, ": "));
  return program;
}

absl::StatusOr<npu::Config> ConfigFor(const npu::Program& program, const NpuOptions& options) {
  if (!options.config.empty() || std::getenv("NPU_CONFIG") != nullptr) return options.Read();
  LAZULI_ASSIGN_OR_RETURN(npu::Config config,
                          npu::ReadConfig(program.config_name, program.config_overrides));
  LAZULI_RETURN_IF_ERROR(ir::Prefixed(npu::SetKeys(ir::flags().npu_set(), config), "NPU_SET: "));
  LAZULI_RETURN_IF_ERROR(ir::Prefixed(npu::SetKeys(options.set, config), "--set: "));
  LAZULI_RETURN_IF_ERROR(npu::Check(config));
  return config;
}

absl::Status WriteInputs(npu::Machine& machine, const InputSource& source) {
  std::optional<NpzReader> npz;
  if (!source.npz.empty()) {
    LAZULI_ASSIGN_OR_RETURN(npz, NpzReader::Open(source.npz));
  }
  std::mt19937_64 random(source.seed.value_or(0));
  for (int d = 0; d < machine.config().devices; ++d) {
    for (const npu::Symbol& symbol : machine.program().symbols) {
      if (!IsInput(symbol)) continue;
      const std::string own = Str(symbol.name, "@", d);
      const bool has_own = npz && npz->Has(own);
      if (has_own || (npz && npz->Has(symbol.name))) {
        LAZULI_ASSIGN_OR_RETURN(const ir::Shape shape, ShapeOf(symbol));
        LAZULI_ASSIGN_OR_RETURN(const ir::Literal value,
                                npz->Read(has_own ? own : symbol.name, shape));
        LAZULI_RETURN_IF_ERROR(machine.WriteSymbol(
            d, symbol.name, {value.raw(), static_cast<std::size_t>(value.byte_size())}));
      } else if (source.seed) {
        LAZULI_RETURN_IF_ERROR(machine.WriteSymbol(d, symbol.name, Drawn(symbol, random)));
      } else if (symbol.kind == npu::SymbolKind::kIn) {
        return ir::InvalidArgument("no value for ", symbol.name,
                                   ": --inputs=FILE.npz with an array of this name, or --seed=N");
      }
    }
  }
  return absl::OkStatus();
}

absl::Status WriteOutputs(const npu::Machine& machine, const std::string& file) {
  std::vector<std::pair<std::string, ir::Literal>> arrays;
  const int64_t devices = machine.config().devices;
  for (int d = 0; d < devices; ++d) {
    for (const npu::Symbol& symbol : machine.program().symbols) {
      if (!IsOutput(symbol)) continue;
      LAZULI_ASSIGN_OR_RETURN(const ir::Shape shape, ShapeOf(symbol));
      LAZULI_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                              machine.ReadSymbol(d, symbol.name));
      ir::Literal value = ir::Literal::Uninitialized(shape);
      if (!bytes.empty()) std::memcpy(value.mutable_raw(), bytes.data(), bytes.size());
      arrays.emplace_back(devices == 1 ? symbol.name : Str(symbol.name, "@", d), std::move(value));
    }
  }
  return WriteNpz(file, arrays);
}

}  // namespace lazuli::tools
