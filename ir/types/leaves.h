// The leaves of a shape or value: its arrays, in the order of a walk through nested tuples.
//
// Devices hold arrays only, so a tuple is its leaves wherever values cross from a module to what
// runs it. A token is no leaf; it has nothing to hold.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "absl/types/span.h"

#include "ir/types/literal.h"
#include "ir/types/shape.h"

namespace lazuli::ir {

void ForEachLeaf(const Shape& shape, const std::function<void(const Shape&)>& f);
void ForEachLeaf(const Literal& value, const std::function<void(const Literal&)>& f);
std::vector<Shape> LeavesOf(const Shape& shape);
int64_t LeafCount(const Shape& shape);
// Leaves of the elements of a tuple that come before this one.
int64_t LeavesBefore(const Shape& tuple, int64_t element);

// The part of a shape at this path of tuple indices; null if it has none.
const Shape* PartAt(const Shape& shape, absl::Span<const int64_t> path);
// Which leaf the array at this path is; nullopt if the path does not lead to an array.
std::optional<int64_t> LeafAt(const Shape& shape, absl::Span<const int64_t> path);

// The value of this shape that takes its leaves from `leaves`, beginning at *next.
Literal FromLeaves(const Shape& shape, absl::Span<const Literal> leaves, std::size_t* next);

}  // namespace lazuli::ir
