// How the windows of a reduce-window or select-and-scatter lie on the array they slide over.
#pragma once

#include <algorithm>

#include "ir/hlo/module.h"

namespace lazuli::hlo {

// Some element lies in two windows.
inline bool WindowsOverlap(const Window& window) {
  return std::any_of(window.begin(), window.end(), [](const WindowDim& w) {
    return (w.size - 1) * w.window_dilation >= w.stride;
  });
}

// Every element of `array` lies in a window; `positions` has one element for each window.
inline bool WindowsCover(const Window& window, const Shape& array, const Shape& positions) {
  for (std::size_t d = 0; d < window.size(); ++d) {
    const WindowDim& w = window[d];
    const auto dim = static_cast<int64_t>(d);
    if (w.window_dilation != 1 || w.stride > w.size) return false;
    if ((positions.dim(dim) - 1) * w.stride + w.size - w.pad_low < array.dim(dim)) return false;
  }
  return true;
}

}  // namespace lazuli::hlo
