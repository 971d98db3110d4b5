#include "tools/opcode_page.h"

#include <map>
#include <memory>
#include <sstream>
#include <vector>

#include "backend/client/registry.h"
#include "ir/evaluator/evaluator.h"
#include "ir/hlo/attr_rows.h"
#include "ir/hlo/proto/proto.h"
#include "ir/hlo/text/parser.h"
#include "ir/hlo/text/parser_internal.h"
#include "ir/hlo/text/printer.h"
#include "ir/hlo/verifier.h"
#include "ir/support/status.h"
#include "ir/types/leaves.h"
#include "tools/run_module.h"
#include "tools/tool.h"

namespace lazuli::tools {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace): tools speak the vocabulary of every
                     // stage

constexpr std::string_view kIntroduction = R"(# HLO

Lazuli reads and writes HLO as XLA does: text in the old and the new style of operands (`lazuli/hlo.h`, `lazuli-opt`), and
the binary HloModuleProto (`--emit=proto`, files named `.pb`). Groups of devices and shardings are values (`ir/hlo/devices`):
lists, counted ones (`[2,4]<=[8]`) and those by the axes of a mesh. Attributes that Lazuli does not interpret - frontend
attributes, names that XLA may add - are kept and printed unchanged. An error in a text names line and column and shows
both; an error in a proto names computation and instruction. No input aborts the process, recurses without bound, or
allocates more memory than it has elements.

`lazuli/hlo.h` is the interface in C++. `examples/run_jax_dump.cc` loads a training step that JAX dumped, runs it, compares
the results with the definition and rewrites it with its own pass. On the command line, `lazuli-run` runs modules and
compares devices, `lazuli-opt` shows the results of passes and of the CPU's compiler, and `lazuli-reduce` reduces a module on
which two devices disagree to a small one that still fails.

The table is measured: each use of an opcode in `tests/ir/hlo/testdata/opcodes.txt` is parsed, printed (as text and in
binary form) and read back, verified, evaluated (`ir/evaluator`, the definition of the values) and compiled for the CPU.
In the last column, `evaluator` means that the CPU calls the evaluator; `compiled` means that it has kernels, library calls
or thunks of its own, at least for the types and shapes that programs use. Opcodes without a value are listed below the
table with the error of a run.

Dimensions for which a shape gives only a bound (`f32[<=8]`) have the size that `set-dimension-size` sets: reductions, sorts,
concatenations and all other ops use that many elements. A module's result has the bound's size, filled up with zeros. On
the CPU, the evaluator runs the whole of such a module. `infeed` and `outfeed` exchange arrays with `transfer_to_infeed` and
`transfer_from_outfeed` of `lazuli/hlo.h`.

A process is one device: replica 0 of partition 0. A collective in which it is alone returns its operand. It is alone if its
group in `replica_groups` has no other member, or if the group is everyone and the module's header counts one device
(`replica_count`, `num_partitions`). `collective-permute` returns zeros if no pair of `source_target_pairs` names the device,
and so does `collective-broadcast` if no group does. Any other collective fails the run with an error that names the opcode
and the groups.
)";

// A module for each use: the computations in front of all, then the use as the entry.
std::vector<std::string> Uses(const std::string& text) {
  std::vector<std::string> uses;
  std::istringstream lines(text);
  std::string shared = "HloModule m\n", line;
  while (std::getline(lines, line)) {
    if (line.starts_with("=== ")) {
      uses.push_back(shared + "ENTRY e {\n");
    } else {
      (uses.empty() ? shared : uses.back()) += line + "\n";
    }
  }
  for (std::string& use : uses) use += "}\n";
  return uses;
}

struct Row {
  std::string error;  // of the evaluation
  bool printed = true, proto = true, verified = true, evaluated = true, compiled = true;
  bool by_evaluator = false;
};

bool ReadsBack(const hlo::Module& module) {
  for (const hlo::PrintOptions& options : {hlo::PrintOptions{}, hlo::PrintOptions::Short(),
                                           hlo::PrintOptions{.operand_shapes = true}}) {
    const auto again = hlo::ParseModule(hlo::ToString(module, options));
    if (!again.ok() || !hlo::Equal(module, **again)) return false;
  }
  return true;
}

absl::Status Evaluates(const hlo::Module& module) {
  std::vector<Literal> leaves, arguments;
  for (const Shape& shape : InputShapes(module))
    leaves.push_back(RandomInput(shape, 1, leaves.size()));
  std::size_t next = 0;
  for (const hlo::Instruction* parameter : module.entry()->parameters())
    arguments.push_back(FromLeaves(parameter->shape(), leaves, &next));
  std::vector<const Literal*> pointers;
  for (const Literal& argument : arguments) pointers.push_back(&argument);
  hlo::HostTransfers transfers;
  for (const auto& i : module.entry()->instructions()) {
    if (i->opcode() != hlo::Opcode::kInfeed) continue;
    std::vector<Literal> fed;
    for (const Shape& shape : LeavesOf(i->shape()))
      fed.push_back(RandomInput(shape, 1, fed.size()));
    transfers.PushInfeed(std::move(fed));
  }
  return hlo::Evaluate(module, pointers, {.transfers = &transfers}).status();
}

// Whether the target of a custom call exists; those that nobody registered are no flaw of the
// opcode.
bool IsForeign(const hlo::Module& module) {
  return module.ToString().find("custom_call_target=\"foo\"") != std::string::npos;
}

void Try(const hlo::Module& module, const backend::Device& cpu, Row& row) {
  row.printed &= ReadsBack(module);
  row.proto &= hlo::ParseModuleProto(hlo::SerializeModuleProto(module)).ok();
  row.verified &= hlo::Verify(module).ok();
  if (IsForeign(module)) return;
  const absl::Status evaluated = Evaluates(module);
  row.evaluated &= evaluated.ok();
  row.error = Message(evaluated);
  const auto executable =
      cpu.client->Compile(module.Clone(), {.fallback = backend::Fallback::kAllow});
  row.compiled &= evaluated.ok() && executable.ok();
  row.by_evaluator |= executable.ok() && (*executable)->stats().evaluator_thunks > 0;
}

std::string AttributesOf(hlo::AttrsKind kind) {
  std::string names;
  std::visit(
      [&names]<class A>(const A&) {
        hlo::ForEachRow<A>(
            [&names](const auto& row) { names += Str(names.empty() ? "" : ", ", row.name); });
      },
      hlo::internal::DefaultAttrs(kind));
  return names;
}

std::string_view Mark(bool yes) { return yes ? "yes" : "-"; }

std::string Line(hlo::Opcode opcode, const Row& row) {
  const hlo::OpcodeTraits& traits = hlo::Traits(opcode);
  const std::string arity = traits.arity < 0 ? "any" : Str(int{traits.arity});
  const std::string_view cpu = !row.compiled ? "-" : row.by_evaluator ? "evaluator" : "compiled";
  return Str("| `", traits.text, "` | ", arity, " | ", hlo::AcceptedTypes(opcode), " | ",
             AttributesOf(traits.attrs), " | ", Mark(true), " | ", Mark(row.printed), " | ",
             Mark(row.proto), " | ", Mark(row.verified), " | ", Mark(row.evaluated), " | ", cpu,
             " |\n");
}

}  // namespace

absl::StatusOr<std::string> OpcodePage(const std::string& uses_file) {
  RegisterPlatforms();
  LAZULI_ASSIGN_OR_RETURN(const backend::Device cpu, backend::FindDevice("cpu"));
  LAZULI_ASSIGN_OR_RETURN(const std::string text, ReadAll(uses_file));
  std::map<hlo::Opcode, Row> rows;
  for (const std::string& use : Uses(text)) {
    LAZULI_ASSIGN_OR_RETURN(const auto module, hlo::ParseModule(use));
    Row row;
    Try(*module, cpu, row);
    for (const auto& i : module->entry()->instructions()) {
      // Parameters, constants and tuples are in many uses; what those say is no news of them.
      const bool subject = i->IsRoot() || !rows.contains(i->opcode());
      if (!subject) continue;
      const auto [at, is_new] = rows.try_emplace(i->opcode(), row);
      if (is_new || !i->IsRoot()) continue;
      Row& known = at->second;
      known.printed &= row.printed;
      known.proto &= row.proto;
      known.verified &= row.verified;
      known.evaluated |= row.evaluated;
      known.compiled |= row.compiled;
      known.by_evaluator &= row.by_evaluator;
    }
  }
  std::string page(kIntroduction);
  page +=
      "\n| opcode | operands | element types | attributes | parse | print | proto | verify | "
      "evaluate | cpu |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
  std::string errors;
  for (int i = 0; i < hlo::NumOpcodes(); ++i) {
    const auto opcode = static_cast<hlo::Opcode>(i);
    const auto row = rows.find(opcode);
    if (row == rows.end()) return NotFound(uses_file, " has no use of ", hlo::OpcodeText(opcode));
    page += Line(opcode, row->second);
    if (!row->second.evaluated) errors += Str("- `", row->second.error, "`\n");
  }
  return Str(page, "\n", errors);
}

}  // namespace lazuli::tools
