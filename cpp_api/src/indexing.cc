#include "lazuli/indexing.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_join.h"

#include "cpp_api/src/operands.h"
#include "ir/support/wrong_type.h"
#include "lazuli/internal/fail.h"
#include "lazuli/ops.h"
#include "lazy/ops/core/dims.h"
#include "lazy/ops/elementwise/elementwise.h"
#include "lazy/ops/program/to_device.h"
#include "lazy/ops/shape/shape_ops.h"
#include "lazy/ops/shape/strided.h"
#include "lazy/tensor/context.h"
#include "lazy/tensor/function_scope.h"

namespace lazuli {
namespace {

using lazy::At;

constexpr char kOp[] = "index";
constexpr char kPut[] = "index_put_";

// Positions along a dim of the tensor, before they go to its device.
struct GivenPositions {
  lazy::Tensor positions;
  std::size_t dim;
  std::int64_t size;
};

// What indices take of a tensor: a slice, of it without the dims of integers and with new ones, and
// of that what positions pick along some dims.
struct Selection {
  ir::Dims starts, limits, strides;  // of each dim of the tensor
  Dims kept;                         // of the slice
  Dims dims;                         // without those an integer picks, with the new ones
  lazy::Geometry memory;             // of the dims, in the memory of the tensor
  lazy::Tensors positions;
  std::vector<GivenPositions> as_given;  // those that are not masks
  Dims picked;                           // along these of `dims`
  bool whole = true;                     // whether the slice is all of the tensor
  std::int64_t parts = 0;                // dims of which a slice is not all, or that are new
  const lazy::Geometry& given;           // the tensor's

  explicit Selection(const lazy::Geometry& tensors) : memory{{}, tensors.offset}, given(tensors) {}
  std::int64_t stride() const { return given.strides[starts.size()]; }  // of the next dim
};

// An index has taken a dim: `kept` elements of it, `step` apart from `start`.
void Take(Selection& s, std::int64_t start, std::int64_t limit, std::int64_t step,
          std::int64_t kept) {
  s.memory.offset += start * s.stride();
  s.starts.push_back(start);
  s.limits.push_back(limit);
  s.strides.push_back(step);
  s.kept.push_back(kept);
}

void AddWhole(Selection& s, std::int64_t size) {
  s.memory.strides.push_back(s.stride());
  s.dims.push_back(size);
  Take(s, 0, size, 1, size);
}

void CheckInteger(std::int64_t i, std::size_t dim, std::int64_t size) {
  if (i < -size || i >= size) {
    lazy::ThrowRecordError(
        kOp, ir::OutOfRange("index ", i, " is out of range for dim ", dim, " of size ", size));
  }
}

void AddInteger(Selection& s, std::int64_t i, std::int64_t size) {
  CheckInteger(i, s.starts.size(), size);
  const std::int64_t at = i < 0 ? i + size : i;
  Take(s, at, at + 1, 1, 1);
  s.whole = s.whole && size == 1;
}

void AddSlice(Selection& s, const Slice& slice, std::int64_t size) {
  if (slice.step < 1) {
    lazy::ThrowRecordError(kOp, ir::InvalidArgument("the step of a slice must be positive, is ",
                                                    slice.step, "; flip() reverses a dim"));
  }
  const auto bound = [size](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + size : at, 0, size);
  };
  const std::int64_t start = bound(slice.start.value_or(0)),
                     stop = std::max(start, bound(slice.stop.value_or(size)));
  const std::int64_t kept =
      (stop - start) / slice.step + ((stop - start) % slice.step != 0 ? 1 : 0);
  s.memory.strides.push_back(s.stride() * slice.step);
  s.dims.push_back(kept);
  Take(s, start, stop, slice.step, kept);
  s.parts += kept != size ? 1 : 0;
  s.whole = s.whole && kept == size;
}

// The elements of a tensor that the host has without a run; empty where it has not.
template <class T>
std::span<const T> OnHost(const lazy::Tensor& x) {
  if (x.storage().view() != nullptr) return {};
  const lazy::DataPtr data = lazy::Context::Peek(x.storage()).data;
  if (!data || !data->ready() || data->has_failed() || data->buffer() == nullptr) return {};
  const std::byte* const elements = data->buffer()->host_data();
  if (elements == nullptr) return {};
  return {reinterpret_cast<const T*>(elements), static_cast<std::size_t>(x.shape().num_elements())};
}

// What a run would find out of range and the host knows already.
template <class T>
void CheckKnown(const GivenPositions& given) {
  for (const T i : OnHost<T>(given.positions)) CheckInteger(i, given.dim, given.size);
}
void CheckKnown(const Selection& s) {
  // Positions that go together with none select nothing, wherever they are.
  const auto is_empty = [](const lazy::Tensor& p) { return p.shape().num_elements() == 0; };
  if (std::any_of(s.positions.begin(), s.positions.end(), is_empty)) return;
  for (const GivenPositions& given : s.as_given) {
    if (given.positions.dtype() == ir::DType::kS64) CheckKnown<std::int64_t>(given);
    if (given.positions.dtype() == ir::DType::kS32) CheckKnown<std::int32_t>(given);
  }
}

void AddPositions(Selection& s, const lazy::Tensor& x, const Tensor& positions, std::int64_t size) {
  lazy::Tensor given = In(positions, kOp);
  s.as_given.push_back({given, s.starts.size(), size});
  if (!(given.device() == x.device())) given = lazy::ToDevice(given, x.device());
  if (given.dtype() != ir::DType::kS64 && given.dtype() != ir::DType::kS32) {
    lazy::ThrowRecordError(
        kOp, ir::OutOfRange("positions must be integers of 32 or 64 bits, are ", given.shape()));
  }
  s.picked.push_back(static_cast<std::int64_t>(s.dims.size()));
  s.positions.push_back(given);
  AddWhole(s, size);
}

// Bytes are masks, as in PyTorch, and no positions.
bool IsMask(const Index& index) {
  const auto* tensor = std::get_if<Tensor>(&index);
  return tensor != nullptr && tensor->defined() &&
         (tensor->dtype() == kBool || tensor->dtype() == kUInt8);
}
lazy::Tensor MaskOf(const Index& index) {
  return lazy::To(TensorAccess::Unwrap(std::get<Tensor>(index)), ir::DType::kPred);
}

void AddNewAxis(Selection& s, const lazy::Tensor& x) {
  const auto d = static_cast<std::int64_t>(s.starts.size());
  s.dims.push_back(1);
  ++s.parts;
  s.memory.strides.push_back(d == x.rank() ? 1 : x.dim(d) * s.stride());
}

// Positions of a new dim of size 1.
void AddToNewAxis(Selection& s, const lazy::Tensor& x, lazy::Tensor positions) {
  s.picked.push_back(static_cast<std::int64_t>(s.dims.size()));
  s.positions.push_back(std::move(positions));
  AddNewAxis(s, x);
}
void AddBool(Selection& s, const lazy::Tensor& x, bool holds) {
  AddToNewAxis(s, x,
               lazy::FullConstant(ir::Shape(ir::DType::kS64, {holds ? 1 : 0}), 0, x.device()));
}

// A mask stands for the positions of its true elements along each of its dims, which are read.
void AddMask(Selection& s, const lazy::Tensor& x, const lazy::Tensor& mask) {
  const auto dims = mask.shape().dims(), there = x.shape().dims().subspan(s.starts.size());
  if (dims.empty()) {
    AddToNewAxis(s, x, lazy::Where(lazy::Reshape(mask, {1}))[0]);
    return;
  }
  if (dims.size() > there.size() || dims != there.first(dims.size())) {
    lazy::ThrowRecordError(kOp, ir::OutOfRange("the mask ", mask.shape(), " has not the dims of ",
                                               x.shape(), " from dim ", s.starts.size()));
  }
  const lazy::Tensors positions = lazy::Where(mask);
  for (std::size_t d = 0; d < dims.size(); ++d) {
    s.picked.push_back(static_cast<std::int64_t>(s.dims.size()));
    s.positions.push_back(positions[d]);
    AddWhole(s, there[d]);
  }
}

// How many dims of the tensor an index takes.
std::int64_t DimsTaken(const Index& index) {
  if (std::holds_alternative<NewAxis>(index) || std::holds_alternative<Ellipsis>(index) ||
      std::holds_alternative<bool>(index))
    return 0;
  return IsMask(index) ? TensorAccess::Unwrap(std::get<Tensor>(index)).rank() : 1;
}

Selection Select(const lazy::Tensor& x, const lazy::Geometry& memory,
                 const std::vector<Index>& indices) {
  std::int64_t taken = 0;
  for (const Index& index : indices) taken += DimsTaken(index);
  if (taken > x.rank()) {
    lazy::ThrowRecordError(kOp, ir::OutOfRange(taken, " indices for a tensor of rank ", x.rank()));
  }
  Selection s(memory);
  const auto size = [&] { return x.dim(static_cast<std::int64_t>(s.starts.size())); };
  const auto is_end = [&] { return static_cast<std::int64_t>(s.starts.size()) == x.rank(); };
  bool dots = false;
  for (const Index& index : indices) {
    if (std::holds_alternative<NewAxis>(index)) {
      AddNewAxis(s, x);
    } else if (const auto* holds = std::get_if<bool>(&index)) {
      AddBool(s, x, *holds);
    } else if (std::holds_alternative<Ellipsis>(index)) {
      if (dots) lazy::ThrowRecordError(kOp, ir::OutOfRange("takes one ellipsis"));
      dots = true;
      for (std::int64_t rest = x.rank() - taken; rest > 0; --rest) AddWhole(s, size());
    } else if (const auto* slice = std::get_if<Slice>(&index)) {
      AddSlice(s, *slice, size());
    } else if (const auto* integer = std::get_if<std::int64_t>(&index)) {
      AddInteger(s, *integer, size());
    } else if (IsMask(index)) {
      AddMask(s, x, MaskOf(index));
    } else {
      AddPositions(s, x, std::get<Tensor>(index), size());
    }
  }
  while (!is_end()) AddWhole(s, size());
  CheckKnown(s);
  return s;
}

// The slice, with dims s.dims, in memory of its own or that of x.
lazy::Tensor Sliced(const lazy::Tensor& x, const Selection& s) {
  return lazy::Reshape(s.whole ? x : lazy::Slice(x, s.starts, s.limits, s.strides), s.dims);
}

// The slice as a view.
lazy::Tensor SliceView(const lazy::Tensor& x, Selection s) {
  if (s.whole || s.dims != s.kept) {
    // One integer is a function of its own.
    const bool drops_one = s.parts == 0 && s.dims.size() + 1 == s.kept.size();
    if (drops_one && !s.whole) {
      std::int64_t d = 0;
      while (s.kept[At(d)] == x.dim(d)) ++d;
      return lazy::RecordView(lazy::SelectOp{d, s.starts[At(d)]}, x, x, s.dims,
                              std::move(s.memory));
    }
    const lazy::Tensor slice = s.whole ? x : lazy::Slice(x, s.starts, s.limits, s.strides);
    return lazy::RecordView(lazy::ReshapeOp{ir::Dims(s.dims.begin(), s.dims.end())}, slice, x,
                            s.dims, std::move(s.memory));
  }
  return lazy::RecordView(lazy::SliceOp{s.starts, s.limits, s.strides}, x, x, s.dims,
                          std::move(s.memory));
}

Dims Joined(const Dims& before, absl::Span<const std::int64_t> between, const Dims& after) {
  Dims dims = before;
  dims.insert(dims.end(), between.begin(), between.end());
  dims.insert(dims.end(), after.begin(), after.end());
  return dims;
}

// How positions see a slice: the dims they pick along side by side, as one.
struct Flattened {
  std::int64_t dim = 0;  // that one
  Dims order;            // of the slice's dims, with those side by side
  Dims ordered;          // the dims in that order
  Dims flat;             // with one in place of those that are picked along
  Dims before, after;    // of `ordered`, the others
  lazy::Tensor index;    // positions along `dim`, s64
};

// The positions along dims of `sizes` as positions along them all. What is out of range stays so,
// for the run to report.
lazy::Tensor FlatIndex(const lazy::Tensors& positions, const Dims& sizes) {
  lazy::Tensor index, bad;
  Dims dims;
  for (const lazy::Tensor& p : positions) {
    const auto both = lazy::BroadcastDims(ir::Shape(p.dtype(), dims), p.shape());
    if (!both.ok())
      lazy::ThrowRecordError(kOp, ir::OutOfRange("positions do not go together: ", p.shape(),
                                                 " beside dims (", absl::StrJoin(dims, ", "), ")"));
    dims.assign(both->begin(), both->end());
  }
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const std::int64_t n = sizes[i];
    const lazy::Tensor p = lazy::To(positions[i], ir::DType::kS64);
    const auto number = [&](std::int64_t v) {
      return lazy::Constant(static_cast<double>(v), p.dtype());
    };
    const lazy::Tensor wrapped = lazy::Where(lazy::Lt(p, number(0)), lazy::Add(p, number(n)), p);
    const lazy::Tensor out = lazy::LogicalOr(lazy::Lt(p, number(-n)), lazy::Ge(p, number(n)));
    index = i == 0 ? wrapped : lazy::Add(lazy::Mul(index, number(n)), wrapped);
    bad = i == 0 ? out : lazy::LogicalOr(bad, out);
  }
  if (positions.size() == 1)
    return lazy::Where(bad, lazy::To(positions[0], ir::DType::kS64), index);
  return lazy::Where(bad, lazy::Constant(-1, index.dtype()), index);
}

Flattened Flatten(const Selection& s) {
  Flattened f;
  const auto rank = static_cast<std::int64_t>(s.dims.size());
  const bool beside =
      s.picked.back() - s.picked.front() + 1 == static_cast<std::int64_t>(s.picked.size());
  f.dim = beside ? s.picked.front() : 0;
  if (!beside) f.order = s.picked;
  for (std::int64_t d = 0; d < rank; ++d) {
    if (beside || std::find(s.picked.begin(), s.picked.end(), d) == s.picked.end())
      f.order.push_back(d);
  }
  for (const std::int64_t d : f.order) f.ordered.push_back(s.dims[At(d)]);
  const auto first = f.ordered.begin() + f.dim,
             last = first + static_cast<std::ptrdiff_t>(s.picked.size());
  f.before.assign(f.ordered.begin(), first);
  f.after.assign(last, f.ordered.end());
  std::int64_t total = 1;
  for (auto n = first; n != last; ++n) total *= *n;
  f.flat = Joined(f.before, {total}, f.after);
  f.index = FlatIndex(s.positions, Dims(first, last));
  return f;
}

lazy::Tensor Pick(const lazy::Tensor& slice, const Selection& s) {
  const Flattened f = Flatten(s);
  const lazy::Tensor flat = lazy::Reshape(lazy::Permute(slice, f.order), f.flat);
  return lazy::Reshape(lazy::IndexSelect(flat, f.dim, lazy::Flatten(f.index, 0, -1)),
                       Joined(f.before, f.index.shape().dims(), f.after));
}

// --- assignment

// Throws where a tensor is put of another dtype, which one number is converted from.
void CheckPutType(const lazy::Tensor& x, const std::vector<Index>& indices, const Operand& value,
                  bool accumulate) {
  if (value.scalar() != nullptr) return;
  std::int64_t tensors = 0, masks = 0;
  for (const Index& index : indices) {
    tensors += std::holds_alternative<Tensor>(index) ? 1 : 0;
    masks += IsMask(index) && DimsTaken(index) > 0 ? 1 : 0;
  }
  const lazy::Tensor v = In(*value.tensor(), kPut);
  if (tensors == 0 || v.dtype() == x.dtype()) return;
  const bool fills = tensors == 1 && masks == 1 && !accumulate && v.shape().num_elements() == 1;
  if (fills && (ir::IsComplex(x.dtype()) || !ir::IsComplex(v.dtype()))) return;
  lazy::ThrowRecordError(
      kPut, ir::InvalidArgument("the value ", v.shape(), " must have the dtype of the tensor, ",
                                x.shape(), "; convert it with to()"));
}

// The tensor that is put, in x's dtype. It may have more leading dims of size 1 than its place.
lazy::Tensor ValueOfRank(std::size_t rank, const lazy::Tensor& x, const Operand& value) {
  const lazy::Tensor v = lazy::To(In(*value.tensor(), kPut), x.dtype());
  auto dims = v.shape().dims();
  while (dims.size() > rank && dims.front() == 1) dims.remove_prefix(1);
  return lazy::Reshape(v, dims);
}

// The value in x's dtype, of dims that broadcast to these.
lazy::Tensor ValueFor(const lazy::Tensor& x, const Operand& value, const Dims& dims) {
  if (value.scalar() != nullptr) {
    TensorAccess::ToNumber(*value.scalar()).CheckElement(x.dtype());
    return lazy::Full(dims, TensorAccess::OperandSlot(value, x.dtype()), x.device());
  }
  return lazy::BroadcastTo(ValueOfRank(dims.size(), x, value), dims);
}

// The slice with the value at the positions.
lazy::Tensor PutAtPositions(const lazy::Tensor& slice, const Selection& s, const Operand& value,
                            bool accumulate) {
  const Flattened f = Flatten(s);
  const Dims dims = Joined(f.before, f.index.shape().dims(), f.after);
  const std::int64_t count = f.index.shape().num_elements();
  const lazy::Tensor v =
      lazy::Reshape(ValueFor(slice, value, dims), Joined(f.before, {count}, f.after));
  const lazy::Tensor flat = lazy::Reshape(lazy::Permute(slice, f.order), f.flat);
  const lazy::Tensor index = lazy::Reshape(f.index, {count});
  const lazy::Tensor put =
      accumulate ? lazy::IndexAdd(flat, f.dim, index, v) : lazy::IndexCopy(flat, f.dim, index, v);
  Dims back(f.order.size());
  for (std::size_t d = 0; d < f.order.size(); ++d)
    back[At(f.order[d])] = static_cast<std::int64_t>(d);
  return lazy::Permute(lazy::Reshape(put, f.ordered), back);
}

// The values of a mask's true elements, in x's dims: one for all, or those of v in order.
lazy::Tensor MaskValues(const lazy::Tensor& x, const lazy::Tensor& mask, const Operand& value) {
  const Dims rest(x.shape().dims().begin() + mask.rank(), x.shape().dims().end());
  if (value.scalar() != nullptr) return ValueFor(x, value, rest);
  const auto rows_rank = static_cast<std::int64_t>(rest.size()) + 1;
  const lazy::Tensor v = ValueOfRank(rest.size() + 1, x, value);
  if (v.rank() < rows_rank) return lazy::BroadcastTo(v, rest);
  const std::int64_t n = v.dim(0);
  const lazy::Tensor rows = lazy::BroadcastTo(v, Joined({n}, rest, {}));  // refuses a higher rank
  if (n == 1) return lazy::Reshape(rows, rest);
  if (const std::span<const bool> known = OnHost<bool>(mask); !known.empty()) {
    const auto count = std::count(known.begin(), known.end(), true);
    if (count != n) {
      lazy::ThrowRecordError(
          kPut, ir::InvalidArgument("the mask picks ", count, " elements, the value has ", n));
    }
  }
  const lazy::Tensor positions = lazy::MaskPositions(mask, n);
  // Of no rows one is read, where nothing is true.
  const lazy::Tensor from =
      n > 0 ? rows : lazy::FullConstant(ir::Shape(x.dtype(), Joined({1}, rest, {})), 0, x.device());
  return lazy::Reshape(
      lazy::IndexSelect(from, 0, lazy::Reshape(positions, {mask.shape().num_elements()})),
      x.shape().dims());
}

lazy::Tensor PutAtMask(const lazy::Tensor& x, const lazy::Tensor& mask, const Operand& value,
                       bool accumulate) {
  const auto dims = x.shape().dims();
  if (mask.rank() > x.rank() ||
      mask.shape().dims() != dims.first(static_cast<std::size_t>(mask.rank()))) {
    lazy::ThrowRecordError(kPut, ir::OutOfRange("the mask ", mask.shape(),
                                                " has not the leading dims of ", x.shape()));
  }
  Dims stretched(mask.shape().dims().begin(), mask.shape().dims().end());
  stretched.resize(dims.size(), 1);
  const lazy::Tensor values = MaskValues(x, mask, value);
  return lazy::Where(lazy::Reshape(mask, stretched), accumulate ? x + values : values, x);
}

// part := the value, which is written through a view.
void PutInto(const lazy::Tensor& part, const Selection& s, const Operand& value, bool accumulate) {
  lazy::CheckAssignable(kPut, part);
  if (!s.positions.empty()) {
    lazy::Update(kPut, part, [&] { return PutAtPositions(part, s, value, accumulate); });
  } else if (accumulate) {
    lazy::Update(kPut, part, [&] { return part + ValueFor(part, value, s.dims); });
  } else {
    lazy::Assign(kPut, part, ValueFor(part, value, s.dims));
  }
}

}  // namespace

Index::Index(const char* ellipsis, SourceLocation loc) : variant(Ellipsis()) {
  if (std::string_view(ellipsis) == "...") return;
  internal::Fail(
      ErrorCode::kInvalidArgument,
      std::string("index: \"") + ellipsis + "\" is not an index; \"...\" is the only word", loc);
}

Tensor index(const Tensor& x, const std::vector<Index>& indices, SourceLocation loc) {
  return CallTensor(loc, [&] {
    const lazy::FunctionScope function(kOp);
    const Borrowed borrowed = In(x, kOp);
    const lazy::Tensor& in = borrowed;
    if (indices.size() == 1 && in.rank() > 0) {  // most
      if (const auto* integer = std::get_if<std::int64_t>(indices.data())) {
        CheckInteger(*integer, 0, in.dim(0));
        return lazy::SelectView(in, 0, *integer);
      }
    }
    const lazy::Geometry memory = lazy::GeometryOf(in);
    Selection s = Select(in, memory, indices);
    return s.positions.empty() ? SliceView(in, std::move(s)) : Pick(Sliced(in, s), s);
  });
}

Tensor& index_put_(Tensor& x, const std::vector<Index>& indices, const Operand& value,
                   bool accumulate) {
  Call(value.loc(), [&] {
    const lazy::FunctionScope function(kPut);
    const lazy::Tensor in = In(x, kPut);
    CheckPutType(in, indices, value, accumulate);
    if (indices.size() == 1 && IsMask(indices[0])) {  // without a read
      const lazy::Tensor mask = MaskOf(indices[0]);
      lazy::CheckAssignable(kPut, in);
      lazy::Update(kPut, in, [&] { return PutAtMask(in, mask, value, accumulate); });
      return;
    }
    const lazy::Geometry memory = lazy::GeometryOf(in);
    const Selection s = Select(in, memory, indices);
    const bool is_x = s.whole && in.shape().dims() == absl::MakeConstSpan(s.dims);
    PutInto(is_x ? in : lazy::MakeUnreadView(in, ir::Shape(in.dtype(), s.dims), s.memory), s, value,
            accumulate);
  });
  return x;
}

Tensor Tensor::index(const std::vector<Index>& indices, SourceLocation loc) const {
  return lazuli::index(*this, indices, loc);
}
Tensor& Tensor::index_put_(const std::vector<Index>& indices, const Operand& value,
                           bool accumulate) {
  return lazuli::index_put_(*this, indices, value, accumulate);
}

Tensor Tensor::slice(std::int64_t dim, std::optional<std::int64_t> start,
                     std::optional<std::int64_t> end, std::int64_t step, SourceLocation loc) const {
  const std::int64_t rank = this->dim();
  return Call(loc, [&] {
    const auto d = static_cast<std::size_t>(lazy::NormalizeDim("slice", dim, rank));
    std::vector<Index> indices(d, Slice());
    indices.push_back(Slice{start, end, step});
    return lazuli::index(*this, indices, loc);
  });
}

Tensor Tensor::operator[](const Operand& i) const {
  if (i.tensor() != nullptr) return lazuli::index(*this, {*i.tensor()}, i.loc());
  return Call(i.loc(), [&] {
    const auto position = TensorAccess::ToNumber(*i.scalar()).as_integer();
    if (!position) {
      lazy::ThrowRecordError(kOp,
                             ir::WrongType("an index is an integer, is ", i.scalar()->value()));
    }
    return lazuli::index(*this, {*position}, i.loc());
  });
}

Tensor& Tensor::operator=(const Operand& value) && {
  if (value.tensor() != nullptr) return copy_(*value.tensor(), value.loc());
  return fill_(*value.scalar(), value.loc());
}

}  // namespace lazuli
