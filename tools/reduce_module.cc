#include "tools/reduce_module.h"

#include <algorithm>
#include <ranges>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "backend/client/registry.h"
#include "ir/hlo/text/printer.h"
#include "ir/hlo/verifier.h"
#include "ir/support/status.h"
#include "lowering/passes/inline_calls.h"
#include "tools/run_module.h"

namespace lazuli::tools {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace): tools speak the vocabulary of every
                     // stage
using hlo::Instruction;

using ModulePtr = std::unique_ptr<hlo::Module>;

// The part of a module that makes `root`, with a parameter in place of each instruction in `cut`.
ModulePtr Extract(const hlo::Module& module, const Instruction& root,
                  const std::unordered_set<std::string>& cut) {
  ModulePtr result = module.Clone();
  hlo::Computation* const old = result->entry();
  hlo::Computation* const entry = result->AddComputation("reduced");
  // What the root needs, without what is behind a cut.
  std::unordered_set<const Instruction*> needed;
  std::vector<const Instruction*> stack = {old->Find(root.name())};
  while (!stack.empty()) {
    const Instruction* i = stack.back();
    stack.pop_back();
    if (!needed.insert(i).second || cut.contains(i->name())) continue;
    stack.insert(stack.end(), i->operands().begin(), i->operands().end());
  }
  std::unordered_map<const Instruction*, Instruction*> copies;
  for (const Instruction* i : old->PostOrder()) {
    if (!needed.contains(i)) continue;
    if (i->opcode() == hlo::Opcode::kParameter || cut.contains(i->name())) {
      copies[i] = entry->AddParameter(static_cast<int64_t>(entry->parameters().size()),
                                      i->shape().WithDefaultLayout(), i->name());
      continue;
    }
    std::vector<Instruction*> operands;
    for (const Instruction* operand : i->operands()) operands.push_back(copies.at(operand));
    copies[i] = entry->AddClone(*i, operands);
  }
  entry->set_root(copies.at(old->Find(root.name())));
  result->set_entry(entry);
  result->RemoveComputation(old);
  // Computations that nothing calls any more.
  const std::vector<hlo::Computation*> reached = result->PostOrder();
  std::vector<hlo::Computation*> dead;
  for (const auto& computation : result->computations()) {
    if (std::find(reached.begin(), reached.end(), computation.get()) == reached.end())
      dead.push_back(computation.get());
  }
  while (!dead.empty()) {  // callers were made after what they call
    result->RemoveComputation(dead.back());
    dead.pop_back();
  }
  result->aliases().clear();
  std::erase_if(result->extra_attrs(),
                [](const auto& attr) { return attr.first == "entry_computation_layout"; });
  return result;
}

class Reducer {
 public:
  static absl::StatusOr<Reducer> Make(const ReduceOptions& options) {
    Reducer reducer(options);
    LAZULI_ASSIGN_OR_RETURN(reducer.wrong_, backend::FindDevice(options.device));
    LAZULI_ASSIGN_OR_RETURN(reducer.right_, backend::FindDevice(options.compare));
    return reducer;
  }

  // How the device goes wrong on the module; OK if it does not, or if the other cannot run it.
  absl::Status Fails(const hlo::Module& module) const {
    if (!hlo::Verify(module).ok()) return absl::OkStatus();
    std::vector<Literal> inputs;
    for (const Shape& shape : InputShapes(module))
      inputs.push_back(RandomInput(shape, static_cast<uint64_t>(options_.seed), inputs.size()));
    const auto expected = RunModule(module.Clone(), right_, inputs);
    if (!expected.ok()) return absl::OkStatus();
    const auto actual = RunModule(module.Clone(), wrong_, inputs);
    if (!actual.ok()) return actual.status();
    return CompareOutputs(expected->outputs, actual->outputs, options_.rtol, options_.atol);
  }

  // Makes the module smaller until no step does.
  void Reduce(ModulePtr& module) const {
    while (CutTheEnd(module) || CutTheStart(module)) {
    }
  }

 private:
  explicit Reducer(const ReduceOptions& options) : options_(options) {}

  bool Take(ModulePtr& module, ModulePtr smaller) const {
    if (smaller->instruction_count() >= module->instruction_count() || Fails(*smaller).ok())
      return false;
    module = std::move(smaller);
    return true;
  }

  // The first instruction that is wrong by itself becomes the root.
  bool CutTheEnd(ModulePtr& module) const {
    for (const Instruction* i : module->entry()->PostOrder()) {
      if (i->opcode() == hlo::Opcode::kParameter || i->IsRoot()) continue;
      if (Take(module, Extract(*module, *i, {}))) return true;
    }
    return false;
  }

  // A value in the middle becomes an argument: the latest first, which takes most away.
  bool CutTheStart(ModulePtr& module) const {
    const std::vector<Instruction*> order = module->entry()->PostOrder();
    for (const Instruction* i : order | std::views::reverse) {
      const bool plain =
          i->shape().IsArray() && !i->IsRoot() && i->opcode() != hlo::Opcode::kParameter;
      if (plain && Take(module, Extract(*module, *module->entry()->root(), {i->name()})))
        return true;
    }
    return false;
  }

  ReduceOptions options_;
  backend::Device wrong_, right_;
};

}  // namespace

absl::StatusOr<std::string> ReducedText(const hlo::Module& given, const ReduceOptions& options,
                                        const std::string& name) {
  LAZULI_ASSIGN_OR_RETURN(const Reducer reducer, Reducer::Make(options));
  if (reducer.Fails(given).ok())
    return FailedPrecondition(name, ": ", options.device, " agrees with ", options.compare);
  ModulePtr module = given.Clone();
  ModulePtr flat = given.Clone();  // calls are cut open, if what is wrong stays wrong
  if (lowering::InlineCalls().Run(*flat).ok() && !reducer.Fails(*flat).ok())
    module = std::move(flat);
  reducer.Reduce(module);
  return Str("// ", options.device, ": ", Message(reducer.Fails(*module)), "\n",
             hlo::ToString(*module));
}

}  // namespace lazuli::tools
