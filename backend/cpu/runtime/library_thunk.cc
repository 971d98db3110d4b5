#include "backend/cpu/runtime/library.h"
#include "ir/support/metrics.h"

namespace lazuli::cpu {
namespace {

class LibraryThunk final : public Thunk {
 public:
  LibraryThunk(ThunkInfo info, std::vector<BufferUse> uses, std::shared_ptr<const LibraryCall> call,
               LibraryBufferIds ids)
      : Thunk(std::move(info), std::move(uses)), call_(std::move(call)), ids_(ids) {}

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
    return {run.at(ids_.a), run.at(ids_.b), run.at(ids_.result),
            ids_.scratch < 0 ? nullptr : run.at(ids_.scratch),
            ids_.packed < 0 ? nullptr : run.at(ids_.packed)};
  }

  std::shared_ptr<const LibraryCall> call_;
  LibraryBufferIds ids_;
};

class PackingThunk final : public Thunk {
 public:
  PackingThunk(ThunkInfo info, std::shared_ptr<const LibraryPacking> packing, BufferId weights,
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
  std::shared_ptr<const LibraryPacking> packing_;
  BufferId weights_, packed_;
};

}  // namespace

std::unique_ptr<Thunk> MakeLibraryThunk(std::string_view kind, const hlo::Instruction& instruction,
                                        std::shared_ptr<const LibraryCall> call,
                                        LibraryBufferIds ids) {
  const LibraryCall::Parts parts = call->parts();
  std::vector<BufferUse> uses{{.buffer = ids.a, .by_part = parts.a},
                              {.buffer = ids.b, .by_part = parts.b},
                              {.buffer = ids.result, .write = true, .by_part = parts.count > 1}};
  if (ids.packed >= 0) uses.push_back({.buffer = ids.packed});
  if (ids.scratch >= 0) uses.push_back({.buffer = ids.scratch, .write = true});
  return std::make_unique<LibraryThunk>(ThunkInfo::Of(kind, instruction), std::move(uses),
                                        std::move(call), ids);
}

std::unique_ptr<Thunk> MakePackingThunk(const hlo::Instruction& user,
                                        std::shared_ptr<const LibraryPacking> packing,
                                        BufferId weights, BufferId packed) {
  ThunkInfo info = ThunkInfo::Of("packing", user);
  info.name += ".weights";
  info.flops = info.bytes = 0;
  return std::make_unique<PackingThunk>(std::move(info), std::move(packing), weights, packed);
}

}  // namespace lazuli::cpu
