// ModuleDump: files of what a compile takes and makes, under XLA's names (--xla_dump_to).
//
//   module_0004.SyncTensorsGraph.3.before_optimizations.txt
//   module_0004.SyncTensorsGraph.3.0012.simplification.after_simplify.before_fold_constants.txt
//   module_0004.SyncTensorsGraph.3.fused_computation_1f3a5b7c9d2e4f60_kernel_module.ir-no-opt.ll
//   module_0004.SyncTensorsGraph.3.cpu_after_optimizations.txt, .hlo.pb, .dot
//   module_0004.SyncTensorsGraph.3.cpu_after_optimizations-buffer-assignment.txt
//
// The k-th compile of a process has the number k, whether or not it is dumped. A file is there as a
// whole or not at all, and none is ever written over: where another process has the name, all names
// of the module get this process's number behind the module's name. What cannot be written is said
// once, and nothing more goes into that folder.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "ir/hlo/module.h"

namespace lazuli::hlo {

// Who makes a page for a browser of a module: of --xla_dump_hlo_as_html.
using ModulePage = std::string (*)(const Module&);
void SetModulePage(ModulePage page);

// While it lives, compiles on its thread leave here what they would write as files, and assembly.
// They are not counted.
class CompileCapture {
 public:
  CompileCapture();
  ~CompileCapture();
  CompileCapture(const CompileCapture&) = delete;
  CompileCapture& operator=(const CompileCapture&) = delete;

  struct File {
    std::string name;  // without the module's: "cpu_after_optimizations.txt"
    std::string contents;
    int depth = 0;  // 1: of a compile inside another one
  };
  // In the order in which they were made.
  const std::vector<File>& files() const { return files_; }
  // The contents of those whose names end like this, one behind the other.
  std::string Joined(std::string_view end) const;

 private:
  friend class ModuleDump;
  std::mutex mutex_;
  std::vector<File> files_;
  CompileCapture* outer_;
};

// The dump of one compile, which every client makes first. Writing is thread-safe.
class ModuleDump {
 public:
  ModuleDump(const Module& module, std::string_view platform);
  ~ModuleDump();
  ModuleDump(const ModuleDump&) = delete;
  ModuleDump& operator=(const ModuleDump&) = delete;

  // That of the compile which this thread is in; null if it is not dumped.
  static ModuleDump* Current();
  bool is_on() const { return files_ != nullptr; }
  // By a CompileCapture.
  bool is_captured() const { return capture_ != nullptr; }

  // The optimised module.
  void After(const Module& module);
  // Whether files of buffers are wanted; `behind` follows the name of the optimised module.
  bool wants_buffers() const;
  void AfterText(std::string_view behind, std::string_view text);
  // "fused_computation_1f.._kernel_module.ir-no-opt.ll"
  void File(std::string_view name, std::string_view contents);

  // Whether the pass is one of those around which the module is written.
  bool WantsPass(std::string_view pipeline, std::string_view pass) const;
  void BetweenPasses(const Module& module, std::string_view pipeline, std::string_view after,
                     std::string_view before);

 private:
  class Files;
  std::unique_ptr<Files> files_;  // null: nothing is dumped
  ModuleDump* outer_ = nullptr;
  CompileCapture* capture_ = nullptr;
};

}  // namespace lazuli::hlo
