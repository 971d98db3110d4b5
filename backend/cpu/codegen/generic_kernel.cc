#include "backend/cpu/codegen/generic_kernel.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "backend/cpu/codegen/generate_kernel.h"
#include "ir/support/data_memory.h"
#include "ir/support/fork.h"
#include "ir/support/metrics.h"
#include "ir/support/runtime.h"
#include "ir/support/status.h"

namespace lazuli::cpu {
namespace {

// They stay when their programs go: a size that comes next has a program of its own.
class GenericKernels {
 public:
  static GenericKernels& Get() { return ir::Runtime::Get().Of<GenericKernels>(); }
  std::shared_ptr<GenericKernel> Of(const std::string& structure) {
    const std::lock_guard lock(mutex_);
    if (kernels_.size() >= kMost)
      std::erase_if(kernels_, [](const auto& entry) { return entry.second.use_count() == 1; });
    std::shared_ptr<GenericKernel>& kernel = kernels_[structure];
    if (kernel == nullptr) kernel = std::make_shared<GenericKernel>(structure);
    return kernel;
  }

 private:
  static constexpr std::size_t kMost = 4096;
  ir::ForkMutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<GenericKernel>> kernels_;
};

}  // namespace

std::shared_ptr<GenericKernel> GenericKernel::Of(const std::string& structure) {
  return GenericKernels::Get().Of(structure);
}

void GenericKernel::Count(const std::vector<int64_t>& numbers, int64_t most) {
  if (count() >= most) return;
  const std::lock_guard lock(counting_);
  if (std::find(variants_.begin(), variants_.end(), numbers) == variants_.end())
    variants_.push_back(numbers);
  count_.store(static_cast<int64_t>(variants_.size()), std::memory_order_relaxed);
}

absl::Status GenericKernel::Compile(const hlo::Computation& body) const {
  const std::lock_guard lock(compiling_);
  if (code() != nullptr) return absl::OkStatus();
  LAZULI_ASSIGN_OR_RETURN(
      StoredKernel made,
      GenerateKernel({.body = &body, .text = Str("generic ", structure_), .is_generic = true}));
  LAZULI_ASSIGN_OR_RETURN(owned_, KernelCode::Link(std::move(made), /*is_generic=*/true));
  Add(ir::Counter::kGenericKernels);
  code_.store(owned_.get(), std::memory_order_release);
  return absl::OkStatus();
}

}  // namespace lazuli::cpu
