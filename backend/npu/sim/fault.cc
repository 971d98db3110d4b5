#include "backend/npu/sim/fault.h"

#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

struct ErrorRow {
  std::string_view name, doc;
};
constexpr ErrorRow kErrors[] = {
#define NPU_ERROR(id, name, doc) {name, doc},
#include "backend/npu/sim/errors.def"
};

}  // namespace

std::string_view ErrorName(ErrorCode code) { return kErrors[static_cast<std::size_t>(code)].name; }

std::string Fault::ToString() const {
  std::string text(ErrorName(code));
  std::string_view separator = " at ";
  auto part = [&](std::string_view name, int64_t value) {
    if (value < 0) return;
    text += Str(separator, name, value);
    separator = ", ";
  };
  part("device ", device);
  part("core ", core);
  part("pc ", pc);
  part("cycle ", cycle);
  if (line != 0 || !origin.empty())
    text += Str(" (", line != 0 ? Str("line ", line) : "", line != 0 && !origin.empty() ? ", " : "",
                origin, ")");
  text += ": ";
  if (!instruction.empty()) text += Str(instruction, ": ");
  return text + sentence;
}

absl::Status ToStatus(const Fault& fault) {
  return fault.code == ErrorCode::kOomDram ? ResourceExhausted(fault.ToString())
                                           : FailedPrecondition(fault.ToString());
}

std::string ErrorPage() {
  std::string page = "| error | when |\n|---|---|\n";
  for (const ErrorRow& row : kErrors) page += Str("| `", row.name, "` | ", row.doc, " |\n");
  return page;
}

}  // namespace lazuli::npu
