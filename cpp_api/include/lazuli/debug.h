// Looking inside: dumps, metrics, profiles.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lazuli/tensor.h"

namespace lazuli {

// An environment variable, or a flag in XLA_FLAGS ("--xla_cpu_ftz"): docs/flags.md.
struct Flag {
  std::string name;
  std::string type;  // bool, int, bytes (K, M, G), levels or string
  std::string value, default_value;
  std::string meaning;
};
// All of them, with the values that they have now.
LAZULI_API std::vector<Flag> flags();

namespace metrics {
// Counters and timers as text; docs/metrics.md explains each.
LAZULI_API std::string report();
// A counter by name ("UncachedCompile", "CachedCompile", "MarkStep", ...); throws Error(kNotFound)
// for a name nobody knows.
LAZULI_API std::int64_t counter(std::string_view name);
LAZULI_API void reset();
}  // namespace metrics

namespace debug {
// The pending graph that these tensors would run: torch_xla's text, GraphViz, or the HLO given to
// the compiler.
LAZULI_API std::string graph_text(const std::vector<Tensor>& tensors);
LAZULI_API std::string graph_dot(const std::vector<Tensor>& tensors);
LAZULI_API std::string graph_hlo(const std::vector<Tensor>& tensors);
// A row for each node: operands, attributes, scope, line.
LAZULI_API std::string graph_table(const std::vector<Tensor>& tensors);
// A page for a browser, which needs no network.
LAZULI_API std::string graph_html(const std::vector<Tensor>& tensors);

// Of the pending node that a tensor is the result of.
struct Frame {
  std::string function, file;
  std::int64_t line = 0;
};
// The line, and what called it if that is kept (XLA_IR_DEBUG), the innermost first.
LAZULI_API std::vector<Frame> stack(const Tensor& tensor);
// "net/conv1", of modules and NameScopes.
LAZULI_API std::string scope(const Tensor& tensor);
// A note of the user's, which its text and the op_name of its HLO begin with. It makes no other
// program of a graph.
LAZULI_API void set_user_metadata(const Tensor& tensor, std::string_view note);
LAZULI_API std::string user_metadata(const Tensor& tensor);
// What is recorded from now on keeps its whole call stacks, as with XLA_IR_DEBUG=1; off: as the
// environment has it.
LAZULI_API void set_ir_debug(bool on);

// The HLO of the program that the last sync of this thread ran, before and after optimisation (with
// the device's plan).
LAZULI_API std::string last_hlo();
LAZULI_API std::string last_optimized_hlo();
// Cost of the last program: what docs call kernels, library calls, reorders.
struct ProgramStats {
  std::int64_t kernels = 0, library_calls = 0, reorders = 0, evaluator_thunks = 0, temp_bytes = 0;
};
LAZULI_API ProgramStats last_stats();

// Why a graph did not run the program of an earlier one.
struct Recompile {
  // first, evicted, options, batch, shape, dtype, attribute, number, leaf, operation, more nodes,
  // fewer nodes, wiring, results or unknown.
  std::string cause;
  // "batch 64 -> 37 at train.cc:41: the last batch is smaller; drop_last or pad it to 64"
  std::string sentence;
  std::string site;           // "train.cc:41": of what differs
  std::string op;             // whose it is: "aten::pow"; empty of an input
  std::string before, after;  // "64" and "37"
  std::string advice;         // what to do
  std::string nearest;        // the program that it was compared with: "SyncTensorsGraph.7"
};
// Of the last program that this thread compiled though the cache held one like it, from the same
// call of sync or read if there is one; of the thread's last first compile if there was no other.
LAZULI_API Recompile explain_recompile();
}  // namespace debug

}  // namespace lazuli
