// make_digits FOLDER TRAIN TEST: that many made-up digits in MNIST's format.
#include <cstdlib>
#include <iostream>

#include "tests/training/digits.h"

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: make_digits FOLDER TRAIN TEST\n";
    return 2;
  }
  lazuli::test::WriteDigits(argv[1], std::strtoul(argv[2], nullptr, 10),
                            std::strtoul(argv[3], nullptr, 10));
  std::cout << "MADE-UP DIGITS, NOT MNIST: " << argv[1] << "\n";
}
