#include "backend/cpu/runtime/copy_thunk.h"

#include <algorithm>
#include <cstring>

#include "ir/hlo/pads.h"
#include "ir/support/metrics.h"
#include "ir/support/parallel_for.h"
#include "ir/support/str.h"

namespace lazuli::cpu {
namespace {

template <class Word>
void FillTyped(const std::byte* value, std::byte* target, int64_t bytes) {
  Word word;
  std::memcpy(&word, value, sizeof word);
  auto* t = reinterpret_cast<Word*>(target);
  ParallelFor(bytes / static_cast<int64_t>(sizeof(Word)), 16384,
              [&](int64_t begin, int64_t end) { std::fill(t + begin, t + end, word); });
}

void Fill(const std::byte* value, int element_bytes, std::byte* target, int64_t bytes) {
  switch (element_bytes) {
    case 1:
      return FillTyped<uint8_t>(value, target, bytes);
    case 2:
      return FillTyped<uint16_t>(value, target, bytes);
    case 4:
      return FillTyped<uint32_t>(value, target, bytes);
    case 8:
      return FillTyped<uint64_t>(value, target, bytes);
    default:
      return FillTyped<Word16>(value, target, bytes);
  }
}

struct CopySpec {
  int32_t element_bytes = 1;
  int64_t fill_bytes = 0;
  bool whole = false;  // one array as large as the other
  BufferId target = 0;
  std::vector<CopyPiece> pieces;
  std::optional<BufferId> fill;
  LAZULI_ATTRS(element_bytes, fill_bytes, whole, target, pieces, fill);
};

class CopyThunk final : public SpecThunk<CopySpec> {
 public:
  using SpecThunk::SpecThunk;

  absl::Status Execute(const RunBuffers& run) const override {
    std::byte* target = run.at(spec_.target);
    if (spec_.fill) Fill(run.at(*spec_.fill), spec_.element_bytes, target, spec_.fill_bytes);
    for (const CopyPiece& piece : spec_.pieces) {
      piece.copy.Run(run.at(piece.source) + piece.source_offset, target + piece.target_offset);
    }
    return absl::OkStatus();
  }
  bool CanSplit(int64_t parts) const override {
    return spec_.whole && spec_.pieces[0].copy.CanSplit(parts);
  }
  absl::Status ExecutePart(const RunBuffers& run, Part part) const override {
    const CopyPiece& piece = spec_.pieces[0];
    piece.copy.RunPart(run.at(piece.source), run.at(spec_.target), part.index, part.count);
    return absl::OkStatus();
  }
  std::string Details() const override {
    int64_t bytes = 0;
    for (const CopyPiece& piece : spec_.pieces) bytes += piece.copy.bytes();
    return Str(bytes, " bytes in ", spec_.pieces.size(), " pieces");
  }
};

// A view of an array: the first element's position and the strides, in elements.
struct StridedElements {
  int64_t offset = 0;
  Dims strides;
  explicit StridedElements(const Shape& shape) : strides(shape.strides()) {}
};

CopyPiece Piece(BufferId source, DType dtype, absl::Span<const int64_t> dims,
                const StridedElements& from, const StridedElements& to) {
  const int width = ByteWidth(dtype);
  return {source, from.offset * width, to.offset * width,
          StridedCopy(width, dims, {from.strides.data(), from.strides.size()},
                      {to.strides.data(), to.strides.size()})};
}

std::optional<CopyPiece> PadPiece(const hlo::Instruction& pad, BufferId source) {
  const auto& attrs = pad.attrs_as<hlo::PadAttrs>();
  const Shape& operand = pad.operand(0)->shape();
  StridedElements from(operand), to(pad.shape());
  Dims dims(operand.dims().begin(), operand.dims().end());
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const hlo::KeptByPad kept(attrs, d, dims[d], pad.shape().dim(static_cast<int64_t>(d)));
    dims[d] = kept.count;
    from.offset += kept.first * from.strides[d];
    to.offset += kept.at * to.strides[d];
    to.strides[d] *= kept.step;
  }
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return std::nullopt;
  return Piece(source, operand.dtype(), {dims.data(), dims.size()}, from, to);
}

std::vector<CopyPiece> ConcatenatePieces(const hlo::Instruction& concatenate,
                                         absl::Span<const BufferId> sources) {
  const auto dim = concatenate.attrs_as<hlo::DimensionsAttrs>().dimensions[0];
  std::vector<CopyPiece> pieces;
  int64_t at = 0;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const Shape& operand = concatenate.operand(static_cast<int64_t>(i))->shape();
    StridedElements to(concatenate.shape());
    to.offset = at * to.strides[static_cast<std::size_t>(dim)];
    at += operand.dim(dim);
    if (operand.num_elements() == 0) continue;
    pieces.push_back(
        Piece(sources[i], operand.dtype(), operand.dims(), StridedElements(operand), to));
  }
  return pieces;
}

CopyPiece TransposePiece(const hlo::Instruction& transpose, BufferId source) {
  const Dims& permutation = transpose.attrs_as<hlo::DimensionsAttrs>().dimensions;
  const StridedElements operand(transpose.operand(0)->shape());
  StridedElements from(transpose.shape());
  for (std::size_t d = 0; d < permutation.size(); ++d)
    from.strides[d] = operand.strides[static_cast<std::size_t>(permutation[d])];
  return Piece(source, transpose.shape().dtype(), transpose.shape().dims(), from,
               StridedElements(transpose.shape()));
}

CopyPiece SlicePiece(const hlo::Instruction& slice, BufferId source) {
  const auto& attrs = slice.attrs_as<hlo::SliceAttrs>();
  StridedElements from(slice.operand(0)->shape());
  for (std::size_t d = 0; d < attrs.starts.size(); ++d) {
    from.offset += attrs.starts[d] * from.strides[d];
    if (!attrs.strides.empty()) from.strides[d] *= attrs.strides[d];
  }
  return Piece(source, slice.shape().dtype(), slice.shape().dims(), from,
               StridedElements(slice.shape()));
}

CopyPiece ReversePiece(const hlo::Instruction& reverse, BufferId source) {
  StridedElements from(reverse.operand(0)->shape());
  for (int64_t d : reverse.attrs_as<hlo::DimensionsAttrs>().dimensions) {
    auto& stride = from.strides[static_cast<std::size_t>(d)];
    from.offset += (reverse.shape().dim(d) - 1) * stride;
    stride = -stride;
  }
  return Piece(source, reverse.shape().dtype(), reverse.shape().dims(), from,
               StridedElements(reverse.shape()));
}

}  // namespace

std::unique_ptr<Thunk> MakeCopyThunk(const hlo::Instruction& instruction, BufferId target,
                                     std::vector<CopyPiece> pieces, std::optional<BufferId> fill) {
  std::vector<BufferUse> uses;
  for (const CopyPiece& piece : pieces) uses.push_back({.buffer = piece.source, .by_part = true});
  if (fill) uses.push_back({.buffer = *fill});
  uses.push_back({.buffer = target, .write = true, .by_part = true});
  CopySpec spec{.element_bytes = ByteWidth(instruction.shape().dtype()),
                .fill_bytes = fill ? instruction.shape().byte_size() : 0,
                .whole = instruction.opcode() == hlo::Opcode::kCopy ||
                         instruction.opcode() == hlo::Opcode::kTranspose,
                .target = target,
                .pieces = std::move(pieces),
                .fill = fill};
  return std::make_unique<CopyThunk>(ThunkInfo::Of("copy", instruction), std::move(uses),
                                     std::move(spec));
}

ThunkKind CopyThunkKind() { return ThunkKind::Of<CopyThunk>("copy"); }

CopyPiece WholeArray(BufferId source, const Shape& from, const Shape& to) {
  return Piece(source, from.dtype(), from.dims(), StridedElements(from), StridedElements(to));
}

std::optional<std::vector<CopyPiece>> PiecesOf(const hlo::Instruction& instruction,
                                               absl::Span<const BufferId> operands) {
  if (instruction.shape().num_elements() == 0) return std::nullopt;
  switch (instruction.opcode()) {
    case hlo::Opcode::kCopy:
      return {{WholeArray(operands[0], instruction.operand(0)->shape(), instruction.shape())}};
    case hlo::Opcode::kTranspose:
      return {{TransposePiece(instruction, operands[0])}};
    case hlo::Opcode::kSlice:
      return {{SlicePiece(instruction, operands[0])}};
    case hlo::Opcode::kReverse:
      return {{ReversePiece(instruction, operands[0])}};
    case hlo::Opcode::kConcatenate:
      return ConcatenatePieces(instruction, operands);
    case hlo::Opcode::kPad: {
      auto piece = PadPiece(instruction, operands[0]);
      if (!piece) return std::nullopt;
      return {{*piece}};
    }
    default:
      return std::nullopt;
  }
}

}  // namespace lazuli::cpu
