// The smallest program against an installed lazuli: configure with -D CMAKE_PREFIX_PATH=<where it
// is installed>.
#include <iostream>

#include <lazuli/lazuli.h>

namespace lz = lazuli;

int main() {
  lz::Tensor x = lz::ones({2, 3});
  lz::Tensor y = lz::relu(x * 2.0 - 1.0);
  const float sum = lz::sum(y).item<float>();
  std::cout << "lazuli says " << sum << "\n";
  return sum == 6.0f ? 0 : 1;
}
