// What is recorded, printed and reported has the line of the user who asked for it, also where the
// library calls the user in between.
#include <cstdint>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <lazuli/lazuli.h>

namespace lazuli {
namespace {

using testing::HasSubstr;

std::string Place(int line) { return "sites_test.cc:" + std::to_string(line); }

// The message of the Error that f throws.
template <class F>
std::string MessageOf(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(SitesTest, PrintingATensorNamesTheLineThatPrints) {
  set_memory_limit(1);
  const Tensor x = ones({1000}) + 1;
  std::ostringstream out;
  const std::string message = MessageOf([&] { out << x; });
  set_memory_limit(0);
  EXPECT_THAT(message, HasSubstr(Place(__LINE__ - 2)));
}

TEST(SitesTest, AnUndefinedTensorAndAParameterCanBePrinted) {
  std::ostringstream out;
  out << Tensor() << ' ' << nn::Parameter(ones({2}));
  EXPECT_EQ(out.str(), "undefined f32[2] {1, 1}");
}

TEST(SitesTest, AHookRecordsItsOwnLines) {
  Tensor x = ones({2}), y;
  x.set_requires_grad(true);
  Tensor leaf, inner;
  x.register_hook([&](const Tensor& gradient) {
    leaf = gradient * 2.0;
    return Tensor();
  });
  const int leaf_line = __LINE__ - 3;
  y = x * x;
  const int forward_line = __LINE__ - 1;
  y.register_hook([&](const Tensor& gradient) { return inner = exp(gradient); });
  const int inner_line = __LINE__ - 1;
  y.sum().backward();
  EXPECT_THAT(debug::graph_text({leaf}), HasSubstr(Place(leaf_line)));
  const std::string text = debug::graph_text({inner});
  EXPECT_THAT(text, HasSubstr("aten::exp"));
  EXPECT_THAT(text.substr(text.find("aten::exp")), HasSubstr(Place(inner_line)));
  // What the library records after the hook has the line that it had before.
  EXPECT_THAT(debug::graph_text({x.grad()}), HasSubstr(Place(forward_line)));
}

TEST(SitesTest, AFunctionThatIsCheckedRecordsItsOwnLines) {
  const Tensor x = ones({2}, kFloat64);
  const std::string message = MessageOf([&] {
    gradcheck(
        [](const std::vector<Tensor>& inputs) {
          return sum(inputs[0] + ones({3}, kFloat64));  // of other dims
        },
        {x});
  });
  EXPECT_THAT(message, HasSubstr(Place(__LINE__ - 4)));
}

class WrongRows final : public data::Dataset {
 public:
  std::int64_t size() const override { return 4; }
  data::HostBatch get(std::span<const std::int64_t>) const override {
    return {data::HostArray::zeros({7, 2}, kFloat32), data::HostArray::zeros({7}, kInt64)};
  }
};

TEST(SitesTest, ADataLoaderNamesTheLineOfTheLoop) {
  for (const std::int64_t prefetch : {0, 2}) {
    data::DataLoader loader(WrongRows(), {.batch_size = 2, .prefetch = prefetch});
    const std::string message = MessageOf([&] {
      for (auto& batch : loader) (void)batch;
    });
    EXPECT_THAT(message, HasSubstr(Place(__LINE__ - 2)));
  }
}

}  // namespace
}  // namespace lazuli
