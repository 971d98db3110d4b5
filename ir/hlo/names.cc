#include "ir/hlo/names.h"

#include "ir/types/dtype.h"

namespace lazuli::hlo {
namespace {

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsNameChar(char c) { return IsLetter(c) || (c >= '0' && c <= '9') || c == '.' || c == '-'; }

bool IsReserved(std::string_view name) {
  if (name.size() > 24) return false;
  for (std::string_view word :
       {"true", "false", "inf", "nan", "HloModule", "ENTRY", "ROOT", "FileNames", "FunctionNames",
        "FileLocations", "StackFrames", "maximal", "replicated", "manual",
        "last_tile_dim_replicate", "shard_as", "shard_like", "unknown", "unreduced"}) {
    if (name == word) return true;
  }
  return ParseDType(name).has_value();
}

}  // namespace

std::string CleanName(std::string_view wanted) {
  std::string name;
  name.reserve(wanted.size() + 1);
  if (wanted.empty() || !IsLetter(wanted[0])) {
    if (wanted.empty() || IsNameChar(wanted[0])) name += '_';
  }
  for (char c : wanted) name += IsNameChar(c) ? c : '_';
  if (IsReserved(name)) name += '_';
  return name;
}

}  // namespace lazuli::hlo
