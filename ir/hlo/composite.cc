#include "ir/hlo/composite.h"

#include <algorithm>

#include "ir/support/str.h"

namespace lazuli::hlo {
namespace {

constexpr std::string_view kIsComposite = "is_composite";

}  // namespace

void MarkComposite(Instruction& call, std::string_view name) {
  auto& attrs = call.mutable_extra_attrs();
  attrs.emplace_back(kIsComposite, "true");
  attrs.emplace_back("frontend_attributes", ir::Str("{composite.name=\"", name, "\"}"));
}

bool IsComposite(const Instruction& i) {
  const auto& attrs = i.extra_attrs();
  return i.opcode() == Opcode::kCall &&
         std::any_of(attrs.begin(), attrs.end(), [](const auto& attr) {
           return attr.first == kIsComposite && attr.second == "true";
         });
}

}  // namespace lazuli::hlo
