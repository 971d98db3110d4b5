#include "backend/interpreter/evaluated_module.h"

#include <cstring>
#include <utility>

#include "backend/client/execute_with_peers.h"
#include "ir/evaluator/evaluator.h"
#include "ir/support/float_mode.h"
#include "ir/types/leaves.h"

namespace lazuli::interpreter {

EvaluatedModule::EvaluatedModule(std::shared_ptr<const hlo::Module> module,
                                 absl::Span<const int64_t> assignment, Device first)
    : module_(std::move(module)),
      peers_(hlo::PeerProgram::Of(*module_, assignment)),
      first_(first) {
  for (const auto& computation : module_->computations()) {
    for (const auto& i : computation->instructions()) {
      stats_.code_bytes += static_cast<int64_t>(sizeof(hlo::Instruction));
      if (i->IsConstant()) stats_.code_bytes += i->literal().byte_size();
    }
  }
  for (const hlo::Instruction* parameter : module_->entry()->parameters()) {
    ForEachLeaf(parameter->shape(),
                [this, parameter](const Shape& leaf) { leaves_.push_back({parameter, leaf}); });
  }
  stats_.output_bytes = module_->entry()->root()->shape().byte_size();
  stats_.evaluator_thunks = module_->entry()->instruction_count() -
                            static_cast<int64_t>(module_->entry()->parameters().size());
}

absl::StatusOr<Buffers> EvaluatedModule::Execute(const ExecuteArgs& args) {
  const Device device = DeviceOf(args, first_);
  return ExecuteWithPeers(peers_, device, args,
                          [&](hlo::PeerRun* peers) { return ExecuteOn(device, args, peers); });
}

absl::StatusOr<Buffers> EvaluatedModule::ExecuteOn(Device device, const ExecuteArgs& args,
                                                   hlo::PeerRun* peers) const {
  LAZULI_ASSIGN_OR_RETURN(const std::vector<Literal> arguments, Arguments(args));
  std::vector<const Literal*> pointers;
  for (const Literal& argument : arguments) pointers.push_back(&argument);
  const ir::ScopedFloatMode mode;
  LAZULI_ASSIGN_OR_RETURN(
      const Literal result,
      hlo::Evaluate(*module_, pointers,
                    {.transfers = &device.client->transfers(device), .peers = peers}));
  Buffers outputs;
  absl::Status status;
  ForEachLeaf(result, [&](const Literal& leaf) {
    if (!status.ok()) return;
    auto kept = std::make_shared<const Literal>(leaf);
    absl::StatusOr<BufferPtr> buffer =
        device.client->FromHost({kept->raw(), &kept->shape()}, [kept] {}, device);
    status = buffer.status();
    if (status.ok()) outputs.push_back(*std::move(buffer));
  });
  LAZULI_RETURN_IF_ERROR(status);
  return outputs;
}

absl::StatusOr<std::vector<Literal>> EvaluatedModule::Arguments(const ExecuteArgs& args) const {
  LAZULI_ASSIGN_OR_RETURN(const std::vector<Literal> leaves, LeafValues(args));
  std::vector<Literal> arguments;
  std::size_t next = 0;
  for (const hlo::Instruction* parameter : module_->entry()->parameters())
    arguments.push_back(FromLeaves(parameter->shape(), leaves, &next));
  return arguments;
}

absl::StatusOr<std::vector<Literal>> EvaluatedModule::LeafValues(const ExecuteArgs& args) const {
  if (args.buffers.size() + args.scalars.size() != leaves_.size()) {
    return InvalidArgument(module_->name(), " takes ", leaves_.size(), " arguments, not ",
                           args.buffers.size(), " buffers and ", args.scalars.size(), " scalars");
  }
  std::vector<Literal> values;
  for (std::size_t i = 0; i < leaves_.size(); ++i) {
    const Shape& shape = leaves_[i].shape;
    if (i < args.buffers.size()) {
      LAZULI_ASSIGN_OR_RETURN(Literal value, first_.client->ToHost(*args.buffers[i]));
      if (!Compatible(value.shape(), shape)) return WrongArgument(i, value.shape());
      values.push_back(std::move(value));
      continue;
    }
    if (!shape.IsScalar() || ByteWidth(shape.dtype()) > 8)
      return InvalidArgument(module_->name(), ": argument ", i, " is ", shape, ", not a scalar");
    Literal scalar = Literal::Uninitialized(shape);
    std::memcpy(scalar.mutable_raw(), &args.scalars[i - args.buffers.size()],
                static_cast<std::size_t>(ByteWidth(shape.dtype())));
    values.push_back(std::move(scalar));
  }
  return values;
}

absl::Status EvaluatedModule::WrongArgument(std::size_t i, const Shape& given) const {
  const std::string& name = leaves_[i].parameter->metadata().op_name;
  return InvalidArgument(module_->name(), ": argument ", i, name.empty() ? "" : " (", name,
                         name.empty() ? "" : ")", " is ", given, ", not ", leaves_[i].shape);
}

}  // namespace lazuli::interpreter
