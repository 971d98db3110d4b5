#include "backend/cpu/program_store.h"

#include <utility>

#include "backend/cpu/program_kinds.h"
#include "backend/cpu/runtime/persistent_cache.h"
#include "backend/runtime/program_file.h"
#include "ir/hlo/dump/module_dump.h"
#include "ir/hlo/proto/proto.h"
#include "ir/support/byte_stream.h"
#include "ir/support/metrics.h"

namespace lazuli::cpu {
namespace {

// Larger ones have constants, whose bytes cost more to compare than kernels to find.
constexpr std::size_t kMaxKeyBytes = std::size_t{1} << 24;

}  // namespace

ProgramStore::ProgramStore(hlo::Module& module, const CompileOptions& options)
    : name_(module.name()) {
  if (!HasPersistentCache() || hlo::ModuleDump::Current() != nullptr) return;
  if (!options.program_passes.empty() || !options.override_kernel_dir.empty()) return;
  module.set_name("program");
  std::string bytes = hlo::SerializeModuleProto(module);
  module.set_name(name_);
  if (bytes.size() > kMaxKeyBytes) return;
  ir::ByteWriter key;
  Write(key, std::string("program"));
  Write(key, CpuProgramKinds().engine);
  Write(key, options);
  Write(key, bytes);
  key_ = key.Take();
}

std::optional<ThunkProgram> ProgramStore::Find() const {
  if (key_.empty()) return std::nullopt;
  std::optional<ThunkProgram> program;
  if (const std::optional<std::string> bytes = FindPersistent(key_)) {
    absl::StatusOr<ThunkProgram> read = ReadProgram(*bytes, CpuProgramKinds());
    if (read.ok()) program = *std::move(read);
  }
  if (program) program->module->set_name(name_);
  Add(program ? Counter::kPersistentProgramHit : Counter::kPersistentProgramMiss);
  return program;
}

void ProgramStore::Keep(const ThunkProgram& program) const {
  if (key_.empty() || program.stats.evaluator_thunks > 0) return;
  if (const auto bytes = WriteProgram(program, CpuProgramKinds().engine); bytes.ok())
    KeepPersistent(key_, *bytes);
}

}  // namespace lazuli::cpu
