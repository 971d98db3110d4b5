#include "backend/runtime/thunk.h"

#include "backend/runtime/work.h"
#include "ir/support/error_place.h"

namespace lazuli::backend {
namespace {

bool RunsThunks(hlo::Opcode opcode) {
  return opcode == hlo::Opcode::kWhile || opcode == hlo::Opcode::kConditional;
}

}  // namespace

ThunkInfo ThunkInfo::Of(std::string_view kind, const hlo::Instruction& instruction) {
  const hlo::Metadata& metadata = instruction.metadata();
  ThunkInfo info{.kind = kind,
                 .name = instruction.name(),
                 .op = metadata.op_type,
                 .source = metadata.place(),
                 .scope = metadata.op_name};
  if (info.op.empty()) info.op = hlo::OpcodeText(instruction.opcode());
  if (!RunsThunks(instruction.opcode())) {
    info.flops = WorkOf(instruction).flops;
    info.bytes = BytesMoved(instruction);
  }
  return info;
}

ir::SpanLabel ThunkInfo::Label() const {
  return {.kind = ir::SpanKind::kThunk,
          .name = name,
          .detail = std::string(kind),
          .op = op,
          .scope = scope,
          .source = line(),
          .flops = flops,
          .bytes = bytes};
}

absl::Status WithSite(const absl::Status& status, const ThunkInfo& info) {
  return ir::AddPlace(status, info.op, info.source);
}

const ir::SpanLabel& Thunk::span_label() const {
  const ir::SpanLabel* label = span_label_.load(std::memory_order_acquire);
  if (label == nullptr) {
    label = &ir::KeepLabel(info_.Label());
    span_label_.store(label, std::memory_order_release);
  }
  return *label;
}

absl::Status RunThunk(const Thunk& thunk, const RunBuffers& run) {
  if (ir::IsTracing()) [[unlikely]] {
    const TraceSpan span(thunk.span_label());
    return WithSite(thunk.Execute(run), thunk.info());
  }
  return WithSite(thunk.Execute(run), thunk.info());
}

}  // namespace lazuli::backend
