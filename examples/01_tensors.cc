// Lesson 1: tensors, and when they are computed.
#include <iostream>

#include <lazuli/lazuli.h>

namespace lz = lazuli;

int main() {
  // A tensor has a shape, an element type and a device. Shapes broadcast and types promote as
  // PyTorch's do.
  lz::Tensor x = lz::tensor({{1.0f, 2.0f, 3.0f}, {4.0f, 5.0f, 6.0f}});
  lz::Tensor row = lz::tensor({10.0f, 20.0f, 30.0f});

  // This computes nothing. It records two ops and knows the shape of the result.
  lz::Tensor y = lz::sum(x * row, {1});
  std::cout << "y has " << y.numel() << " elements of type " << lz::to_string(y.dtype()) << "\n";

  // Reading does: all that was recorded is compiled into one program, and runs.
  std::cout << "y = " << y << "\n";

  // A program is kept. Recording the same ops again finds it, whatever the numbers are.
  const auto compiled = lz::metrics::counter("UncachedCompile");
  for (int i = 1; i <= 100; ++i) {
    x = x * 0.5 + i;
    lz::mark_step();  // the end of a step: run what has been recorded
  }
  std::cout << "100 steps, " << lz::metrics::counter("UncachedCompile") - compiled
            << " compilation\n";

  // A copy of a tensor is another handle of the same elements; clone() copies those, too.
  lz::Tensor same = x, copy = x.clone();
  x.fill_(7);
  std::cout << "same[0,0] is 7: " << (same.to_vector<float>()[0] == 7)
            << ", copy[0,0] is 7: " << (copy.to_vector<float>()[0] == 7) << "\n";

  // A mistake is found by the call that makes it, not when the program runs.
  try {
    x.matmul(row.reshape({1, 3}));
  } catch (const lz::Error& error) {
    std::cout << error.what() << "\n";
  }
}
