#include "backend/cpu/passes/strided_view.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "backend/cpu/passes/widened_copy.h"
#include "ir/types/literal.h"
#include "lowering/passes/match.h"

namespace lazuli::cpu {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using Axis = StridedView::Axis;
using Run = StridedView::Run;

// The axes in other sizes of as many elements; nothing if a run falls to pieces.
std::optional<std::vector<Axis>> Regrouped(const std::vector<Axis>& axes,
                                           absl::Span<const int64_t> dims) {
  Axis runs;  // fastest last
  for (const Axis& axis : axes) {
    for (const Run& run : Joined(axis)) runs.push_back(run);
  }
  std::vector<Axis> result(dims.size());
  for (std::size_t d = dims.size(); d-- > 0;) {
    for (int64_t left = dims[d]; left > 1;) {
      if (runs.empty()) return std::nullopt;
      Run& run = runs.back();
      const int64_t taken = std::min(left, run.size);
      if (left % taken != 0 || run.size % taken != 0) return std::nullopt;
      result[d].insert(result[d].begin(), {taken, run.stride});
      left /= taken;
      run = {run.size / taken, run.stride * taken};
      if (run.size == 1) runs.pop_back();
    }
  }
  return result;
}

// A number that takes part in no rounding that matters, nor makes zeros or infinities.
bool IsPlainFactor(double x) { return std::abs(x) > 1e-9 && std::abs(x) < 1e9; }

// The view of `value`, which is made of the operand that `of` is a view of.
std::optional<StridedView> Through(const Instruction& value, StridedView of) {
  const auto at = [](int64_t d) { return static_cast<std::size_t>(d); };
  std::vector<Axis> axes;
  switch (value.opcode()) {
    case Opcode::kTranspose:
      for (int64_t d : value.attrs_as<hlo::DimensionsAttrs>().dimensions)
        axes.push_back(of.axes[at(d)]);
      break;
    case Opcode::kBroadcast: {
      const Dims& dims = value.attrs_as<hlo::DimensionsAttrs>().dimensions;
      for (int64_t d = 0; d < value.shape().rank(); ++d)
        axes.push_back({{value.shape().dim(d), 0}});
      for (std::size_t i = 0; i < dims.size(); ++i) axes[at(dims[i])] = of.axes[i];
      break;
    }
    case Opcode::kReshape: {
      if (value.shape().num_elements() == 0) return std::nullopt;  // Regrouped() divides by sizes
      auto regrouped = Regrouped(of.axes, value.shape().dims());
      if (!regrouped) return std::nullopt;
      axes = *std::move(regrouped);
      break;
    }
    case Opcode::kSlice: {
      const auto& slice = value.attrs_as<hlo::SliceAttrs>();
      for (int64_t d = 0; d < value.shape().rank(); ++d) {
        const Axis axis = Joined(of.axes[at(d)]);
        if (axis.size() > 1) return std::nullopt;
        const int64_t stride = axis.empty() ? 0 : axis[0].stride;
        of.offset += slice.starts[at(d)] * stride;
        axes.push_back({{value.shape().dim(d), stride * slice.strides[at(d)]}});
      }
      break;
    }
    case Opcode::kConvert:
      return of;
    default:
      return std::nullopt;
  }
  of.axes = std::move(axes);
  return of;
}

bool IsWidening(const Instruction& i) {
  return i.opcode() == Opcode::kConvert && i.shape().dtype() == DType::kF32 &&
         IsHalf(i.operand(0)->shape().dtype());
}

}  // namespace

StridedView WholeView(Instruction* base) {
  StridedView view;
  view.base = base;
  const Dims strides = base->shape().strides();
  for (int64_t d = 0; d < base->shape().rank(); ++d)
    view.axes.push_back({{base->shape().dim(d), strides[static_cast<std::size_t>(d)]}});
  return view;
}

Axis Joined(const Axis& axis) {
  Axis joined;
  for (const Run& run : axis) {
    if (run.size == 1) continue;
    if (!joined.empty() && joined.back().stride == run.stride * run.size)
      joined.back() = {joined.back().size * run.size, run.stride};
    else
      joined.push_back(run);
  }
  return joined;
}

StridedView ViewOf(Instruction* value, ViewThrough through) {
  // Downwards first: chains are as long as the program writes them.
  std::vector<Instruction*> chain;
  double scale = 1;
  const auto is_scaled = [&](Instruction* i, Instruction*& x, double& factor) {
    const Instruction* constant = nullptr;
    if (through != ViewThrough::kFactors ||
        !lowering::Match(i,
                         lowering::m::Multiply(lowering::m::Op(&x), lowering::m::Splat(&constant))))
      return false;
    factor = constant->literal().AsDouble(0);
    return IsPlainFactor(factor) && IsPlainFactor(scale * factor);
  };
  Instruction* base = value;
  for (;;) {
    Instruction* x = nullptr;
    double factor = 1;
    const Opcode opcode = base->opcode();
    if (opcode == Opcode::kTranspose || opcode == Opcode::kBroadcast ||
        opcode == Opcode::kReshape || opcode == Opcode::kSlice ||
        (through != ViewThrough::kMoves && IsWidening(*base))) {
      chain.push_back(base);
      base = base->operand(0);
    } else if (is_scaled(base, x, factor)) {
      scale *= factor;
      base = x;
    } else {
      break;
    }
  }
  StridedView view = WholeView(base);
  for (std::size_t i = chain.size(); i-- > 0;) {
    if (std::optional<StridedView> next = Through(*chain[i], view)) {
      view = *std::move(next);
    } else if (scale != 1) {
      return WholeView(value);  // some factors may belong to what would be the base
    } else {
      view = WholeView(chain[i]);
    }
  }
  view.scale = scale;
  return view;
}

}  // namespace lazuli::cpu
