// Lesson 15: Fourier transforms. The spectrogram of a rising tone, and the tone without its noise.
#include <iomanip>
#include <iostream>
#include <numbers>
#include <string>
#include <vector>

#include <lazuli/lazuli.h>

namespace lz = lazuli;

int main() {
  constexpr std::int64_t kRate = 8000, kSize = 256, kHop = kSize / 4;
  lz::manual_seed(0);
  const lz::Tensor t = lz::arange(kRate).to(lz::kFloat32) / static_cast<double>(kRate);
  // From 200 Hz to 1800 Hz in a second.
  const lz::Tensor tone = (2 * std::numbers::pi * (200.0 * t + 800.0 * t * t)).sin();
  const lz::Tensor heard = tone + 0.5 * lz::randn({kRate});

  const lz::Tensor window = lz::hann_window(kSize);
  const auto frames_of = [&](const lz::Tensor& x) {  // [frequencies, frames]
    return lz::stft(x, kSize, kHop, {}, window, true, "reflect", false, {}, true);
  };
  const lz::Tensor spectrogram = frames_of(heard);
  const std::vector<float> loudest = lz::fft::rfftfreq(kSize, 1.0 / kRate)
                                         .index_select(0, spectrogram.abs().argmax(0))
                                         .to_vector<float>();
  for (std::size_t frame = 4; frame < loudest.size(); frame += 24) {
    std::cout << std::fixed << std::setprecision(2) << std::setw(5)
              << static_cast<double>(frame) * kHop / kRate << " s |"
              << std::string(static_cast<std::size_t>(loudest[frame] / 40), '#') << "\n";
  }

  // What is quiet is left out of every frame.
  const lz::Tensor loud = spectrogram.abs() > 0.35 * spectrogram.abs().amax({0});
  const lz::Tensor kept = lz::where(loud, spectrogram, lz::zeros_like(spectrogram));
  const lz::Tensor cleaned =
      lz::istft(kept, kSize, kHop, {}, window, true, false, {}, /*length=*/kRate);
  const auto noise = [&](const lz::Tensor& x) {
    return ((x - tone) * (x - tone)).mean().sqrt().item<float>();
  };
  std::cout << "noise: " << noise(heard) << " before, " << noise(cleaned) << " after\n";
  return noise(cleaned) < 0.5f * noise(heard) ? 0 : 1;
}
