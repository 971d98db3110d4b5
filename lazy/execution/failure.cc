#include "lazy/execution/failure.h"

#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph/site.h"
#include "ir/support/fork.h"
#include "ir/support/runtime.h"

namespace lazuli::lazy {
namespace {

struct FailureObservers {
  static FailureObservers& Get() { return ir::Runtime::Get().Of<FailureObservers>(); }
  ir::ForkMutex mutex;
  std::vector<FailureObserver> all;
};

bool IsOurs(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kResourceExhausted:
      return false;
    default:
      return true;
  }
}

// Then nobody can repeat what happened without the functions.
bool CallsFunctionsOfUsers(const hlo::Module& module) {
  for (const auto& computation : module.computations()) {
    for (const auto& i : computation->instructions()) {
      if (i->opcode() != hlo::Opcode::kCustomCall) continue;
      const auto& attrs = i->attrs_as<hlo::CustomCallAttrs>();
      if (attrs.host != nullptr || attrs.custom_call_target.find("::") != std::string::npos)
        return true;
    }
  }
  return false;
}

}  // namespace

void AddFailureObserver(FailureObserver observer) {
  FailureObservers& observers = FailureObservers::Get();
  const std::lock_guard lock(observers.mutex);
  observers.all.push_back(std::move(observer));
}

absl::Status ReportFailure(const absl::Status& status, const CachedProgram& program,
                           backend::Device device, std::string_view doing, SiteId site) try {
  if (!IsOurs(status)) return status;
  if (CallsFunctionsOfUsers(program.program().module())) return ir::AtSite(status, site);
  const absl::Status placed = ir::AtSite(status, site);
  FailureObservers& observers = FailureObservers::Get();
  const std::lock_guard lock(observers.mutex);
  std::string text(Message(placed));
  for (const FailureObserver& observer : observers.all)
    text += observer({program, device, doing, placed});
  return Reworded(placed, text);
} catch (const std::bad_alloc&) {
  return status;
}

}  // namespace lazuli::lazy
