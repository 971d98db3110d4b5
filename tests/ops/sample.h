// Rows of the op tests: attributes and operands to call an op with, what it gives then, and what it
// refuses.
//
//   table.Op<SumOp>()
//       .Add({.dims = {0}, .keepdim = false}, {Random(DType::kF32, {2, 3})})
//       .Reference([](const SumOp& op, const Literals& x) { ... })
//       .Error("sum: dim 5 is out of range for rank 2", {Random(DType::kF32, {2, 3})},
//              [](const Tensors& x) { Sum(x[0], {5}); });
//
// Everything else derives from the row: runs on each device, the reference, gradients against
// finite differences, shapes, cache keys (sweep_test.cc).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lazy/ops/program/call.h"
#include "tests/lazy/program/program_text.h"
#include "tests/support/hlo_test.h"

namespace lazuli::lazy::test {

using Literals = std::vector<Literal>;
using KeyWords = std::vector<uint32_t>;

// An op with its attributes, whatever its type: what is done with samples is compiled once.
class SampledOp {
 public:
  virtual ~SampledOp() = default;
  virtual Tensors Record(absl::Span<const Operand> in, backend::Device device) const = 0;
  // Through Lower, whatever Infer says.
  virtual Shapes LoweredShapes(absl::Span<const Shape> in) const = 0;
  virtual std::string AttrText() const = 0;
  virtual KeyWords Key() const = 0;
  // For each attribute its name and the key of an op that differs in it alone.
  virtual std::vector<std::pair<std::string, KeyWords>> ChangedKeys() const = 0;
};

struct Sample {
  std::string text;  // "sum, dims=(0), keepdim=0 of f32[2,3]"
  std::unique_ptr<const SampledOp> op;
  Literals operands;
  bool smooth = true;  // gradients may be compared with finite differences here
  std::function<Literals(const SampledOp&, const Literals&)> reference;  // empty: none
};

struct ErrorSample {
  std::string message;
  Literals operands;
  std::function<void(const Tensors&)> call;
};

struct OpRow {
  std::string name;  // of the struct's public name; unique among rows
  bool differentiable = false;
  std::vector<Sample> samples;
  std::vector<ErrorSample> errors;
  uint32_t numbers = 0;           // operands that are numbers, as a bit mask
  uint32_t gradients = ~0u;       // operands whose gradients are compared
  uint32_t differentiated = ~0u;  // results that the gradients are of
  bool second_gradients = true;   // whether those of gradients are, too
  double device_tolerance = 0;    // between devices; 0: the same bits
  double reference_rtol = 1e-6, reference_atol = 1e-6;
};

namespace internal {

template <class T>
void Change(T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    value = !value;
  } else if constexpr (std::is_enum_v<T>) {
    value = static_cast<T>(static_cast<int>(value) + 1);
  } else if constexpr (std::is_arithmetic_v<T>) {
    value += 1;
  } else if constexpr (requires { value.push_back({}); }) {
    if (value.empty())
      value.push_back(1);
    else
      value.back() += 1;
  } else if constexpr (requires { value.has_value(); }) {
    value = value.has_value() ? T() : T(typename T::value_type{});
  } else if constexpr (std::is_same_v<T, std::string>) {
    value += "x";
  } else if constexpr (std::is_same_v<T, CalledProgram>) {
    value = {ProgramOf("HloModule other\nENTRY e { ROOT x = f32[] parameter(0) }\n")};
  } else if constexpr (std::is_same_v<T, CallForm>) {
    value.name += "x";
  } else {
    value.back() += 1;
  }
}

template <OpStruct T>
KeyWords KeyOf(const T& op) {
  KeyWriter key;
  MakeIntrusive<OpNode<T>>(op, Shapes(), kNoSite)->AppendKey(key);
  return key.words();
}

template <OpStruct T>
std::vector<std::pair<std::string, KeyWords>> ChangedKeys(const T& op) {
  std::vector<std::pair<std::string, KeyWords>> result;
  std::size_t count = T::kAttrCount;
  for (std::size_t i = 0; i < count; ++i) {
    T changed = op;
    std::size_t position = 0;
    changed.VisitAttrs([&](std::string_view name, auto& attr) {
      if (position++ != i) return;
      Change(attr);
      result.emplace_back(std::string(name), KeyWords());
    });
    result.back().second = KeyOf(changed);
  }
  return result;
}

template <OpStruct T>
Shapes LoweredShapes(const T& op, absl::Span<const Shape> operands) {
  lowering::Builder& builder = ShapeScratch::Cleared().builder;
  lowering::LoweringContext context(builder);
  std::vector<lowering::Op> in, out;
  for (const Shape& shape : operands)
    in.push_back(builder.Parameter(static_cast<int64_t>(in.size()), shape));
  LowerOp(op, context, in, out);
  ThrowIfError(builder.status());
  Shapes shapes;
  for (lowering::Op result : out) shapes.push_back(result.shape());
  return shapes;
}

template <OpStruct T>
class SampledOpOf final : public SampledOp {
 public:
  explicit SampledOpOf(T op) : op_(std::move(op)) {}
  const T& op() const { return op_; }
  Tensors Record(absl::Span<const Operand> in, backend::Device device) const override {
    return RecordAll(op_, in, device);
  }
  Shapes LoweredShapes(absl::Span<const Shape> in) const override {
    return internal::LoweredShapes(op_, in);
  }
  std::string AttrText() const override { return lazy::AttrText(op_); }
  KeyWords Key() const override { return KeyOf(op_); }
  std::vector<std::pair<std::string, KeyWords>> ChangedKeys() const override {
    return internal::ChangedKeys(op_);
  }

 private:
  T op_;
};

}  // namespace internal

void AddSample(OpRow& row, std::string_view op_name, std::unique_ptr<const SampledOp> op,
               Literals operands, bool smooth);
// For the samples that have none yet.
void SetReference(OpRow& row,
                  const std::function<Literals(const SampledOp&, const Literals&)>& reference);

template <OpStruct T>
class Row {
 public:
  explicit Row(OpRow& row) : row_(&row) {}

  Row& Add(T op, Literals operands) { return Add(std::move(op), std::move(operands), true); }
  // Values at which the op has no derivative, or a useless one: infinities, kinks.
  Row& AddEdge(T op, Literals operands) { return Add(std::move(op), std::move(operands), false); }

  // The elements of the result by a naive formula, for the samples added so far.
  template <class F>  // Literal or Literals, of (const T& op, const Literals& operands)
  Row& Reference(F f) {
    SetReference(*row_, [f = std::move(f)](const SampledOp& op, const Literals& x) {
      auto result = f(static_cast<const internal::SampledOpOf<T>&>(op).op(), x);
      if constexpr (std::is_same_v<decltype(result), Literals>)
        return result;
      else
        return Literals{std::move(result)};
    });
    return *this;
  }
  Row& Error(std::string message, Literals operands, std::function<void(const Tensors&)> call) {
    row_->errors.push_back({std::move(message), std::move(operands), std::move(call)});
    return *this;
  }

  Row& Numbers(uint32_t mask) { return Set(&OpRow::numbers, mask); }
  Row& GradientsOf(uint32_t mask) { return Set(&OpRow::gradients, mask); }
  // The results that are only for the op's own gradient have none.
  Row& GradientsOfResults(uint32_t mask) { return Set(&OpRow::differentiated, mask); }
  Row& NoSecondGradients() { return Set(&OpRow::second_gradients, false); }
  Row& DeviceTolerance(double relative) { return Set(&OpRow::device_tolerance, relative); }
  Row& ReferenceTolerance(double rtol, double atol) {
    row_->reference_rtol = rtol;
    row_->reference_atol = atol;
    return *this;
  }

 private:
  template <class M, class V>
  Row& Set(M OpRow::* member, V value) {
    row_->*member = value;
    return *this;
  }

  Row& Add(T op, Literals operands, bool smooth) {
    AddSample(*row_, T::kName, std::make_unique<internal::SampledOpOf<T>>(std::move(op)),
              std::move(operands), smooth);
    return *this;
  }

  OpRow* row_;
};

class Table {
 public:
  template <OpStruct T>
  Row<T> Op() {
    return Row<T>(NewRow<T>());
  }
  template <OpStruct T>
  OpRow& NewRow() {
    OpRow& row = rows_.emplace_back();
    row.name = RowName<T>();
    row.differentiable = kDifferentiable<T>;
    return row;
  }
  const std::deque<OpRow>& rows() const { return rows_; }
  const OpRow& operator[](std::string_view name) const;

  // Public names are unique but for pow, which is three ops.
  template <OpStruct T>
  static std::string RowName() {
    if constexpr (requires(T op) { op.exponent; })
      return Str(T::kName, std::is_integral_v<decltype(T::exponent)> ? "_integer" : "_number");
    else
      return std::string(T::kName);
  }

 private:
  std::deque<OpRow> rows_;  // rows keep their address while others are added
};

// Every sample of every op.
const Table& Samples();

// One file a family.
void AddElementwiseSamples(Table& table);
void AddRecurrentSamples(Table& table);
void AddReduceSamples(Table& table);
void AddShapeSamples(Table& table);
void AddLinearSamples(Table& table);
void AddPoolSamples(Table& table);
void AddLossSamples(Table& table);
void AddCreateSamples(Table& table);
void AddNormSamples(Table& table);
void AddForeachSamples(Table& table);
void AddFourierSamples(Table& table);
void AddIndexSamples(Table& table);
void AddSpecialSamples(Table& table);
void AddDecompositionSamples(Table& table);

// --- values

// Small numbers decided by shape and seed; for floats none is an integer.
Literal Random(DType dtype, std::initializer_list<int64_t> dims, uint64_t seed = 0);
// Numbers strictly between low and high, no two equal.
Literal Between(DType dtype, std::initializer_list<int64_t> dims, double low, double high,
                double phase = 0);
Literal Floats(std::initializer_list<int64_t> dims, std::initializer_list<float> values);
Literal Indices(std::initializer_list<int64_t> values);  // s64, rank 1
Literal ScalarOf(DType dtype, double value);

// --- references

using Index = std::vector<int64_t>;
int64_t Offset(absl::Span<const int64_t> dims, absl::Span<const int64_t> index);
double At(const Literal& x, absl::Span<const int64_t> index);
// Calls f(index) for every position of an array of these dims, row-major.
void ForEachIndex(absl::Span<const int64_t> dims, const std::function<void(const Index&)>& f);
void Accumulate(Literal& to, const Index& index, double v);  // to[index] += v
// The array whose element at `index` is f(index).
Literal Build(const Shape& shape, const std::function<double(const Index&)>& f);

}  // namespace lazuli::lazy::test
