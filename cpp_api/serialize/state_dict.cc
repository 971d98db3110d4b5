#include "lazuli/state_dict.h"

#include <set>

#include "lazuli/autograd.h"
#include "lazuli/execution.h"
#include "lazuli/internal/fail.h"
#include "lazuli/internal/text.h"

namespace lazuli {
namespace {

using lazuli::internal::ShapeText;

// "a, b and 7 more".
std::string Listed(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 5;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kShown; ++i) {
    if (i > 0) text += ", ";
    text += names[i];
  }
  if (names.size() > kShown) text += " and " + std::to_string(names.size() - kShown) + " more";
  return text;
}

}  // namespace

LoadReport load_tensors(const StateDict& state,
                        const std::vector<std::pair<std::string, Tensor>>& into,
                        const std::string& what, LoadOptions options, SourceLocation loc) {
  const SiteScope site(loc);
  const NoGrad no_grad;
  LoadReport report;
  std::set<std::string> known;
  std::string differing;
  for (const auto& [name, tensor] : into) {
    known.insert(name);
    const auto found = state.tensors.find(name);
    if (found == state.tensors.end()) {
      report.missing.push_back(name);
      continue;
    }
    const Tensor& from = found->second;
    if (from.sizes() == tensor.sizes()) continue;
    if (!differing.empty()) differing += "; ";
    differing += name;
    differing += " is " + ShapeText(from) + " in the state and " + ShapeText(tensor) + " here";
  }
  for (const auto& [name, tensor] : state.tensors) {
    if (!known.contains(name)) report.unexpected.push_back(name);
  }
  std::string wrong = differing;
  const auto complain = [&](const char* kind, const std::vector<std::string>& names) {
    if (names.empty() || !options.strict) return;
    if (!wrong.empty()) wrong += "; ";
    wrong += kind;
    wrong += Listed(names);
  };
  complain("missing from the state: ", report.missing);
  complain("unexpected in the state: ", report.unexpected);
  if (!wrong.empty()) {
    internal::Fail(ErrorCode::kInvalidArgument, what + ": the state does not fit: " + wrong, loc);
  }
  for (auto [name, tensor] : into) {
    const auto found = state.tensors.find(name);
    if (found != state.tensors.end()) tensor.copy_(found->second);
  }
  return report;
}

void StateDict::insert(const std::string& name, const StateDict& part) {
  for (const auto& [key, tensor] : part.tensors) tensors.insert_or_assign(name + "." + key, tensor);
  for (const auto& [key, text] : part.metadata) metadata.insert_or_assign(name + "." + key, text);
}

StateDict StateDict::part(const std::string& name, SourceLocation loc) const {
  const std::string prefix = name + ".";
  StateDict found;
  for (const auto& [key, tensor] : tensors)
    if (key.starts_with(prefix)) found.tensors.emplace(key.substr(prefix.size()), tensor);
  for (const auto& [key, text] : metadata)
    if (key.starts_with(prefix)) found.metadata.emplace(key.substr(prefix.size()), text);
  if (found.tensors.empty() && found.metadata.empty())
    internal::Fail(ErrorCode::kNotFound, "StateDict: it has no part \"" + name + "\"", loc);
  return found;
}

}  // namespace lazuli
