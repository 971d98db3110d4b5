#include "lazy/debug/trace_file.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "ir/support/flags.h"
#include "ir/support/span.h"
#include "ir/support/status.h"

namespace lazuli::lazy {
namespace {

void WriteAtExit() {
  const absl::Status status = WriteTraceFile(flags().trace_file());
  if (!status.ok()) std::fprintf(stderr, "lazuli: %s\n", std::string(Message(status)).c_str());
}

}  // namespace

absl::Status WriteTraceFile(const std::string& path) {
  const std::string temporary = path + ".tmp";
  std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
  file << ChromeTrace(TakeSpans());
  file.close();
  if (!file || std::rename(temporary.c_str(), path.c_str()) != 0) {
    std::remove(temporary.c_str());
    return NotFound("LAZULI_TRACE_FILE: cannot write ", path);
  }
  return absl::OkStatus();
}

void InitializeTraceFile() {
  static const bool installed = [] {
    if (flags().trace_file().empty()) return false;
    SetTracing(true);
    return std::atexit(WriteAtExit) == 0;
  }();
  (void)installed;
}

}  // namespace lazuli::lazy
