// Library calls: matrix multiplication and convolution by oneDNN; by Eigen where oneDNN has none
// and in builds without it; products of integers and products with few rows by loops of our own.
//
// A call is planned once, for fixed shapes, strides and thread count, and run by any number of runs
// at a time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "backend/runtime/thunk.h"
#include "ir/support/attrs.h"
#include "ir/types/shape.h"

namespace lazuli::cpu {

// c[b,m,n] = sum over k of a[b,m,k] * b[b,k,n]; strides in elements.
struct MatmulSpec {
  DType dtype = DType::kF32;                           // of c and of the sums
  DType a_dtype = DType::kF32, b_dtype = DType::kF32;  // the same, or narrower beside f32
  int64_t batch = 1, m = 0, n = 0, k = 0;
  std::array<int64_t, 3> a_strides{}, b_strides{}, c_strides{};  // {batch, row, column}
  bool b_stays = false;  // many runs may have the same b: a packing of it is worth planning
  bool operator==(const MatmulSpec&) const = default;
  LAZULI_ATTRS(dtype, a_dtype, b_dtype, batch, m, n, k, a_strides, b_strides, c_strides, b_stays);
};

// The forward convolution that relates source, weights and target, and which of the three is
// wanted. All sizes and strides are by role: source {n, c, spatial...}, weights {o, c / groups,
// spatial...}, target {n, o, spatial...}.
struct ConvolutionSpec {
  enum class Computes : uint8_t { kTarget, kSource, kWeights };
  Computes computes = Computes::kTarget;
  DType dtype = DType::kF32;
  int64_t groups = 1;
  Dims source, weights, target;
  Dims source_strides, weights_strides, target_strides;
  int64_t group_stride = 0;                  // from the weights of one group to those of the next
  Dims stride, dilation, pad_low, pad_high;  // by spatial dimension; dilation 1 = none
  bool flip_weights = false;                 // along every spatial dimension, before use
  bool operator==(const ConvolutionSpec&) const = default;
  LAZULI_ATTRS(computes, dtype, groups, source, weights, target, source_strides, weights_strides,
               target_strides, group_stride, stride, dilation, pad_low, pad_high, flip_weights);
};

// The memory of one call. a, b: the two inputs in the order in which the spec lists them (source
// before weights before target). packed: what the plan's packing made of b, where a run has it.
struct LibraryBuffers {
  const std::byte* a;
  const std::byte* b;
  std::byte* result;
  std::byte* scratch;
  const std::byte* packed = nullptr;
};
// The same as numbers; -1: none.
struct LibraryBufferIds {
  BufferId a = -1, b = -1, result = -1, scratch = -1, packed = -1;
  LAZULI_ATTRS(a, b, result, scratch, packed);
};

class LibraryCall {
 public:
  virtual ~LibraryCall() = default;
  virtual int64_t scratch_bytes() const { return 0; }
  virtual absl::Status Run(const LibraryBuffers& buffers) const = 0;
  virtual std::string Details() const = 0;

  // Calls that fall into more than one part along the batch: Run is RunPart for each, on the thread
  // that it is called on.
  struct Parts {
    int64_t count = 1;
    bool a = false, b = false;  // which inputs fall apart, too; the result does
  };
  virtual Parts parts() const { return {}; }
  virtual absl::Status RunPart(const LibraryBuffers& buffers, Part part) const {
    (void)part;
    return Run(buffers);
  }
};

// Brings weights into the form in which a call reads them, which is good until they change.
class LibraryPacking {
 public:
  virtual ~LibraryPacking() = default;
  virtual int64_t bytes() const = 0;  // of the result
  virtual absl::Status Run(const std::byte* weights, std::byte* packed) const = 0;
};

struct LibraryPlan {
  std::shared_ptr<const LibraryCall> call;        // null where the library has none
  std::shared_ptr<const LibraryPacking> packing;  // null: the call reads the weights as they are
  bool multiplies_padding = false;                // and an infinity by it (padding_guard.h)
};

// The call is null where the library has none. At most `threads` run it. A convolution with a
// packing needs it; a multiplication is faster with it, and gives the same bits.
absl::StatusOr<LibraryPlan> PlanMatmul(const MatmulSpec& spec, int threads);
absl::StatusOr<LibraryPlan> PlanConvolution(const ConvolutionSpec& spec, int threads);

// Whether the calls of this build are oneDNN's: what tests count depends on it.
bool HasOneDnn();
// Whether the library multiplies matrices of bf16 by the processor's own instructions for that.
bool MultipliesBf16();
// What makes these calls, for reports: "oneDNN 2.6.3".
std::string LibraryEngine();

// While it lives, planning and running on this thread use this many threads.
class ScopedLibraryThreads {
 public:
  explicit ScopedLibraryThreads(int count);
  ~ScopedLibraryThreads();
  ScopedLibraryThreads(const ScopedLibraryThreads&) = delete;
  ScopedLibraryThreads& operator=(const ScopedLibraryThreads&) = delete;

 private:
  int saved_;
  bool changed_;
};

}  // namespace lazuli::cpu
