// Files of tensors in the safetensors format (huggingface.co/docs/safetensors), which Python's
// safetensors, PyTorch and JAX libraries read and write.
//
// What is read is checked before anything is made of it: the header's length and JSON, dtypes,
// dims, and that the tensors fill the file without overlap or hole. A file is written under another
// name and renamed, so nobody ever sees half of one.
#pragma once

#include <iosfwd>
#include <string>

#include "lazuli/device.h"
#include "lazuli/ops.h"
#include "lazuli/state_dict.h"

namespace lazuli {

// Syncs. Throws Error(kUnimplemented) for a dtype that the format has not, and Error(kNotFound) if
// the file cannot be written.
LAZULI_API void save_safetensors(const StateDict& state, const std::string& path, LAZULI_LOC);

// Throws Error(kNotFound) for a file that cannot be read and Error(kInvalidArgument), which says
// what is wrong, for one that is no safetensors file or damaged.
LAZULI_API StateDict load_safetensors(const std::string& path, const Device& device = Device(),
                                      LAZULI_LOC);

// The same by a stream: what is read is the rest of it, and it must be able to seek.
LAZULI_API void save_safetensors(const StateDict& state, std::ostream& stream, LAZULI_LOC);
LAZULI_API StateDict load_safetensors(std::istream& stream, const Device& device = Device(),
                                      LAZULI_LOC);

}  // namespace lazuli
