#include "backend/cpu/runtime/table_thunk.h"

#include <array>
#include <cstring>

#include "ir/support/parallel_for.h"
#include "ir/types/literal.h"

namespace lazuli::backend {
namespace {

using Look = void (*)(const std::byte* table, const std::byte* from, int64_t count, std::byte* to);

template <class Word>
void LookUp(const std::byte* table, const std::byte* from, int64_t count, std::byte* to) {
  std::array<Word, 256> words;
  std::memcpy(words.data(), table, sizeof words);
  Word* results = reinterpret_cast<Word*>(to);
  for (int64_t i = 0; i < count; ++i) results[i] = words[static_cast<unsigned char>(from[i])];
}

Look LookOf(int width) {
  switch (width) {
    case 1:
      return LookUp<uint8_t>;
    case 2:
      return LookUp<uint16_t>;
    case 4:
      return LookUp<uint32_t>;
    case 8:
      return LookUp<uint64_t>;
    default:
      return LookUp<std::array<uint64_t, 2>>;
  }
}

class TableThunk final : public Thunk {
 public:
  TableThunk(const hlo::Instruction& i, Literal table, BufferId operand, BufferId result)
      : Thunk(ThunkInfo::Of("table", i), {{.buffer = operand}, {.buffer = result, .write = true}}),
        table_(std::move(table)),
        count_(i.shape().num_elements()),
        width_(ByteWidth(i.shape().dtype())),
        operand_(operand),
        result_(result) {}

  absl::Status Execute(const RunBuffers& run) const override {
    constexpr int64_t kWorth = 1 << 15;  // elements for a thread
    ParallelFor(count_, kWorth, [&](int64_t begin, int64_t end) {
      LookOf(width_)(table_.raw(), run.at(operand_) + begin, end - begin,
                     run.at(result_) + begin * width_);
    });
    return absl::OkStatus();
  }

 private:
  Literal table_;
  int64_t count_;
  int width_;
  BufferId operand_, result_;
};

}  // namespace

std::unique_ptr<Thunk> MakeTableThunk(const hlo::Instruction& convert,
                                      const std::vector<BufferId>& operands, BufferId result) {
  const DType from = convert.operand(0)->shape().dtype();
  if (ByteWidth(from) != 1 || from == DType::kPred) return nullptr;
  Literal bytes = Literal::Uninitialized(Shape(from, {256}));
  const int mask = IsFloat(from) ? (1 << Row(from).bits) - 1 : 255;
  for (int i = 0; i < 256; ++i) bytes.mutable_raw()[i] = static_cast<std::byte>(i & mask);
  return std::make_unique<TableThunk>(convert, bytes.Converted(convert.shape().dtype()),
                                      operands[0], result);
}

}  // namespace lazuli::backend
