// Functions whose gradient their user writes: a node of the history that calls it.
//
// The forward function runs without history; what it returned then becomes the results of the node
// (Finish). A gradient may have less dims than its input or 1 in their place only if summing or
// stretching makes it fit.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lazy/ops/core/functions.h"
#include "lazy/tensor/tape.h"

namespace lazuli::lazy {

class CustomNode final : public GradNode {
 public:
  // The gradients of the inputs: one each, undefined where there is none. `dys` as
  // GradNode::Backward takes them.
  using Function = std::function<Tensors(const CustomNode& node, absl::Span<const Tensor> dys)>;

  // Inputs may be undefined: arguments that are no tensors.
  CustomNode(std::string name, absl::Span<const Tensor> inputs, Function backward);

  // What becomes of a tensor that the forward function returned.
  struct Result {
    bool dirty = false;          // an input that it changed in place
    bool differentiable = true;  // false: it gets no history
  };
  // Gives the results their history; those that are inputs become new tensors unless they are dirty.
  // `saved` are tensors for backward, of any kind, some perhaps undefined.
  void Finish(absl::Span<const Tensor> inputs, absl::Span<Tensor> results,
              absl::Span<const Result> kinds, absl::Span<const Tensor> saved);
  // Gradients of results that nobody used are zeros for the function, not undefined; the default.
  void set_materialize(bool on) { materialize_ = on; }
  bool needs(std::size_t input) const { return static_cast<bool>(edges_[input]); }

  // The tensors again, with their history where gradients are being recorded. Throws
  // FailedPrecondition if they were freed or changed.
  Tensors Saved() const;
  std::string_view name() const override { return name_; }
  Tensors Backward(absl::Span<const Tensor> dys) override;
  void ReleaseSaved() override;
  bool undefined_is_zero() const override { return false; }  // its user said None

 private:
  std::string name_;
  Function backward_;
  std::vector<Shape> inputs_, outputs_;
  std::vector<backend::Device> devices_;                 // of the outputs
  std::vector<std::pair<SavedTensor, uint32_t>> saved_;  // and which result it is
  bool materialize_ = true;
};

}  // namespace lazuli::lazy
