#include "backend/cpu/codegen/run_llvm.h"

#include <csetjmp>
#include <cstdlib>
#include <new>
#include <utility>

#include "llvm/Support/Error.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/PrettyStackTrace.h"

namespace lazuli::backend {
namespace {

// Given back when operator new first fails, so that most calls end after all, and no static
// variable of LLVM's stays half made.
constexpr std::size_t kReserve = std::size_t{1} << 20;

struct Call {
  void* reserve;
  std::jmp_buf caller;
};
thread_local Call* call_under_way = nullptr;
std::new_handler others = nullptr;

void GiveBack(Call& call) { std::free(std::exchange(call.reserve, nullptr)); }

// Returns to ask for the memory once more.
void NewHandler() {
  if (call_under_way != nullptr) {
    if (call_under_way->reserve == nullptr) std::longjmp(call_under_way->caller, 1);  // NOLINT
    GiveBack(*call_under_way);
  } else if (others != nullptr) {
    others();
  } else {
    throw std::bad_alloc();  // NOLINT: as if there were no handler
  }
}

// Returns where no call is under way, and LLVM aborts.
void MallocHandler(void*, const char*, bool) {
  if (call_under_way != nullptr) std::longjmp(call_under_way->caller, 1);  // NOLINT
}

bool InstallHandlers() {
  others = std::set_new_handler(NewHandler);
  llvm::install_bad_alloc_error_handler(MallocHandler);
  return true;
}

}  // namespace

absl::Status FromLlvm(llvm::Error error, std::string_view what) {
  return Internal(what, ": ", llvm::toString(std::move(error)));
}

bool EndsWithMemory(absl::FunctionRef<void()> call) {
  static const bool installed = InstallHandlers();
  static_cast<void>(installed);
  Call* const outer = call_under_way;
  const void* const traces = llvm::SavePrettyStackState();  // a list of objects on the stack
  Call here;
  here.reserve = std::malloc(kReserve);
  const bool ended = here.reserve != nullptr && setjmp(here.caller) == 0;  // NOLINT
  if (ended) {
    call_under_way = &here;
    call();
  } else {
    llvm::RestorePrettyStackState(traces);
  }
  call_under_way = outer;
  GiveBack(here);
  return ended;
}

}  // namespace lazuli::backend
