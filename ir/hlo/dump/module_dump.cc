#include "ir/hlo/dump/module_dump.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <optional>
#include <regex>
#include <utility>

#include <unistd.h>

#include "ir/hlo/proto/proto.h"
#include "ir/hlo/text/printer.h"
#include "ir/support/flags.h"
#include "ir/support/fork.h"
#include "ir/support/runtime.h"
#include "ir/support/status.h"
#include "ir/support/text_file.h"
#include "ir/support/thread_slot.h"

namespace lazuli::hlo {
namespace {

// Those that this thread is in.
const ir::ThreadSlot<ModuleDump>& CurrentDump() {
  static const auto* const slot = new ir::ThreadSlot<ModuleDump>;
  return *slot;
}
const ir::ThreadSlot<CompileCapture>& CurrentCapture() {
  static const auto* const slot = new ir::ThreadSlot<CompileCapture>;
  return *slot;
}

// What the dumps of a process share.
struct Dumps {
  static Dumps& Get() { return ir::Runtime::Get().Of<Dumps>(); }
  std::atomic<int64_t> compiles{0}, dumped{0};
  ir::ForkMutex mutex;
  std::string unusable;  // the folder that could not be written
};

std::atomic<ModulePage> module_page{nullptr};

bool AnyForm() {
  return flags().xla_dump_as_text() || flags().xla_dump_as_proto() || flags().xla_dump_as_dot() ||
         flags().xla_dump_as_html();
}

// As in XLA: a form without a folder means standard output.
std::string Folder() {
  if (!flags().xla_enable_dumping()) return "";
  if (flags().xla_dump_to().empty() && AnyForm()) return "-";
  return flags().xla_dump_to();
}

// Whether the flag's regular expression matches somewhere in the name. One that is none is said once
// and matches nothing.
bool Matches(std::string_view flag, const std::string& expression, std::string_view name) {
  try {
    return std::regex_search(name.begin(), name.end(), std::regex(expression));
  } catch (const std::regex_error&) {  // what() is often about something else
    ir::SayOnce(InvalidArgument("XLA_FLAGS: ", flag, "='", expression,
                                "' is not a regular expression; nothing is dumped for it"));
    return false;
  }
}

// Counts this module among those that are dumped, if it is one.
bool TakesPlace(const std::string& module) {
  const std::string& wanted = flags().xla_dump_module_re();
  if (!wanted.empty() && !Matches("--xla_dump_hlo_module_re", wanted, module)) return false;
  const int64_t most = flags().xla_dump_max_modules();
  return most < 0 || Dumps::Get().dumped.fetch_add(1) < most;
}

// Characters that names of files should not have.
std::string FileName(std::string_view name) {
  std::string result(name);
  for (char& c : result) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '.' || c == '_' || c == '-' || c == '+';
    if (!plain) c = '_';
  }
  return result;
}

std::string Stamp() {
  if (!flags().xla_dump_timestamp()) return "";
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return Str(std::chrono::duration_cast<std::chrono::microseconds>(now).count(), ".");
}

std::string Numbered(int64_t number) {
  char digits[24];
  std::snprintf(digits, sizeof digits, "%04lld", static_cast<long long>(number));
  return digits;
}

}  // namespace

// The files of one module.
class ModuleDump::Files {
 public:
  Files(std::string folder, const std::string& module, std::string_view platform, int64_t number)
      : folder_(std::move(folder)),
        platform_(platform),
        stem_(Str(Stamp(), "module_", Numbered(number), ".", FileName(module))) {}

  // In memory.
  Files(CompileCapture& capture, std::string_view platform, int depth)
      : platform_(platform), capture_(&capture), depth_(depth) {}
  int depth() const { return depth_; }

  std::string AfterName() const { return Str(platform_, "_after_optimizations"); }
  int64_t NextPass() { return passes_.fetch_add(1); }

  void Write(std::string_view name, std::string_view contents) {
    if (capture_ != nullptr) {
      const std::lock_guard lock(capture_->mutex_);
      capture_->files_.push_back({std::string(name), std::string(contents), depth_});
      return;
    }
    if (folder_ == "-") {
      const std::string title = Str(stem_, ".", name);
      std::fputs(
          Str("*** Begin ", title, " ***\n", contents, "\n*** End ", title, " ***\n").c_str(),
          stdout);
      return;
    }
    {
      const std::lock_guard lock(Dumps::Get().mutex);
      if (Dumps::Get().unusable == folder_) return;
    }
    const absl::Status status = WriteUnderFreeName(name, contents);
    if (status.ok()) return;
    {
      const std::lock_guard lock(Dumps::Get().mutex);
      Dumps::Get().unusable = folder_;
    }
    ir::SayOnce(Reworded(
        status, Str("XLA_FLAGS: --xla_dump_to: ", Message(status), "; no more dumps are written")));
  }

  void WriteModule(const Module& module, std::string_view name) {
    const bool proto = flags().xla_dump_as_proto() && capture_ == nullptr;
    const bool dot = flags().xla_dump_as_dot() || capture_ != nullptr;
    if (flags().xla_dump_as_text() || !AnyForm() || capture_ != nullptr) {
      const PrintOptions options{.metadata = !flags().xla_dump_without_metadata(),
                                 .large_constants = flags().xla_dump_large_constants()};
      Write(Str(name, ".txt"), ToString(module, options));
    }
    if (proto) Write(Str(name, ".hlo.pb"), SerializeModuleProto(module));
    if (dot) Write(Str(name, ".dot"), ToDot(module));
    const ModulePage page = module_page;
    if (flags().xla_dump_as_html() && page != nullptr && capture_ == nullptr)
      Write(Str(name, ".html"), page(module));
  }

 private:
  // The first file of a module decides what its files are called.
  absl::Status WriteUnderFreeName(std::string_view name, std::string_view contents) {
    constexpr int kTries = 1000;
    for (int attempt = 0; attempt < kTries; ++attempt) {
      const std::string owner = Owner();
      const absl::Status status =
          ir::WriteNewTextFile(Str(folder_, "/", stem_, owner, ".", name), contents);
      if (!absl::IsAlreadyExists(status)) return status;
      NextOwner(owner);
    }
    return Internal("there is no free name for ", stem_, ".", name);
  }
  std::string Owner() {
    const std::lock_guard lock(mutex_);
    return owner_;
  }
  void NextOwner(const std::string& after) {
    const std::lock_guard lock(mutex_);
    if (owner_ != after) return;  // another thread was faster
    owner_ = Str(".pid", getpid(), next_ == 1 ? "" : Str("-", next_));
    ++next_;
  }

  const std::string folder_, platform_, stem_;
  CompileCapture* const capture_ = nullptr;
  const int depth_ = 0;
  std::atomic<int64_t> passes_{0};
  std::mutex mutex_;
  std::string owner_;  // behind the stem: empty while no other process has the names
  int next_ = 1;
};

ModuleDump::ModuleDump(const Module& module, std::string_view platform)
    : outer_(CurrentDump().Get()) {
  capture_ = CurrentCapture().Get();
  if (capture_ != nullptr) {
    files_ = std::make_unique<Files>(*capture_, platform,
                                     outer_ == nullptr ? 0 : outer_->files_->depth() + 1);
    CurrentDump().Set(this);
    return;
  }
  const int64_t number = Dumps::Get().compiles.fetch_add(1) + 1;
  CurrentDump().Set(nullptr);
  const std::string folder = Folder();
  if (folder.empty() || !TakesPlace(module.name())) return;
  files_ = std::make_unique<Files>(folder, module.name(), platform, number);
  CurrentDump().Set(this);
  files_->WriteModule(module, "before_optimizations");
  files_->Write("debug_options", ir::ChangedFlags());
}

CompileCapture::CompileCapture() : outer_(CurrentCapture().Get()) { CurrentCapture().Set(this); }
CompileCapture::~CompileCapture() { CurrentCapture().Set(outer_); }

std::string CompileCapture::Joined(std::string_view end) const {
  std::string text;
  for (const File& file : files_)
    if (file.name.ends_with(end)) text += file.contents;
  return text;
}

ModuleDump::~ModuleDump() { CurrentDump().Set(outer_); }

ModuleDump* ModuleDump::Current() { return CurrentDump().Get(); }

void ModuleDump::After(const Module& module) {
  if (files_ != nullptr) files_->WriteModule(module, files_->AfterName());
}

bool ModuleDump::wants_buffers() const { return files_ != nullptr && flags().xla_dump_buffers(); }

void ModuleDump::AfterText(std::string_view behind, std::string_view text) {
  if (files_ != nullptr) files_->Write(Str(files_->AfterName(), behind), text);
}

void ModuleDump::File(std::string_view name, std::string_view contents) {
  if (files_ != nullptr) files_->Write(FileName(name), contents);
}

bool ModuleDump::WantsPass(std::string_view pipeline, std::string_view pass) const {
  const std::string &passes = flags().xla_dump_pass_re(),
                    &pipelines = flags().xla_dump_pipeline_re();
  return files_ != nullptr && !passes.empty() && Matches("--xla_dump_hlo_pass_re", passes, pass) &&
         (pipelines.empty() || Matches("--xla_dump_hlo_pipeline_re", pipelines, pipeline));
}

void ModuleDump::BetweenPasses(const Module& module, std::string_view pipeline,
                               std::string_view after, std::string_view before) {
  files_->WriteModule(module, FileName(Str(Numbered(files_->NextPass()), ".", pipeline, ".after_",
                                           after, ".before_", before)));
}

void SetModulePage(ModulePage page) { module_page = page; }

}  // namespace lazuli::hlo
