#include "backend/runtime/program_file.h"

#include <string>
#include <unordered_set>
#include <utility>

#include "ir/hlo/proto/proto.h"
#include "ir/hlo/text/printer.h"
#include "ir/support/build_id.h"
#include "ir/support/hash.h"
#include "ir/support/on_threads.h"
#include "ir/support/status.h"

namespace lazuli::backend {
namespace {

constexpr std::string_view kMagic = "lazuli program\n";

uint64_t Checksum(std::string_view bytes) { return ir::HashBytes(bytes.data(), bytes.size()); }

// Whether names tell instructions apart: of computations in the module, and of theirs.
bool NamesDiffer(const hlo::Module& module) {
  std::unordered_set<std::string> computations;
  for (const auto& computation : module.computations()) {
    if (!computations.insert(computation->name()).second) return false;
    std::unordered_set<std::string> instructions;
    for (const auto& i : computation->instructions())
      if (!instructions.insert(i->name()).second) return false;
  }
  return true;
}

// The module's bytes, of which another process makes the same module.
absl::StatusOr<std::string> ModuleBytes(const hlo::Module& module) {
  std::string bytes = hlo::SerializeModuleProto(module);
  LAZULI_ASSIGN_OR_RETURN(const auto read, hlo::ParseModuleProto(bytes));
  if (hlo::ToString(*read) != hlo::ToString(module) || !NamesDiffer(module))
    return Unimplemented(module.name(), ": the module has something that its bytes cannot say");
  return bytes;
}

// Sequences in the order in which they can be made: callees before callers, so the entry last.
std::vector<std::size_t> SequenceOrder(std::size_t count) {
  std::vector<std::size_t> order;
  for (std::size_t s = 1; s < count; ++s) order.push_back(s);
  order.push_back(0);
  return order;
}

void WriteParts(const std::vector<ProgramPartPtr>& parts, ProgramWriter& out) {
  Write(out, uint64_t{parts.size()});
  for (const ProgramPartPtr& part : parts) {
    Write(out, std::string(part->part_kind()));
    part->WritePart(out);
  }
}

// To link the code of kernels takes most of the time of reading a program.
absl::Status LoadParts(absl::Span<const std::shared_ptr<ProgramPart>> parts, int threads) {
  std::vector<absl::Status> loaded(parts.size());
  ir::OnThreads(parts.size(), threads, [&](std::size_t p) { loaded[p] = parts[p]->Load(); });
  for (const absl::Status& status : loaded) LAZULI_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

absl::Status ReadParts(ProgramReader& in, int threads) {
  std::vector<std::shared_ptr<ProgramPart>> parts;
  uint64_t count = 0;
  Read(in, count);
  for (uint64_t p = 0; p < count && in.ok(); ++p) {
    std::string kind;
    Read(in, kind);
    const PartKind* row = FindKind(in.kinds().parts, kind);
    if (row == nullptr)
      return InvalidArgument("this build has no program parts of the kind '", kind, "'");
    LAZULI_ASSIGN_OR_RETURN(auto part, row->read(in));
    parts.push_back(part);
    in.AddPart(std::move(part));
  }
  return LoadParts(parts, threads);
}

// The bytes behind the header, or an error that says why this process cannot use them.
absl::StatusOr<std::string_view> CheckedContent(std::string_view bytes, std::string_view engine) {
  if (bytes.substr(0, kMagic.size()) != kMagic)
    return InvalidArgument("these bytes are not a program of lazuli");
  ir::ByteReader in(bytes.substr(kMagic.size()));
  uint64_t checksum = 0;
  Read(in, checksum);
  const std::string_view content = in.Take(in.left());
  if (!in.ok() || Checksum(content) != checksum)
    return InvalidArgument("the program is damaged: its checksum is wrong");
  ir::ByteReader header(content);
  std::string build, made_for;
  Read(header, build);
  Read(header, made_for);
  if (build != ir::BuildId())
    return FailedPrecondition("the program was written by another build of lazuli");
  if (made_for != engine)
    return FailedPrecondition("the program was made for ", made_for, ", and this is ", engine);
  return header.Take(header.left());
}

}  // namespace

absl::StatusOr<std::string> WriteProgram(const ThunkProgram& program, std::string_view engine) {
  if (ir::BuildId().empty())
    return FailedPrecondition("this build has no id that could tell its programs from others'");
  LAZULI_ASSIGN_OR_RETURN(std::string module, ModuleBytes(*program.module));
  // First the thunks, which say what parts there are.
  ProgramWriter thunks;
  for (const std::size_t s : SequenceOrder(program.sequences.size()))
    Write(thunks, *program.sequences[s]);
  Write(thunks, program.packings);
  for (const ProgramPartPtr& part : thunks.parts()) LAZULI_RETURN_IF_ERROR(part->Complete());
  ProgramWriter out;
  Write(out, ir::BuildId());
  Write(out, std::string(engine));
  Write(out, program.options);
  Write(out, module);
  Write(out, program.slots);
  Write(out, program.constants);
  Write(out, program.parameters);
  Write(out, program.kept_bytes);
  Write(out, program.stats);
  Write(out, uint64_t{program.sequences.size()});
  WriteParts(thunks.parts(), out);
  out.Append(thunks.bytes().data(), thunks.bytes().size());
  ir::ByteWriter file;
  file.Append(kMagic.data(), kMagic.size());
  Write(file, Checksum(out.bytes()));
  file.Append(out.bytes().data(), out.bytes().size());
  return file.Take();
}

absl::StatusOr<ThunkProgram> ReadProgram(std::string_view bytes, const ProgramKinds& kinds) {
  LAZULI_ASSIGN_OR_RETURN(const std::string_view content, CheckedContent(bytes, kinds.engine));
  ProgramReader in(content, kinds);
  ThunkProgram program;
  std::string module;
  Read(in, program.options);
  Read(in, module);
  LAZULI_ASSIGN_OR_RETURN(program.module, hlo::ParseModuleProto(module));
  in.SetProgram(program);
  Read(in, program.slots);
  Read(in, program.constants);
  Read(in, program.parameters);
  Read(in, program.kept_bytes);
  Read(in, program.stats);
  uint64_t count = 0;
  Read(in, count);
  for (uint64_t s = 0; s < count && in.ok(); ++s)
    program.sequences.push_back(std::make_unique<ThunkSequence>());
  LAZULI_RETURN_IF_ERROR(ReadParts(in, program.options.num_threads));
  for (const std::size_t s : SequenceOrder(program.sequences.size()))
    Read(in, *program.sequences[s]);
  Read(in, program.packings);
  if (!in.ok() || !in.AtEnd()) return InvalidArgument("the program is damaged: it is cut off");
  return program;
}

}  // namespace lazuli::backend
