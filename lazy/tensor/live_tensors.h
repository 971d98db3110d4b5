// Which tensors are alive, by the line that made them: for finding what holds memory too long.
//
// Off, making a tensor costs one relaxed load for it. Once it is on, tensors made from then on are
// known until they go; those that were there before are not.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "lazy/tensor/site_scope.h"
#include "lazy/tensor/storage.h"

namespace lazuli::lazy {

struct LiveTensors {
  SiteId site = kNoSite;  // that made them
  Shape shape;
  backend::Device device;
  int64_t count = 0;
  int64_t bytes = 0;  // of all; views have none
};

// Begins to know tensors, if it does not yet, and gives a mark of this moment.
uint64_t MarkTensors();
// Those made after the mark that are alive, the largest sum first. 0 is the first mark.
std::vector<LiveTensors> TensorsSince(uint64_t mark);

namespace internal {
inline std::atomic<bool> knows_tensors{false};
void AddTensor(const Storage& storage);
void AddView(const Storage& storage);  // that was added
void RemoveTensor(const Storage& storage);
}  // namespace internal

}  // namespace lazuli::lazy
