#include "tests/ops/sample.h"

#include <cmath>

namespace lazuli::lazy::test {

const OpRow& Table::operator[](std::string_view name) const {
  for (const OpRow& row : rows_) {
    if (row.name == name) return row;
  }
  LAZULI_CHECK(false, "no row for ", name);
}

void AddSample(OpRow& row, std::string_view op_name, std::unique_ptr<const SampledOp> op,
               Literals operands, bool smooth) {
  std::string text = Str(op_name, op->AttrText(), " of (");
  for (const Literal& x : operands) text += Str(&x == operands.data() ? "" : ", ", x.shape());
  row.samples.push_back({text + ")", std::move(op), std::move(operands), smooth, {}});
}
void SetReference(OpRow& row,
                  const std::function<Literals(const SampledOp&, const Literals&)>& reference) {
  for (Sample& sample : row.samples) {
    if (!sample.reference) sample.reference = reference;
  }
}

const Table& Samples() {
  static const auto* table = [] {
    auto* t = new Table;
    AddElementwiseSamples(*t);
    AddRecurrentSamples(*t);
    AddReduceSamples(*t);
    AddShapeSamples(*t);
    AddLinearSamples(*t);
    AddPoolSamples(*t);
    AddLossSamples(*t);
    AddCreateSamples(*t);
    AddNormSamples(*t);
    AddForeachSamples(*t);
    AddFourierSamples(*t);
    AddIndexSamples(*t);
    AddSpecialSamples(*t);
    AddDecompositionSamples(*t);
    return t;
  }();
  return *table;
}

Literal Random(DType dtype, std::initializer_list<int64_t> dims, uint64_t seed) {
  return RandomLiteral(Shape(dtype, dims), seed);
}
Literal Between(DType dtype, std::initializer_list<int64_t> dims, double low, double high,
                double phase) {
  Literal result{Shape(dtype, dims)};
  for (int64_t i = 0; i < result.shape().num_elements(); ++i) {
    const double t = std::fmod(phase + 0.6180339887498949 * static_cast<double>(i + 1), 1.0);
    result.SetFromDouble(i, low + (high - low) * t);
  }
  return result;
}
Literal Floats(std::initializer_list<int64_t> dims, std::initializer_list<float> values) {
  return Literal::FromValues<float>(dims, values);
}
Literal Indices(std::initializer_list<int64_t> values) {
  return Literal::FromValues<int64_t>({static_cast<int64_t>(values.size())}, values);
}
Literal ScalarOf(DType dtype, double value) { return Literal::Full(Shape(dtype), value); }

int64_t Offset(absl::Span<const int64_t> dims, absl::Span<const int64_t> index) {
  int64_t offset = 0;
  for (std::size_t d = 0; d < dims.size(); ++d) offset = offset * dims[d] + index[d];
  return offset;
}

double At(const Literal& x, absl::Span<const int64_t> index) {
  return x.AsDouble(Offset(x.shape().dims(), index));
}

void ForEachIndex(absl::Span<const int64_t> dims, const std::function<void(const Index&)>& f) {
  const int64_t count = Shape(DType::kPred, dims).num_elements();
  for (int64_t n = 0; n < count; ++n) {
    Index index(dims.size());
    int64_t rest = n;
    for (std::size_t d = dims.size(); d-- > 0; rest /= dims[d]) index[d] = rest % dims[d];
    f(index);
  }
}

Literal Build(const Shape& shape, const std::function<double(const Index&)>& f) {
  Literal result(shape);
  int64_t n = 0;
  ForEachIndex(shape.dims(), [&](const Index& index) { result.SetFromDouble(n++, f(index)); });
  return result;
}

void Accumulate(Literal& to, const Index& index, double v) {
  const int64_t at = Offset(to.shape().dims(), index);
  to.SetFromDouble(at, to.AsDouble(at) + v);
}

}  // namespace lazuli::lazy::test
