#include "backend/cpu/runtime/dynamic_slice_thunk.h"

#include <algorithm>

#include "backend/cpu/runtime/integer_cell.h"
#include "backend/cpu/runtime/strided_copy.h"

namespace lazuli::cpu {
namespace {

// Where a window lies in an array: starts are clamped so that it fits.
class WindowPlace {
 public:
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

class SliceThunk final : public Thunk {
 public:
  SliceThunk(const hlo::Instruction& i, const std::vector<BufferId>& operands, BufferId result,
             const WindowPlace& place)
      : Thunk(ThunkInfo::Of("dynamic-slice", i), Uses(operands, result)),
        place_(place),
        copy_(ByteWidth(i.shape().dtype()), i.shape().dims(), i.operand(0)->shape().strides(),
              i.shape().strides()),
        array_(operands[0]),
        result_(result) {}

  absl::Status Execute(const RunBuffers& run) const override {
    copy_.Run(run.at(array_) + place_.ByteOffset(run), run.at(result_));
    return absl::OkStatus();
  }

 private:
  static std::vector<BufferUse> Uses(const std::vector<BufferId>& operands, BufferId result) {
    std::vector<BufferUse> uses = Reads(operands);
    uses.push_back({.buffer = result, .write = true});
    return uses;
  }

  WindowPlace place_;
  StridedCopy copy_;
  BufferId array_, result_;
};

class UpdateThunk final : public Thunk {
 public:
  UpdateThunk(const hlo::Instruction& i, const std::vector<BufferId>& operands, BufferId result,
              const WindowPlace& place)
      : Thunk(ThunkInfo::Of("dynamic-update-slice", i), Uses(i, operands, result)),
        place_(place),
        copy_(ByteWidth(i.shape().dtype()), i.operand(1)->shape().dims(),
              i.operand(1)->shape().strides(), i.shape().strides()),
        bytes_(i.shape().byte_size()),
        array_(operands[0]),
        update_(operands[1]),
        result_(result) {}

  absl::Status Execute(const RunBuffers& run) const override {
    const std::byte* from = run.at(array_);
    std::byte* to = run.at(result_);
    if (from != to) CopyBytes(from, to, bytes_);
    copy_.Run(run.at(update_), to + place_.ByteOffset(run));
    return absl::OkStatus();
  }

 private:
  static std::vector<BufferUse> Uses(const hlo::Instruction& i,
                                     const std::vector<BufferId>& operands, BufferId result) {
    const int64_t width = ByteWidth(i.shape().dtype());
    std::vector<BufferUse> uses = Reads(operands);
    uses[0].in_place = width;
    uses.push_back({.buffer = result, .write = true, .in_place = width});
    return uses;
  }

  WindowPlace place_;
  StridedCopy copy_;
  int64_t bytes_;
  BufferId array_, update_, result_;
};

}  // namespace

std::unique_ptr<Thunk> MakeDynamicSliceThunk(const hlo::Instruction& instruction,
                                             const std::vector<BufferId>& operands,
                                             BufferId result) {
  const bool is_update = instruction.opcode() == hlo::Opcode::kDynamicUpdateSlice;
  const Shape& array = instruction.operand(0)->shape();
  const std::size_t first = is_update ? 2 : 1;
  std::vector<const hlo::Instruction*> starts;
  for (std::size_t k = first; k < operands.size(); ++k) {
    starts.push_back(instruction.operand(static_cast<int64_t>(k)));
    if (!starts.back()->shape().IsScalar()) return nullptr;
  }
  if (static_cast<int64_t>(starts.size()) != array.rank()) return nullptr;
  if (is_update && array.strides() != instruction.shape().strides()) return nullptr;
  const Shape& window = is_update ? instruction.operand(1)->shape() : instruction.shape();
  WindowPlace place(array, window.dims(), starts,
                    {operands.begin() + static_cast<std::ptrdiff_t>(first), operands.end()});
  // An array that is updated by itself would be read after it is written.
  if (is_update && std::count(operands.begin(), operands.end(), operands[0]) > 1) return nullptr;
  if (is_update) {
    return std::make_unique<UpdateThunk>(instruction, operands, result, place);
  }
  return std::make_unique<SliceThunk>(instruction, operands, result, place);
}

}  // namespace lazuli::cpu
