#include "backend/client/registry.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "ir/support/flags.h"
#include "ir/support/status.h"

namespace lazuli::backend {
namespace {

using testing::ElementsAre;

class FakeClient final : public ComputationClient {
 public:
  explicit FakeClient(std::string platform)
      : platform_(std::move(platform)), devices_{{this, 0}, {this, 1}} {}
  std::string_view platform() const override { return platform_; }
  absl::Span<const Device> devices() const override { return devices_; }
  absl::StatusOr<BufferPtr> FromHost(HostView, Deleter, Device) override {
    return Unimplemented("fake");
  }
  absl::StatusOr<Literal> ToHost(const Buffer&) override { return Unimplemented("fake"); }
  absl::StatusOr<ExecutablePtr> Compile(std::unique_ptr<hlo::Module>,
                                        const CompileOptions&) override {
    return Unimplemented("fake");
  }
  absl::StatusOr<MemoryStats> memory_stats(Device) const override { return MemoryStats{}; }

 private:
  std::string platform_;
  std::vector<Device> devices_;
};

int clients_made = 0;

// The registry is the process's; every test sees the same two platforms.
void RegisterFakes() {
  RegisterPlatform("fake", []() -> absl::StatusOr<std::unique_ptr<ComputationClient>> {
    ++clients_made;
    return std::make_unique<FakeClient>("fake");
  });
  RegisterPlatform("broken", []() -> absl::StatusOr<std::unique_ptr<ComputationClient>> {
    return ResourceExhausted("no such chip");
  });
}

std::string ErrorOf(std::string_view name) {
  RegisterFakes();
  auto device = FindDevice(name);
  return device.ok() ? device->ToString() : std::string(Message(device.status()));
}

TEST(RegistryTest, FindsDevicesByName) {
  EXPECT_EQ(ErrorOf("fake"), "fake:0");
  EXPECT_EQ(ErrorOf("fake:1"), "fake:1");
  EXPECT_EQ(ErrorOf("FAKE:1"), "fake:1");
  EXPECT_THAT(RegisteredPlatforms(), ElementsAre("broken", "fake"));
}

TEST(RegistryTest, ErrorsSayWhatExists) {
  EXPECT_EQ(ErrorOf("tpu:0"), "no device \"tpu:0\": the platforms are broken, fake");
  EXPECT_EQ(ErrorOf("fake:7"), "no device \"fake:7\": the devices are fake:0, fake:1");
  EXPECT_EQ(ErrorOf("fake:x"), "\"fake:x\" is not a device name: one reads like cpu or cpu:0");
  EXPECT_EQ(ErrorOf("fake:-1"), "\"fake:-1\" is not a device name: one reads like cpu or cpu:0");
  EXPECT_EQ(ErrorOf("broken"), "no such chip");
}

TEST(RegistryTest, MakesAClientOnce) {
  RegisterFakes();
  RegisterPlatform("fake", []() -> absl::StatusOr<std::unique_ptr<ComputationClient>> {
    return Internal("second");
  });
  auto first = FindClient("fake"), second = FindClient("Fake");
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(clients_made, 1);
}

TEST(RegistryTest, DefaultDeviceIsTheFlags) {
  RegisterFakes();
  ASSERT_TRUE(SetFlag("PJRT_DEVICE", "fake:1").ok());
  EXPECT_EQ(DefaultDevice()->ToString(), "fake:1");
  ASSERT_TRUE(SetFlag("PJRT_DEVICE", "gpu").ok());
  EXPECT_EQ(Message(DefaultDevice().status()),
            "PJRT_DEVICE: no device \"gpu\": the platforms are broken, fake");
}

TEST(DeviceTest, WithoutAClientIsNone) { EXPECT_EQ(Device().ToString(), "no device"); }

}  // namespace
}  // namespace lazuli::backend
