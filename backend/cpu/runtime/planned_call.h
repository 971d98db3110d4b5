// PlannedCall: a library call together with what it was planned from, so that equal products and
// convolutions of a program share a plan, and a saved program plans it again.
#pragma once

#include <memory>
#include <optional>

#include "backend/cpu/runtime/eigen/convolution.h"
#include "backend/cpu/runtime/library.h"
#include "backend/runtime/thunk_data.h"

namespace lazuli::cpu {

// A matrix multiplication, or a convolution in the one or two forms that it has.
struct LibraryCallSpec {
  std::optional<MatmulSpec> matmul{};
  std::optional<ConvolutionSpec> library{};  // as the library computes it
  std::optional<WindowedConvolution> own{};  // as it is
  bool operator==(const LibraryCallSpec&) const = default;
  LAZULI_ATTRS(matmul, library, own);
};

class PlannedCall final : public ProgramPart {
 public:
  // has_call() is false where nothing computes it.
  static absl::StatusOr<std::shared_ptr<PlannedCall>> Make(LibraryCallSpec spec, int threads);

  const LibraryCallSpec& spec() const { return spec_; }
  bool has_call() const { return plan_.call != nullptr; }
  const LibraryCall& call() const { return *plan_.call; }
  const LibraryPacking* packing() const { return plan_.packing.get(); }  // null: none
  // Whether the call's first input is the convolution's second operand: a gradient of the source has
  // weights and target as inputs, and HLO writes the gradient of the target first.
  bool swapped() const { return swapped_; }

  std::string_view part_kind() const override { return "call"; }
  void WritePart(ProgramWriter& out) const override;

 private:
  PlannedCall(LibraryCallSpec spec, int threads) : spec_(std::move(spec)), threads_(threads) {}
  absl::Status PlanAnyConvolution();

  const LibraryCallSpec spec_;
  const int32_t threads_;
  LibraryPlan plan_;
  bool swapped_ = false;
};
PartKind PlannedCallKind();

// `kind` is "matmul" or "convolution".
std::unique_ptr<Thunk> MakeLibraryThunk(std::string_view kind, const hlo::Instruction& instruction,
                                        std::shared_ptr<const PlannedCall> call,
                                        LibraryBufferIds ids);
// `user` is the instruction that the packed weights are for.
std::unique_ptr<Thunk> MakePackingThunk(const hlo::Instruction& user,
                                        std::shared_ptr<const PlannedCall> call, BufferId weights,
                                        BufferId packed);
ThunkKind MatmulThunkKind();
ThunkKind ConvolutionThunkKind();
ThunkKind PackingThunkKind();

}  // namespace lazuli::cpu
