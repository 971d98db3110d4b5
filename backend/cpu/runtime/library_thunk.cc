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
    return call_->Run(run.at(a_), run.at(b_), run.at(result_),
                      scratch_ < 0 ? nullptr : run.at(scratch_));
  }
  std::string Details() const override { return call_->Details(); }

 private:
  std::unique_ptr<LibraryCall> call_;
  BufferId a_, b_, result_, scratch_;
};

}  // namespace

std::unique_ptr<Thunk> MakeLibraryThunk(std::string_view kind, const hlo::Instruction& instruction,
                                        std::unique_ptr<LibraryCall> call, BufferId a, BufferId b,
                                        BufferId result, BufferId scratch) {
  std::vector<BufferUse> uses{{.buffer = a}, {.buffer = b}, {.buffer = result, .write = true}};
  if (scratch >= 0) uses.push_back({.buffer = scratch, .write = true});
  return std::make_unique<LibraryThunk>(ThunkInfo::Of(kind, instruction), std::move(uses),
                                        std::move(call), a, b, result, scratch);
}

}  // namespace lazuli::backend
