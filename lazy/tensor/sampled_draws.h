// Random numbers of a function that is traced for one of many samples.
#pragma once

#include <cstdint>

namespace lazuli::lazy {

// While it lives, what this thread draws is drawn for each of so many samples. Scopes nest: samples
// multiply, and what one of them refuses is refused.
class SampledDraws {
 public:
  enum class Kind : uint8_t {
    kRefused,    // an error
    kSame,       // all samples draw the same numbers
    kDifferent,  // each sample has numbers of its own, which the generator moves on by
  };
  SampledDraws(Kind kind, int64_t samples);
  ~SampledDraws();
  SampledDraws(const SampledDraws&) = delete;
  SampledDraws& operator=(const SampledDraws&) = delete;

  // How many numbers an op takes that draws so many for one sample. Throws StatusError where they are
  // refused.
  static int64_t NumbersFor(int64_t one_sample);

 private:
  const int64_t outer_;
  const bool outer_refuses_;
};

}  // namespace lazuli::lazy
