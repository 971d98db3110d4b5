// Graphs as files have them: records of XLA_SAVE_TENSORS_FILE (lazuli's and torch_xla's), lazy graphs
// as text, HLO as text and in binary form. One form for all, for looking at them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include "ir/hlo/module.h"

namespace lazuli::lazy {

// A place in the user's program: "train.py", 41, "forward".
struct SavedPlace {
  std::string file, function;
  int64_t line = 0;
  std::string ToString() const;  // "forward@train.py:41"; "" for none
};

struct SavedNode {
  struct Operand {
    uint32_t node = 0, output = 0;
    bool operator==(const Operand&) const = default;
  };
  std::string name;   // "%5", "add.3"
  std::string op;     // "aten::mul", "multiply"
  std::string shape;  // "f32[2,3]{1,0}", "(f32[2]{0}, s64[2]{0})"
  std::vector<Operand> operands;
  std::vector<std::pair<std::string, std::string>> attrs;  // of the op: what makes it another one
  std::string scope;                                       // "Net/conv1"
  SavedPlace place;
  std::vector<std::string> frames;  // "main (train.py:9)": its stack where the file has it
  std::string note;                 // of the user's: user_metadata
  std::string label;                // of a parameter: "conv1.weight"
  std::string group;  // the computation of an HLO instruction that is not in the entry
  struct Root {
    int64_t position = 0;  // among the results
    uint32_t output = 0;
  };
  std::vector<Root> roots;
  // "dim=1, keepdim=0", of each value at most so many letters.
  std::string AttrText(std::size_t most = std::string::npos) const;
  std::string Path() const;  // "fused_computation/Net/conv1": its group, then its scope
};

// Operands come before their users.
struct SavedGraph {
  std::string name;    // "IrToHlo.3"; "" of a lazy graph
  std::string device;  // "CPU:0"; "" where the file does not say
  bool is_hlo = false;
  std::vector<SavedNode> nodes;
};

// A record, or the one graph of a file without records.
struct SavedRecord {
  std::string trigger;              // "ScheduleSyncTensorsGraph"; "" without a record around
  std::vector<std::string> frames;  // "forward (train.py:41)"
  std::string graph_name, graph_hash, root_hashes;
  enum class Format { kText, kDot, kHlo, kProto, kOther } format = Format::kOther;
  std::string body;
  int64_t line = 1;  // of the body in the file
};
std::string_view FormatName(SavedRecord::Format format);

struct SavedFile {
  std::string path;
  std::vector<SavedRecord> records;
  // What is wrong with the end of the file: "FILE:41: ..."; whole records come before.
  absl::Status torn;
};

// The records of a file with this text, or its one graph.
absl::StatusOr<SavedFile> ParseSaved(const std::string& path, const std::string& text);

// `path` begins errors: "FILE:12: ...".
absl::StatusOr<SavedGraph> ReadGraph(const SavedRecord& record, const std::string& path);
SavedGraph GraphOf(const hlo::Module& module);
// IR { ... }, as text, without what the file says of the program around.
std::string GraphText(const SavedGraph& graph);

}  // namespace lazuli::lazy
