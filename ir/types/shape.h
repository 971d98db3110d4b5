// Shape: element type, dimensions and layout of an array; or a tuple of shapes; or a token.
//
// A layout is minor-to-major: {1,0} is row major for rank 2, {1,3,2,0} stores NCHW data as NHWC. An
// absent layout means row major, and Shape never stores a row-major one, so equal shapes compare
// equal however they were made.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include "ir/types/dtype.h"

namespace lazuli::ir {

using Dims = absl::InlinedVector<int64_t, 6>;

class Shape {
 public:
  Shape() : dtype_(DType::kTuple) {}  // the empty tuple
  Shape(DType dtype, absl::Span<const int64_t> dims)
      : dtype_(dtype), dims_(dims.begin(), dims.end()) {}
  Shape(DType dtype, std::initializer_list<int64_t> dims) : dtype_(dtype), dims_(dims) {}
  explicit Shape(DType scalar) : dtype_(scalar) {}
  static Shape Tuple(std::vector<Shape> elements);
  static Shape Token() { return Shape(DType::kToken); }

  Shape(const Shape& other);
  Shape& operator=(const Shape& other);
  Shape(Shape&&) noexcept;
  Shape& operator=(Shape&&) noexcept;
  ~Shape();

  // Shape of this dtype and these dims, refusing negative dims, more than kMaxRank of them, and
  // arrays of more than kMaxBytes (counted as if no dimension were zero). Shapes that come from
  // outside (text, a user's arguments) are made by this.
  static constexpr std::size_t kMaxRank = 64;
  static constexpr int64_t kMaxBytes = int64_t{1} << 40;
  static absl::StatusOr<Shape> Make(DType dtype, absl::Span<const int64_t> dims);

  DType dtype() const { return dtype_; }
  bool IsTuple() const { return dtype_ == DType::kTuple; }
  bool IsArray() const { return ir::IsArray(dtype_); }
  bool IsToken() const { return dtype_ == DType::kToken; }
  bool IsScalar() const { return IsArray() && dims_.empty(); }

  int64_t rank() const { return static_cast<int64_t>(dims_.size()); }
  absl::Span<const int64_t> dims() const { return {dims_.data(), dims_.size()}; }
  int64_t dim(int64_t i) const { return dims_[static_cast<std::size_t>(i)]; }
  void set_dtype(DType dtype) { dtype_ = dtype; }
  void set_dim(int64_t i, int64_t size) { dims_[static_cast<std::size_t>(i)] = size; }

  // Bit i: the size of dimension i is only a bound ("<=5" in text). Stored and printed; rules treat
  // it as the size.
  uint64_t dynamic_dims() const;
  void set_dynamic_dims(uint64_t bits);

  int64_t num_elements() const;  // 1 for scalars; 0 if any dimension is
  int64_t byte_size() const;     // of the array in memory; of tuples, the sum over leaves

  bool has_layout() const;      // other than row major
  Dims minor_to_major() const;  // always rank() entries
  Shape WithLayout(absl::Span<const int64_t> minor_to_major) const;
  Shape WithDefaultLayout() const;  // recursively
  // Elements between neighbours along each dimension, for the layout.
  Dims strides() const;

  const std::vector<Shape>& tuple() const;

  // f32[2,3]{1,0}; without layouts: f32[2,3]. Scalars print without layout, tuples in parentheses.
  std::string ToString(bool with_layout = false) const;
  enum class Layouts : uint8_t { kNone, kOther, kAll };  // kOther: those that are not row major
  void AppendTo(std::string& out, Layouts layouts) const;

  // Dtype, dims, layout, bounds, elements. Recording compares shapes all the time.
  friend bool operator==(const Shape& a, const Shape& b) {
    if (&a == &b) return true;
    const std::size_t rank = a.dims_.size();
    if (a.dtype_ != b.dtype_ || rank != b.dims_.size()) return false;
    // Few and short: a call of memcmp costs more.
    const int64_t *x = a.dims_.data(), *y = b.dims_.data();
    for (std::size_t i = 0; i < rank; ++i) {
      if (x[i] != y[i]) return false;
    }
    return (!a.more_ && !b.more_) || SameMore(a, b);
  }

 private:
  // What most shapes lack: a recorded op holds two shapes, and copies more of them.
  struct More;
  More& MutableMore();
  static bool SameMore(const Shape& a, const Shape& b);
  absl::Span<const int64_t> layout() const;

  DType dtype_;
  Dims dims_;
  std::unique_ptr<More> more_;
};

struct Shape::More {
  uint64_t dynamic_dims = 0;
  Dims layout{};  // minor to major; empty = row major
  std::vector<Shape> tuple{};
};

inline Shape::Shape(const Shape& other)
    : dtype_(other.dtype_),
      dims_(other.dims_),
      more_(other.more_ ? std::make_unique<More>(*other.more_) : nullptr) {}
inline Shape::Shape(Shape&&) noexcept = default;
inline Shape& Shape::operator=(Shape&&) noexcept = default;
inline Shape::~Shape() = default;
inline uint64_t Shape::dynamic_dims() const { return more_ ? more_->dynamic_dims : 0; }
inline bool Shape::has_layout() const { return more_ && !more_->layout.empty(); }

// Equal but for layouts and dynamic bounds.
bool Compatible(const Shape& a, const Shape& b);
// Equal dims, whatever dtype and layout.
bool SameDims(const Shape& a, const Shape& b);

// Calls f(index) for every multi-index of `dims` in row-major order; `index` is reused between
// calls.
template <class F>
void ForEachIndex(absl::Span<const int64_t> dims, F&& f) {
  Dims index(dims.size(), 0);
  for (int64_t d : dims)
    if (d == 0) return;
  while (true) {
    f(absl::Span<const int64_t>(index.data(), index.size()));
    std::size_t d = dims.size();
    while (d > 0 && ++index[d - 1] == dims[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

}  // namespace lazuli::ir

LAZULI_DECLARE_IN_STAGES(Dims)
