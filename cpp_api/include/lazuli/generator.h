// Generator: a stream of random numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "lazuli/device.h"
#include "lazuli/export.h"

namespace lazuli {

class Tensor;

// A seed, and how far it has been used. Copies are one stream. The same seed gives the same bits on
// every device.
class LAZULI_API Generator {
 public:
  explicit Generator(const Device& device = Device());  // seeded with 0; the device is only a name
  static Generator default_generator();                 // the process' own
  Generator& manual_seed(std::uint64_t seed);
  std::uint64_t seed();                // seeds it with what the system draws
  std::uint64_t initial_seed() const;  // what it was seeded with
  Tensor get_state() const;            // 16 bytes
  Generator& set_state(const Tensor& state);
  Generator clone_state() const;  // another stream that goes on from here
  const Device& device() const { return device_; }
  bool operator==(const Generator& other) const { return impl_ == other.impl_; }

 private:
  friend struct GeneratorAccess;
  Generator(std::shared_ptr<void> impl, const Device& device);
  std::shared_ptr<void> impl_;
  Device device_;
};
// None is the process' own.
using OptionalGenerator = std::optional<Generator>;

}  // namespace lazuli
