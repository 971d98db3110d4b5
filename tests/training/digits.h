// Made-up digits in MNIST's format, for tests that need data to learn from where MNIST is not
// there.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace lazuli::test {

// A 5 x 7 font, row by row.
inline constexpr std::array<std::string_view, 10> kGlyphs = {
    "01110100011001110101110011000101110",  // 0
    "00100011000010000100001000010001110",  // 1
    "01110100010000100010001000100011111",  // 2
    "11111000100010000010000011000101110",  // 3
    "00010001100101010010111110001000010",  // 4
    "11111100001111000001000011000101110",  // 5
    "00110010001000011110100011000101110",  // 6
    "11111000010001000100010000100001000",  // 7
    "01110100011000101110100011000101110",  // 8
    "01110100011000101111000010001001100",  // 9
};

// The glyph, three times as large, moved by up to 2 pixels, dimmed by up to a half, under noise.
// Sizes are of MNIST: 28 x 28.
inline std::vector<std::uint8_t> DrawDigit(int digit, std::mt19937& random) {
  std::vector<std::uint8_t> image(28 * 28);
  for (std::uint8_t& pixel : image) pixel = static_cast<std::uint8_t>(random() % 64);
  const unsigned top = 1 + random() % 5, left = 4 + random() % 5, brightness = 128 + random() % 128;
  for (unsigned y = 0; y < 21; ++y) {
    for (unsigned x = 0; x < 15; ++x) {
      if (kGlyphs[digit][y / 3 * 5 + x / 3] != '1') continue;
      image[(top + y) * 28 + left + x] = static_cast<std::uint8_t>(brightness);
    }
  }
  return image;
}

inline void WriteIdx(const std::filesystem::path& path, const std::vector<std::uint32_t>& dims,
                     const std::vector<std::uint8_t>& bytes) {
  std::ofstream out(path, std::ios::binary);
  const auto put = [&out](std::uint32_t v) {
    for (int shift = 24; shift >= 0; shift -= 8) out.put(static_cast<char>(v >> shift));
  };
  put(0x0800u | static_cast<std::uint32_t>(dims.size()));
  for (const std::uint32_t d : dims) put(d);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
}

// The four files; the same ones every time.
inline void WriteDigits(const std::filesystem::path& folder, std::uint32_t train,
                        std::uint32_t test) {
  std::filesystem::create_directories(folder);
  std::mt19937 random(1);
  for (const auto& [prefix, count] : {std::pair{"train", train}, std::pair{"t10k", test}}) {
    std::vector<std::uint8_t> images, labels;
    for (std::uint32_t i = 0; i < count; ++i) {
      labels.push_back(static_cast<std::uint8_t>(random() % 10));
      const auto image = DrawDigit(labels.back(), random);
      images.insert(images.end(), image.begin(), image.end());
    }
    WriteIdx(folder / (std::string(prefix) + "-images-idx3-ubyte"), {count, 28, 28}, images);
    WriteIdx(folder / (std::string(prefix) + "-labels-idx1-ubyte"), {count}, labels);
  }
}

}  // namespace lazuli::test
