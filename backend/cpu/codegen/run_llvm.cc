#include "backend/cpu/codegen/run_llvm.h"

#include <csetjmp>
#include <cstdlib>
#include <new>
#include <utility>

#include "llvm/Support/Error.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/PrettyStackTrace.h"

namespace lazuli::cpu {
namespace {

// Given back when operator new first fails, so that most calls end after all, and no static
// variable of LLVM's stays half made.
constexpr std::size_t kReserve = std::size_t{1} << 20;

struct Call;
thread_local Call* call_under_way = nullptr;
std::new_handler others = nullptr;

struct Call {
  Call() = default;
  ~Call() {
    GiveBack();
    call_under_way = outer;
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  void GiveBack() { std::free(std::exchange(reserve, nullptr)); }

  Call* outer = std::exchange(call_under_way, this);
  void* reserve = std::malloc(kReserve);
  std::jmp_buf caller;
};

// Returns to ask for the memory once more.
void NewHandler() {
  if (call_under_way != nullptr) {
    if (call_under_way->reserve == nullptr) std::longjmp(call_under_way->caller, 1);  // NOLINT
    call_under_way->GiveBack();
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
  const void* const traces = llvm::SavePrettyStackState();  // a list of objects on the stack
  Call here;
  if (here.reserve == nullptr) return false;
  if (setjmp(here.caller) != 0) {  // NOLINT
    llvm::RestorePrettyStackState(traces);
    return false;
  }
  call();
  return true;
}

}  // namespace lazuli::cpu
