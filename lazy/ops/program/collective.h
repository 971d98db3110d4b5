// What devices do together. Each records the same for its own tensor, and they meet when their programs run: a device is one of
// its platform, by its number, and a group is the same list on all of its members.
#pragma once

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

// How elements of several devices become one.
enum class Joining : uint8_t { kSum, kProduct, kMax, kMin };

struct AllReduceOp {
  Joining joining;
  Dims devices;
  LAZULI_OP("all_reduce", "xla::all_reduce", joining, devices);
  static constexpr OpDoc kDoc{"The elementwise reduction of all devices' tensors, on each device.",
                              {"x"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  // Of sums; who wants another gradient gathers.
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct AllGatherOp {
  int64_t dim;
  Dims devices;
  LAZULI_OP("all_gather", "xla::all_gather", dim, devices);
  static constexpr OpDoc kDoc{"The concatenation of all devices' tensors, on each device.", {"x"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct ReduceScatterOp {
  Joining joining;
  int64_t dim;
  Dims devices;
  LAZULI_OP("reduce_scatter", "xla::reduce_scatter", joining, dim, devices);
  static constexpr OpDoc kDoc{
      "The elementwise reduction of all devices' tensors, of which each device gets one part.",
      {"x"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct AllToAllOp {
  int64_t dim;
  Dims devices;
  LAZULI_OP("all_to_all", "xla::all_to_all", dim, devices);
  static constexpr OpDoc kDoc{"Part i of every device's tensor, on device i.", {"x"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct CollectivePermuteOp {
  Dims sources, targets;
  LAZULI_OP("collective_permute", "xla::collective_permute", sources, targets);
  static constexpr OpDoc kDoc{
      "The tensor of the device that sends to this one; zeros if there is none.", {"x"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

}  // namespace lazuli::lazy
