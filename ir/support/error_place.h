// Where an error comes from, as data beside its message: the op, and the line of the user's program.
//
//   matmul: inner dimensions differ: f32[8,16] x f32[4,4] (train.cc:41)
//
// The one who finds a mistake often knows neither. Each caller adds what it knows, what is there
// already stays, and nobody reads a message to find out.
#pragma once

#include <string>
#include <string_view>

#include "ir/support/status.h"

namespace lazuli::ir {

// Puts "op: " in front of an error that has no op yet and " (place)" behind one that has no place;
// an empty string is not known here either.
absl::Status AddPlace(const absl::Status& status, std::string_view op, std::string_view place);

// "" where it is not known.
std::string OpOf(const absl::Status& status);
std::string PlaceOf(const absl::Status& status);

}  // namespace lazuli::ir
