#include "backend/runtime/thunk.h"

#include "ir/support/error_place.h"
#include "ir/support/span.h"

namespace lazuli::backend {

ThunkInfo ThunkInfo::Of(std::string_view kind, const hlo::Instruction& instruction) {
  const hlo::Metadata& metadata = instruction.metadata();
  ThunkInfo info{kind, instruction.name(), metadata.op_type, {}};
  if (info.op.empty()) info.op = hlo::OpcodeText(instruction.opcode());
  if (!metadata.source_file.empty())
    info.source = Str(metadata.source_file, ":", metadata.source_line);
  return info;
}

absl::Status WithSite(const absl::Status& status, const ThunkInfo& info) {
  return ir::AddPlace(status, info.op, info.source);
}

absl::Status RunThunk(const Thunk& thunk, const RunBuffers& run) {
  TraceSpan span(thunk.info().name);
  const absl::Status status = thunk.Execute(run);
  return WithSite(status, thunk.info());
}

}  // namespace lazuli::backend
