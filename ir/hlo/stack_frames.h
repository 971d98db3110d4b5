// Call stacks of a module's instructions: tables of files, functions, places and frames, as XLA's
// modules have them. The metadata of an instruction has the number of its innermost frame.
//
// All numbers count from 1; 0 is none, and one that leads nowhere says nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"

#include "ir/support/namespaces.h"

namespace lazuli::hlo {

struct Metadata;

struct StackFrames {
  struct Location {
    int64_t file = 0, function = 0, line = 0;
    bool operator==(const Location&) const = default;
  };
  struct Frame {
    int64_t location = 0, parent = 0;  // the parent called it
    bool operator==(const Frame&) const = default;
  };
  std::vector<std::string> files, functions;
  std::vector<Location> locations;
  std::vector<Frame> frames;

  bool empty() const { return frames.empty(); }
  // Notes the frame, and sets file and line unless the metadata has them.
  void Resolve(int64_t frame, Metadata* metadata) const;
  // "main (train.py:41)", the innermost first; bounded where frames call themselves.
  std::vector<std::string> Text(int64_t frame) const;
};

// Adds frames to tables, each once.
class StackFramesBuilder {
 public:
  explicit StackFramesBuilder(StackFrames& tables) : tables_(tables) {}
  int64_t Add(std::string_view file, std::string_view function, int64_t line, int64_t parent);

 private:
  StackFrames& tables_;
  absl::flat_hash_map<std::string, int64_t> files_, functions_, locations_, frames_;
};

}  // namespace lazuli::hlo
