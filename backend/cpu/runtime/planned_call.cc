#include "backend/cpu/runtime/planned_call.h"

#include <functional>
#include <numeric>
#include <utility>

#include "backend/cpu/runtime/padding_guard.h"
#include "ir/support/metrics.h"
#include "ir/support/status.h"

namespace lazuli::cpu {
namespace {

int64_t Product(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

struct LibrarySpec {
  std::shared_ptr<const PlannedCall> call;
  LibraryBufferIds ids;
  LAZULI_ATTRS(call, ids);
};

class LibraryThunk final : public SpecThunk<LibrarySpec> {
 public:
  LibraryThunk(ThunkInfo info, std::vector<BufferUse> uses, LibrarySpec spec)
      : SpecThunk(std::move(info), std::move(uses), std::move(spec)), call_(spec_.call->call()) {}

  absl::Status Execute(const RunBuffers& run) const override {
    Add(Counter::kLibraryCalls);
    return call_.Run(BuffersOf(run));
  }
  bool CanSplit(int64_t parts) const override { return parts > 1 && parts == own_parts(); }
  int64_t own_parts() const override {
    const int64_t parts = call_.parts().count;
    return parts > 1 ? parts : 0;
  }
  absl::Status Prepare(const RunBuffers& run) const override {
    (void)run;
    Add(Counter::kLibraryCalls);
    return absl::OkStatus();
  }
  absl::Status ExecutePart(const RunBuffers& run, Part part) const override {
    return call_.RunPart(BuffersOf(run), part);
  }
  std::string Details() const override { return call_.Details(); }

 private:
  LibraryBuffers BuffersOf(const RunBuffers& run) const {
    const LibraryBufferIds& ids = spec_.ids;
    return {run.at(ids.a), run.at(ids.b), run.at(ids.result),
            ids.scratch < 0 ? nullptr : run.at(ids.scratch),
            ids.packed < 0 ? nullptr : run.at(ids.packed)};
  }

  const LibraryCall& call_;
};

struct PackingSpec {
  std::shared_ptr<const PlannedCall> call;
  BufferId weights = 0, packed = 0;
  LAZULI_ATTRS(call, weights, packed);
};

class PackingThunk final : public SpecThunk<PackingSpec> {
 public:
  using SpecThunk::SpecThunk;

  absl::Status Execute(const RunBuffers& run) const override {
    Add(Counter::kWeightPackings);
    return spec_.call->packing()->Run(run.at(spec_.weights), run.at(spec_.packed));
  }
};

}  // namespace

absl::StatusOr<std::shared_ptr<PlannedCall>> PlannedCall::Make(LibraryCallSpec spec, int threads) {
  std::unique_ptr<PlannedCall> made(new PlannedCall(std::move(spec), threads));
  if (made->spec_.matmul) {
    LAZULI_ASSIGN_OR_RETURN(made->plan_, PlanMatmul(*made->spec_.matmul, threads));
  } else {
    LAZULI_RETURN_IF_ERROR(made->PlanAnyConvolution());
  }
  return std::shared_ptr<PlannedCall>(std::move(made));
}

// The library's call; its own, or what is exact, where the library has none or multiplies padding.
absl::Status PlannedCall::PlanAnyConvolution() {
  LibraryPlan library;
  if (spec_.library) {
    LAZULI_ASSIGN_OR_RETURN(library, PlanConvolution(*spec_.library, threads_));
  }
  const bool swapped =
      spec_.library && spec_.library->computes == ConvolutionSpec::Computes::kSource;
  if (library.call != nullptr && !library.multiplies_padding) {
    plan_ = std::move(library);
    swapped_ = swapped;
    return absl::OkStatus();
  }
  if (!spec_.own) return absl::OkStatus();
  plan_.call = PlanEigenConvolution(*spec_.own, threads_);
  if (library.call != nullptr && library.packing == nullptr) {
    plan_.call = MakePaddingGuard({.fast = library.call,
                                   .exact = plan_.call,
                                   .swapped = swapped,
                                   .factors = Product(spec_.own->kernel),
                                   .results = Product(spec_.own->result)});
    swapped_ = swapped;
  }
  return absl::OkStatus();
}

void PlannedCall::WritePart(ProgramWriter& out) const {
  Write(out, spec_);
  Write(out, threads_);
}

PartKind PlannedCallKind() {
  return {"call", [](ProgramReader& in) -> absl::StatusOr<std::shared_ptr<ProgramPart>> {
            LibraryCallSpec spec;
            int32_t threads = 1;
            Read(in, spec);
            Read(in, threads);
            if (!in.ok()) return InvalidArgument("a library call is cut off");
            LAZULI_ASSIGN_OR_RETURN(const auto call, PlannedCall::Make(std::move(spec), threads));
            if (!call->has_call()) return InvalidArgument("this build lacks a library call");
            return call;
          }};
}

std::unique_ptr<Thunk> MakeLibraryThunk(std::string_view kind, const hlo::Instruction& instruction,
                                        std::shared_ptr<const PlannedCall> call,
                                        LibraryBufferIds ids) {
  const LibraryCall::Parts parts = call->call().parts();
  std::vector<BufferUse> uses{{.buffer = ids.a, .by_part = parts.a},
                              {.buffer = ids.b, .by_part = parts.b},
                              {.buffer = ids.result, .write = true, .by_part = parts.count > 1}};
  if (ids.packed >= 0) uses.push_back({.buffer = ids.packed});
  if (ids.scratch >= 0) uses.push_back({.buffer = ids.scratch, .write = true});
  return std::make_unique<LibraryThunk>(ThunkInfo::Of(kind, instruction), std::move(uses),
                                        LibrarySpec{std::move(call), ids});
}

std::unique_ptr<Thunk> MakePackingThunk(const hlo::Instruction& user,
                                        std::shared_ptr<const PlannedCall> call, BufferId weights,
                                        BufferId packed) {
  ThunkInfo info = ThunkInfo::Of("packing", user);
  info.name += ".weights";
  info.flops = info.bytes = 0;
  return std::make_unique<PackingThunk>(
      std::move(info),
      std::vector<BufferUse>{{.buffer = weights}, {.buffer = packed, .write = true}},
      PackingSpec{std::move(call), weights, packed});
}

ThunkKind MatmulThunkKind() { return ThunkKind::Of<LibraryThunk>("matmul"); }
ThunkKind ConvolutionThunkKind() { return ThunkKind::Of<LibraryThunk>("convolution"); }
ThunkKind PackingThunkKind() { return ThunkKind::Of<PackingThunk>("packing"); }

}  // namespace lazuli::cpu
