#include "backend/cpu/runtime/table_thunk.h"

#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "ir/support/parallel_for.h"
#include "ir/support/runtime.h"
#include "ir/types/literal.h"

namespace lazuli::cpu {
namespace {

// Which of the table's entries an element takes.
struct Byte {
  static constexpr std::size_t kEntries = 256;
  std::size_t operator()(const std::byte* from, int64_t i) const {
    return static_cast<unsigned char>(from[i]);
  }
};
struct Half {
  static constexpr std::size_t kEntries = 1 << 16;
  std::size_t operator()(const std::byte* from, int64_t i) const {
    return reinterpret_cast<const uint16_t*>(from)[i];
  }
};
// The upper half of an f32 whose last bit says whether anything is lost: enough to round to a type
// with fewer bits, as to which side of the middle between two of its values it lies on stays known.
struct Sticky {
  std::size_t operator()(const std::byte* from, int64_t i) const {
    const uint32_t bits = reinterpret_cast<const uint32_t*>(from)[i];
    return bits >> 16 | static_cast<uint32_t>((bits & 0xffff) != 0);
  }
};

using Look = void (*)(const std::byte* table, const std::byte* from, int64_t count, std::byte* to);

template <class Key, class Word>
void LookUp(const std::byte* table, const std::byte* from, int64_t count, std::byte* to) {
  const auto* words = reinterpret_cast<const Word*>(table);
  auto* results = reinterpret_cast<Word*>(to);
  for (int64_t i = 0; i < count; ++i) results[i] = words[Key()(from, i)];
}

// `from` has one byte, or the result has.
Look LookOf(DType from, int width) {
  if (from == DType::kF32) return LookUp<Sticky, uint8_t>;
  if (ByteWidth(from) == 2) return LookUp<Half, uint8_t>;
  switch (width) {
    case 1:
      return LookUp<Byte, uint8_t>;
    case 2:
      return LookUp<Byte, uint16_t>;
    case 4:
      return LookUp<Byte, uint32_t>;
    case 8:
      return LookUp<Byte, uint64_t>;
    default:
      return LookUp<Byte, std::array<uint64_t, 2>>;
  }
}

// An element for each entry, in order.
Literal KeysOf(DType from) {
  if (ByteWidth(from) == 1) {
    Literal keys = Literal::Uninitialized(Shape(from, {Byte::kEntries}));
    const int mask = IsFloat(from) ? (1 << Row(from).bits) - 1 : 255;
    for (int i = 0; i < 256; ++i) keys.mutable_raw()[i] = static_cast<std::byte>(i & mask);
    return keys;
  }
  Literal keys = Literal::Uninitialized(Shape(from, {Half::kEntries}));
  for (uint32_t i = 0; i < Half::kEntries; ++i) {
    const auto half = static_cast<uint16_t>(i);
    const uint32_t word = i << 16;
    if (from == DType::kF32) {
      std::memcpy(keys.mutable_raw() + std::size_t{4} * i, &word, sizeof word);
    } else {
      std::memcpy(keys.mutable_raw() + std::size_t{2} * i, &half, sizeof half);
    }
  }
  return keys;
}

// Made once for each pair of types: the larger tables take milliseconds.
std::shared_ptr<const Literal> TableOf(DType from, DType to) {
  struct ConversionTables {
    std::mutex mutex;
    std::map<std::pair<DType, DType>, std::shared_ptr<const Literal>> by_types;
  };
  ConversionTables& tables = ir::Runtime::Get().Of<ConversionTables>();
  std::lock_guard lock(tables.mutex);
  std::shared_ptr<const Literal>& table = tables.by_types[{from, to}];
  if (table == nullptr) table = std::make_shared<const Literal>(KeysOf(from).Converted(to));
  return table;
}

struct TableSpec {
  DType from{}, to{};
  int64_t count = 0;
  BufferId operand = 0, result = 0;
  LAZULI_ATTRS(from, to, count, operand, result);
};

class TableThunk final : public SpecThunk<TableSpec> {
 public:
  TableThunk(ThunkInfo info, std::vector<BufferUse> uses, TableSpec spec)
      : SpecThunk(std::move(info), std::move(uses), spec),
        table_(TableOf(spec.from, spec.to)),
        look_(LookOf(spec.from, ByteWidth(spec.to))),
        from_width_(ByteWidth(spec.from)),
        width_(ByteWidth(spec.to)) {}

  absl::Status Execute(const RunBuffers& run) const override {
    constexpr int64_t kWorth = 1 << 15;  // elements for a thread
    ParallelFor(spec_.count, kWorth, [&](int64_t begin, int64_t end) {
      look_(table_->raw(), run.at(spec_.operand) + begin * from_width_, end - begin,
            run.at(spec_.result) + begin * width_);
    });
    return absl::OkStatus();
  }

 private:
  std::shared_ptr<const Literal> table_;
  Look look_;
  int from_width_, width_;
};

}  // namespace

ThunkOrReason MakeTableThunk(const hlo::Instruction& convert, const std::vector<BufferId>& operands,
                             BufferId result) {
  const DType from = convert.operand(0)->shape().dtype(), to = convert.shape().dtype();
  const bool from_byte = ByteWidth(from) == 1 && from != DType::kPred;
  const bool to_byte_float = IsFloat(to) && ByteWidth(to) == 1 &&
                             (from == DType::kF32 || from == DType::kF16 || from == DType::kBF16);
  if (!from_byte && !to_byte_float) return "neither of its types has one byte";
  return std::make_unique<TableThunk>(
      ThunkInfo::Of("table", convert),
      std::vector<BufferUse>{{.buffer = operands[0]}, {.buffer = result, .write = true}},
      TableSpec{.from = from,
                .to = to,
                .count = convert.shape().num_elements(),
                .operand = operands[0],
                .result = result});
}

ThunkKind TableThunkKind() { return ThunkKind::Of<TableThunk>("table"); }

}  // namespace lazuli::cpu
