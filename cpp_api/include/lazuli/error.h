// The one exception of the library. A mistake is reported by the call that makes it, with the line
// of that call:
//
//   matmul: inner dimensions differ: f32[8,16] x f32[4,4] (train.cc:41)
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "lazuli/export.h"

namespace lazuli {

enum class ErrorCode : unsigned char {
  kInvalidArgument,     // shapes, values of arguments
  kOutOfRange,          // an index or a dim
  kUnimplemented,       // not supported on this device or not yet
  kFailedPrecondition,  // right arguments, wrong moment (backward twice)
  kResourceExhausted,   // memory
  kNotFound,            // a file or a device
  kInternal,            // a mistake of ours, or of the machine
  kWrongType,           // an element type that the op does not take
  kLinAlg,              // a matrix for which an algorithm fails: singular, not positive-definite
};

class LAZULI_API Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message, std::string op = {}, std::string place = {})
      : std::runtime_error(message),
        code_(code),
        origin_(std::make_shared<const Origin>(std::move(op), std::move(place))) {}
  ErrorCode code() const { return code_; }
  // What what() says, too: "matmul", and "train.cc:41", the line of the program that called it.
  // Empty where it is not known.
  const std::string& op() const { return origin_->first; }
  const std::string& place() const { return origin_->second; }
  // LibTorch's other names of what().
  std::string msg() const { return what(); }
  const char* what_without_backtrace() const { return what(); }

 private:
  using Origin = std::pair<std::string, std::string>;
  ErrorCode code_;
  std::shared_ptr<const Origin> origin_;  // shared, because copies of exceptions must not throw
};

}  // namespace lazuli
