// A module that ir/evaluator runs on buffers of any client: nothing is compiled, every opcode works.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/client/client.h"

namespace lazuli::interpreter {

// Values are copied to the host and back by the client, except where its memory is the host's.
class EvaluatedModule : public Executable {
 public:
  EvaluatedModule(std::shared_ptr<const hlo::Module> module, absl::Span<const int64_t> assignment,
                  Device first);
  absl::StatusOr<Buffers> Execute(const ExecuteArgs& args) override;
  const ExecutableStats& stats() const override { return stats_; }
  std::string ToString() const override { return module_->ToString(); }

 private:
  absl::StatusOr<Buffers> ExecuteOn(Device device, const ExecuteArgs& args,
                                    hlo::PeerRun* peers) const;
  // A value for each parameter.
  absl::StatusOr<std::vector<Literal>> Arguments(const ExecuteArgs& args) const;
  // Buffers first, then scalars.
  absl::StatusOr<std::vector<Literal>> LeafValues(const ExecuteArgs& args) const;
  absl::Status WrongArgument(std::size_t i, const Shape& given) const;

  struct Leaf {
    const hlo::Instruction* parameter;
    Shape shape;
  };

  std::shared_ptr<const hlo::Module> module_;
  std::vector<Leaf> leaves_;  // of all parameters
  std::optional<hlo::PeerProgram> peers_;
  Device first_;
  ExecutableStats stats_;
};

}  // namespace lazuli::interpreter
