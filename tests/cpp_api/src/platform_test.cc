// lazuli/platform.h: devices from outside of the library, and what becomes of their mistakes.
#include <cstring>
#include <memory>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <lazuli/lazuli.h>
#include <lazuli/platform.h>

namespace lazuli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct EchoArray final : PlatformArray {
  std::vector<std::byte> bytes;
};
std::shared_ptr<EchoArray> Copy(const void* data, std::size_t size) {
  auto array = std::make_shared<EchoArray>();
  array->bytes.resize(size);
  if (size > 0) std::memcpy(array->bytes.data(), data, size);
  return array;
}

// What the platform does wrong from now on.
enum class Mistake { kNone, kRefuses, kLosesResults, kThrows };
Mistake mistake = Mistake::kNone;

class Evaluated final : public PlatformProgram {
 public:
  explicit Evaluated(HloModule module) : module_(std::move(module)) {}
  PlatformArrays run(const PlatformArrays& arguments) override {
    if (mistake == Mistake::kThrows) throw std::runtime_error("a wire broke");
    if (mistake == Mistake::kLosesResults) return {};
    std::vector<HostArray> views;
    const std::vector<HloShape> shapes = module_.parameters();
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const auto& bytes = static_cast<const EchoArray&>(*arguments[i]).bytes;
      views.push_back({shapes[i].dtype, shapes[i].dims, bytes.data(), bytes.size()});
    }
    PlatformArrays results;
    for (const auto& bytes : evaluate_on_host(module_, views))
      results.push_back(Copy(bytes.data(), bytes.size()));
    return results;
  }
  std::string to_string() const override { return "evaluated"; }

 private:
  HloModule module_;
};

class Echo final : public Platform {
 public:
  int num_devices() const override { return 2; }
  std::shared_ptr<PlatformArray> from_host(const HostArray& array, int) override {
    return Copy(array.data, array.bytes);
  }
  void to_host(const PlatformArray& array, void* data) override {
    const auto& bytes = static_cast<const EchoArray&>(array).bytes;
    if (!bytes.empty()) std::memcpy(data, bytes.data(), bytes.size());
  }
  std::unique_ptr<PlatformProgram> compile(const HloModule& module,
                                           const PlatformOptions&) override {
    if (mistake == Mistake::kRefuses)
      throw Error(ErrorCode::kUnimplemented, "echo knows no such program");
    return std::make_unique<Evaluated>(module);
  }
};

class PlatformTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    register_platform("echo", [] { return std::make_unique<Echo>(); });
  }
  void SetUp() override { mistake = Mistake::kNone; }

  // Of reading what is computed on the device; a graph that no other test has.
  static std::string ErrorOf(int size, ErrorCode* code) {
    const Tensor x =
        tensor(std::vector<float>(static_cast<std::size_t>(size), 1.0f), {size}, Device("echo"));
    const Tensor y = x + x;
    try {
      y.to_vector<float>();
    } catch (const Error& error) {
      *code = error.code();
      return error.what();
    }
    return "no error";
  }
};

TEST_F(PlatformTest, TensorsGradientsAndModulesWorkOnItsDevices) {
  const Device device("echo:1");
  Tensor x = tensor({1.0f, 2.0f}).to(device);
  x.set_requires_grad(true);
  (x * x).sum().backward();
  EXPECT_EQ(x.grad().device().name(), "echo:1");
  EXPECT_THAT(x.grad().to_vector<float>(), ElementsAre(2, 4));
  const HloModule module = HloModule::parse(
      "HloModule m\nENTRY main { p = f32[2] parameter(0) ROOT n = f32[2] negate(p) }");
  const auto results = module.compile(device).run({x.detach()});
  EXPECT_THAT(results[0].to_vector<float>(), ElementsAre(-1, -2));
  EXPECT_EQ(module.compile(device).to_string(), "evaluated");
}

TEST_F(PlatformTest, ItsMistakesAreErrorsOfTheTensorsConcerned) {
  ErrorCode code{};
  mistake = Mistake::kRefuses;
  EXPECT_THAT(ErrorOf(3, &code), HasSubstr("echo: echo knows no such program"));
  EXPECT_EQ(code, ErrorCode::kUnimplemented);
  mistake = Mistake::kLosesResults;
  EXPECT_THAT(ErrorOf(4, &code), HasSubstr("gave 0 arrays, not 1"));
  mistake = Mistake::kThrows;
  EXPECT_THAT(ErrorOf(5, &code), HasSubstr("echo: a wire broke"));
  mistake = Mistake::kNone;
  EXPECT_EQ(ErrorOf(6, &code), "no error");
}

TEST_F(PlatformTest, NamesAreNewAndPlain) {
  const auto refused = [](const std::string& name) -> std::string {
    try {
      register_platform(name, [] { return std::make_unique<Echo>(); });
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(refused("cpu"), HasSubstr("there is a platform cpu already"));
  EXPECT_THAT(refused("echo"), HasSubstr("there is a platform echo already"));
  EXPECT_THAT(refused("My Device"), HasSubstr("is not a name for a platform"));
  EXPECT_THAT(refused(""), HasSubstr("is not a name for a platform"));
}

}  // namespace
}  // namespace lazuli
