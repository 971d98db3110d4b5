// Functions that choose the dtypes of their arguments while an Autocast lives (lazuli/amp.h). The
// lines @narrow, @float32 and @widest of the rows say which they are (lazy/ops/functions).
#pragma once

#include <optional>
#include <vector>

#include "lazuli/amp.h"
#include "lazuli/tensor.h"

namespace lazuli {

// What Autocast narrows to, of this thread.
extern thread_local constinit std::optional<DType> autocast_to;

// The dtype that a function of the kind takes.
enum class Precision : std::uint8_t { kNarrow, kFloat32, kWidest };

// The arguments of one call, converted. While it lives, autocast is off: the function is called again.
class CastArguments {
 public:
  template <class... T>
  CastArguments(Precision precision, const SourceLocation& loc, const T&... arguments)
      : dtype_(precision == Precision::kNarrow ? *autocast_to : kFloat32), loc_(loc) {
    if (precision == Precision::kWidest) {
      dtype_ = *autocast_to;
      (Widen(arguments), ...);
    }
    autocast_to.reset();
  }
  ~CastArguments() { autocast_to = saved_; }
  CastArguments(const CastArguments&) = delete;
  CastArguments& operator=(const CastArguments&) = delete;

  Tensor operator()(const Tensor& x) const;
  std::vector<Tensor> operator()(const std::vector<Tensor>& xs) const;

 private:
  void Widen(const Tensor& x);
  void Widen(const std::vector<Tensor>& xs) {
    for (const Tensor& x : xs) Widen(x);
  }

  const std::optional<DType> saved_ = autocast_to;
  DType dtype_;
  const SourceLocation& loc_;
};

}  // namespace lazuli
