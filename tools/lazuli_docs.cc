// Writes the pages of docs/ that derive from tables in the code: flags, hlo, metrics, ops, passes.
// (functions.md is written by tools/generate_functions.py.)
//
//   lazuli-docs FOLDER          writes FOLDER/{flags,hlo,metrics,ops,passes,transform_rules}.md
//   lazuli-docs --check FOLDER  names the pages that differ from what it would write; then exit
//                               status 1
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/cpu/compiler.h"
#include "ir/hlo/opcode.h"
#include "ir/support/environment.h"
#include "ir/support/flags.h"
#include "ir/support/metrics.h"
#include "ir/support/status.h"
#include "ir/support/str.h"
#include "lazy/ops/op_list.h"
#include "lowering/passes/registry.h"
#include "lowering/passes/rules/rules.h"
#include "tools/opcode_page.h"

namespace lazuli {
namespace {

using ir::Str;

constexpr std::string_view kNote =
    "Written by `./lz docs` from the tables in the code; a test keeps it current.\n\n";

// A row of the page for each of the environment's variables, or for each flag of XLA_FLAGS.
std::string FlagRowsText(bool of_xla_flags) {
  std::string page;
  for (const ir::FlagRow& row : ir::FlagRows()) {
    if (row.name.starts_with("--") != of_xla_flags) continue;
    // The default of a flag that differs between builds is said in words.
    const bool by_build = row.name == "LAZULI_VERIFY_PASSES";
    const std::string value = by_build                   ? "on in debug builds"
                              : row.default_text.empty() ? ""
                                                         : Str("`", row.default_text, "`");
    page +=
        Str("| `", row.name, "` | ", ir::TypeText(row.type), " | ", value, " | ", row.doc, " |\n");
  }
  return page;
}

std::string ForeignRowsText() {
  std::string page;
  for (const ir::ForeignRow& row : ir::ForeignRows()) {
    page += Str("| `", row.name, "` | ", row.here.empty() ? "" : Str("`", row.here, "`"), " | ",
                row.why, " |\n");
  }
  return page;
}

std::string FlagsPage() {
  constexpr std::string_view kHead =
      "| variable | type | default | meaning |\n| --- | --- | --- | --- |\n";
  return Str(
      "# Flags\n\nFlags are environment variables. Each is read when it is first used. A boolean "
      "is `1`, `true`, `yes` or `on` to switch it on, and `0`, `false`, `no` or `off` to switch it "
      "off. A size may end in K, M or G. A value that cannot be parsed is an error at the first "
      "sync, and so is a name that differs from one of these by a letter or two. Other unknown "
      "names that begin with `LAZULI_`, `XLA_` or `PT_XLA_` cause one warning each. "
      "`lazuli::flags()`, `lz.flags()` and `--help-env` of every tool print the table. ",
      kNote, kHead, FlagRowsText(/*of_xla_flags=*/false),
      "\n## In XLA_FLAGS\n\n`XLA_FLAGS=\"--xla_cpu_ftz --xla_disable_hlo_passes=fusion\"`, or the "
      "name of a file with such words. A flag that XLA does not have is an error.\n\n",
      kHead, FlagRowsText(/*of_xla_flags=*/true),
      "\n## Without effect\n\nVariables of torch_xla and flags of XLA that change nothing here. "
      "Each causes one warning, unless its value asks for what lazuli does anyway.\n\n"
      "| name | here | why |\n| --- | --- | --- |\n",
      ForeignRowsText());
}

std::string MetricsPage() {
  std::string page =
      Str("# Metrics\n\n`lazuli::metrics::report()` prints all of these, and "
          "`lazuli::metrics::counter(name)` reads a counter. ",
          kNote, "## Counters\n\n| name | counts |\n| --- | --- |\n");
  for (const ir::MetricRow& row : ir::CounterRows())
    page += Str("| `", row.name, "` | ", row.doc, " |\n");
  page += "\n## Timers\n\n| name | measures |\n| --- | --- |\n";
  for (const ir::MetricRow& row : ir::TimerRows())
    page += Str("| `", row.name, "` | ", row.doc, " |\n");
  return page;
}

template <class T>
std::string OpRow() {
  std::string attrs;
  T{}.VisitAttrs([&attrs](std::string_view name, const auto&) {
    attrs += Str(attrs.empty() ? "" : ", ", name);
  });
  std::string operands;
  for (std::string_view name : T::kDoc.operands) {
    if (!name.empty()) operands += Str(operands.empty() ? "" : ", ", name);
  }
  return Str("| `", T::kName, "` | ", operands, " | ", attrs, " | ",
             lazy::kDifferentiable<T> ? "yes" : "no", " | `", T::kDumpName, "` | ", T::kDoc.text,
             " |\n");
}

std::string OpsPage() {
  std::string page =
      Str("# Ops\n\nThe nodes of the lazy graph: `lazy/ops/op_list.h`. Users call the functions "
          "that `lazuli/ops.h` declares. ",
          kNote, "| op | operands | attributes | gradient | in dumps | meaning |\n",
          "| --- | --- | --- | --- | --- | --- |\n");
  lazy::AllOps::ForEach([&page]<class T>() { page += OpRow<T>(); });
  return page;
}

std::string PassesPage() {
  std::string page =
      Str("# Passes\n\nHLO to HLO, by name: `lazuli-opt FILE --passes=a,b`, "
          "`LAZULI_DISABLE_PASSES=a`. ",
          kNote, "| pass | does |\n| --- | --- |\n");
  const auto add = [&](std::string_view name, std::string_view doc) {
    page += Str("| `", name, "` | ", doc, " |\n");
  };
  for (const lowering::PassRow& row : lowering::RegisteredPasses()) add(row.name, row.doc);
  cpu::RegisterCpuPasses();
  for (const lowering::AddedPass& pass : lowering::AddedPasses()) add(pass.name, pass.doc);
  page +=
      "\n## Rules of `simplify`\n\nIn the order in which they are tried; the first that applies "
      "wins. "
      "`LAZULI_DISABLE_RULES=a,b` turns rules off, the counter `rule.<name>` says how often one "
      "applied.\n\n"
      "| rule | rewrites |\n| --- | --- |\n";
  for (const lowering::Rule& rule : lowering::AllRules()) {
    std::string doc;
    for (const char c : rule.doc) {
      if (c == '|') doc += '\\';  // else it ends the cell
      doc += c;
    }
    add(rule.name, Str("`", doc, "`"));
  }
  return page;
}

std::string TransformRulesPage() {
  struct Row {
    hlo::Opcode opcode;
    std::string_view tangent, transpose, batch;
  };
  static constexpr Row kRows[] = {
#define LAZULI_TRANSFORM_RULES(opcode, tangent, transpose, batch) \
  {hlo::Opcode::opcode, #tangent, #transpose, #batch},
#include "lowering/transforms/rules.def"
#undef LAZULI_TRANSFORM_RULES
  };
  std::string page =
      Str("# Rules of transforms\n\nBy opcode, as `lowering/transforms/rules.def` has them; its "
          "first lines say "
          "what the words mean, [transforms.md](transforms.md) what the transforms do. ",
          kNote, "| opcode | tangent | transpose | batch |\n| --- | --- | --- | --- |\n");
  const auto cell = [](std::string_view rule) {
    if (rule.starts_with("(")) rule = rule.substr(1, rule.size() - 2);  // for the preprocessor
    return rule == "kNoRule" ? std::string() : Str("`", rule, "`");
  };
  for (const Row& row : kRows)
    page += Str("| `", hlo::OpcodeText(row.opcode), "` | ", cell(row.tangent), " | ",
                cell(row.transpose), " | ", cell(row.batch), " |\n");
  return page;
}

// What a page that cannot be made says instead, to differ from what is there.
std::string HloPage(const std::string& folder) {
  const auto page = tools::OpcodePage(Str(folder, "/../tests/ir/hlo/testdata/opcodes.txt"));
  return page.ok() ? *page : Str(ir::Message(page.status()), "\n");
}

std::vector<std::pair<std::string, std::string>> Pages(const std::string& folder) {
  return {{"flags.md", FlagsPage()},     {"hlo.md", HloPage(folder)},
          {"metrics.md", MetricsPage()}, {"ops.md", OpsPage()},
          {"passes.md", PassesPage()},   {"transform_rules.md", TransformRulesPage()}};
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

int Main(const std::vector<std::string_view>& args) {
  const bool check = args.size() == 2 && args[0] == "--check";
  if (args.empty() || args.size() > 2 || (args.size() == 2 && !check) ||
      (!check && args[0].starts_with("-"))) {
    std::cerr << "usage: lazuli-docs [--check] FOLDER\n";
    return 2;
  }
  int stale = 0;
  for (const auto& [name, text] : Pages(std::string(args.back()))) {
    const std::string path = Str(args.back(), "/", name);
    if (check) {
      if (ReadFile(path) == text) continue;
      std::cerr << path << " is not what the tables say; run ./lz docs\n";
      stale = 1;
      continue;
    }
    std::ofstream out(path);
    if (!(out << text).flush()) {
      std::cerr << "lazuli-docs: cannot write " << path << "\n";
      return 1;
    }
  }
  return stale;
}

}  // namespace
}  // namespace lazuli

int main(int argc, char** argv) { return lazuli::Main({argv + 1, argv + argc}); }
