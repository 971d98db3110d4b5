// The error of a matrix for which an algorithm of linear algebra fails: singular, not positive-definite.
// It can be told from others, because users' languages have a class of their own for it.
#pragma once

#include "absl/strings/cord.h"

#include "ir/support/status.h"

namespace lazuli::ir {

inline constexpr absl::string_view kLinAlgError = "lazuli/linalg_error";

inline bool IsLinAlgError(const absl::Status& status) {
  return status.GetPayload(kLinAlgError).has_value();
}
template <class... T>
absl::Status LinAlgError(const T&... parts) {
  absl::Status status = InvalidArgument(parts...);
  status.SetPayload(kLinAlgError, absl::Cord());
  return status;
}

}  // namespace lazuli::ir
