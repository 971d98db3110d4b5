#include "ir/types/shape.h"

#include <algorithm>
#include <numeric>

#include "ir/support/status.h"

namespace lazuli::ir {
namespace {

bool IsRowMajor(absl::Span<const int64_t> minor_to_major) {
  const auto rank = static_cast<int64_t>(minor_to_major.size());
  for (int64_t i = 0; i < rank; ++i) {
    if (minor_to_major[static_cast<std::size_t>(i)] != rank - 1 - i) return false;
  }
  return true;
}

void AppendList(std::string& out, absl::Span<const int64_t> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ',';
    ir::AppendTo(out, values[i]);
  }
}

}  // namespace

const std::vector<Shape>& Shape::tuple() const {
  static constinit const std::vector<Shape> kNone;
  return more_ ? more_->tuple : kNone;
}

absl::Span<const int64_t> Shape::layout() const {
  return more_ ? absl::MakeConstSpan(more_->layout) : absl::Span<const int64_t>();
}

Shape::More& Shape::MutableMore() {
  if (!more_) more_ = std::make_unique<More>();
  return *more_;
}

Shape Shape::Tuple(std::vector<Shape> elements) {
  Shape shape;
  if (!elements.empty()) shape.MutableMore().tuple = std::move(elements);
  return shape;
}

Shape& Shape::operator=(const Shape& other) {
  if (this != &other) *this = Shape(other);
  return *this;
}

absl::StatusOr<Shape> Shape::Make(DType dtype, absl::Span<const int64_t> dims) {
  if (dims.size() > kMaxRank)
    return InvalidArgument("rank ", dims.size(), " is larger than ", kMaxRank);
  // Sizes count as if no dimension were zero: strides must not overflow either.
  int64_t bytes = std::max(1, ByteWidth(dtype));
  for (int64_t d : dims) {
    if (d < 0) {
      return InvalidArgument("dimension ", d, " of ", DTypeText(dtype), "[", Join(dims, ","),
                             "] is negative");
    }
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(d, 1), &bytes) || bytes > kMaxBytes) {
      return InvalidArgument(DTypeText(dtype), "[", Join(dims, ","), "] is larger than ", kMaxBytes,
                             " bytes");
    }
  }
  return Shape(dtype, dims);
}

int64_t Shape::num_elements() const {
  int64_t count = 1;
  for (int64_t d : dims_) count *= d;
  return count;
}

int64_t Shape::byte_size() const {
  if (IsArray()) return num_elements() * ByteWidth(dtype_);
  int64_t bytes = 0;
  for (const Shape& element : tuple()) bytes += element.byte_size();
  return bytes;
}

Dims Shape::minor_to_major() const {
  if (has_layout()) return more_->layout;
  Dims order(dims_.size());
  std::iota(order.rbegin(), order.rend(), 0);
  return order;
}

Shape Shape::WithLayout(absl::Span<const int64_t> minor_to_major) const {
  LAZULI_CHECK(minor_to_major.size() == dims_.size(), "layout of ", minor_to_major.size(),
               " dimensions for ", *this);
  Shape shape = *this;
  if (!IsRowMajor(minor_to_major))
    shape.MutableMore().layout.assign(minor_to_major.begin(), minor_to_major.end());
  else if (has_layout())
    shape.more_->layout.clear();
  return shape;
}

Shape Shape::WithDefaultLayout() const {
  Shape shape = *this;
  if (!more_) return shape;
  shape.more_->layout.clear();
  for (Shape& element : shape.more_->tuple) element = element.WithDefaultLayout();
  return shape;
}

Dims Shape::strides() const {
  Dims strides(dims_.size());
  int64_t stride = 1;
  auto visit = [&](int64_t d) {
    strides[static_cast<std::size_t>(d)] = stride;
    stride *= dim(d);
  };
  if (has_layout()) {
    for (int64_t d : layout()) visit(d);
  } else {
    for (int64_t d = rank() - 1; d >= 0; --d) visit(d);
  }
  return strides;
}

void Shape::AppendTo(std::string& out, Layouts layouts) const {
  if (IsTuple()) {
    out += '(';
    for (std::size_t i = 0; i < tuple().size(); ++i) {
      if (i > 0) out += ", ";
      tuple()[i].AppendTo(out, layouts);
    }
    out += ')';
    return;
  }
  out += DTypeText(dtype_);
  out += '[';
  for (std::size_t i = 0; i < dims_.size(); ++i) {
    if (i > 0) out += ',';
    if ((dynamic_dims() >> i) & 1) out += "<=";
    ir::AppendTo(out, dims_[i]);
  }
  out += ']';
  if (layouts != Layouts::kNone && !dims_.empty() && (layouts == Layouts::kAll || has_layout())) {
    const Dims order = minor_to_major();
    out += '{';
    AppendList(out, {order.data(), order.size()});
    out += '}';
  }
}

std::string Shape::ToString(bool with_layout) const {
  std::string out;
  AppendTo(out, with_layout ? Layouts::kAll : Layouts::kNone);
  return out;
}

void Shape::set_dynamic_dims(uint64_t bits) {
  if (bits != dynamic_dims()) MutableMore().dynamic_dims = bits;
}

bool Shape::SameMore(const Shape& a, const Shape& b) {
  return a.dynamic_dims() == b.dynamic_dims() && a.layout() == b.layout() && a.tuple() == b.tuple();
}

bool Compatible(const Shape& a, const Shape& b) {
  if (a.dtype() != b.dtype() || a.dims() != b.dims() || a.tuple().size() != b.tuple().size())
    return false;
  for (std::size_t i = 0; i < a.tuple().size(); ++i) {
    if (!Compatible(a.tuple()[i], b.tuple()[i])) return false;
  }
  return true;
}

bool SameDims(const Shape& a, const Shape& b) { return a.dims() == b.dims(); }

}  // namespace lazuli::ir
