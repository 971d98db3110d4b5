#include "ir/support/error_place.h"

#include "absl/strings/cord.h"

namespace lazuli::ir {
namespace {

constexpr absl::string_view kOp = "lazuli/op", kPlace = "lazuli/place";

std::string Payload(const absl::Status& status, absl::string_view key) {
  const auto payload = status.GetPayload(key);
  return payload ? std::string(*payload) : std::string();
}
bool Lacks(const absl::Status& status, absl::string_view key) {
  return !status.GetPayload(key).has_value();
}
absl::Cord ToCord(std::string_view text) {
  return absl::Cord(absl::string_view(text.data(), text.size()));
}

}  // namespace

absl::Status AddPlace(const absl::Status& status, std::string_view op, std::string_view place) {
  if (status.ok()) return status;
  const bool has_op = op.empty() || !Lacks(status, kOp);
  const bool has_place = place.empty() || !Lacks(status, kPlace);
  if (has_op && has_place) return status;
  absl::Status placed = Reworded(status, Str(has_op ? "" : Str(op, ": "), Message(status),
                                             has_place ? "" : Str(" (", place, ")")));
  if (!has_op) placed.SetPayload(kOp, ToCord(op));
  if (!has_place) placed.SetPayload(kPlace, ToCord(place));
  return placed;
}

std::string OpOf(const absl::Status& status) { return Payload(status, kOp); }
std::string PlaceOf(const absl::Status& status) { return Payload(status, kPlace); }

}  // namespace lazuli::ir
