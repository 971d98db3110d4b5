// Why a graph had to be compiled: what differs from its nearest relative among the cached programs.
//
// A miss is compared with the programs that the same call of sync or read ran, the nearest by
// GraphOutline::Distance(); the first difference of the two graphs is the reason. Costs nothing
// where a program is found.
#pragma once

#include <cstdint>
#include <string>

#include "lazy/execution/graph_outline.h"

namespace lazuli::lazy {

enum class RecompileCause : uint8_t {
  kFirst,      // no program of this line or of a similar graph was there
  kEvicted,    // it was there, and the cache is limited
  kOptions,    // the same graph, compiled in another way or for another device
  kBatch,      // the leading dimension of an input
  kShape,      // other dimensions of an input
  kDType,      // of an input
  kAttribute,  // a number, list or dtype that is part of an op
  kNumber,     // a number was an input and is part of the program, or the other way round
  kLeaf,       // data that was computed in the graph is an input, or the other way round
  kOp,         // another operation
  kMoreNodes,
  kFewerNodes,
  kWiring,   // the same operations on other operands
  kResults,  // other values are kept
  kUnknown,
};
// "batch": as the public API says it.
std::string_view CauseName(RecompileCause cause);

struct Recompile {
  RecompileCause cause = RecompileCause::kFirst;
  SiteId site = ir::kNoSite;     // of what differs
  std::string op;                // whose it is: "aten::pow"; empty if it is no op's
  std::string before, after;     // what differs: "64" and "37"
  std::string advice;            // "the last batch is smaller; drop_last or pad it to 64"
  std::string program, nearest;  // "SyncTensorsGraph.7"
  // "batch 64 -> 37 at train.cc:41: the last batch is smaller; drop_last or pad it to 64"
  std::string Sentence() const;

  // What `before` and `after` are of: "batch", "exponent of aten::pow"; for the sentence.
  std::string what;
};

// The first difference of two graphs, as a reason why the second had to be compiled.
Recompile Compare(const GraphOutline& before, const GraphOutline& after);
// The first of two texts ", a=1, b=(0, 1)" that differs, as `what`, `before` and `after`.
bool CompareAttrs(std::string_view before, std::string_view after, Recompile& out);

}  // namespace lazuli::lazy
