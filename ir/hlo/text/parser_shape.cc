#include "ir/hlo/text/parser.h"
#include "ir/hlo/text/parser_internal.h"

namespace lazuli::hlo {
namespace internal {
namespace {

// Behind a shape, '{' opens a layout only before a digit or ':'; else it may open a computation.
bool LayoutFollows(Cursor& in) {
  const char* start = in.position();
  if (!in.Try('{')) return false;
  const char next = in.Peek();
  in.set_position(start);
  return (next >= '0' && next <= '9') || next == ':';
}

// {1,0}, {1,0:T(8,128)S(1)}: what follows the colon concerns other devices and is dropped.
bool ParseLayout(Cursor& in, Shape* shape) {
  const char* start = in.position();
  in.Expect('{');
  Dims order;
  while (in.Peek() != ':' && in.Peek() != '}') {
    int64_t d;
    if (!in.Integer(&d)) return false;
    order.push_back(d);
    if (!in.Try(',')) break;
  }
  if (in.Try(':')) {
    while (in.Peek() != '}') {
      std::string_view ignored;
      if (in.AtEnd()) return in.FailAt(start, "the layout is not closed");
      if (in.Peek() != '(') {
        in.set_position(in.position() + 1);
      } else if (!in.Balanced(&ignored)) {
        return false;
      }
    }
    if (order.empty() && shape->IsArray()) order = shape->minor_to_major();  // f32[]{:T(128)}
  }
  if (!in.Expect('}')) return false;
  if (static_cast<int64_t>(order.size()) != shape->rank()) {
    return in.FailAt(start, "layout of ", order.size(), " dimensions for ", *shape);
  }
  uint64_t seen = 0;
  for (int64_t d : order) {
    if (d < 0 || d >= shape->rank() || (seen >> d) & 1) {
      return in.FailAt(start, "the layout {", Join(order, ","),
                       "} does not order the dimensions of ", *shape);
    }
    seen |= uint64_t{1} << d;
  }
  if (!order.empty()) *shape = shape->WithLayout(order);
  return true;
}

bool ParseTuple(Cursor& in, Shape* shape, int depth) {
  if (depth >= kMaxTupleDepth) return in.Fail("tuples are nested deeper than ", kMaxTupleDepth);
  in.Expect('(');
  std::vector<Shape> elements;
  while (!in.Try(')')) {
    if (!elements.empty() && !in.Expect(',')) return false;
    Shape element;
    if (!ParseShape(in, &element, depth + 1)) return false;
    elements.push_back(std::move(element));
  }
  *shape = Shape::Tuple(std::move(elements));
  return true;
}

bool ParseDimensions(Cursor& in, Dims* dims, uint64_t* dynamic) {
  if (!in.Expect('[')) return false;
  while (!in.Try(']')) {
    if (!dims->empty() && !in.Expect(',')) return false;
    if (in.Peek() == '?') return in.Fail("dimensions without a bound are not supported");
    if (in.Try("<=") && dims->size() < 64) *dynamic |= uint64_t{1} << dims->size();
    int64_t size;
    if (!in.Integer(&size)) return false;
    dims->push_back(size);
  }
  return true;
}

}  // namespace

bool ParseShape(Cursor& in, Shape* shape, int depth) {
  if (in.Peek() == '(') return ParseTuple(in, shape, depth);
  const char* start = in.position();
  const std::string_view word = in.TryIdentifier();
  if (word.empty()) return in.FailAt(start, "expected a shape");
  if (word == "b" && in.Peek() == '(') return in.FailAt(start, "buffer types are not supported");
  const std::optional<DType> dtype = ParseDType(word);
  if (!dtype) return in.FailAt(start, "unknown element type '", word, "'");
  Dims dims;
  uint64_t dynamic = 0;
  if (!ParseDimensions(in, &dims, &dynamic)) return false;
  if (!IsArray(*dtype)) {
    if (!dims.empty()) return in.FailAt(start, word, " has no dimensions");
    *shape = Shape(*dtype);
    return true;
  }
  absl::StatusOr<Shape> made = Shape::Make(*dtype, dims);
  if (!made.ok()) return in.FailAt(start, Message(made.status()));
  *shape = *std::move(made);
  shape->set_dynamic_dims(dynamic);
  return !LayoutFollows(in) || ParseLayout(in, shape);
}

bool ParseDims(Cursor& in, Dims* dims) {
  dims->clear();
  if (!in.Expect('{')) return false;
  while (!in.Try('}')) {
    if (!dims->empty() && !in.Expect(',')) return false;
    int64_t d;
    if (!in.Integer(&d)) return false;
    dims->push_back(d);
  }
  return true;
}

}  // namespace internal

absl::StatusOr<Shape> ParseShape(std::string_view text) {
  Cursor in(text);
  Shape shape;
  if (internal::ParseShape(in, &shape) && !in.AtEnd()) in.Fail("expected nothing after the shape");
  if (in.failed()) return in.Error();
  return shape;
}

}  // namespace lazuli::hlo
