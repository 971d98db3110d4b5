// Random generators, and what is drawn with them. ops.h has rand() and others of the process' own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "lazuli/ops.h"
#include "lazuli/tensor.h"

namespace lazuli {

// A stream of random numbers: a seed, and how far it has been used. Copies are one stream. The same
// seed gives the same bits on every device.
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

LAZULI_API std::uint64_t initial_seed();
LAZULI_API std::uint64_t seed();
LAZULI_API Tensor get_rng_state();
LAZULI_API void set_rng_state(const Tensor& state);

// --- new tensors
LAZULI_API Tensor rand(const Dims& dims, DType dtype, const Device& device,
                       const OptionalGenerator& generator, LAZULI_LOC);
LAZULI_API Tensor randn(const Dims& dims, DType dtype, const Device& device,
                        const OptionalGenerator& generator, LAZULI_LOC);
LAZULI_API Tensor randint(std::int64_t low, std::int64_t high, const Dims& dims, DType dtype,
                          const Device& device, const OptionalGenerator& generator, LAZULI_LOC);
LAZULI_API Tensor randperm(std::int64_t n, DType dtype, const Device& device,
                           const OptionalGenerator& generator, LAZULI_LOC);
// Normal, each element with its mean and deviation; a negative deviation fails the run.
LAZULI_API Tensor normal(const Tensor& mean, const Tensor& std,
                         const OptionalGenerator& generator = {}, LAZULI_LOC);
LAZULI_API Tensor normal(const Tensor& mean, double std = 1,
                         const OptionalGenerator& generator = {}, LAZULI_LOC);
LAZULI_API Tensor normal(double mean, const Tensor& std, const OptionalGenerator& generator = {},
                         LAZULI_LOC);
LAZULI_API Tensor normal(double mean, double std, const Dims& dims, DType dtype = kFloat32,
                         const Device& device = Device(), const OptionalGenerator& generator = {},
                         LAZULI_LOC);
// 1 with the probability that an element of x is, else 0; an element outside [0, 1] fails the run.
LAZULI_API Tensor bernoulli(const Tensor& x, const OptionalGenerator& generator = {}, LAZULI_LOC);
// 1 with probability p, else 0, with the dims, dtype and device of x.
LAZULI_API Tensor bernoulli(const Tensor& x, double p, const OptionalGenerator& generator = {},
                            LAZULI_LOC);
// Positions along the last dim of x, of rank 1 or 2, drawn with the weights that stand there: s64,
// num_samples a row. A weight that is negative or not finite fails the run, and so do less weights
// above 0 than are to be drawn.
LAZULI_API Tensor multinomial(const Tensor& x, std::int64_t num_samples, bool replacement = false,
                              const OptionalGenerator& generator = {}, LAZULI_LOC);

// --- in place
LAZULI_API Tensor& uniform_(Tensor& x, double low = 0, double high = 1,
                            const OptionalGenerator& generator = {}, LAZULI_LOC);
LAZULI_API Tensor& normal_(Tensor& x, double mean = 0, double std = 1,
                           const OptionalGenerator& generator = {}, LAZULI_LOC);
LAZULI_API Tensor& log_normal_(Tensor& x, double mean = 1, double std = 2,
                               const OptionalGenerator& generator = {}, LAZULI_LOC);
LAZULI_API Tensor& exponential_(Tensor& x, double lambd = 1,
                                const OptionalGenerator& generator = {}, LAZULI_LOC);
LAZULI_API Tensor& cauchy_(Tensor& x, double median = 0, double sigma = 1,
                           const OptionalGenerator& generator = {}, LAZULI_LOC);
// How many trials it takes until one with probability p succeeds.
LAZULI_API Tensor& geometric_(Tensor& x, double p, const OptionalGenerator& generator = {},
                              LAZULI_LOC);
LAZULI_API Tensor& bernoulli_(Tensor& x, double p = 0.5, const OptionalGenerator& generator = {},
                              LAZULI_LOC);
LAZULI_API Tensor& bernoulli_(Tensor& x, const Tensor& p, const OptionalGenerator& generator = {},
                              LAZULI_LOC);
// Integers in [low, high); without `high` all that the dtype holds from low on, of floats all that
// they hold without gaps.
LAZULI_API Tensor& random_(Tensor& x, std::int64_t low = 0, std::optional<std::int64_t> high = {},
                           const OptionalGenerator& generator = {}, LAZULI_LOC);

}  // namespace lazuli
