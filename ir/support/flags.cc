#include "ir/support/flags.h"

#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "ir/support/check.h"
#include "ir/support/environment.h"
#include "ir/support/name_list.h"
#include "ir/support/status.h"

#ifdef NDEBUG
#define LAZULI_DEBUG_BUILD false
#else
#define LAZULI_DEBUG_BUILD true
#endif

namespace lazuli::ir {
namespace {

std::optional<bool> ParseBool(std::string_view text) {
  for (std::string_view yes : {"1", "true", "yes", "on"}) {
    if (text == yes) return true;
  }
  for (std::string_view no : {"0", "false", "no", "off"}) {
    if (text == no) return false;
  }
  return std::nullopt;
}

std::optional<int64_t> ParseInt(std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<int64_t> ParseBytes(std::string_view text) {
  int shift = 0;
  if (!text.empty()) {
    switch (text.back()) {
      case 'k':
      case 'K':
        shift = 10;
        break;
      case 'm':
      case 'M':
        shift = 20;
        break;
      case 'g':
      case 'G':
        shift = 30;
        break;
      default:
        break;
    }
  }
  if (shift > 0) text.remove_suffix(1);
  std::optional<int64_t> value = ParseInt(text);
  if (!value || *value < 0 || *value > (INT64_MAX >> shift)) return std::nullopt;
  return *value << shift;
}

using Levels = std::vector<std::pair<std::string, int64_t>>;

// "2,cpu_fuse=5,kernels=5": the levels of names; the one without a name has the name "".
std::optional<Levels> ParseLevels(std::string_view text) {
  Levels levels = {{"", 0}};
  for (const std::string_view part : SplitNames(text)) {
    const std::size_t equals = part.find('=');
    const bool named = equals != std::string_view::npos;
    const std::optional<int64_t> level = ParseInt(named ? part.substr(equals + 1) : part);
    if (!level || *level < 0 || equals == 0) return std::nullopt;
    if (named)
      levels.emplace_back(part.substr(0, equals), *level);
    else
      levels[0].second = *level;
  }
  return levels;
}

// The value of one flag. Numbers and booleans share a cell; strings that were replaced stay alive,
// because readers hold references.
struct FlagSlot {
  std::atomic<bool> loaded{false};  // no once_flag: memory may run out in between
  std::atomic<int64_t> number{0};
  std::atomic<const std::string*> text{nullptr};
  std::deque<std::string> texts;
  absl::Status error;  // of the value in the environment
};

enum Index : std::size_t {
#define LAZULI_FLAG(type, name, variable, default_value, doc) kFlag_##name,
#include "tables/flags.def"
#undef LAZULI_FLAG
  kNumFlags,
};

const std::array<FlagRow, kNumFlags>& Rows() {
  static const auto* rows = new std::array<FlagRow, kNumFlags>{{
#define LAZULI_FLAG(type, name, variable, default_value, doc) \
  FlagRow{variable, FlagType::k##type, Str(default_value), doc},
#include "tables/flags.def"
#undef LAZULI_FLAG
  }};
  return *rows;
}

std::array<FlagSlot, kNumFlags>& Slots() {
  static auto* slots = new std::array<FlagSlot, kNumFlags>;
  return *slots;
}

std::mutex& SetMutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

absl::Status Assign(const FlagRow& row, FlagSlot& slot, std::string_view text) {
  std::optional<int64_t> number;
  std::string_view wanted;
  switch (row.type) {
    case FlagType::kBool:
      if (auto value = ParseBool(text)) number = *value;
      wanted = "true, false, 1, 0, yes, no, on or off";
      break;
    case FlagType::kInt:
      number = ParseInt(text);
      wanted = "a whole number";
      // Of a flag whose default is negative that is the way to ask for it.
      if (number && *number < 0 && !row.default_text.starts_with('-')) {
        number.reset();
        wanted = "a whole number that is not negative";
      }
      break;
    case FlagType::kBytes:
      number = ParseBytes(text);
      wanted = "a number of bytes such as 4096, 64K, 512M or 2G";
      break;
    case FlagType::kLevels:
      if (const std::optional<Levels> levels = ParseLevels(text)) {
        number = (*levels)[0].second;
        slot.text.store(&slot.texts.emplace_back(text), std::memory_order_release);
      }
      wanted = "a whole number, or one with those of single names behind it: 2,cpu_fuse=5";
      break;
    case FlagType::kString:
      slot.text.store(&slot.texts.emplace_back(text), std::memory_order_release);
      return absl::OkStatus();
  }
  if (!number) return InvalidArgument(row.name, "='", text, "' is not ", wanted);
  slot.number.store(*number, std::memory_order_release);
  return absl::OkStatus();
}

FlagSlot& Load(std::size_t index) {
  FlagSlot& slot = Slots()[index];
  if (slot.loaded.load(std::memory_order_acquire)) return slot;
  const FlagRow& row = Rows()[index];
  std::lock_guard lock(SetMutex());
  if (slot.loaded.load(std::memory_order_relaxed)) return slot;
  LAZULI_CHECK(Assign(row, slot, row.default_text).ok(), "default of ", row.name);
  if (row.name.starts_with("--")) {
    if (const std::string* const text = FindXlaFlag(row.name))
      slot.error = Prefixed(Assign(row, slot, *text), "XLA_FLAGS: ");
  } else if (const char* text = std::getenv(std::string(row.name).c_str())) {
    slot.error = Assign(row, slot, text);
  }
  slot.loaded.store(true, std::memory_order_release);
  return slot;
}

// Each flag's type selects its cell.
template <class T>
T Value(std::size_t index) {
  if constexpr (std::is_same_v<T, const std::string&>) {
    return *Load(index).text.load(std::memory_order_acquire);
  } else {
    return static_cast<T>(Load(index).number.load(std::memory_order_acquire));
  }
}

}  // namespace

#define LAZULI_FLAG(type, name, variable, default_value, doc) \
  Flags::type Flags::name() const { return Value<type>(kFlag_##name); }
#include "tables/flags.def"
#undef LAZULI_FLAG

std::span<const FlagRow> FlagRows() { return Rows(); }

absl::Status SetFlag(std::string_view variable, std::string_view value) {
  for (std::size_t i = 0; i < kNumFlags; ++i) {
    if (Rows()[i].name != variable) continue;
    FlagSlot& slot = Load(i);
    std::lock_guard lock(SetMutex());
    return Assign(Rows()[i], slot, value);
  }
  return NotFound("there is no flag ", variable);
}

std::string_view TypeText(FlagType type) {
  switch (type) {
    case FlagType::kBool:
      return "bool";
    case FlagType::kInt:
      return "int";
    case FlagType::kBytes:
      return "bytes (K, M, G)";
    case FlagType::kLevels:
      return "levels";
    case FlagType::kString:
      return "string";
  }
  return "";
}

std::string FlagText(const FlagRow& row) {
  const auto index = static_cast<std::size_t>(&row - Rows().data());
  switch (row.type) {
    case FlagType::kBool:
      return Str(Value<bool>(index));
    case FlagType::kInt:
    case FlagType::kBytes:
      return Str(Value<int64_t>(index));
    case FlagType::kLevels:
    case FlagType::kString:
      return Value<const std::string&>(index);
  }
  return "";
}

std::string ChangedFlags(std::string_view prefix) {
  std::string text;
  for (const FlagRow& row : Rows()) {
    const std::string value = FlagText(row);
    // Those of XLA_FLAGS have rows of their own.
    if (value != row.default_text && row.name != "XLA_FLAGS")
      text += Str(prefix, row.name, "=", value, "\n");
  }
  return text;
}

namespace {
Levels LevelsOf(std::string_view variable) {
  for (std::size_t i = 0; i < kNumFlags; ++i) {
    if (Rows()[i].name == variable)
      return ParseLevels(Value<const std::string&>(i)).value_or(Levels());
  }
  return {};
}
}  // namespace

int64_t LevelOf(std::string_view variable, std::string_view name) {
  for (const auto& [known, level] : LevelsOf(variable))
    if (known == name) return level;
  return -1;
}

std::vector<std::string> LevelNames(std::string_view variable) {
  std::vector<std::string> names;
  for (const auto& [name, level] : LevelsOf(variable))
    if (!name.empty()) names.push_back(name);
  return names;
}

std::string DisabledPasses() {
  std::string names = flags().disable_passes();
  if (!flags().xla_disable_passes().empty())
    names += Str(names.empty() ? "" : ",", flags().xla_disable_passes());
  if (flags().xla_disable_all_passes()) names += Str(names.empty() ? "" : ",", kAllPasses);
  return names;
}

namespace {
absl::Status FirstError() {
  for (std::size_t i = 0; i < kNumFlags; ++i) LAZULI_RETURN_IF_ERROR(Load(i).error);
  return CheckEnvironment();
}
}  // namespace

absl::Status FlagErrors() {
  static const auto* const found = new absl::Status(FirstError());
  return *found;
}

}  // namespace lazuli::ir
