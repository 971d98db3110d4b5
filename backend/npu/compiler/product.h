// What dots and convolutions have in common: element types, and the instructions of the matrix unit.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backend/npu/compiler/builder.h"
#include "ir/hlo/module.h"

namespace lazuli::npu {

// How the matrix unit multiplies arrays of these types.
struct ProductTypes {
  DType a, w;  // what the operands are converted to first, if they are not that
  DType out;   // what leaves the accumulators; converted to the result's type if it is not that
  Type a_type, w_type, out_type;
  uint32_t mode = 0;  // of mx.mm, for f32
  int64_t clocks_per_row = 1;
  int64_t epilogue_bytes = 0;  // of the scratchpad, for each sum of a block
  int64_t out_bytes() const { return TypeBytes(out_type) + epilogue_bytes; }
};
// None, with the reason why, for types that it does not multiply.
std::optional<ProductTypes> TypesOf(const hlo::Instruction& product, const Config& config,
                                    std::string* why_not = nullptr);

// What is done to a block of sums before it is stored, by a vector kernel: starts and extents of the block in the array of sums,
// and where they lie. It stores the result. Empty: the sums are the result.
using Epilogue =
    std::function<void(const Dims& starts, const Dims& extents, const TileBuilder::Stream& sums)>;

// Issues one product tile after the other.
class ProductEmitter {
 public:
  ProductEmitter(TileBuilder& builder, const ProductTypes& types) : b_(builder), t_(types) {}

  // k x n weights, rows `pitch` elements apart, become the ones that Multiply uses.
  void Weights(Place weights, int64_t k, int64_t n, int64_t pitch);
  // Rows of A times the weights, to or onto the rows of `acc` from `row` on. `table`: K offsets, of k elements; `offsets`:
  // bytes that a row reaches from its first element on.
  void Multiply(Place a, absl::Span<const int64_t> dims, absl::Span<const int64_t> strides,
                int64_t k, int acc, bool accumulate, Place table, Reach offsets, int64_t row = 0);
  // Accumulators for a block of results, for each width of the array that its columns fill.
  std::vector<int> AddSums(int64_t rows, int64_t columns);
  // Takes them out, through the scratchpad, to where the block begins in `array`, or to the epilogue. Its extents are those of the
  // array's dims, columns last.
  void Finish(absl::Span<const int> sums, const Dims& starts, const Dims& extents,
              const View& array, const Epilogue& epilogue);

 private:
  // `rows` of n sums to a scratchpad buffer whose rows are `pitch` elements apart.
  void Out(int acc, int64_t rows, int64_t n, Place to, int64_t pitch);

  TileBuilder& b_;
  const ProductTypes& t_;
};

double DramBytesPerCycle(const Config& config);

}  // namespace lazuli::npu
