// Recurrent layers. Devices sum products in orders of their own, so they agree within a bound.
#include <cmath>

#include "lazy/ops/recurrent/recurrent.h"
#include "tests/ops/sample.h"

namespace lazuli::lazy::test {
namespace {

constexpr int64_t kSteps = 3, kBatch = 2, kHidden = 2, kProjected = 1;

int64_t StateSize(bool projected) { return projected ? kProjected : kHidden; }

// The operands of a layer with these attributes, and the lengths 3 and 1.
Literals OperandsOf(const RecurrentOp& op) {
  const int64_t rows = Gates(op.cell) * kHidden, state = StateSize(op.projected);
  Literals in{Random(DType::kF64, {kSteps, kBatch, rows}), Random(DType::kF64, {rows, state}, 1),
              Random(DType::kF64, {kBatch, state}, 2)};
  if (op.cell == Cell::kLstm) in.push_back(Random(DType::kF64, {kBatch, kHidden}, 3));
  if (op.cell == Cell::kGru) in.push_back(Random(DType::kF64, {kHidden}, 4));
  if (op.projected) in.push_back(Random(DType::kF64, {kProjected, kHidden}, 5));
  if (op.masked) in.push_back(Indices({3, 1}));
  return in;
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// A layer as its papers write it, element by element.
class Sequence {
 public:
  Sequence(const RecurrentOp& op, const Literals& in, int64_t b) : op_(op), in_(in), b_(b) {
    for (int64_t k = 0; k < StateSize(op.projected); ++k) hidden_.push_back(At(in[2], {b, k}));
    for (int64_t k = 0; k < kHidden && op.cell == Cell::kLstm; ++k)
      cell_.push_back(At(in[3], {b, k}));
  }
  // Hidden states by step; 0 beyond the end.
  std::vector<std::vector<double>> Run() {
    std::vector<std::vector<double>> results(kSteps, std::vector<double>(hidden_.size(), 0));
    const int64_t length = op_.masked ? static_cast<int64_t>(At(in_.back(), {b_})) : kSteps;
    for (int64_t i = 0; i < length; ++i) {
      const int64_t t = op_.reverse ? length - 1 - i : i;
      Step(t);
      results[static_cast<std::size_t>(t)] = hidden_;
    }
    return results;
  }
  const std::vector<double>& hidden() const { return hidden_; }
  const std::vector<double>& cell() const { return cell_; }

 private:
  double FromInput(int64_t t, int64_t gate, int64_t k) const {
    return At(in_[0], {t, b_, gate * kHidden + k});
  }
  double FromHidden(int64_t gate, int64_t k) const {
    double sum = 0;
    for (std::size_t j = 0; j < hidden_.size(); ++j)
      sum += At(in_[1], {gate * kHidden + k, static_cast<int64_t>(j)}) * hidden_[j];
    return sum;
  }
  double Sum(int64_t t, int64_t gate, int64_t k) const {
    return FromInput(t, gate, k) + FromHidden(gate, k);
  }
  void Step(int64_t t) {
    std::vector<double> next;
    for (int64_t k = 0; k < kHidden; ++k) next.push_back(Next(t, k));
    if (op_.projected) {
      double sum = 0;
      for (int64_t k = 0; k < kHidden; ++k)
        sum += At(in_[4], {0, k}) * next[static_cast<std::size_t>(k)];
      next = {sum};
    }
    hidden_ = next;
  }
  double Next(int64_t t, int64_t k) {
    if (op_.cell == Cell::kRnnTanh) return std::tanh(Sum(t, 0, k));
    if (op_.cell == Cell::kRnnRelu) return std::max(Sum(t, 0, k), 0.0);
    if (op_.cell == Cell::kLstm) {
      double& c = cell_[static_cast<std::size_t>(k)];
      c = Sigmoid(Sum(t, 1, k)) * c + Sigmoid(Sum(t, 0, k)) * std::tanh(Sum(t, 2, k));
      return Sigmoid(Sum(t, 3, k)) * std::tanh(c);
    }
    const double reset = Sigmoid(Sum(t, 0, k)), update = Sigmoid(Sum(t, 1, k));
    const double fresh =
        std::tanh(FromInput(t, 2, k) + reset * (FromHidden(2, k) + At(in_[3], {k})));
    return (1 - update) * fresh + update * hidden_[static_cast<std::size_t>(k)];
  }

  const RecurrentOp& op_;
  const Literals& in_;
  int64_t b_;
  std::vector<double> hidden_, cell_;
};

Literals Expected(const RecurrentOp& op, const Literals& in) {
  const int64_t state = StateSize(op.projected);
  std::vector<std::vector<std::vector<double>>> hidden;
  std::vector<std::vector<double>> last, cell;
  for (int64_t b = 0; b < kBatch; ++b) {
    Sequence sequence(op, in, b);
    hidden.push_back(sequence.Run());
    last.push_back(sequence.hidden());
    cell.push_back(sequence.cell());
  }
  const auto at = [](int64_t i) { return static_cast<std::size_t>(i); };
  const auto matrix = [&](const std::vector<std::vector<double>>& rows, int64_t columns) {
    return Build(Shape(DType::kF64, {kBatch, columns}),
                 [&](const Index& i) { return rows[at(i[0])][at(i[1])]; });
  };
  Literals results{Build(Shape(DType::kF64, {kSteps, kBatch, state}),
                         [&](const Index& i) { return hidden[at(i[1])][at(i[0])][at(i[2])]; }),
                   matrix(last, state)};
  if (op.cell == Cell::kLstm) results.push_back(matrix(cell, kHidden));
  return results;
}

}  // namespace

void AddRecurrentSamples(Table& table) {
  Row<RecurrentOp> row = table.Op<RecurrentOp>();
  const auto add = [&](const RecurrentOp& op) { row.Add(op, OperandsOf(op)); };
  for (const Cell cell : {Cell::kRnnTanh, Cell::kRnnRelu, Cell::kLstm, Cell::kGru})
    add({.cell = cell, .reverse = false, .projected = false, .masked = false, .keeps = false});
  add({.cell = Cell::kLstm, .reverse = true, .projected = true, .masked = true, .keeps = false});
  add({.cell = Cell::kGru, .reverse = true, .projected = false, .masked = true, .keeps = false});
  row.DeviceTolerance(1e-6).ReferenceTolerance(1e-12, 1e-12).Reference(Expected);
  // What the layer keeps for its gradient has no reference.
  add({.cell = Cell::kLstm, .reverse = true, .projected = true, .masked = true, .keeps = true});
  row.GradientsOfResults(0b111);

  Row<RecurrentGradOp> grad = table.Op<RecurrentGradOp>();
  Literals in{Random(DType::kF64, {kSteps, kBatch, kHidden}),
              Random(DType::kF64, {kBatch, kHidden}, 1),
              Random(DType::kF64, {3 * kHidden, kHidden}, 2)};
  for (uint64_t i = 0; i < Facts(Cell::kGru).kept; ++i)
    in.push_back(Random(DType::kF64, {kSteps, kBatch, kHidden}, 3 + i));
  grad.Add({.cell = Cell::kGru, .reverse = false, .projected = false, .masked = false}, in)
      .DeviceTolerance(1e-6);
}

}  // namespace lazuli::lazy::test
