#include "lowering/passes/fusion_decision.h"

#include "ir/support/str.h"

namespace lazuli::lowering {
namespace {

// "reduce.5 (softmax at train.py:12)"
std::string NameOf(const hlo::Instruction& i) {
  const hlo::Metadata& metadata = i.metadata();
  std::string where = metadata.op_type;
  if (const std::string place = metadata.place(); !place.empty())
    where += Str(where.empty() ? "" : " ", "at ", place);
  return where.empty() ? i.name() : Str(i.name(), " (", where, ")");
}

}  // namespace

FusionDecisions::FusionDecisions() : dump_(hlo::ModuleDump::Current()) {
  if (dump_ != nullptr && !dump_->is_captured()) dump_ = nullptr;
}

FusionDecisions::~FusionDecisions() {
  if (dump_ != nullptr && !text_.empty()) dump_->File("fusion.txt", text_);
}

void FusionDecisions::Begins(const hlo::Instruction& i, std::initializer_list<Against> against) {
  if (dump_ == nullptr) return;
  text_ += Str(NameOf(i), " begins a kernel of its own:\n");
  for (const auto& [what, decision] : against)
    if (!decision.joins()) text_ += Str("  ", what, ": ", decision.why_not(), "\n");
}

}  // namespace lazuli::lowering
