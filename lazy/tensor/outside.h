// Outside: who knows what a function that is traced uses of the tensors from outside of the trace.
//
// The journal of such a trace has one if these tensors are parameters of what is traced: an op gets
// a leaf in the place of their elements, so that nothing is synced, read or copied. Elements can
// then not be read inside: the function would not see them when it runs.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/types/span.h"

#include "lazy/tensor/random.h"
#include "lazy/tensor/tape.h"
#include "lazy/tensor/tensor.h"

namespace lazuli::lazy {

class Outside {
 public:
  // That of the trace whose context it is; null for all others.
  static Outside* Of(const Context& context);

  // The leaf that stands for the elements of a tensor of another context.
  virtual Value LeafFor(const Tensor& tensor, SiteId site) = 0;
  // Where the gradient of a result of another context goes: perhaps no farther than the tensor, so that
  // what is differentiated inside ends there.
  virtual Edge EdgeOf(const Tensor& result, Edge edge) = 0;
  // Whether random numbers are drawn from a state that is a parameter: u32[4], the words of
  // PhiloxWords.
  virtual bool draws_from_parameter() const = 0;
  // Numbers of the default generator as blocks behind that state; none for those from before the
  // trace.
  struct Draw {
    Tensor state;
    uint64_t blocks;
  };
  virtual std::optional<Draw> DrawOf(PhiloxState begin, PhiloxState end) = 0;
  // Whether the trace may write to a tensor of another context.
  virtual bool may_write() const = 0;
  // The leaf for a storage, that of operand number i or of what that is a view of; without such an
  // operand, of a tensor without history.
  Value LeafFor(std::size_t i, Storage& storage, SiteId site);

  // While one lives, these are the operands, some of them perhaps null.
  class Operands {
   public:
    Operands(Outside* outside, absl::Span<const Tensor* const> tensors);  // nothing if it is null
    ~Operands();
    Operands(const Operands&) = delete;
    Operands& operator=(const Operands&) = delete;

   private:
    Outside* outside_;
    absl::Span<const Tensor* const> outer_;
  };

 protected:
  ~Outside() = default;

 private:
  absl::Span<const Tensor* const> operands_;
};

// A node for EdgeOf, which stands for this edge of what is outside. Gradients are asked for beyond it;
// what it would pass on to the .grad of leaves is an error.
IntrusivePtr<GradNode> EndOfHistory(Edge outside, SiteId site);
// What the edge stands for if it leads to such a node; the edge itself if not.
const Edge& BeyondEnds(const Edge& edge);

// OK, or why nothing of the context runs: it is that of a trace with an Outside.
absl::Status CheckRuns(const Context& context);

}  // namespace lazuli::lazy
