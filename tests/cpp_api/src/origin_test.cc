// Where nodes come from, beyond their line: scopes, stacks, notes.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <lazuli/lazuli.h>

namespace user {

using lazuli::Tensor;

struct Gate : lazuli::nn::Layer<Gate> {
  Gate() { register_module("fc", fc); }
  Tensor forward(const Tensor& x, lazuli::SourceLocation = {}) const {
    const lazuli::NameScope scope("mix");
    return fc(x) * 2.0;
  }
  lazuli::nn::Linear fc{3, 3};
};
struct Net : lazuli::nn::Layer<Net> {
  Net() { register_module("gate", gate); }
  Tensor forward(const Tensor& x, lazuli::SourceLocation = {}) const { return gate(x) + 1.0; }
  Gate gate;
};

[[gnu::noinline]] Tensor Inner(const Tensor& x) { return x + x; }
[[gnu::noinline]] std::vector<Tensor> Outer(const Tensor& x) {
  return {Inner(x)};  // no tail call
}

}  // namespace user

namespace lazuli {
namespace {

using testing::HasSubstr;

TEST(OriginTest, LayersAndNameScopesNest) {
  const user::Net net;
  const Tensor y = net(ones({2, 3}));
  EXPECT_EQ(debug::scope(y), "Net");
  const std::string text = debug::graph_text({y});
  EXPECT_THAT(text, HasSubstr("scope=Net/gate/mix/fc, "));
  EXPECT_THAT(text, HasSubstr(", scope=Net/gate/mix, "));
  EXPECT_THAT(debug::graph_hlo({y}), HasSubstr("op_name=\"Net/gate/mix/fc/aten__linear\""));
  EXPECT_EQ(NameScope::current(), "");
  EXPECT_EQ(debug::scope(net.gate(ones({2, 3}))), "gate/mix");
}

TEST(OriginTest, ProfilerScopesAreNamesToo) {
  Tensor y;
  {
    const profiler::Scope scope("loss");
    y = ones({2}) + 1.0;
  }
  EXPECT_EQ(debug::scope(y), "loss");
}

TEST(OriginTest, NotesAreKept) {
  const Tensor y = (ones({5}) * 3.0).sum();
  debug::set_user_metadata(y, "mine");
  EXPECT_EQ(debug::user_metadata(y), "mine");
  EXPECT_EQ(y.item<float>(), 15);
}

TEST(OriginTest, StacksOfCppAreThoseOfTheUser) {
  const Tensor x = ones({2});
  EXPECT_EQ(debug::stack(user::Outer(x)[0]).size(), 1u);
  debug::set_ir_debug(true);
  const std::vector<debug::Frame> frames = debug::stack(user::Outer(x)[0]);
  debug::set_ir_debug(false);
  ASSERT_GE(frames.size(), 2u);
  EXPECT_THAT(frames[0].function, HasSubstr("user::Inner"));
  EXPECT_EQ(frames[0].line, 28);
  // With debug information or exported names the callers have theirs; without, they are "?".
  for (std::size_t i = 1; i < frames.size(); ++i)
    EXPECT_THAT(frames[i].function, testing::Not(HasSubstr("Unwind")));
}

TEST(OriginTest, TablesAndPagesOfPendingGraphs) {
  const Tensor y = ones({2}) + 1.0;
  EXPECT_THAT(debug::graph_table({y}), HasSubstr("aten::add"));
  EXPECT_THAT(debug::graph_html({y}), testing::StartsWith("<!doctype html>"));
}

}  // namespace
}  // namespace lazuli
