// LayerText: the line that a layer prints of its options.
#pragma once

#include <cctype>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "lazuli/nn.h"
#include "lazuli/torch/tensor.h"

namespace lazuli::torch_names::nn {

// What a layer prints: torch::nn::Conv2d(1, 2, kernel_size=[3, 3], stride=[1, 1]).
class LayerText {
 public:
  LayerText(std::ostream& os, const char* layer, std::size_t dims) : os_(os), dims_(dims) {
    os << "torch::nn::" << layer << '(';
  }
  LayerText(const LayerText&) = delete;
  LayerText& operator=(const LayerText&) = delete;
  ~LayerText() { os_ << ')'; }
  template <class T>
  void operator()(const char* name, const T& value) {
    Next() << name << '=';
    Put(value);
  }
  template <class T>
  void operator()(const char* name, const std::optional<T>& value) {  // nothing of none
    if (value) (*this)(name, *value);
  }
  template <class T>
  void Bare(const T& value) {
    Next();
    Put(value);
  }
  template <class T>
  void IfNot(const T& usual, const char* name, const T& value) {
    if (Text(usual) != Text(value)) (*this)(name, value);
  }
  // One number for each dim of the layer: one stands for all, and none for those of `usual`.
  Dims Each(const Dims& numbers, const Dims& usual) const {
    const Dims& given = numbers.empty() ? usual : numbers;
    return given.size() == 1 ? Dims(dims_, given[0]) : given;
  }
  Dims Each(const Dims& numbers, std::int64_t usual) const { return Each(numbers, Dims{usual}); }

 private:
  std::ostream& Next() {
    if (!std::exchange(first_, false)) os_ << ", ";
    return os_;
  }
  template <class T>
  static std::string Text(const T& value) {
    std::ostringstream text;
    LayerText(text, "", 0).Put(value);
    return text.str();
  }
  template <class T>
  void Put(const std::optional<T>& value) {
    if (value) Put(*value);
  }
  void Put(bool on) { os_ << (on ? "true" : "false"); }
  void Put(std::int64_t number) { os_ << number; }
  void Put(double number) { os_ << number; }
  void Put(const std::string& mode) {  // kBilinear
    os_ << 'k' << static_cast<char>(std::toupper(mode[0])) << mode.substr(1);
  }
  void Put(Size2 size) { os_ << Dims{size.height, size.width}; }
  void Put(const lazuli::Padding& padding) {
    if (padding.same)
      os_ << "'same'";
    else
      Put(static_cast<Size2>(padding));
  }
  void Put(const Dims& numbers) {
    if (dims_ == 1 && numbers.size() == 1)
      os_ << numbers[0];
    else
      os_ << numbers;
  }
  void Put(const std::vector<double>& numbers) {
    for (std::size_t i = 0; i < numbers.size(); ++i) os_ << (i == 0 ? "[" : ", ") << numbers[i];
    if (!numbers.empty()) os_ << ']';
  }
  template <std::size_t N>
  void Put(const lazuli::nn::Sides<N>& sides) {
    os_ << Dims(sides.begin(), sides.end());
  }
  std::ostream& os_;
  std::size_t dims_;
  bool first_ = true;
};

}  // namespace lazuli::torch_names::nn
