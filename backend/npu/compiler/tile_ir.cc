#include "backend/npu/compiler/tile_ir.h"

#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

std::string PlaceText(const TileProgram& program, const Place& place) {
  switch (place.space) {
    case Space::kNone:
      return "";
    case Space::kDram:
      return Str("$", program.arrays[static_cast<std::size_t>(place.object)].name, "[", place.low,
                 "..", place.high, ")");
    case Space::kSpm:
    case Space::kAcc:
      return Str(place.space == Space::kAcc ? "acc." : "%",
                 program.buffers[static_cast<std::size_t>(place.object)].name, place.object, "[",
                 place.low, "..", place.high, ")");
  }
  return "";
}

std::string DimsText(const Descriptor& d) {
  std::string text;
  for (int i = 0; i < d.rank(); ++i)
    text += Str(i == 0 ? "" : "x", d.dim[static_cast<std::size_t>(i)]);
  return text;
}

}  // namespace

int64_t TileArray::bytes() const {
  int64_t n = TypeBytes(type);
  for (int64_t d : dims) n *= d;
  return n;
}

int PortOf(const TileOp& op) {
  if (op.op == Op::kMxLdw) return kWeightsPort;
  if (op.op == Op::kMxOut) return kResultsPort;
  return static_cast<int>(op.queue);
}

bool IsBarrier(const TileOp& op) {
  switch (op.op) {
    case Op::kFence:
    case Op::kNop:
    case Op::kLds:
    case Op::kSts:
    case Op::kBeq:
    case Op::kJmp:
      return IsControl(op);
    default:
      return false;
  }
}

std::string TileProgram::ToString() const {
  std::string text;
  for (const TileArray& array : arrays)
    text += Str("array ", array.name, " ", TypeName(array.type), " ", array.bytes(), " bytes\n");
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const TileBuffer& b = buffers[i];
    text += Str("buffer ", b.name, i, " ", b.size, b.space == Space::kAcc ? " rows" : " bytes");
    text += b.address < 0 ? "\n" : Str(" at ", b.address, "\n");
  }
  int origin = 0;
  for (const TileOp& op : ops) {
    if (op.origin != origin) {
      origin = op.origin;
      text += Str("# ", origins[static_cast<std::size_t>(origin)], "\n");
    }
    text += Str("  ", FindRow(static_cast<uint32_t>(op.op))->mnemonic, ".", QueueName(op.queue));
    if (op.descriptor >= 0)
      text += Str(" ", DimsText(descriptors[static_cast<std::size_t>(op.descriptor)]));
    if (op.to)
      text += Str(" ", PlaceText(*this, op.to), op.accumulate || op.reads_to ? " += " : " = ");
    for (const Place& place : op.from) {
      if (place) text += Str(" ", PlaceText(*this, place));
    }
    if (op.remote) text += Str(" at device ", op.remote_device, PlaceText(*this, op.remote));
    if (op.remote_semaphore != kNoToken) text += Str(" there sig s", op.remote_semaphore);
    if (op.table) text += Str(" by ", PlaceText(*this, op.table));
    if (op.wait != kNoToken)
      text += Str(" wait s", op.wait, op.wait_count > 1 ? Str(">=", op.wait_count) : "");
    if (op.signal != kNoToken) text += Str(" sig s", op.signal);
    text += "\n";
  }
  return text;
}

}  // namespace lazuli::npu
