// The exception of lazy/tensor and above: an absl::Status thrown. The facade (cpp_api/src) turns it
// into lazuli::Error.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "ir/support/status.h"

namespace lazuli::lazy {

class StatusError : public std::exception {
 public:
  explicit StatusError(absl::Status status) : status_(std::move(status)), text_(Message(status_)) {}
  const absl::Status& status() const { return status_; }
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  absl::Status status_;
  std::string text_;
};

inline void ThrowIfError(const absl::Status& status) {
  if (!status.ok()) [[unlikely]]
    throw StatusError(status);
}
template <class T>
T ValueOrThrow(absl::StatusOr<T> value) {
  ThrowIfError(value.status());
  return *std::move(value);
}

}  // namespace lazuli::lazy
