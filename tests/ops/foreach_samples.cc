// Updates of many tensors. tests/cpp_api/optim compares optimisers with PyTorch's formulas bit for
// bit; here are the forms that an update can take.
#include <cmath>
#include <complex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "lazy/ops/optim/foreach.h"
#include "tests/ops/sample.h"

namespace lazuli::lazy::test {
namespace {

// `numbers` numbers of f32, then `lists` lists of two tensors.
Literals UpdateOperands(int numbers, int lists) {
  Literals operands;
  for (int i = 0; i < numbers; ++i) operands.push_back(ScalarOf(DType::kF32, 0.25 + 0.125 * i));
  for (int i = 0; i < lists; ++i) {
    const auto seed = static_cast<uint64_t>(i);
    for (Literal x : {Random(DType::kF32, {2, 3}, seed), Random(DType::kF32, {5}, seed)}) {
      // Squares and their means are not negative.
      for (int64_t n = 0; n < x.shape().num_elements(); ++n)
        x.SetFromDouble(n, std::abs(x.AsDouble(n)));
      operands.push_back(std::move(x));
    }
  }
  return operands;
}

// The same of complex numbers, whose parts are not negative.
Literals ComplexOperands(int numbers, int lists) {
  Literals operands;
  for (Literal& real : UpdateOperands(numbers, lists)) {
    const bool is_number = static_cast<int>(operands.size()) < numbers;
    Literal x{Shape(DType::kC64, real.shape().dims())};
    const std::span<std::complex<float>> parts = x.mutable_data<std::complex<float>>();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const float part = real.data<float>()[i];
      parts[i] = {part, is_number ? 0.0f : 0.5f * part + 0.25f};
    }
    operands.push_back(std::move(x));
  }
  return operands;
}

// m: momentum, d: dampening, n: nesterov, w: weight decay, f: the first step.
ForeachSgdOp Sgd(std::string_view terms) {
  const auto has = [&](char c) { return terms.find(c) != terms.npos; };
  return {has('m'), has('d'), has('n'), has('w'), has('f')};
}

void AddSgd(Table& table) {
  Row<ForeachSgdOp> row = table.Op<ForeachSgdOp>();
  row.Add({}, UpdateOperands(1, 2));
  row.Reference([](const ForeachSgdOp&, const Literals& in) {
    Literals moved;
    for (std::size_t i = 1; i < 3; ++i) {
      moved.push_back(Build(in[i].shape(), [&](const Index& at) {
        return At(in[i], at) - At(in[0], {}) * At(in[i + 2], at);
      }));
    }
    return moved;
  });
  row.Add(Sgd("w"), UpdateOperands(2, 2));
  row.Add(Sgd("mf"), UpdateOperands(2, 2));
  row.Add(Sgd("m"), UpdateOperands(2, 3));
  row.Add(Sgd("mn"), UpdateOperands(2, 3));
  row.Add(Sgd("mdw"), UpdateOperands(4, 3));
  row.AddEdge(Sgd("mdw"), ComplexOperands(4, 3));
}

// Numbers, parameters, gradients and, of rows and columns, variances.
Literals MatrixOperands(int numbers) {
  Literals operands = UpdateOperands(numbers, 0);
  for (const auto& dims : std::vector<std::vector<int64_t>>{{2, 3}, {2, 3}, {2, 1}, {1, 3}}) {
    Literal x = Random(DType::kF32, {dims[0], dims[1]}, operands.size());
    for (int64_t n = 0; n < x.shape().num_elements(); ++n)
      x.SetFromDouble(n, std::abs(x.AsDouble(n)));
    operands.push_back(std::move(x));
  }
  return operands;
}

void AddRules(Table& table) {
  Row<ForeachUpdateOp> row = table.Op<ForeachUpdateOp>();
  row.Add({UpdateRule::kLion, Decay::kNone, false}, UpdateOperands(4, 3));
  row.Reference([](const ForeachUpdateOp&, const Literals& in) {
    Literals moved, means;
    for (std::size_t i = 4; i < 6; ++i) {
      const auto at = [&](std::size_t list, const Index& index) {
        return At(in[i + 2 * list], index);
      };
      const auto n = [&](std::size_t number) { return At(in[number], {}); };
      moved.push_back(Build(in[i].shape(), [&](const Index& x) {
        const double direction = at(2, x) * n(1) + at(1, x) * n(2);
        return at(0, x) - n(0) * (direction > 0 ? 1 : direction < 0 ? -1 : 0);
      }));
      means.push_back(Build(
          in[i].shape(), [&](const Index& x) { return at(2, x) + (at(1, x) - at(2, x)) * n(3); }));
    }
    moved.insert(moved.end(), means.begin(), means.end());
    return moved;
  });
  for (int rule = 0; rule < 9; ++rule) {
    const auto which = static_cast<UpdateRule>(rule);
    const auto numbers = static_cast<int>(NumbersOf(which));
    const auto lists = 2 + static_cast<int>(StatesOf(which));
    row.Add({which, Decay::kNone, rule % 2 == 1}, UpdateOperands(numbers, lists));
    if (rule < 2) {
      row.Add({which, Decay::kL2, false}, UpdateOperands(numbers + 1, lists));
      row.Add({which, Decay::kDecoupled, false}, UpdateOperands(numbers + 1, lists));
    }
  }
  row.Add({UpdateRule::kAdafactorMatrix, Decay::kNone, false}, MatrixOperands(6));
}

void AddClip(Table& table) {
  table.Op<ForeachClipNormOp>()
      .Add({1}, UpdateOperands(1, 1))
      .Add({2}, UpdateOperands(1, 1))
      .Add({3}, UpdateOperands(1, 1))
      .Add({0}, UpdateOperands(1, 1))
      .ReferenceTolerance(1e-5, 1e-6)
      .Reference([](const ForeachClipNormOp& op, const Literals& in) {
        double norm = 0;
        for (std::size_t i = 1; i < in.size(); ++i) {
          ForEachIndex(in[i].shape().dims(), [&](const Index& at) {
            const double size = std::abs(At(in[i], at));
            norm = op.order == 0 ? std::max(norm, size) : norm + std::pow(size, op.order);
          });
        }
        if (op.order != 0) norm = std::pow(norm, 1 / op.order);
        const double scale = std::min(1.0, At(in[0], {}) / (norm + 1e-6));
        Literals results;
        for (std::size_t i = 1; i < in.size(); ++i) {
          results.push_back(
              Build(in[i].shape(), [&](const Index& at) { return At(in[i], at) * scale; }));
        }
        results.push_back(ScalarOf(DType::kF32, norm));
        return results;
      });
}

}  // namespace

void AddForeachSamples(Table& table) {
  AddSgd(table);
  table.Op<ForeachAdamOp>()
      .Add({Decay::kNone, false}, UpdateOperands(6, 4))
      .Add({Decay::kL2, false}, UpdateOperands(7, 4))
      .Add({Decay::kDecoupled, true}, UpdateOperands(7, 5))
      .AddEdge({Decay::kDecoupled, true}, ComplexOperands(7, 5));
  table.Op<ForeachRmspropOp>()
      .Add({}, UpdateOperands(4, 3))
      .Add({.momentum = true, .centered = false, .weight_decay = true}, UpdateOperands(6, 4))
      .Add({.momentum = true, .centered = false, .weight_decay = false}, UpdateOperands(5, 4))
      .AddEdge({.momentum = true, .centered = false, .weight_decay = false}, ComplexOperands(5, 4));
  table.Op<ForeachAdagradOp>()
      .Add({false}, UpdateOperands(2, 3))
      .Add({true}, UpdateOperands(3, 3))
      .AddEdge({true}, ComplexOperands(3, 3));
  AddRules(table);
  AddClip(table);
}

}  // namespace lazuli::lazy::test
