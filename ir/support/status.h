// Errors as values: makers of absl::Status that take std types, and the two propagation macros.
//
//   if (a != b) return InvalidArgument("matmul: inner dimensions differ: ", x, " x ", y);
//   LAZULI_ASSIGN_OR_RETURN(Shape shape, InferShape(...));
#pragma once

#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"

#include "ir/support/str.h"

namespace lazuli::ir {

template <class... T>
absl::Status MakeError(absl::StatusCode code, const T&... parts) {
  const std::string message = Str(parts...);
  return absl::Status(code, absl::string_view(message.data(), message.size()));
}
template <class... T>
absl::Status InvalidArgument(const T&... parts) {
  return MakeError(absl::StatusCode::kInvalidArgument, parts...);
}
template <class... T>
absl::Status OutOfRange(const T&... parts) {
  return MakeError(absl::StatusCode::kOutOfRange, parts...);
}
template <class... T>
absl::Status Unimplemented(const T&... parts) {
  return MakeError(absl::StatusCode::kUnimplemented, parts...);
}
template <class... T>
absl::Status Internal(const T&... parts) {
  return MakeError(absl::StatusCode::kInternal, parts...);
}
template <class... T>
absl::Status FailedPrecondition(const T&... parts) {
  return MakeError(absl::StatusCode::kFailedPrecondition, parts...);
}
template <class... T>
absl::Status ResourceExhausted(const T&... parts) {
  return MakeError(absl::StatusCode::kResourceExhausted, parts...);
}
template <class... T>
absl::Status NotFound(const T&... parts) {
  return MakeError(absl::StatusCode::kNotFound, parts...);
}

inline std::string_view Message(const absl::Status& status) {
  return {status.message().data(), status.message().size()};
}

// The same error, with all that is kept beside its message, in other words.
inline absl::Status Reworded(const absl::Status& status, std::string_view message) {
  absl::Status reworded = MakeError(status.code(), message);
  status.ForEachPayload(
      [&](absl::string_view key, const absl::Cord& payload) { reworded.SetPayload(key, payload); });
  return reworded;
}
// The same error with text put in front of its message.
inline absl::Status Prefixed(const absl::Status& status, std::string_view prefix) {
  return status.ok() ? status : Reworded(status, Str(prefix, Message(status)));
}

}  // namespace lazuli::ir

#define LAZULI_RETURN_IF_ERROR(expression)                                \
  do {                                                                    \
    if (absl::Status lazuli_status = (expression); !lazuli_status.ok()) { \
      return lazuli_status;                                               \
    }                                                                     \
  } while (false)

#define LAZULI_ASSIGN_OR_RETURN(declaration, expression) \
  LAZULI_ASSIGN_OR_RETURN_(LAZULI_CONCAT_(lazuli_status_or_, __LINE__), declaration, expression)
#define LAZULI_CONCAT_(a, b) LAZULI_CONCAT2_(a, b)
#define LAZULI_CONCAT2_(a, b) a##b
#define LAZULI_ASSIGN_OR_RETURN_(temporary, declaration, expression) \
  auto temporary = (expression);                                     \
  if (!temporary.ok()) return std::move(temporary).status();         \
  declaration = *std::move(temporary)
