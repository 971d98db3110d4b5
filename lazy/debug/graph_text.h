// Lazy graphs as text: torch_xla's form, GraphViz, and the HLO that goes into Compile.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/graph/post_order.h"
#include "lazy/graphs/saved_graph.h"
#include "lazy/tensor/context.h"
#include "lazy/tensor/status_error.h"
#include "lazy/tensor/tensor.h"

namespace lazuli::lazy {

// A line for each node; parameters have the names that they have in HLO.
//
// IR {
//   %0 = f32[8,16]{1,0} xla::device_data(), parameter=p0.1, device=CPU:0
//   %2 = f32[8,4]{1,0} aten::mm(%0, %1), scope=net/fc, location=main@train.cc:41, device=CPU:0, ROOT=0
// }
// `devices` are where the roots are computed; if there is one, all nodes are.
using Devices = absl::Span<const backend::Device>;
std::string GraphText(const Trace& trace, Devices devices);
std::string GraphDot(const Trace& trace, Devices devices);
absl::StatusOr<std::string> GraphHlo(const Trace& trace);
// For tables and pages: with whole paths of files, and stacks where they are kept.
absl::StatusOr<SavedGraph> GraphToShow(const Trace& trace, Devices devices);
// A page for a browser.
absl::StatusOr<std::string> GraphHtml(const Trace& trace, Devices devices, std::string_view title);

// The pending graph of these tensors; tensors whose data exists appear as leaves.
enum class GraphFormat : uint8_t { kText, kDot, kHlo, kTable, kHtml };
std::string PendingGraph(absl::Span<const Tensor> tensors, GraphFormat format);

// f(node that computes the tensor), under its context's lock; a leaf if its data exists.
template <class F>
auto WithPendingNode(const Tensor& tensor, F&& f) {
  if (!tensor.defined()) throw StatusError(InvalidArgument("debug: the tensor is undefined"));
  Storage* const storage = &tensor.storage();
  Value value;
  std::optional<Context::Lock> lock;
  Context::Current().LockWithValues(lock, {&storage, 1}, kNoSite, {&value, 1});
  return f(*value.node);
}

}  // namespace lazuli::lazy
