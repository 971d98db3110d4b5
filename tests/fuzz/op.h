// Op: what one step of a random program does. The tables are ops.cc and product_ops.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include <lazuli/lazuli.h>

namespace lazuli::fuzz {

// What a row's function sees.
struct Call {
  Tensor x, y, z;
  std::int64_t dim;
  double number;
  std::int64_t side;                      // every tensor is side x side, so that all fit each other
  const std::function<void()>& may_sync;  // called between the parts of what is several ops

  // In memory of its own: what is expanded cannot be written to.
  Tensor Wide(const Tensor& reduced) const { return broadcast_to(reduced, {side, side}).clone(); }
};

struct Op {
  std::string_view text;  // of the expression; %x, %y, %z, %d, %n, %s stand for its parts
  std::size_t arity;
  Tensor (*run)(const Call&);
  bool in_place = false;
  bool same_bits = true;  // on every device
};

// Elementwise ops, reductions, movement, writes.
const std::vector<Op>& PlainOps();
// What sums products: matrix products, convolutions, their gradients, and what is made of them.
const std::vector<Op>& ProductOps();

}  // namespace lazuli::fuzz
