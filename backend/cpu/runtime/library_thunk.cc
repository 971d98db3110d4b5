#include "backend/cpu/runtime/library.h"
#include "ir/support/metrics.h"

namespace lazuli::backend {
namespace {

class LibraryThunk final : public Thunk {
 public:
  LibraryThunk(ThunkInfo info, std::vector<BufferUse> uses, std::unique_ptr<LibraryCall> call,
               BufferId a, BufferId b, BufferId result, BufferId scratch)
      : Thunk(std::move(info), std::move(uses)),
        call_(std::move(call)),
        a_(a),
        b_(b),
        result_(result),
        scratch_(scratch) {}

  absl::Status Execute(const RunBuffers& run) const override {
    Add(Counter::kLibraryCalls);
    return call_->Run(BuffersOf(run));
  }
  bool CanSplit(int64_t parts) const override { return parts > 1 && parts == own_parts(); }
  int64_t own_parts() const override {
    const int64_t parts = call_->parts().count;
    return parts > 1 ? parts : 0;
  }
  absl::Status Prepare(const RunBuffers& run) const override {
    (void)run;
    Add(Counter::kLibraryCalls);
    return absl::OkStatus();
  }
  absl::Status ExecutePart(const RunBuffers& run, Part part) const override {
    return call_->RunPart(BuffersOf(run), part);
  }
  std::string Details() const override { return call_->Details(); }

 private:
  LibraryBuffers BuffersOf(const RunBuffers& run) const {
    return {run.at(a_), run.at(b_), run.at(result_), scratch_ < 0 ? nullptr : run.at(scratch_)};
  }

  std::unique_ptr<LibraryCall> call_;
  BufferId a_, b_, result_, scratch_;
};

class PackingThunk final : public Thunk {
 public:
  PackingThunk(ThunkInfo info, std::unique_ptr<LibraryPacking> packing, BufferId weights,
               BufferId packed)
      : Thunk(std::move(info), {{.buffer = weights}, {.buffer = packed, .write = true}}),
        packing_(std::move(packing)),
        weights_(weights),
        packed_(packed) {}

  absl::Status Execute(const RunBuffers& run) const override {
    Add(Counter::kWeightPackings);
    return packing_->Run(run.at(weights_), run.at(packed_));
  }

 private:
  std::unique_ptr<LibraryPacking> packing_;
  BufferId weights_, packed_;
};

}  // namespace

std::unique_ptr<Thunk> MakeLibraryThunk(std::string_view kind, const hlo::Instruction& instruction,
                                        std::unique_ptr<LibraryCall> call, BufferId a, BufferId b,
                                        BufferId result, BufferId scratch) {
  const LibraryCall::Parts parts = call->parts();
  std::vector<BufferUse> uses{{.buffer = a, .by_part = parts.a},
                              {.buffer = b, .by_part = parts.b},
                              {.buffer = result, .write = true, .by_part = parts.count > 1}};
  if (scratch >= 0) uses.push_back({.buffer = scratch, .write = true});
  return std::make_unique<LibraryThunk>(ThunkInfo::Of(kind, instruction), std::move(uses),
                                        std::move(call), a, b, result, scratch);
}

std::unique_ptr<Thunk> MakePackingThunk(const hlo::Instruction& user,
                                        std::unique_ptr<LibraryPacking> packing, BufferId weights,
                                        BufferId packed) {
  ThunkInfo info = ThunkInfo::Of("packing", user);
  info.name += ".weights";
  return std::make_unique<PackingThunk>(std::move(info), std::move(packing), weights, packed);
}

}  // namespace lazuli::backend
