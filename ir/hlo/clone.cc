#include "ir/hlo/clone.h"

#include <utility>
#include <vector>

#include "ir/hlo/dense_map.h"

namespace lazuli::hlo {

Instruction* AddClone(const Instruction& source, absl::Span<Instruction* const> operands,
                      const Clones& callees, Computation& computation) {
  std::vector<Computation*> called;
  for (const Computation* callee : source.called()) called.push_back(callees.at(callee));
  Instruction* const clone = computation.Add(source.opcode(), source.shape(), operands,
                                             source.attrs(), called, source.name());
  clone->set_metadata(source.metadata());
  clone->set_sharding(source.sharding());
  clone->mutable_extra_attrs() = source.extra_attrs();
  return clone;
}

Clones AddClones(absl::Span<const Computation* const> sources, Module& module) {
  std::vector<const Computation*> all;
  Clones clones;
  const auto add = [&](const Computation* source) {
    if (clones.emplace(source, nullptr).second) all.push_back(source);
  };
  for (const Computation* source : sources) add(source);
  for (std::size_t at = 0; at < all.size(); ++at) {  // NOLINT(modernize-loop-convert): it grows
    for (const auto& i : all[at]->instructions()) {
      for (const Computation* callee : i->called()) add(callee);
    }
  }
  for (const Computation* source : all) clones[source] = module.AddComputation(source->name());
  for (const Computation* source : all) {
    Computation& target = *clones[source];
    target.set_is_fusion(source->IsFusion());
    DenseMap<Instruction*> copies(*source);
    std::vector<Instruction*> operands;
    for (Instruction* original : source->PostOrder()) {
      operands.clear();
      for (Instruction* operand : original->operands()) operands.push_back(copies[operand]);
      Instruction* const copy = AddClone(*original, operands, clones, target);
      for (Instruction* predecessor : original->control_predecessors())
        copy->AddControlPredecessor(copies[predecessor]);
      copies[original] = copy;
    }
    target.set_root(copies[source->root()]);
  }
  return clones;
}

Computation* AddCopy(const Module& program, Module& module) {
  const Computation* const entry = program.entry();
  const Clones clones = AddClones({entry}, module);
  if (!program.stack_frames().empty()) {
    for (const auto& [original, copy] : clones) {
      for (const auto& i : copy->instructions()) {
        Metadata metadata = i->metadata();
        program.stack_frames().Resolve(metadata.stack_frame, &metadata);
        metadata.stack_frame = 0;
        i->set_metadata(std::move(metadata));
      }
    }
  }
  return clones.at(entry);
}

}  // namespace lazuli::hlo
