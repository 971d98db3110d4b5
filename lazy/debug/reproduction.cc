#include "lazy/debug/reproduction.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include "ir/graph/site.h"
#include "ir/graph/stack.h"
#include "ir/support/build_id.h"
#include "ir/support/flags.h"
#include "ir/support/runtime.h"
#include "ir/support/status.h"
#include "ir/support/text_file.h"
#include "lazy/debug/graph_text.h"

namespace lazuli::lazy {
namespace {

struct Reproductions {
  std::atomic<int64_t> written{0};
};

// A new folder that is the user's alone.
absl::StatusOr<std::string> NewFolder() {
  std::error_code error;
  std::string parent = flags().reproduction_dir();
  if (parent.empty()) parent = std::filesystem::temp_directory_path(error).string();
  if (!error) std::filesystem::create_directories(parent, error);
  if (error) return FailedPrecondition("cannot make the folder ", parent, ": ", error.message());
  constexpr int kTries = 1000;
  for (int i = 1; i < kTries; ++i) {
    std::string folder = Str(parent, "/lazuli-reproduction.", getpid(), ".", i);
    if (::mkdir(folder.c_str(), 0700) == 0) return folder;
    if (errno != EEXIST)
      return FailedPrecondition("cannot make the folder ", folder, ": ", std::strerror(errno));
  }
  return Internal("there is no free name for a folder in ", parent);
}

// Leaves in the order of the program's parameters: data, then numbers.
std::string InputLines(const GraphOutline& outline) {
  std::string text;
  int64_t number = 0;
  for (const NodeKind kind : {NodeKind::kData, NodeKind::kScalar}) {
    for (std::size_t i = 0; i < outline.nodes().size(); ++i) {
      const GraphOutline::Node& node = outline.nodes()[i];
      if (node.kind != kind) continue;
      const std::string site = GetSite(node.site).ToString();
      text += Str("input: p", number, " ", outline.shape(i), site.empty() ? "" : " ", site, "\n");
      ++number;
    }
  }
  return text;
}

std::string Description(const FailureEvent& event) {
  const CachedProgram& program = event.program;
  std::string text = Str("# lazuli-run FOLDER repeats this failure.\nfailed: ", event.doing,
                         "\ndevice: ", event.device, "\nprogram: ", program.name());
  const std::string site = GetSite(program.site).ToString();
  text += Str(
      site.empty() ? "" : Str("\nsite: ", site), "\noptions: ",
      std::string_view(program.options).substr(std::min<std::size_t>(2, program.options.size())),
      "\nbuild: ", ir::BuildId(), "\n");
  for (const std::string& engine : event.device.client->engines())
    text += Str("engine: ", engine, "\n");
  return Str(text, "seed: 0\n", InputLines(program.outline), ir::ChangedFlags("flag: "));
}

std::string Observe(const FailureEvent& event) {
  const CachedProgram& program = event.program;
  if (!flags().save_hlo_file().empty())
    ir::SayOnce(
        Prefixed(ir::WriteTextFile(flags().save_hlo_file(), program.hlo()), "XLA_SAVE_HLO_FILE: "));
  std::string text;
  const absl::StatusOr<std::string> folder = WriteReproduction(event);
  if (!folder.ok())
    ir::SayOnce(Prefixed(folder.status(), "LAZULI_REPRODUCTIONS: "));
  else if (!folder->empty())
    text = Str("; lazuli-run ", *folder, " repeats it");
  if (flags().dump_hlo_graph()) text += Str("\n>>> Dumping Computation 0\n", program.hlo());
  return text;
}

}  // namespace

std::string OutlineText(const GraphOutline& outline) {
  std::string text = "IR {\n";
  for (std::size_t i = 0; i < outline.nodes().size(); ++i) {
    const GraphOutline::Node& node = outline.nodes()[i];
    std::vector<std::string> operands;
    for (const GraphOutline::Operand& operand : outline.operands(i))
      operands.push_back(
          Str("%", operand.node, operand.output == 0 ? "" : Str(".", operand.output)));
    text += Str("  %", i, " = ", outline.shape(i).ToString(/*with_layout=*/true), " ", node.name,
                "(", Join(operands, ", "), ")");
    const Site& site = GetSite(node.site);
    if (site.scope != ir::kNoScope) text += Str(", scope=", ir::ScopeText(site.scope));
    if (site.line != 0)
      text += Str(", location=", ir::ShortFunctionName(site.function), "@", site.ToString());
    text += outline.attrs(i);
    for (std::size_t r = 0; r < outline.roots().size(); ++r)
      if (outline.roots()[r].node == i) text += Str(", ROOT=", r);
    text += "\n";
  }
  return text + "}\n";
}

absl::StatusOr<std::string> WriteReproduction(const FailureEvent& event) {
  std::atomic<int64_t>& written = ir::Runtime::Get().Of<Reproductions>().written;
  if (written.fetch_add(1) >= flags().reproductions()) {
    written.fetch_sub(1);
    return "";
  }
  LAZULI_ASSIGN_OR_RETURN(std::string folder, NewFolder());
  const auto write = [&](std::string_view name, const std::string& text) {
    return ir::WriteNewTextFile(Str(folder, "/", name), text);
  };
  LAZULI_RETURN_IF_ERROR(write("module.hlo", event.program.hlo()));
  LAZULI_RETURN_IF_ERROR(write("graph.txt", OutlineText(event.program.outline)));
  LAZULI_RETURN_IF_ERROR(write("error.txt", Str(Message(event.status), "\n")));
  LAZULI_RETURN_IF_ERROR(write("reproduction.txt", Description(event)));
  return folder;
}

void InitializeReproductions() {
  static const bool installed = [] {
    AddFailureObserver(Observe);
    return true;
  }();
  (void)installed;
}

}  // namespace lazuli::lazy
