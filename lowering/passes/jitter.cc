#include "lowering/passes/jitter.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "ir/support/hash.h"
#include "ir/support/status.h"
#include "lowering/passes/rewriter.h"

namespace lazuli::lowering {
namespace {

using hlo::Instruction;
using hlo::Opcode;

absl::StatusOr<double> Amplitude(const std::string& text) {
  if (text.empty()) return 0.0;
  char* end = nullptr;
  const double amplitude = std::strtod(text.c_str(), &end);
  if (end != text.c_str() + text.size() || !(amplitude >= 0) || amplitude >= 1)
    return InvalidArgument("LAZULI_JITTER='", text, "' is not a number from 0 to 1");
  return amplitude;
}

bool IsArithmetic(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::kParameter:
    case Opcode::kDot:
    case Opcode::kConvolution:
    case Opcode::kReduce:
    case Opcode::kReduceWindow:
      return true;
    // These move values, or give one of a few.
    case Opcode::kAbs:
    case Opcode::kNegate:
    case Opcode::kCopy:
    case Opcode::kConvert:
    case Opcode::kSelect:
    case Opcode::kClamp:
    case Opcode::kMaximum:
    case Opcode::kMinimum:
    case Opcode::kSign:
    case Opcode::kFloor:
    case Opcode::kCeil:
    case Opcode::kRoundNearestEven:
    case Opcode::kRoundNearestAfz:
      return false;
    default:
      return i.IsElementwise();
  }
}

bool TakesJitter(const Instruction& i) {
  if (!i.shape().IsArray() || !IsFloat(i.shape().dtype()) || i.users().empty()) return false;
  return i.shape().num_elements() > 0 && IsArithmetic(i);
}

// Writes 1 + amplitude * u for the elements of one array: a hash of each element's number.
class Factors {
 public:
  Factors(Rewriter& rewriter, double amplitude, uint32_t seed)
      : rewriter_(rewriter), amplitude_(amplitude), seed_(seed) {}

  Instruction* For(const Shape& shape) {
    const int64_t count = shape.num_elements();
    const Shape words(DType::kU32, {count});
    bits_ = rewriter_.Add(Opcode::kIota, words, {}, hlo::IotaAttrs{0});
    Step(Opcode::kMultiply, 0x9e3779b9u);
    Step(Opcode::kAdd, seed_);
    for (const uint32_t factor : {0x85ebca6bu, 0xc2b2ae35u}) {
      MixDown(16);
      Step(Opcode::kMultiply, factor);
    }
    MixDown(15);
    Step(Opcode::kShiftRightLogical, 8);
    const DType type = shape.dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
    Instruction* const u = rewriter_.Convert(bits_, type);
    const Shape floats(type, {count});
    constexpr double kHalfRange = 1 << 23;
    Instruction* const scaled = rewriter_.Add(Opcode::kMultiply, floats,
                                              {u, rewriter_.Full(floats, amplitude_ / kHalfRange)});
    Instruction* const factor =
        rewriter_.Add(Opcode::kAdd, floats, {scaled, rewriter_.Full(floats, 1 - amplitude_)});
    return rewriter_.Convert(rewriter_.Reshape(factor, shape.dims()), shape.dtype());
  }

 private:
  void Step(Opcode opcode, uint32_t value) {
    bits_ = rewriter_.Add(opcode, bits_->shape(), {bits_, rewriter_.Full(bits_->shape(), value)});
  }
  void MixDown(uint32_t by) {
    Instruction* const before = bits_;
    Step(Opcode::kShiftRightLogical, by);
    bits_ = rewriter_.Add(Opcode::kXor, before->shape(), {before, bits_});
  }

  Rewriter& rewriter_;
  const double amplitude_;
  const uint32_t seed_;
  Instruction* bits_ = nullptr;
};

void Perturb(Instruction* i, double amplitude, uint32_t seed, Rewriter& rewriter) {
  rewriter.set_origin(i);
  const std::vector<Instruction*> users(i->users().begin(), i->users().end());
  Instruction* factor = Factors(rewriter, amplitude, seed).For(i->shape());
  Instruction* const jittered = rewriter.Add(Opcode::kMultiply, i->shape(), {i, factor});
  for (Instruction* user : users) {
    // A parameter that is a result as it came stays as it is.
    if (i->opcode() == Opcode::kParameter && user->IsRoot()) continue;
    for (int64_t operand = 0; operand < user->operand_count(); ++operand)
      if (user->operand(operand) == i) rewriter.ReplaceOperand(user, operand, jittered);
  }
}

}  // namespace

absl::StatusOr<bool> Jitter::Run(hlo::Module& module) {
  LAZULI_ASSIGN_OR_RETURN(const double amplitude, Amplitude(amplitude_));
  if (amplitude == 0) return false;
  Rewriter rewriter(module.entry());
  uint64_t seed = static_cast<uint64_t>(seed_);
  for (Instruction* i : module.entry()->PostOrder()) {
    seed = Mix(seed, 1);
    if (TakesJitter(*i)) Perturb(i, amplitude, static_cast<uint32_t>(seed >> 32), rewriter);
  }
  return rewriter.changed();
}

}  // namespace lazuli::lowering
