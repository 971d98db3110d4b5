#include "lazuli/random.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "cpp_api/src/operands.h"
#include "lazy/ops/functions.h"
#include "lazy/ops/random.h"
#include "lazy/tensor/random.h"

namespace lazuli {

struct GeneratorAccess {
  static lazy::Generator& Get(const OptionalGenerator& generator) {
    return generator ? *static_cast<lazy::Generator*>(generator->impl_.get())
                     : lazy::DefaultGenerator();
  }
};

namespace {

lazy::Generator& Of(const std::shared_ptr<void>& impl) {
  return *static_cast<lazy::Generator*>(impl.get());
}

// target := what `make` draws for its shape.
template <class F>
Tensor& Draw(std::string_view op, Tensor& target, const SourceLocation& loc, F make) {
  Call(loc, [&] {
    const lazy::Tensor t = In(target, op);
    lazy::CheckAssignable(op, t);
    lazy::Assign(op, t, make(t));
  });
  return target;
}

using Drawn = const OptionalGenerator&;

lazy::Generator& In(Drawn generator) { return GeneratorAccess::Get(generator); }

}  // namespace

Generator::Generator(std::shared_ptr<void> impl, const Device& device)
    : impl_(std::move(impl)), device_(device) {}
Generator::Generator(const Device& device)
    : Generator(std::make_shared<lazy::Generator>(), device) {}
Generator Generator::default_generator() {
  return Generator(std::shared_ptr<void>(std::shared_ptr<void>(), &lazy::DefaultGenerator()),
                   Device());
}
Generator& Generator::manual_seed(std::uint64_t seed) {
  Of(impl_).ManualSeed(seed);
  return *this;
}
std::uint64_t Generator::seed() { return Of(impl_).Seed(); }
std::uint64_t Generator::initial_seed() const { return Of(impl_).initial_seed(); }
Tensor Generator::get_state() const {
  const lazy::PhiloxState state = Of(impl_).state();
  return from_data(&state, DType::kU8, {sizeof(state)}, Device("cpu"));
}
Generator& Generator::set_state(const Tensor& state) {
  lazy::PhiloxState given;
  const bool is_bytes = state.defined() && state.dtype() == kUInt8;
  if (!is_bytes || state.numel() != static_cast<std::int64_t>(sizeof(given))) {
    throw Error(is_bytes ? ErrorCode::kFailedPrecondition : ErrorCode::kWrongType,
                "set_state: a state is a tensor of 16 bytes (uint8), as get_state() gives it");
  }
  std::memcpy(&given, state.to_bytes().data(), sizeof(given));
  Of(impl_).Exchange(given);
  return *this;
}
Generator Generator::clone_state() const {
  Generator made(device_);
  Of(made.impl_).Exchange(Of(impl_).state());
  return made;
}

std::uint64_t initial_seed() { return lazy::DefaultGenerator().initial_seed(); }
std::uint64_t seed() { return lazy::DefaultGenerator().Seed(); }
Tensor get_rng_state() { return Generator::default_generator().get_state(); }
void set_rng_state(const Tensor& state) { Generator::default_generator().set_state(state); }

// --- new tensors

Tensor rand(const Dims& dims, DType dtype, const Device& device, Drawn generator,
            SourceLocation loc) {
  return CallTensor(loc, [&] { return lazy::Rand(dims, In(dtype), In(device), In(generator)); });
}
Tensor randn(const Dims& dims, DType dtype, const Device& device, Drawn generator,
             SourceLocation loc) {
  return CallTensor(loc, [&] { return lazy::Randn(dims, In(dtype), In(device), In(generator)); });
}
Tensor randint(std::int64_t low, std::int64_t high, const Dims& dims, DType dtype,
               const Device& device, Drawn generator, SourceLocation loc) {
  return CallTensor(
      loc, [&] { return lazy::Randint(low, high, dims, In(dtype), In(device), In(generator)); });
}
Tensor randperm(std::int64_t n, DType dtype, const Device& device, Drawn generator,
                SourceLocation loc) {
  return CallTensor(loc, [&] { return lazy::Randperm(n, In(dtype), In(device), In(generator)); });
}
Tensor normal(const Tensor& mean, const Tensor& std, Drawn generator, SourceLocation loc) {
  return CallTensor(loc, [&] {
    return lazy::Normal(In(mean, "normal"), In(std, "normal", 1, "std"), In(generator));
  });
}
Tensor normal(const Tensor& mean, double std, Drawn generator, SourceLocation loc) {
  return CallTensor(loc, [&] { return lazy::Normal(In(mean, "normal"), std, In(generator)); });
}
Tensor normal(double mean, const Tensor& std, Drawn generator, SourceLocation loc) {
  return CallTensor(loc,
                    [&] { return lazy::Normal(mean, In(std, "normal", 1, "std"), In(generator)); });
}
Tensor normal(double mean, double std, const Dims& dims, DType dtype, const Device& device,
              Drawn generator, SourceLocation loc) {
  return CallTensor(
      loc, [&] { return lazy::Normal(mean, std, dims, In(dtype), In(device), In(generator)); });
}
Tensor bernoulli(const Tensor& x, Drawn generator, SourceLocation loc) {
  return CallTensor(loc, [&] { return lazy::Bernoulli(In(x, "bernoulli"), In(generator)); });
}
Tensor bernoulli(const Tensor& x, double p, Drawn generator, SourceLocation loc) {
  return CallTensor(loc, [&] { return lazy::Bernoulli(In(x, "bernoulli"), p, In(generator)); });
}
Tensor multinomial(const Tensor& x, std::int64_t num_samples, bool replacement, Drawn generator,
                   SourceLocation loc) {
  return CallTensor(loc, [&] {
    return lazy::Multinomial(In(x, "multinomial"), num_samples, replacement, In(generator));
  });
}

// --- in place

Tensor& uniform_(Tensor& x, double low, double high, Drawn generator, SourceLocation loc) {
  return Draw("uniform_", x, loc, [&](const lazy::Tensor& t) {
    return lazy::DrawUniform(t, low, high, In(generator));
  });
}
Tensor& normal_(Tensor& x, double mean, double std, Drawn generator, SourceLocation loc) {
  return Draw("normal_", x, loc, [&](const lazy::Tensor& t) {
    return lazy::DrawNormal("normal_", t, mean, std, In(generator));
  });
}
Tensor& log_normal_(Tensor& x, double mean, double std, Drawn generator, SourceLocation loc) {
  return Draw("log_normal_", x, loc, [&](const lazy::Tensor& t) {
    return lazy::DrawLogNormal(t, mean, std, In(generator));
  });
}
Tensor& exponential_(Tensor& x, double lambd, Drawn generator, SourceLocation loc) {
  return Draw("exponential_", x, loc, [&](const lazy::Tensor& t) {
    return lazy::DrawExponential(t, lambd, In(generator));
  });
}
Tensor& cauchy_(Tensor& x, double median, double sigma, Drawn generator, SourceLocation loc) {
  return Draw("cauchy_", x, loc, [&](const lazy::Tensor& t) {
    return lazy::DrawCauchy(t, median, sigma, In(generator));
  });
}
Tensor& geometric_(Tensor& x, double p, Drawn generator, SourceLocation loc) {
  return Draw("geometric_", x, loc,
              [&](const lazy::Tensor& t) { return lazy::DrawGeometric(t, p, In(generator)); });
}
Tensor& bernoulli_(Tensor& x, double p, Drawn generator, SourceLocation loc) {
  return Draw("bernoulli_", x, loc,
              [&](const lazy::Tensor& t) { return lazy::Bernoulli(t, p, In(generator)); });
}
Tensor& bernoulli_(Tensor& x, const Tensor& p, Drawn generator, SourceLocation loc) {
  return Draw("bernoulli_", x, loc, [&](const lazy::Tensor& t) {
    const lazy::Tensor drawn = lazy::Bernoulli(
        lazy::BroadcastTo(In(p, "bernoulli_", 1, "p"), t.shape().dims()), In(generator));
    return lazy::To(drawn, t.dtype());
  });
}
Tensor& random_(Tensor& x, std::int64_t low, std::optional<std::int64_t> high, Drawn generator,
                SourceLocation loc) {
  return Draw("random_", x, loc, [&](const lazy::Tensor& t) {
    return lazy::DrawInteger(t, low, high, In(generator));
  });
}

}  // namespace lazuli
