// ChainThunk: several thunks as one, part by part, so that what one writes the next finds in the
// cache, and threads meet once instead of after each.
//
//   convolution -> bias and relu -> convolution -> bias and relu -> max pooling
//   => for each few images: all five
#pragma once

#include <memory>
#include <vector>

#include "backend/runtime/thunk_data.h"

namespace lazuli::cpu {

// Every member can split into `parts`; a buffer that one writes and another uses is touched by part
// by both.
std::unique_ptr<Thunk> MakeChainThunk(std::vector<std::unique_ptr<Thunk>> members, int64_t parts,
                                      int64_t threads);
ThunkKind ChainThunkKind();

}  // namespace lazuli::cpu
