#include "lazy/debug/profile_file.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/str_replace.h"
#include <unistd.h>

#include "ir/support/flags.h"
#include "ir/support/span_collector.h"
#include "ir/support/status.h"
#include "ir/support/str.h"
#include "ir/support/text_file.h"
#include "lazy/debug/profile.h"

namespace lazuli::lazy {
namespace {

constexpr int64_t kRowsAtExit = 20;

struct OfProcess {
  ir::SpanCollector spans;
  pid_t process = getpid();
};
std::unique_ptr<OfProcess> of_process;

std::string Path() {
  const std::string process = Str(getpid());
  const std::string path = absl::StrReplaceAll(flags().profile(), {{"%p", process}});
  // The child of a fork leaves its parent's file alone.
  return getpid() == of_process->process || path != flags().profile() ? path
                                                                      : Str(path, ".", process);
}

absl::Status Save(const Profile& profile) {
  return Prefixed(profile.Save(Path()), "LAZULI_PROFILE: ");
}

void WriteAtExit() {
  const Profile profile(of_process->spans.Spans());
  if (flags().profile() == "-")
    std::fputs(profile.Table(ProfileBy::kLine, kRowsAtExit).c_str(), stderr);
  else
    ir::SayOnce(Save(profile));
}

}  // namespace

void InitializeProfileFile() {
  static const bool installed = [] {
    if (flags().profile().empty()) return false;
    of_process = std::make_unique<OfProcess>();
    const bool is_file = flags().profile() != "-" && !flags().profile().ends_with('/');
    const absl::Status status = is_file ? Save(Profile({})) : absl::OkStatus();
    if (!status.ok()) {
      ir::SayOnce(status);
      of_process.reset();
      return false;
    }
    return std::atexit(WriteAtExit) == 0;
  }();
  (void)installed;
}

}  // namespace lazuli::lazy
