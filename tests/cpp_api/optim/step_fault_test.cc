// Memory that cannot be had, at every place where a step of an optimiser asks for some: the step
// moves all parameters or none. Its own program, because it replaces operator new.
//
// Builds with a sanitizer see every object, as the pool of small objects is off there; otherwise a
// thread that has just begun sees many, because its part of the pool is empty.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <lazuli/lazuli.h>

namespace {

thread_local std::int64_t allocations_left = -1;  // until one fails; negative: all succeed

void* Allocate(std::size_t bytes) noexcept {
  const bool fails = allocations_left == 0;
  if (allocations_left >= 0) --allocations_left;
  return fails ? nullptr : std::malloc(bytes);
}

}  // namespace

#include "tests/support/replace_new.h"

namespace lazuli {
namespace {

// What a step moves.
struct Values {
  std::vector<float> parameters;
  decltype(StateDict::metadata) counts;
  std::vector<float> states;
  bool operator==(const Values&) const = default;
};

// Parameters of two dtypes and of different ages, which are three updates.
template <class Optimizer, class Options>
class Model {
 public:
  explicit Model(const Options& options) : opt_({old_, young_, other_}, options) {
    old_.set_grad(full({2}, 0.5));
    opt_.step();
    for (Tensor* p : {&old_, &young_, &other_}) p->set_grad(full(p->sizes(), 0.25, p->dtype()));
    sync(/*wait=*/true);
  }
  optim::Optimizer& opt() { return opt_; }
  Values Now() {
    Values values;
    const auto state = opt_.state_dict();
    values.counts = state.metadata;
    const auto append = [](std::vector<float>& to, const Tensor& x) {
      for (const float value : x.to(kFloat32).template to_vector<float>()) to.push_back(value);
    };
    for (const Tensor& p : opt_.parameters()) append(values.parameters, p);
    for (const auto& [name, tensor] : state.tensors) append(values.states, tensor);
    return values;
  }

 private:
  static Tensor Parameter(DType dtype) { return ones({2}, dtype).set_requires_grad(true); }
  Tensor old_ = Parameter(kFloat32), young_ = Parameter(kFloat32), other_ = Parameter(kFloat64);
  Optimizer opt_;
};

// One step that gets no memory at allocation `n`; whether there was such an allocation.
template <class Optimizer, class Options>
bool FailStep(const Options& options, std::int64_t n) {
  Model<Optimizer, Options> model(options), expected(options);
  const Values before = model.Now();
  expected.opt().step();
  const Values after = expected.Now();
  EXPECT_NE(before, after);
  bool threw = false;
  allocations_left = n;
  try {
    model.opt().step();
  } catch (const std::bad_alloc&) {
    threw = true;
  } catch (const Error& error) {
    threw = true;
    EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted) << error.what();
  }
  allocations_left = -1;
  EXPECT_EQ(model.Now(), threw ? before : after) << "allocation " << n;
  if (threw) {
    model.opt().step();
    EXPECT_EQ(model.Now(), after) << "the step after, allocation " << n;
  }
  return threw;
}

template <class Optimizer, class Options>
void FailEach(const Options& options) {
  std::int64_t failed = 0;
  for (bool again = true; again; failed += again ? 1 : 0)
    std::thread([&] { again = FailStep<Optimizer>(options, failed); }).join();
  EXPECT_GT(failed, 10);
}

TEST(StepFaultTest, SgdMovesAllOrNone) {
  FailEach<optim::SGD>(optim::SGDOptions{.lr = 0.5, .momentum = 0.5});
}

TEST(StepFaultTest, AdamMovesAllOrNone) {
  FailEach<optim::Adam>(optim::AdamOptions{.lr = 0.5, .amsgrad = true});
}

TEST(StepFaultTest, RmspropMovesAllOrNone) {
  FailEach<optim::RMSprop>(optim::RMSpropOptions{.momentum = 0.5, .centered = true});
}

}  // namespace
}  // namespace lazuli
