// Lazy graphs as text: torch_xla's form, GraphViz, and the HLO that goes into Compile.
#pragma once

#include <string>
#include <vector>

#include "ir/graph/post_order.h"
#include "lazy/tensor/tensor.h"

namespace lazuli::lazy {

// IR {
//   %0 = f32[8,16]{1,0} xla::device_data(), device=CPU:0
//   %2 = f32[8,4]{1,0} aten::mm(%0, %1), location=main@train.cc:41, device=CPU:0, ROOT=0
// }
// `devices` are where the roots are computed; if there is one, all nodes are.
using Devices = absl::Span<const backend::Device>;
std::string GraphText(const Trace& trace, Devices devices);
std::string GraphDot(const Trace& trace, Devices devices);
absl::StatusOr<std::string> GraphHlo(const Trace& trace);

// The pending graph of these tensors; tensors whose data exists appear as leaves.
enum class GraphFormat : uint8_t { kText, kDot, kHlo };
std::string PendingGraph(absl::Span<const Tensor> tensors, GraphFormat format);

// "Net::forward" of "lazuli::Tensor Net::forward(const lazuli::Tensor&)": what the compiler calls a
// function has spaces and commas, which end a tag.
std::string_view ShortFunctionName(std::string_view signature);

}  // namespace lazuli::lazy
