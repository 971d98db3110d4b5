#include "lowering/builder/builder.h"

#include <utility>

#include "ir/support/check.h"

namespace lazuli::lowering {

const Shape& Op::shape() const {
  static const Shape poison(DType::kF32);
  LAZULI_CHECK(builder_ != nullptr, "an Op that no builder made has no shape");
  return builder_->Owns(*this) ? builder_->entry(*this).shape : poison;
}

hlo::Instruction* Op::instruction() const {
  return builder_ != nullptr && builder_->Owns(*this) ? builder_->entry(*this).instruction
                                                      : nullptr;
}

Builder::Builder(hlo::Module* module, std::string_view name)
    : module_(module), computation_(module->AddComputation(name)) {}

Builder::Builder(Mode shapes_only) {
  LAZULI_CHECK(shapes_only == Mode::kShapesOnly, "building needs a module");
}

Builder::~Builder() = default;

void Builder::Reset() {
  LAZULI_CHECK(shapes_only(), "what a builder has built cannot be forgotten");
  used_ = 0;
  status_ = absl::OkStatus();
  has_one_shot_ = false;
}

Op Builder::Error(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
  return Poisoned();
}

absl::StatusOr<hlo::Computation*> Builder::Finish(Op root) {
  if (status_.ok() && !Owns(root)) {
    Error(InvalidArgument("the root of ", computation_ ? computation_->name() : "a computation",
                          " belongs to another builder"));
  }
  if (!status_.ok()) return status_;
  if (computation_ != nullptr) computation_->set_root(root.instruction());
  return computation_;
}

Builder::MetadataScope::MetadataScope(Builder& builder, hlo::Metadata metadata)
    : builder_(builder), saved_(std::exchange(builder.metadata_, std::move(metadata))) {}

Builder::MetadataScope::~MetadataScope() { builder_.metadata_ = std::move(saved_); }

void Builder::SetOneShotMetadata(hlo::Metadata metadata) {
  one_shot_ = std::move(metadata);
  has_one_shot_ = true;
}

hlo::Instruction* Builder::WithMetadata(hlo::Instruction* instruction) {
  if (has_one_shot_) {
    instruction->set_metadata(std::move(one_shot_));
    has_one_shot_ = false;
  } else if (!metadata_.empty()) {
    instruction->set_metadata(metadata_);
  }
  return instruction;
}

Op Builder::Push(Shape shape, hlo::Instruction* instruction) {
  if (used_ == entries_.size()) entries_.emplace_back();
  Entry& entry = entries_[used_];
  entry.shape = std::move(shape);
  entry.instruction = instruction;
  return Op(this, static_cast<int32_t>(used_++));
}

Op Builder::Add(Opcode opcode, absl::Span<const Op> operands, hlo::Attrs attrs,
                absl::Span<hlo::Computation* const> called, const Shape* declared) {
  if (!status_.ok()) return Poisoned();
  absl::InlinedVector<const Shape*, 8> shapes;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!Owns(operands[i])) {
      return Error(
          InvalidArgument(hlo::OpcodeText(opcode), ": operand ", i, " belongs to another builder"));
    }
    shapes.push_back(&entry(operands[i]).shape);
  }
  absl::StatusOr<Shape> shape = hlo::InferShape(opcode, shapes, attrs, called, declared);
  if (!shape.ok()) return Error(std::move(shape).status());
  if (shapes_only()) return Push(*std::move(shape), nullptr);

  absl::InlinedVector<hlo::Instruction*, 8> instructions;
  for (const Op& operand : operands) instructions.push_back(entry(operand).instruction);
  hlo::Instruction* added =
      WithMetadata(computation_->Add(opcode, *shape, instructions, std::move(attrs), called));
  return Push(*std::move(shape), added);
}

// --- leaves

Op Builder::Parameter(int64_t number, const Shape& shape, std::string_view name) {
  if (!status_.ok()) return Poisoned();
  if (shapes_only()) return Push(shape, nullptr);
  return Push(shape, WithMetadata(computation_->AddParameter(number, shape, name)));
}

Op Builder::Constant(Literal value) {
  if (!status_.ok()) return Poisoned();
  Shape shape = value.shape();
  if (shapes_only()) return Push(std::move(shape), nullptr);
  return Push(std::move(shape), WithMetadata(computation_->AddConstant(std::move(value))));
}

Op Builder::Scalar(DType dtype, double value) {
  if (!status_.ok()) return Poisoned();
  Shape shape(dtype);
  if (!shape.IsArray()) return Error(InvalidArgument("constant: ", shape, " has no elements"));
  if (shapes_only()) return Push(std::move(shape), nullptr);  // without the memory of a literal
  return Constant(Literal::Full(shape, value));
}

Op Builder::Full(const Shape& shape, double value) {
  if (!status_.ok()) return Poisoned();
  if (!shape.IsArray()) return Error(InvalidArgument("constant: ", shape, " has no elements"));
  if (shape.rank() == 0) return Scalar(shape.dtype(), value);
  const Dims dims(shape.dims().begin(), shape.dims().end());
  return Broadcast(Scalar(shape.dtype(), value), dims, {});
}

Op Builder::Iota(const Shape& shape, int64_t dimension) {
  return Add(Opcode::kIota, {}, hlo::IotaAttrs{dimension}, {}, &shape);
}

}  // namespace lazuli::lowering
