#include "tools/load_module.h"

#include <cstdio>
#include <string>
#include <vector>

#include "ir/hlo/proto/proto.h"
#include "ir/hlo/text/parser.h"
#include "ir/support/status.h"
#include "tools/tool.h"

namespace lazuli::tools {

using namespace ir;  // NOLINT(google-build-using-namespace): as in tool.cc

absl::StatusOr<std::unique_ptr<hlo::Module>> LoadModule(const std::string& file) {
  LAZULI_ASSIGN_OR_RETURN(const std::string text, ReadAll(file));
  const bool proto = file.ends_with(".pb");
  std::vector<std::string> warnings;
  auto module = proto ? hlo::ParseModuleProto(text) : hlo::ParseModule(text, &warnings);
  for (const std::string& warning : warnings)
    std::fprintf(stderr, "%s\n", Str("warning: ", file, ":", warning).c_str());
  if (!module.ok()) return Prefixed(module.status(), Str(file, proto ? ": " : ":"));
  return module;
}

}  // namespace lazuli::tools
