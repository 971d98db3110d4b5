// Saved graphs by the names that people give on command lines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

#include "lazy/graphs/saved_graph.h"

namespace lazuli::tools {

using lazy::SavedFile;
using lazy::SavedGraph;
using lazy::SavedNode;
using lazy::SavedPlace;
using lazy::SavedRecord;

// "g.txt", "g.txt#3", or "g.txt" where only "g.txt.0" is, which XLA_SAVE_TENSORS_FILE=g.txt writes.
struct SavedName {
  std::string file;
  int64_t number = -1;  // without one
};
SavedName ParseSavedName(std::string_view name);
absl::StatusOr<SavedFile> OpenSaved(const std::string& file);
// The record that the name has a number of; without one the only one. Errors say how many there are.
absl::StatusOr<SavedRecord> FindRecord(const SavedFile& file, int64_t number);

}  // namespace lazuli::tools
