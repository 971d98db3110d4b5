// Tables of newer modules, in text and binary form, from which instructions take source lines by
// the number of a stack frame.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/hlo/module.h"

namespace lazuli::hlo::internal {

struct FrameTables {
  struct Location {
    int64_t file = 0, line = 0;
  };
  std::vector<std::string> files;
  std::vector<Location> locations;
  std::vector<int64_t> frames;  // location of each frame

  // Sets file and line unless the metadata has them. All ids count from 1; those that lead nowhere
  // say nothing.
  void Resolve(int64_t frame, Metadata* metadata) const;
};

}  // namespace lazuli::hlo::internal
