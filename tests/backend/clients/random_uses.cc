#include "tests/backend/clients/random_uses.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "ir/hlo/attr_rows.h"
namespace lazuli {
namespace {

using ir::Dims;
using ir::DType;
using ir::Shape;

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

// How many enumerators the attribute has; 0: it stays.
int64_t CountOf(hlo::ComparisonDirection) { return 6; }
int64_t CountOf(hlo::ComparisonType) { return 5; }
int64_t CountOf(hlo::FftType) { return 4; }
int64_t CountOf(hlo::TransposeKind) { return 3; }
int64_t CountOf(hlo::RngAlgorithm) { return 3; }
template <class T>
int64_t CountOf(const T&) {
  return 0;
}

}  // namespace

Shape RandomUses::DrawShape() {
  constexpr DType kTypes[] = {DType::kF32,  DType::kF32,  DType::kF32, DType::kS32, DType::kU8,
                              DType::kPred, DType::kBF16, DType::kF64, DType::kC64, DType::kS64,
                              DType::kS8,   DType::kU32,  DType::kF16, DType::kU64, DType::kS4};
  constexpr int64_t kSizes[] = {0, 1, 1, 2, 3, 4, 5, 8, 17};
  Dims dims(static_cast<std::size_t>(Below(4)));
  for (int64_t& d : dims) d = kSizes[Below(std::size(kSizes))];
  return Shape(kTypes[Below(std::size(kTypes))], dims);
}

// Mostly a neighbour or a small number.
int64_t RandomUses::DrawNumber(int64_t old) {
  constexpr int64_t kSmall[] = {0, 1, 2, 3, 4, 5, 8, -1, -2, -3};
  constexpr int64_t kLarge[] = {
      kMost,     kLeast,     kMost / 2,        int64_t{1} << 31,       int64_t{1} << 32,
      kMost - 1, kLeast + 1, int64_t{1} << 40, (int64_t{1} << 31) - 1, -(int64_t{1} << 40)};
  switch (Below(8)) {
    case 0:
      return kLarge[Below(std::size(kLarge))];
    case 1:
    case 2:
      return old == kMost ? old : old + 1;
    case 3:
    case 4:
      return old == kLeast ? old : old - 1;
    default:
      return kSmall[Below(std::size(kSmall))];
  }
}

void RandomUses::ChangeMember(float& number) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNumbers[] = {0, -1, kInf, std::numeric_limits<float>::quiet_NaN(), 1e-30f};
  number = kNumbers[Below(std::size(kNumbers))];
}

void RandomUses::ChangeMember(Dims& numbers) {
  const auto count = static_cast<int64_t>(numbers.size());
  const int64_t at = count > 0 ? Below(count) : 0, other = count > 0 ? Below(count) : 0;
  switch (count == 0 ? 0 : Below(8)) {
    case 0:
      return void(numbers.insert(numbers.begin() + at, DrawNumber(0)));
    case 1:
      return void(numbers.erase(numbers.begin() + at));
    case 2:
      return std::swap(numbers[static_cast<std::size_t>(at)],
                       numbers[static_cast<std::size_t>(other)]);
    default:
      return ChangeMember(numbers[static_cast<std::size_t>(at)]);
  }
}

void RandomUses::ChangeMember(hlo::Window& window) {
  if (window.empty() || Below(12) == 0) {
    if (Below(2) == 0 && !window.empty()) return window.pop_back();
    return window.push_back({});
  }
  hlo::WindowDim& dim = window[static_cast<std::size_t>(Below(std::ssize(window)))];
  int64_t* const members[] = {&dim.size,     &dim.stride,        &dim.pad_low,
                              &dim.pad_high, &dim.base_dilation, &dim.window_dilation};
  const int64_t member = Below(std::ssize(members) + 1);
  if (member == std::ssize(members)) return ChangeMember(dim.reversal);
  ChangeMember(*members[member]);
}

// Two labels of one array change places, or one becomes any number.
void RandomUses::ChangeMember(hlo::ConvDims& labels) {
  const std::pair<int64_t*, int64_t*> pairs[] = {
      {&labels.input_batch, &labels.input_feature},
      {&labels.kernel_input_feature, &labels.kernel_output_feature},
      {&labels.output_batch, &labels.output_feature}};
  Dims* const spatial[] = {&labels.input_spatial, &labels.kernel_spatial, &labels.output_spatial};
  const int64_t array = Below(3);
  const auto [first, second] = pairs[array];
  Dims& rest = *spatial[array];
  if (Below(3) == 0) return ChangeMember(Below(2) == 0 ? *first : *second);
  if (rest.empty() || Below(2) == 0) return std::swap(*first, *second);
  if (Below(4) == 0) return ChangeMember(rest);
  std::swap(*first, rest[static_cast<std::size_t>(Below(std::ssize(rest)))]);
}

template <class T>
void RandomUses::ChangeMember(T& other) {
  if constexpr (std::is_enum_v<T>) {
    if (const int64_t count = CountOf(other); count > 0) other = static_cast<T>(Below(count));
  }
}

void RandomUses::ChangeAttrs(hlo::Attrs& attrs) {
  std::visit(
      [&]<class T>(T& a) {
        constexpr auto kMembers = static_cast<int64_t>(hlo::MemberCount<T>());
        if (kMembers == 0) return;
        int64_t chosen = Below(kMembers);
        hlo::ForEachMember(a, [&](auto& member) {
          if (chosen-- == 0) ChangeMember(member);
        });
      },
      attrs);
}

void RandomUses::ChangeOperand(DegenerateUse::Operand& operand) {
  if (!operand.shape.IsArray()) return;
  if (operand.constant && Below(2) == 0) {
    constexpr double kNumbers[] = {0, 1, -1, 2, 100, -100};
    operand.constant = kNumbers[Below(std::size(kNumbers))];
    return;
  }
  Dims dims(operand.shape.dims().begin(), operand.shape.dims().end());
  DType dtype = operand.shape.dtype();
  if (Below(4) == 0) {
    dtype = DrawShape().dtype();
  } else if (dims.empty() || Below(6) == 0) {
    if (!dims.empty() && Below(2) == 0)
      dims.pop_back();
    else
      dims.push_back(Below(3));
  } else {
    dims[static_cast<std::size_t>(Below(std::ssize(dims)))] = Below(6);
  }
  operand.shape = Shape(dtype, dims);
}

// Most changes make a use that is refused, so there are few.
void RandomUses::Change(DegenerateUse& use) {
  for (int64_t changes = Below(4); changes > 0; --changes) {
    if (!use.operands.empty() && Below(4) == 0)
      ChangeOperand(use.operands[static_cast<std::size_t>(Below(std::ssize(use.operands)))]);
    else
      ChangeAttrs(use.attrs);
  }
}

std::optional<DegenerateUse> RandomUses::Next(hlo::Opcode opcode) {
  std::vector<DegenerateUse> proposed = ProposedUses(opcode, DrawShape());
  if (proposed.empty()) return std::nullopt;
  DegenerateUse use = std::move(proposed[static_cast<std::size_t>(Below(std::ssize(proposed)))]);
  Change(use);
  return use;
}

}  // namespace lazuli
