#include "lazuli/random.h"

#include <cstring>
#include <memory>
#include <utility>

#include "cpp_api/src/operands.h"
#include "lazy/tensor/random.h"

namespace lazuli {

namespace {
lazy::Generator& Of(const std::shared_ptr<void>& impl) {
  return *static_cast<lazy::Generator*>(impl.get());
}
}  // namespace

lazy::Generator& GeneratorAccess::Get(const OptionalGenerator& generator) {
  return generator ? Of(generator->impl_) : lazy::DefaultGenerator();
}

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

}  // namespace lazuli
