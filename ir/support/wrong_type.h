// The error of an element type that an op does not take: an InvalidArgument that can be told from
// others, because users' languages have a class of their own for it.
#pragma once

#include "absl/strings/cord.h"

#include "ir/support/status.h"

namespace lazuli::ir {

inline constexpr absl::string_view kWrongType = "lazuli/wrong_type";

inline bool IsWrongType(const absl::Status& status) {
  return status.GetPayload(kWrongType).has_value();
}
// The same error as one of types.
inline absl::Status AsWrongType(absl::Status status) {
  status.SetPayload(kWrongType, absl::Cord());
  return status;
}
template <class... T>
absl::Status WrongType(const T&... parts) {
  return AsWrongType(InvalidArgument(parts...));
}

}  // namespace lazuli::ir
