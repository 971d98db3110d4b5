// Values as error messages of the library's own layers show them.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>

#include "lazuli/tensor.h"

namespace lazuli::internal {

// "f32[64,784]".
inline std::string ShapeText(const Tensor& x) {
  std::string text(to_string(x.dtype()));
  text += '[';
  const Dims dims = x.sizes();
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) text += ',';
    text += std::to_string(dims[i]);
  }
  return text + ']';
}

// "0.1".
inline std::string NumberText(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

}  // namespace lazuli::internal
