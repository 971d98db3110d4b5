// RunLlvm: a call into LLVM after which the process goes on even if LLVM got no memory.
//
// LLVM is built without exceptions: where malloc gives it nothing it aborts, and a std::bad_alloc
// that crosses its frames leaves objects half made, on which their destructors then fail. In a call
// made here both end in a jump back to the caller instead, as in LLVM's own CrashRecoveryContext,
// and whatever the call had made until then is leaked, since nobody knows its state. So the call
// makes the objects itself that it changes, and asks for no memory with a lock in its hands.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "absl/functional/function_ref.h"

#include "ir/support/status.h"

namespace llvm {
class Error;
}  // namespace llvm

namespace lazuli::cpu {

absl::Status FromLlvm(llvm::Error error, std::string_view what);

// Whether the call came to its end. The first call puts a handler before the process's
// std::new_handler, which still gets what happens elsewhere.
bool EndsWithMemory(absl::FunctionRef<void()> call);

// What the call returns, an absl::Status or StatusOr; ResourceExhausted if it did not get memory.
template <class Call>
auto RunLlvm(std::string_view what, Call call) -> decltype(call()) {
  std::unique_ptr<decltype(call())> result;
  if (!EndsWithMemory([&] { result = std::make_unique<decltype(call())>(call()); }))
    return ResourceExhausted("out of memory in ", what);
  return std::move(*result);
}

}  // namespace lazuli::cpu
