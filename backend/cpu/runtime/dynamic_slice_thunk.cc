#include "backend/cpu/runtime/dynamic_slice_thunk.h"

#include <algorithm>

#include "backend/cpu/runtime/integer_cell.h"
#include "backend/cpu/runtime/strided_copy.h"

namespace lazuli::cpu {
namespace {

// Where a window lies in an array: starts are clamped so that it fits.
class WindowPlace {
 public:
  WindowPlace() = default;
  WindowPlace(const Shape& array, absl::Span<const int64_t> window,
              const std::vector<const hlo::Instruction*>& starts, std::vector<BufferId> buffers)
      : buffers_(std::move(buffers)) {
    const Dims strides = array.strides();
    for (std::size_t d = 0; d < window.size(); ++d) {
      cells_.push_back(IntegerCell(starts[d]->shape().dtype()));
      last_.push_back(array.dims()[d] - window[d]);
      byte_strides_.push_back(strides[d] * ByteWidth(array.dtype()));
    }
  }
  LAZULI_ATTRS(buffers_, cells_, last_, byte_strides_);
  int64_t ByteOffset(const RunBuffers& run) const {
    int64_t offset = 0;
    for (std::size_t d = 0; d < buffers_.size(); ++d) {
      const int64_t start = cells_[d].Read(run.at(buffers_[d]));
      offset += std::clamp<int64_t>(start, 0, last_[d]) * byte_strides_[d];
    }
    return offset;
  }

 private:
  std::vector<BufferId> buffers_;
  std::vector<IntegerCell> cells_;
  Dims last_, byte_strides_;
};

std::vector<BufferUse> Reads(const std::vector<BufferId>& buffers) {
  std::vector<BufferUse> uses;
  for (BufferId id : buffers) uses.push_back({.buffer = id});
  return uses;
}

struct SliceSpec {
  WindowPlace place;
  StridedCopy copy;
  BufferId array = 0, result = 0;
  LAZULI_ATTRS(place, copy, array, result);
};

class SliceThunk final : public SpecThunk<SliceSpec> {
 public:
  using SpecThunk::SpecThunk;

  absl::Status Execute(const RunBuffers& run) const override {
    spec_.copy.Run(run.at(spec_.array) + spec_.place.ByteOffset(run), run.at(spec_.result));
    return absl::OkStatus();
  }
};

struct UpdateSpec {
  WindowPlace place;
  StridedCopy copy;
  int64_t bytes = 0;  // of the array
  BufferId array = 0, update = 0, result = 0;
  LAZULI_ATTRS(place, copy, bytes, array, update, result);
};

class UpdateThunk final : public SpecThunk<UpdateSpec> {
 public:
  using SpecThunk::SpecThunk;

  absl::Status Execute(const RunBuffers& run) const override {
    const std::byte* from = run.at(spec_.array);
    std::byte* to = run.at(spec_.result);
    if (from != to) CopyBytes(from, to, spec_.bytes);
    spec_.copy.Run(run.at(spec_.update), to + spec_.place.ByteOffset(run));
    return absl::OkStatus();
  }
};

std::unique_ptr<Thunk> MakeSlice(const hlo::Instruction& i, const std::vector<BufferId>& operands,
                                 BufferId result, WindowPlace place) {
  std::vector<BufferUse> uses = Reads(operands);
  uses.push_back({.buffer = result, .write = true});
  return std::make_unique<SliceThunk>(
      ThunkInfo::Of("dynamic-slice", i), std::move(uses),
      SliceSpec{.place = std::move(place),
                .copy = StridedCopy(ByteWidth(i.shape().dtype()), i.shape().dims(),
                                    i.operand(0)->shape().strides(), i.shape().strides()),
                .array = operands[0],
                .result = result});
}

std::unique_ptr<Thunk> MakeUpdate(const hlo::Instruction& i, const std::vector<BufferId>& operands,
                                  BufferId result, WindowPlace place) {
  const int64_t width = ByteWidth(i.shape().dtype());
  std::vector<BufferUse> uses = Reads(operands);
  uses[0].in_place = width;
  uses.push_back({.buffer = result, .write = true, .in_place = width});
  const Shape& update = i.operand(1)->shape();
  return std::make_unique<UpdateThunk>(
      ThunkInfo::Of("dynamic-update-slice", i), std::move(uses),
      UpdateSpec{.place = std::move(place),
                 .copy = StridedCopy(static_cast<int>(width), update.dims(), update.strides(),
                                     i.shape().strides()),
                 .bytes = i.shape().byte_size(),
                 .array = operands[0],
                 .update = operands[1],
                 .result = result});
}

}  // namespace

ThunkOrReason MakeDynamicSliceThunk(const hlo::Instruction& instruction,
                                    const std::vector<BufferId>& operands, BufferId result) {
  const bool is_update = instruction.opcode() == hlo::Opcode::kDynamicUpdateSlice;
  const Shape& array = instruction.operand(0)->shape();
  const std::size_t first = is_update ? 2 : 1;
  std::vector<const hlo::Instruction*> starts;
  for (std::size_t k = first; k < operands.size(); ++k) {
    starts.push_back(instruction.operand(static_cast<int64_t>(k)));
    if (!starts.back()->shape().IsScalar()) return "its starts are in an array";
  }
  if (static_cast<int64_t>(starts.size()) != array.rank())
    return "it does not have one start per dimension";
  if (is_update && array.strides() != instruction.shape().strides())
    return "its result has another layout than its operand";
  const Shape& window = is_update ? instruction.operand(1)->shape() : instruction.shape();
  WindowPlace place(array, window.dims(), starts,
                    {operands.begin() + static_cast<std::ptrdiff_t>(first), operands.end()});
  // An array that is updated by itself would be read after it is written.
  if (is_update && std::count(operands.begin(), operands.end(), operands[0]) > 1)
    return "it updates an array by the same array";
  return is_update ? MakeUpdate(instruction, operands, result, std::move(place))
                   : MakeSlice(instruction, operands, result, std::move(place));
}

ThunkKind DynamicSliceThunkKind() { return ThunkKind::Of<SliceThunk>("dynamic-slice"); }
ThunkKind DynamicUpdateSliceThunkKind() {
  return ThunkKind::Of<UpdateThunk>("dynamic-update-slice");
}

}  // namespace lazuli::cpu
