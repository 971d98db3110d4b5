// Programs as they are written for LibTorch, with its headers, as they are: each trains a little, or
// checks what it computes, and returns 0.
#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/torch.h>
#include <unistd.h>

// Programs save where they run: in a folder that goes with the test.
class LibTorchProgramsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_);
    std::filesystem::current_path(folder_);
  }
  void TearDown() override {
    std::filesystem::current_path(outside_);
    std::filesystem::remove_all(folder_);
  }

 private:
  const std::filesystem::path outside_ = std::filesystem::current_path();
  const std::filesystem::path folder_ =
      testing::TempDir() + "libtorch_programs." + std::to_string(getpid());
};

#define LAZULI_PROGRAM(name) \
  TEST_F(LibTorchProgramsTest, name) { EXPECT_EQ(name::main(), 0); }

namespace linear_regression {
#include "tests/cpp_api/torch/programs/linear_regression.inc"
}
namespace logistic_regression {
#include "tests/cpp_api/torch/programs/logistic_regression.inc"
}
namespace convnet {
#include "tests/cpp_api/torch/programs/convnet.inc"
}
namespace dcgan {
#include "tests/cpp_api/torch/programs/dcgan.inc"
}
namespace autograd {
#include "tests/cpp_api/torch/programs/autograd.inc"
}
namespace resnet {
#include "tests/cpp_api/torch/programs/resnet.inc"
}
namespace vae {
#include "tests/cpp_api/torch/programs/vae.inc"
}
namespace policy_gradient {
#include "tests/cpp_api/torch/programs/policy_gradient.inc"
}
namespace time_series {
#include "tests/cpp_api/torch/programs/time_series.inc"
}
namespace augmentation {
#include "tests/cpp_api/torch/programs/augmentation.inc"
}

LAZULI_PROGRAM(linear_regression)
LAZULI_PROGRAM(logistic_regression)
LAZULI_PROGRAM(convnet)
LAZULI_PROGRAM(dcgan)
LAZULI_PROGRAM(autograd)
LAZULI_PROGRAM(resnet)
LAZULI_PROGRAM(vae)
LAZULI_PROGRAM(policy_gradient)
LAZULI_PROGRAM(time_series)
LAZULI_PROGRAM(augmentation)
