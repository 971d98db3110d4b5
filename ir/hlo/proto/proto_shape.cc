// Shapes and literals of HloModuleProto.

#include <cstring>

#include "ir/hlo/proto/proto_internal.h"
#include "ir/hlo/text/parser.h"
#include "ir/support/status.h"

namespace lazuli::hlo::internal {
namespace {

// How LiteralProto stores the elements: in fixed-width little-endian bytes, or as varints.
enum class Encoding : uint8_t { kBytes, kSigned, kUnsigned };

// PrimitiveType of an element type, and the field of LiteralProto for its elements.
struct PrimitiveTypeRow {
  DType dtype;
  int64_t primitive;
  Tag literal;
  Encoding encoding;
};
constexpr PrimitiveTypeRow kTypes[] = {
    {DType::kPred, 1, 2, Encoding::kUnsigned},
    {DType::kS2, 26, 26, Encoding::kBytes},
    {DType::kS4, 21, 21, Encoding::kBytes},
    {DType::kS8, 2, 15, Encoding::kBytes},
    {DType::kS16, 3, 17, Encoding::kBytes},
    {DType::kS32, 4, 4, Encoding::kSigned},
    {DType::kS64, 5, 5, Encoding::kSigned},
    {DType::kU2, 27, 27, Encoding::kBytes},
    {DType::kU4, 22, 22, Encoding::kBytes},
    {DType::kU8, 6, 3, Encoding::kBytes},
    {DType::kU16, 7, 16, Encoding::kBytes},
    {DType::kU32, 8, 6, Encoding::kUnsigned},
    {DType::kU64, 9, 7, Encoding::kUnsigned},
    {DType::kF16, 10, 11, Encoding::kBytes},
    {DType::kBF16, 16, 13, Encoding::kBytes},
    {DType::kF32, 11, 8, Encoding::kBytes},
    {DType::kF64, 12, 9, Encoding::kBytes},
    {DType::kC64, 15, 12, Encoding::kBytes},
    {DType::kC128, 18, 18, Encoding::kBytes},
    {DType::kF8E5M2, 19, 19, Encoding::kBytes},
    {DType::kF8E4M3, 28, 28, Encoding::kBytes},
    {DType::kF8E4M3FN, 20, 20, Encoding::kBytes},
    {DType::kF8E4M3B11FNUZ, 23, 23, Encoding::kBytes},
    {DType::kF8E4M3FNUZ, 25, 25, Encoding::kBytes},
    {DType::kF8E5M2FNUZ, 24, 24, Encoding::kBytes},
    {DType::kF8E3M4, 29, 29, Encoding::kBytes},
    {DType::kF8E8M0FNU, 33, 33, Encoding::kBytes},
    {DType::kF4E2M1FN, 32, 32, Encoding::kBytes},
    {DType::kToken, 17, 0, Encoding::kBytes},
    {DType::kOpaque, 14, 0, Encoding::kBytes},
    {DType::kTuple, 13, 0, Encoding::kBytes},
};
constexpr bool InOrder() {
  for (std::size_t i = 0; i < std::size(kTypes); ++i) {
    if (kTypes[i].dtype != static_cast<DType>(i)) return false;
  }
  return std::size(kTypes) == static_cast<std::size_t>(DType::kTuple) + 1;
}
static_assert(InOrder(), "a row for each DType, in its order");

const PrimitiveTypeRow& RowOf(DType dtype) { return kTypes[static_cast<std::size_t>(dtype)]; }

const PrimitiveTypeRow* RowOfPrimitive(int64_t primitive) {
  for (const PrimitiveTypeRow& row : kTypes) {
    if (row.primitive == primitive) return &row;
  }
  return nullptr;
}

// ShapeProto as it is read.
struct RawShape {
  int64_t primitive = 0;
  Dims dims, dynamic, minor_to_major;
  bool has_layout = false;
  std::vector<Shape> tuple;
};

bool IsOrder(const Dims& order, std::size_t rank) {
  if (order.size() != rank) return false;
  uint64_t seen = 0;
  for (int64_t d : order) {
    if (d < 0 || d >= static_cast<int64_t>(rank) || (seen >> d) & 1) return false;
    seen |= uint64_t{1} << d;
  }
  return true;
}

void FinishShape(const RawShape& raw, ProtoError& error, Shape* shape) {
  const PrimitiveTypeRow* row = RowOfPrimitive(raw.primitive);
  if (row == nullptr) return error.Note("there is no element type ", raw.primitive);
  if (row->dtype == DType::kTuple) return void(*shape = Shape::Tuple(raw.tuple));
  if (!raw.tuple.empty()) return error.Note(DTypeText(row->dtype), " has elements of a tuple");
  if (!IsArray(row->dtype)) return void(*shape = Shape(row->dtype));
  auto made = Shape::Make(row->dtype, raw.dims);
  if (!made.ok()) return error.Note(Message(made.status()));
  *shape = *std::move(made);
  uint64_t dynamic = 0;
  for (std::size_t i = 0; i < raw.dynamic.size() && i < raw.dims.size(); ++i)
    dynamic |= uint64_t{raw.dynamic[i] != 0} << i;
  shape->set_dynamic_dims(dynamic);
  if (!raw.has_layout || raw.minor_to_major.empty()) return;
  if (!IsOrder(raw.minor_to_major, raw.dims.size()))
    return error.Note("the layout {", Join(raw.minor_to_major, ","), "} does not order ", *shape);
  *shape = shape->WithLayout(raw.minor_to_major);
}

}  // namespace

void ReadShape(protozero::pbf_reader in, ProtoError& error, Shape* shape, int depth) {
  if (depth > kMaxTupleDepth) return error.Note("tuples are nested deeper than ", kMaxTupleDepth);
  RawShape raw;
  FieldReader::ReadAll(in, error, [&](FieldReader& v) {
    v.Int(2, raw.primitive);
    v.Ints(3, raw.dims);
    if (v.AtMessage(4))
      ReadShape(v.in().get_message(), error, &raw.tuple.emplace_back(), depth + 1);
    v.Message(5, [&](FieldReader& layout) {
      raw.has_layout = true;
      layout.Ints(1, raw.minor_to_major);
    });
    v.Ints(6, raw.dynamic);
  });
  if (error.ok()) FinishShape(raw, error, shape);
}

void WriteShape(protozero::pbf_writer& out, const Shape& shape) {
  FieldWriter v(out);
  v.Int(2, RowOf(shape.dtype()).primitive);
  if (shape.IsTuple())
    return v.Messages(4, shape.tuple(),
                      [](FieldWriter& w, const Shape& element) { WriteShape(w.out(), element); });
  if (!shape.IsArray()) return;
  v.Ints(3, Dims(shape.dims().begin(), shape.dims().end()));
  if (shape.rank() == 0) {
    out.add_message(5, std::string());  // readers of literals want a layout of scalars, too
  } else {
    v.Message(5, [&](FieldWriter& layout) { layout.Ints(1, shape.minor_to_major()); });
  }
  Dims dynamic;
  for (int64_t d = 0; d < shape.rank(); ++d)
    dynamic.push_back(static_cast<int64_t>((shape.dynamic_dims() >> d) & 1));
  v.Ints(6, dynamic);
}

namespace {

// Elements as they come, in the bytes that Literal has.
class Elements {
 public:
  explicit Elements(const PrimitiveTypeRow& row) : row_(row), width_(ByteWidth(row.dtype)) {}
  void Read(FieldReader& v) {
    if (row_.encoding != Encoding::kBytes) {
      v.ForEachInt(row_.literal, [this](int64_t value) {
        bytes_.append(reinterpret_cast<const char*>(&value), static_cast<std::size_t>(width_));
      });
    } else if (v.AtMessage(row_.literal)) {
      const auto view = v.in().get_view();
      bytes_.append(view.data(), view.size());
    }
  }
  const std::string& bytes() const { return bytes_; }

 private:
  const PrimitiveTypeRow& row_;
  int width_;
  std::string bytes_;
};

// Bits beyond the type's width, which foreign bytes may have, are what the host type wants there.
void FitBits(DType dtype, std::string& bytes) {
  const int bits = Row(dtype).bits;
  if (dtype == DType::kPred) {
    for (char& c : bytes) c = c != 0 ? 1 : 0;
  } else if (bits < 8) {
    const auto mask = static_cast<unsigned char>((1 << bits) - 1);
    for (char& c : bytes) {
      auto byte = static_cast<unsigned char>(c & mask);
      if (IsSigned(dtype) && (byte >> (bits - 1)) != 0)
        byte = static_cast<unsigned char>(byte | ~mask);
      c = static_cast<char>(byte);
    }
  }
}

template <class T>
void WriteVarints(protozero::pbf_writer& out, Tag tag, const Literal& literal) {
  const auto values = literal.data<T>();
  if constexpr (std::is_signed_v<T>) {
    out.add_packed_int64(tag, values.begin(), values.end());
  } else {
    out.add_packed_uint64(tag, values.begin(), values.end());
  }
}

}  // namespace

void ReadLiteral(protozero::pbf_reader in, ProtoError& error, Literal* literal, int depth) {
  if (depth > kMaxTupleDepth) return error.Note("tuples are nested deeper than ", kMaxTupleDepth);
  Shape shape;
  bool has_shape = false;
  FieldReader::ReadAll(in, error, [&](FieldReader& v) {
    if (!v.AtMessage(1)) return;
    ReadShape(v.in().get_message(), error, &shape);
    has_shape = true;
  });
  if (!has_shape) return error.Note("a literal without a shape");
  if (!error.ok()) return;
  Elements elements(RowOf(shape.dtype()));
  std::vector<Literal> tuple;
  FieldReader::ReadAll(in, error, [&](FieldReader& v) {
    if (shape.IsArray()) elements.Read(v);
    if (shape.IsTuple() && v.AtMessage(10))
      ReadLiteral(v.in().get_message(), error, &tuple.emplace_back(), depth + 1);
  });
  if (!error.ok()) return;
  if (shape.IsTuple()) return void(*literal = Literal::Tuple(std::move(tuple)));
  if (!shape.IsArray()) return error.Note(shape, " has no constants");
  std::string bytes = elements.bytes();
  if (static_cast<int64_t>(bytes.size()) != shape.byte_size()) {
    return error.Note("the literal has ", bytes.size(), " bytes, ", shape, " needs ",
                      shape.byte_size());
  }
  FitBits(shape.dtype(), bytes);
  *literal = Literal::Uninitialized(shape);
  if (!bytes.empty()) std::memcpy(literal->mutable_raw(), bytes.data(), bytes.size());
}

void WriteLiteral(protozero::pbf_writer& out, const Literal& literal) {
  FieldWriter v(out);
  const Shape& shape = literal.shape();
  v.Message(1, [&](FieldWriter& w) { WriteShape(w.out(), shape); });
  if (shape.IsTuple())
    return v.Messages(10, literal.tuple(),
                      [](FieldWriter& w, const Literal& e) { WriteLiteral(w.out(), e); });
  const PrimitiveTypeRow& row = RowOf(shape.dtype());
  if (row.encoding != Encoding::kBytes) {
    VisitDType(shape.dtype(), [&]<DType kType>() {
      if constexpr (std::is_integral_v<HostType<kType>>)
        WriteVarints<HostType<kType>>(out, row.literal, literal);
    });
    return;
  }
  std::string bytes(reinterpret_cast<const char*>(literal.raw()),
                    static_cast<std::size_t>(literal.byte_size()));
  const int bits = Row(shape.dtype()).bits;
  if (bits < 8) {
    for (char& c : bytes) c = static_cast<char>(c & ((1 << bits) - 1));
  }
  out.add_bytes(row.literal, bytes);
}

}  // namespace lazuli::hlo::internal
