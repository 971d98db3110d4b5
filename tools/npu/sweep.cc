#include "tools/npu/sweep.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>

#include "ir/support/status.h"
#include "ir/support/str.h"

namespace lazuli::tools {
namespace {

using ir::InvalidArgument;
using ir::Join;
using ir::Str;

constexpr std::size_t kMostValues = 10000;  // of a range

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

const npu::ConfigKey* FindKey(std::string_view name) {
  for (const npu::ConfigKey& key : npu::ConfigKeys()) {
    if (key.key == name) return &key;
  }
  return nullptr;
}

// Whether the key may have the value; the error says what it may be, or which keys there are.
absl::Status CheckValue(std::string_view key, std::string_view value) {
  npu::Config config;
  return npu::SetKeys(Str(key, "=", value), config);
}

absl::Status CheckKey(std::string_view name) {
  const npu::ConfigKey* const key = FindKey(name);
  if (key == nullptr) return CheckValue(name, "0");
  if (key->scope == npu::ConfigScope::kRun)
    return InvalidArgument(name,
                           " changes neither cycles nor energy, so there is nothing to sweep");
  return absl::OkStatus();
}

std::optional<double> Number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

std::string NumberText(double value) {
  return value == std::floor(value) && std::abs(value) < 1e15 ? Str(static_cast<int64_t>(value))
                                                              : Str(value);
}

// "16..128", "16..128*4", "16..128+16".
absl::StatusOr<std::vector<std::string>> Range(std::string_view key, std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return InvalidArgument(key, "=", text, ": ", why);
  };
  const std::size_t dots = text.find("..");
  std::string_view last_text = text.substr(dots + 2);
  const std::size_t sign = last_text.find_first_of("*+");
  const bool adds = sign != std::string_view::npos && last_text[sign] == '+';
  const std::optional<double> first = Number(text.substr(0, dots)),
                              last = Number(last_text.substr(0, sign)),
                              step = sign == std::string_view::npos
                                         ? std::optional<double>(2)
                                         : Number(last_text.substr(sign + 1));
  if (!first || !last || !step)
    return wrong("a range is FIRST..LAST (doubling), FIRST..LAST*FACTOR or FIRST..LAST+STEP");
  if (*first > *last) return wrong("a range begins with its smaller end");
  if (adds ? *step <= 0 : *step <= 1)
    return wrong(adds ? "the step is more than 0" : "the factor is more than 1");
  if (!adds && *first <= 0 && *first < *last)
    return wrong("multiplying what is not positive leads nowhere; +STEP adds");
  std::vector<std::string> values;
  for (double value = *first; value < *last; value = adds ? value + *step : value * *step) {
    if (values.size() == kMostValues) return wrong(Str("more than ", kMostValues, " values"));
    values.push_back(NumberText(value));
  }
  values.push_back(NumberText(*last));
  return values;
}

}  // namespace

absl::StatusOr<SweepAxis> SweepAxis::Parse(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals + 1 == text.size())
    return InvalidArgument("'", text,
                           "' is not an axis: it is KEY=VALUES, such as mxu.rows=16..128");
  SweepAxis axis;
  for (const std::string_view key : Split(text.substr(0, equals), '+')) {
    LAZULI_RETURN_IF_ERROR(CheckKey(key));
    axis.keys.emplace_back(key);
  }
  for (const std::string_view item : Split(text.substr(equals + 1), ',')) {
    std::vector<std::string> values = {std::string(item)};
    if (item.find("..") != std::string_view::npos) {
      LAZULI_ASSIGN_OR_RETURN(values, Range(axis.keys[0], item));
    }
    for (const std::string& value : values) {
      for (const std::string& key : axis.keys) LAZULI_RETURN_IF_ERROR(CheckValue(key, value));
      if (std::find(axis.values.begin(), axis.values.end(), value) == axis.values.end())
        axis.values.push_back(value);
    }
  }
  return axis;
}

std::string SweepAxis::name() const { return Join(keys, "+"); }

absl::StatusOr<std::vector<SweepPoint>> PointsOf(const std::vector<SweepAxis>& axes,
                                                 std::size_t most) {
  std::set<std::string> keys;
  double count = 1;
  for (const SweepAxis& axis : axes) {
    count *= static_cast<double>(axis.values.size());
    for (const std::string& key : axis.keys) {
      if (!keys.insert(key).second)
        return InvalidArgument(key, " is swept twice; values of one axis are joined by commas");
    }
  }
  if (count > static_cast<double>(most))
    return InvalidArgument("that would be ", static_cast<int64_t>(count), " points, at most ", most,
                           " are allowed (--most-points)");
  std::vector<SweepPoint> points = {SweepPoint()};
  for (const SweepAxis& axis : axes) {
    std::vector<SweepPoint> longer;
    for (const SweepPoint& point : points) {
      for (std::size_t v = 0; v < axis.values.size(); ++v) {
        longer.push_back(point);
        longer.back().push_back(v);
      }
    }
    points = std::move(longer);
  }
  return points;
}

std::string KeysOf(const std::vector<SweepAxis>& axes, const SweepPoint& point) {
  std::string text;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    for (const std::string& key : axes[a].keys)
      text += Str(text.empty() ? "" : ",", key, "=", axes[a].values[point[a]]);
  }
  return text;
}

}  // namespace lazuli::tools
