// Tests that hold on every device: a suite that runs once on the interpreter and once on the CPU.
#pragma once

#include <string>

#include "backend/cpu/cpu_client.h"
#include "ir/support/flags.h"
#include "tests/lazy/lazy_test.h"

namespace lazuli::lazy {

// Sets TestDevice() to the platform that is its parameter, with two devices.
class OnEachClient : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    static const bool registered = [] {
      EXPECT_TRUE(ir::SetFlag("CPU_NUM_DEVICES", "2").ok());
      cpu::RegisterCpu();
      return true;
    }();
    (void)registered;
    default_client_ = TestClient();
    TestClient() = *backend::FindClient(GetParam());
    GetProgramCache().Clear();
  }
  void TearDown() override { TestClient() = default_client_; }

 private:
  backend::ComputationClient* default_client_ = nullptr;
};

#define LAZULI_ON_EACH_CLIENT(suite)                                              \
  INSTANTIATE_TEST_SUITE_P(Clients, suite, testing::Values("interpreter", "cpu"), \
                           [](const auto& info) { return std::string(info.param); })

}  // namespace lazuli::lazy
