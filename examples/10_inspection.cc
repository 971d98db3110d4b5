// Lesson 10: looking inside: the graph that is pending, the HLO it becomes, the optimised program
// and its cost, and what the library counted.
#include <iostream>
#include <string>

#include <lazuli/lazuli.h>

namespace lz = lazuli;

// The lines of text that have `word`, the first `n` of them.
void PrintLines(const std::string& text, const std::string& word, int n) {
  for (std::size_t at = 0, end; at < text.size() && n > 0; at = end + 1) {
    end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    if (line.find(word) == std::string::npos) continue;
    std::cout << "  " << line.substr(0, 150) << "\n";
    --n;
  }
}

int main() try {
  lz::manual_seed(1);
  const lz::Tensor x = lz::randn({64, 32}), w = lz::randn({32, 16});
  lz::sync();

  // Recording computes nothing: this is a graph of two nodes, each with the line it comes from.
  const lz::Tensor y = lz::gelu(lz::matmul(x, w));
  std::cout << "1. what is pending\n" << lz::debug::graph_text({y}) << "\n";

  // What the compiler would be given. XLA runs it, too; XLA_SAVE_TENSORS_FILE writes it for every
  // sync.
  std::cout << "2. as HLO\n";
  PrintLines(lz::debug::graph_hlo({y}), "= f32", 4);

  // Reading syncs. What ran is there afterwards, before and after optimisation.
  std::cout << "\n3. the mean is " << lz::mean(y).item() << ", computed by\n";
  PrintLines(lz::debug::last_optimized_hlo(), "thunks:", 1);
  PrintLines(lz::debug::last_optimized_hlo(), " (b", 8);
  const auto stats = lz::debug::last_stats();
  std::cout << "  " << stats.kernels << " kernels, " << stats.library_calls << " library calls, "
            << stats.temp_bytes << " bytes of temporaries\n";

  // The same graph again is found in the cache, whatever its numbers are: 0.5 and 2.0 below are
  // inputs of one program. A new shape is another program.
  const auto compilations = [] { return lz::metrics::counter("UncachedCompile"); };
  const std::int64_t before = compilations();
  for (const double factor : {0.5, 2.0, 3.0}) (y * factor).to_vector<float>();
  const std::int64_t same = compilations() - before;
  (lz::ones({3, 3}) * 0.5).to_vector<float>();
  std::cout << "\n4. compilations: " << same << " for three factors, " << compilations() - before
            << " with another shape\n";

  std::cout << "\n5. what was counted\n";
  for (const char* name : {"UncachedCompile", "CachedCompile", "graph.nodes_recorded"})
    std::cout << "  " << name << " " << lz::metrics::counter(name) << "\n";
  // lz::metrics::report() prints all of them; docs/metrics.md says what each one counts.
} catch (const lz::Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
