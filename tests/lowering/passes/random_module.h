// Random modules for tests of passes.
#pragma once

#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ir/support/status.h"
#include "lowering/builder/builder.h"

namespace lazuli::lowering {

// Writes programs from pieces that the rules look for: special constants, chains of shape changes,
// both sides the same.
class RandomModule {
 public:
  struct Options {
    int operations = 40;
    Dims dims = {2, 3};  // of the parameters
    std::vector<DType> dtypes = {DType::kF32, DType::kF32, DType::kS32, DType::kPred};
  };
  RandomModule(uint64_t seed, Options options) : rng_(seed), options_(std::move(options)) {}
  explicit RandomModule(uint64_t seed) : RandomModule(seed, Options()) {}

  std::unique_ptr<hlo::Module> Make() {
    auto module = std::make_unique<hlo::Module>("fuzz");
    Builder b(module.get(), "main");
    for (int64_t i = 0; i < 4; ++i) {
      const DType dtype = options_.dtypes[Below(options_.dtypes.size())];
      values_.push_back(b.Parameter(i, Shape(dtype, options_.dims)));
    }
    for (int i = 0; i < options_.operations; ++i) values_.push_back(Next(b));
    const Op root = b.Tuple(absl::MakeConstSpan(values_).last(6));
    const auto entry = b.Finish(root);
    EXPECT_TRUE(entry.ok()) << Message(entry.status());
    module->set_entry(*entry);
    return module;
  }

 private:
  std::size_t Below(std::size_t n) { return rng_() % n; }
  template <class T>
  T Pick(std::initializer_list<T> options) {
    return *(options.begin() + Below(options.size()));
  }
  Op Any() { return Below(3) == 0 ? values_.back() : values_[Below(values_.size())]; }

  Op Next(Builder& b) {
    const Op x = Any();
    switch (Below(8)) {
      case 0:
        return Reshaped(b, x);
      case 4:
        return Through(b, x);
      case 5:
        return x.dtype() == DType::kPred ? x : OfConstants(b, x);
      case 6:
        return Idle(b, x);
      case 1:
        return b.Convert(x,
                         Pick({DType::kF32, DType::kS32, DType::kPred, DType::kF64, DType::kS8}));
      case 2:
        return b.Select(b.Convert(Like(b, x), DType::kPred), x, b.Convert(Like(b, x), x.dtype()));
      case 3:
        return Unary(b, x);
      default:
        return Binary(b, x);
    }
  }

  // A chain with constants, as what folds an address or a seed writes.
  Op OfConstants(Builder& b, Op x) {
    const auto constant = [&] { return b.Full(x.shape(), Pick({0.0, 1.0, -1.0, 3.0, 65537.0})); };
    const Opcode opcode = Pick({Opcode::kAdd, Opcode::kMultiply, Opcode::kMaximum});
    const Op start = Below(3) == 0 ? constant() : x;
    return b.Binary(opcode, constant(),
                    b.Binary(opcode, Below(2) == 0 ? start : constant(), constant()));
  }

  // What leaves x as it is.
  Op Idle(Builder& b, Op x) {
    const auto full = [&](double value) { return b.Full(x.shape(), value); };
    constexpr double kInf = std::numeric_limits<double>::infinity();
    const Dims dims(x.shape().dims().begin(), x.shape().dims().end());
    const std::vector<Op> starts(dims.size(), b.Scalar(DType::kS32, static_cast<double>(Below(3))));
    switch (Below(4)) {
      case 0:
        return b.Unary(Opcode::kCopy, x);
      case 1:
        return b.DynamicSlice(x, starts, dims);
      case 2:
        return b.DynamicUpdateSlice(x, b.Convert(Like(b, x), x.dtype()), starts);
      default:
        break;
    }
    if (x.dtype() == DType::kPred)
      return b.Compare(Pick({hlo::ComparisonDirection::kEq, hlo::ComparisonDirection::kNe}), x,
                       full(static_cast<double>(Below(2))));
    if (IsIntegral(x.dtype()))
      return b.Binary(Pick({Opcode::kShiftLeft, Opcode::kShiftRightLogical}), x, full(0));
    if (x.dtype() != DType::kF32) return x;
    if (Below(3) == 0) return b.Clamp(full(-kInf), x, full(kInf));
    if (Below(2) == 0) return b.Binary(Opcode::kMaximum, full(-kInf), x);
    const Op z = b.Binary(Opcode::kComplex, x, full(1));
    return b.Unary(Opcode::kReal, b.Binary(Opcode::kComplex, b.Unary(Opcode::kReal, z),
                                           b.Unary(Opcode::kImag, z)));
  }

  // x through something and back.
  Op Through(Builder& b, Op x) {
    switch (Below(4)) {
      case 0:
        return b.GetTupleElement(b.Tuple({x, x}), static_cast<int64_t>(Below(2)));
      case 1: {
        const Op pair = b.Tuple({x, Any()});
        return b.GetTupleElement(b.Tuple({b.GetTupleElement(pair, 0), b.GetTupleElement(pair, 1)}),
                                 0);
      }
      case 2:
        if (x.dtype() != DType::kF32) return x;
        return b.Unary(Pick({Opcode::kReal, Opcode::kImag}), b.Binary(Opcode::kComplex, x, x));
      default:
        return x.rank() == 0 || x.shape().dim(0) == 0 ? x : Joined(b, x);
    }
  }

  // The first element along dimension 0 and the others, joined again, or a part of that.
  Op Joined(Builder& b, Op x) {
    const Dims ones(static_cast<std::size_t>(x.rank()), 1);
    Dims starts(ones.size(), 0), limits(x.shape().dims().begin(), x.shape().dims().end());
    Dims first = limits, rest = starts;
    first[0] = rest[0] = 1;
    const Op joined =
        b.Concatenate({b.Slice(x, starts, first, ones), b.Slice(x, rest, limits, ones)}, 0);
    return Below(2) == 0 ? joined : b.Slice(joined, rest, limits, ones);
  }

  // A value of x's dims: x itself, a constant, or another value made to fit.
  Op Like(Builder& b, Op x) {
    const Op y = Any();
    if (Below(4) == 0) return x;
    if (Below(2) == 0 || y.shape().num_elements() != x.shape().num_elements()) {
      return b.Full(x.shape(), x.dtype() == DType::kPred
                                   ? static_cast<double>(Below(2))
                                   : Pick({0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -4.0}));
    }
    return b.Reshape(y, x.shape().dims());
  }

  Op Unary(Builder& b, Op x) {
    if (x.dtype() == DType::kPred) return b.Unary(Opcode::kNot, x);
    if (IsUnsigned(x.dtype())) return b.Unary(Pick({Opcode::kNegate, Opcode::kNot}), x);
    if (!IsFloat(x.dtype())) return b.Unary(Pick({Opcode::kNegate, Opcode::kAbs, Opcode::kNot}), x);
    return b.Unary(
        Pick({Opcode::kNegate, Opcode::kAbs, Opcode::kFloor, Opcode::kCeil, Opcode::kTanh}), x);
  }

  Op Binary(Builder& b, Op x) {
    const Op y = b.Convert(Like(b, x), x.dtype());
    const bool swap = Below(2) == 0;
    const Op left = swap ? y : x, right = swap ? x : y;
    if (x.dtype() == DType::kPred)
      return b.Binary(Pick({Opcode::kAnd, Opcode::kOr, Opcode::kXor}), left, right);
    if (Below(6) == 0) {
      using enum hlo::ComparisonDirection;
      return b.Compare(Pick({kEq, kNe, kLt, kLe, kGt, kGe}), left, right);
    }
    return b.Binary(Pick({Opcode::kAdd, Opcode::kSubtract, Opcode::kMultiply, Opcode::kDivide,
                          Opcode::kMaximum, Opcode::kMinimum, Opcode::kRemainder}),
                    left, right);
  }

  Op Reshaped(Builder& b, Op x) {
    const int64_t rank = x.rank();
    const Dims dims(x.shape().dims().begin(), x.shape().dims().end());
    Dims permutation, zeros(dims.size(), 0), ones(dims.size(), 1);
    for (int64_t d = rank - 1; d >= 0; --d) permutation.push_back(d);
    switch (Below(8)) {
      case 0:
        return b.Transpose(x, permutation);
      case 1:
        return b.Reshape(x, {x.shape().num_elements(), 1});
      case 2:
        return rank < 3 ? b.BroadcastTo(x, PutBefore(dims))
                        : b.Reshape(x, {x.shape().num_elements()});
      case 3:
        return rank == 0 ? x : b.Reverse(x, {static_cast<int64_t>(Below(dims.size()))});
      case 4:
        return b.Slice(x, zeros, dims, ones);
      case 5:
        return b.Pad(x, b.Scalar(x.dtype(), 0), zeros, zeros, zeros);
      case 6:
        return rank == 0 ? x : b.Concatenate({b.Slice(x, zeros, dims, ones)}, 0);
      default:
        return rank == 0 || x.dtype() == DType::kPred ? x : Reduced(b, x);
    }
  }

  Dims PutBefore(const Dims& dims) {
    Dims result = {static_cast<int64_t>(1 + Below(2))};
    result.insert(result.end(), dims.begin(), dims.end());
    return result;
  }

  Op Reduced(Builder& b, Op x) {
    const auto d = static_cast<int64_t>(Below(static_cast<std::size_t>(x.rank())));
    return b.Reduce(Pick({Opcode::kAdd, Opcode::kMultiply, Opcode::kMaximum, Opcode::kMinimum}), x,
                    {d});
  }

  std::mt19937_64 rng_;
  Options options_;
  std::vector<Op> values_;
};

}  // namespace lazuli::lowering
