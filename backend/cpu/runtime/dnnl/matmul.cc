// Matrix multiplications c = a * b by oneDNN.
//
// The library is called on one thread, and our threads work on parts of the product (convolution.cc
// says why). A product is cut along its batch, along the rows of a and c, or along the columns of b
// and c, whichever gives equal work to all threads. All parts but the last have one size, so there
// are two plans at most. Rows are cut into more parts than there are threads, if they can be equal:
// then what follows the product can be done part by part, while the part is in the cache.
//
// Two things are prepared for the library where that pays. Parts of columns are computed in memory of
// their own and copied to their places (`gather_columns`), since the library's best code wants a
// result without gaps. And where b is a weight that stays, b is brought into the library's own layout
// once, and later runs read it there (`packed`). Both give the same values as the plain call: a
// packed plan is used only if it runs the same code.
#include "backend/cpu/runtime/eigen/matmul.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>

#include "backend/cpu/runtime/dnnl/dnnl_call.h"
#include "backend/cpu/runtime/dnnl/dnnl_util.h"
#include "backend/cpu/runtime/few_rows.h"
#include "backend/cpu/runtime/library.h"
#include "backend/cpu/runtime/parts.h"

namespace lazuli::cpu {
namespace {

using Desc = dnnl::memory::desc;

// Which dimension is cut, and into parts of which size. The last part may be smaller.
struct MatmulCut {
  enum class Along : uint8_t { kBatch, kRows, kColumns };
  Along along = Along::kRows;
  int64_t size = 1, parts = 1;
  bool gather_columns = false;  // parts are computed in memory of their own, then copied
};

int64_t& SizeAlong(MatmulCut::Along along, MatmulSpec& spec) {
  switch (along) {
    case MatmulCut::Along::kBatch:
      return spec.batch;
    case MatmulCut::Along::kRows:
      return spec.m;
    case MatmulCut::Along::kColumns:
      return spec.n;
  }
  return spec.m;
}

// A part has a multiple of so many rows or columns, which fill vectors and tiles.
constexpr int64_t kTile = 16;

// Into how many equal parts the rows can be cut; 0 if into none. A part has at least kRows rows,
// because each part prepares all of b for itself.
int64_t EqualRowParts(const MatmulSpec& spec, int64_t most, int threads) {
  constexpr int64_t kPartsPerThread = 8, kRows = 128;
  const int64_t wanted = std::clamp<int64_t>(spec.m / kRows, threads, kPartsPerThread * threads);
  for (int64_t parts = std::min(most, wanted); parts > 1 && parts >= threads; --parts) {
    if (spec.m % (parts * kTile) == 0) return parts;
  }
  return 0;
}

MatmulCut PlanCut(MatmulSpec spec, int threads) {
  const int64_t work = std::max<int64_t>(1, spec.batch * spec.m * spec.n * spec.k / kPartWork);
  const int64_t most = threads == 1 ? 1 : std::min<int64_t>(work, threads);
  MatmulCut cut;
  cut.along = spec.batch >= most && spec.batch > 1 ? MatmulCut::Along::kBatch
              : spec.m > spec.n                    ? MatmulCut::Along::kRows
                                                   : MatmulCut::Along::kColumns;
  const int64_t size = SizeAlong(cut.along, spec);
  const int64_t rows =
      cut.along == MatmulCut::Along::kRows ? EqualRowParts(spec, work, threads) : 0;
  const int64_t tile = cut.along == MatmulCut::Along::kBatch ? 1 : kTile;
  cut.size = rows > 0 ? size / rows : ((size + most - 1) / most + tile - 1) / tile * tile;
  cut.parts = (size + cut.size - 1) / cut.size;
  cut.gather_columns = cut.along == MatmulCut::Along::kColumns && cut.parts > 1 &&
                       spec.batch == 1 && spec.b_strides[1] == 1 && spec.b_strides[2] == spec.k;
  return cut;
}

using Strides = std::array<int64_t, 3>;

using DataType = dnnl::memory::data_type;

// Whether the library multiplies factors of these types: of f32, or both of bf16.
bool IsOfLibrary(const MatmulSpec& spec) {
  return spec.dtype == DType::kF32 && spec.a_dtype == spec.b_dtype &&
         (spec.a_dtype == DType::kF32 || spec.a_dtype == DType::kBF16);
}
DataType OperandType(const MatmulSpec& spec) {
  return spec.a_dtype == DType::kBF16 ? DataType::bf16 : DataType::f32;
}

Desc MatrixDesc(const MatmulSpec& spec, DataType type, int64_t rows, int64_t columns,
                const Strides& strides) {
  if (spec.batch == 1) return Desc({rows, columns}, type, {strides[1], strides[2]});
  return Desc({spec.batch, rows, columns}, type, {strides[0], strides[1], strides[2]});
}
Desc PlainB(const MatmulSpec& spec) {
  return MatrixDesc(spec, OperandType(spec), spec.k, spec.n, spec.b_strides);
}

// The plan for parts of one size. `b` may leave its layout to the library.
class Piece {
 public:
  Piece(const MatmulSpec& spec, const Desc& b, int64_t workers)
      : Piece(spec.n, Describe(spec, b), workers) {}

  int64_t scratch_bytes() const { return scratch_bytes_; }
  int64_t columns() const { return columns_; }
  const Desc& b() const { return b_; }
  const std::string& implementation() const { return implementation_; }
  absl::Status Run(const LibraryBuffers& buffers, int64_t worker) const {
    return call_.Run({buffers.a, buffers.b, buffers.result, buffers.scratch}, worker,
                     "a matrix multiplication");
  }

 private:
  using Primitive = dnnl::matmul;
  static Primitive::primitive_desc Describe(const MatmulSpec& spec, const Desc& b) {
    const Desc a = MatrixDesc(spec, OperandType(spec), spec.m, spec.k, spec.a_strides),
               c = MatrixDesc(spec, DataType::f32, spec.m, spec.n, spec.c_strides);
    return {Primitive::desc(a, b, c), DnnlUserScratchpad(), DnnlEngine()};
  }
  Piece(int64_t columns, const Primitive::primitive_desc& desc, int64_t workers)
      : columns_(columns),
        scratch_bytes_(DnnlBytes(desc.scratchpad_desc())),
        b_(desc.weights_desc()),
        implementation_(desc.impl_info_str()),
        call_(Primitive(desc),
              {{DNNL_ARG_SRC, desc.src_desc()},
               {DNNL_ARG_WEIGHTS, desc.weights_desc()},
               {DNNL_ARG_DST, desc.dst_desc()},
               {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}},
              workers) {}

  int64_t columns_, scratch_bytes_;
  Desc b_;
  std::string implementation_;
  DnnlCall call_;
};

// The plans for all parts of a cut.
struct Pieces {
  Piece first;                // for all parts but the last
  std::optional<Piece> last;  // for the last one, if its size differs

  const Piece& of(Part part) const { return last && part.index + 1 == part.count ? *last : first; }
  int64_t scratch_bytes() const {
    return std::max(first.scratch_bytes(), last ? last->scratch_bytes() : 0);
  }
};

MatmulSpec PartOf(MatmulSpec spec, const MatmulCut& cut, int64_t part) {
  int64_t& size = SizeAlong(cut.along, spec);
  size = std::min(cut.size, size - part * cut.size);
  if (cut.gather_columns) spec.c_strides[1] = size;
  return spec;
}

Pieces PlanPieces(const MatmulSpec& spec, const MatmulCut& cut, int64_t workers, bool packed) {
  const auto plan = [&](int64_t part) {
    const MatmulSpec one = PartOf(spec, cut, part);
    const Desc any({one.k, one.n}, OperandType(one), dnnl::memory::format_tag::any);
    return Piece(one, packed ? any : PlainB(one), workers);
  };
  Pieces pieces{.first = plan(0), .last = {}};
  MatmulSpec all = spec;
  if (SizeAlong(cut.along, all) != cut.parts * cut.size && cut.parts > 1)
    pieces.last = plan(cut.parts - 1);
  return pieces;
}

// Elements. Packing a smaller matrix gains little, because it is in the cache anyway.
constexpr int64_t kLeastPacked = 1 << 14;

// Plans for the same parts that read b in the library's layout. Without them the library makes that
// layout for itself in every call. None if the library would run other code for them, since values
// must not depend on whether b is packed.
std::optional<Pieces> PlanPacked(const MatmulSpec& spec, const MatmulCut& cut, int64_t workers,
                                 const Pieces& plain) {
  if (!spec.b_stays || spec.batch > 1 || spec.k * spec.n < kLeastPacked) return std::nullopt;
  Pieces packed = PlanPieces(spec, cut, workers, /*packed=*/true);
  const auto same = [](const Piece& a, const Piece& b) {
    return a.implementation() == b.implementation() && a.b() != b.b();
  };
  if (!same(plain.first, packed.first)) return std::nullopt;
  if (packed.last && !same(*plain.last, *packed.last)) return std::nullopt;
  // Parts of rows share what is packed.
  const bool rows = cut.along == MatmulCut::Along::kRows;
  if (rows && packed.last && packed.last->b() != packed.first.b()) return std::nullopt;
  return packed;
}

// Brings b into the library's layout: for each part of its columns, one behind the other.
class MatmulPacking final : public LibraryPacking {
 public:
  MatmulPacking(const MatmulSpec& spec, const MatmulCut& cut, int threads, const Pieces& packed)
      : parts_(cut.along == MatmulCut::Along::kColumns ? cut.parts : 1),
        workers_(WorkersFor(parts_, threads)),
        from_step_(cut.size * spec.b_strides[2] * ByteWidth(spec.a_dtype)),
        to_step_(DnnlBytes(packed.first.b())),
        first_(DnnlReorder(PlainB(parts_ > 1 ? PartOf(spec, cut, 0) : spec), packed.first.b(),
                           workers_)) {
    if (parts_ > 1 && packed.last)
      last_ = DnnlReorder(PlainB(PartOf(spec, cut, parts_ - 1)), packed.last->b());
  }

  int64_t bytes() const override { return parts_ * to_step_; }
  absl::Status Run(const std::byte* weights, std::byte* packed) const override {
    return ForEachPart(parts_, workers_, [&](Part part) {
      const ScopedLibraryThreads one(1);
      const bool last = last_ && part.index + 1 == part.count;
      return (last ? *last_ : first_)
          .Run({weights + part.index * from_step_, packed + part.index * to_step_},
               last ? 0 : part.worker, "packing a matrix");
    });
  }

 private:
  int64_t parts_, workers_;
  int64_t from_step_, to_step_;  // bytes from part to part
  DnnlCall first_;
  std::optional<DnnlCall> last_;
};

class DnnlMatmul final : public LibraryCall {
 public:
  DnnlMatmul(const MatmulSpec& spec, const MatmulCut& cut, int threads)
      : cut_(cut),
        workers_(WorkersFor(cut.parts, threads)),
        rows_(spec.m),
        row_stride_(spec.c_strides[1]),
        splits_(cut.along == MatmulCut::Along::kRows && spec.batch == 1 &&
                spec.m == cut.parts * cut.size),
        row_major_a_(spec.a_strides[1] == spec.k && spec.a_strides[2] == 1),
        plain_(PlanPieces(spec, cut, workers_, /*packed=*/false)),
        packed_(PlanPacked(spec, cut, workers_, plain_)) {
    const auto step = [&](const Strides& strides, bool cut_here, int dimension) {
      return cut_here ? strides[static_cast<std::size_t>(dimension)] * cut.size : 0;
    };
    const bool rows = cut.along == MatmulCut::Along::kRows,
               columns = cut.along == MatmulCut::Along::kColumns;
    const int dimension = rows ? 1 : columns ? 2 : 0;
    a_step_ = step(spec.a_strides, !columns, dimension) * ByteWidth(spec.a_dtype);
    b_step_ = step(spec.b_strides, !rows, dimension) * ByteWidth(spec.a_dtype);
    c_step_ = step(spec.c_strides, true, dimension) * kFloat;
    if (packed_ && columns) packed_step_ = DnnlBytes(packed_->first.b());
  }

  // The plans that read a packed b; none if no run may pass one.
  const std::optional<Pieces>& packed() const { return packed_; }

  int64_t scratch_bytes() const override { return workers_ * WorkerScratch(); }

  absl::Status Run(const LibraryBuffers& buffers) const override {
    return ForEachPart(cut_.parts, workers_, [&](Part part) { return RunPart(buffers, part); });
  }

  Parts parts() const override {
    return splits_ ? Parts{.count = cut_.parts, .a = row_major_a_} : Parts{};
  }

  absl::Status RunPart(const LibraryBuffers& all, Part part) const override {
    const ScopedLibraryThreads one(1);
    const bool packed = all.packed != nullptr;
    const Piece& piece = (packed ? *packed_ : plain_).of(part);
    const std::byte* b =
        packed ? all.packed + part.index * packed_step_ : all.b + part.index * b_step_;
    std::byte* scratch =
        all.scratch == nullptr ? nullptr : all.scratch + part.worker * WorkerScratch();
    std::byte* result = all.result + part.index * c_step_;
    std::byte* target = cut_.gather_columns ? scratch + PieceScratch() : result;
    LAZULI_RETURN_IF_ERROR(
        piece.Run({all.a + part.index * a_step_, b, target, scratch}, part.worker));
    if (cut_.gather_columns) Spread(target, piece.columns(), result);
    return absl::OkStatus();
  }

  std::string Details() const override {
    return DnnlDetails(plain_.first.implementation(), cut_.parts);
  }

 private:
  static constexpr auto kFloat = static_cast<int64_t>(sizeof(float));

  int64_t PieceScratch() const {
    return std::max(plain_.scratch_bytes(), packed_ ? packed_->scratch_bytes() : 0);
  }
  int64_t WorkerScratch() const {
    return PieceScratch() + (cut_.gather_columns ? rows_ * cut_.size * kFloat : 0);
  }
  void Spread(const std::byte* rows, int64_t columns, std::byte* result) const {
    for (int64_t row = 0; row < rows_; ++row) {
      std::memcpy(result + row * row_stride_ * kFloat, rows + row * columns * kFloat,
                  static_cast<std::size_t>(columns * kFloat));
    }
  }

  MatmulCut cut_;
  int64_t workers_;
  int64_t rows_, row_stride_;
  bool splits_, row_major_a_;
  Pieces plain_;
  std::optional<Pieces> packed_;
  int64_t a_step_ = 0, b_step_ = 0, c_step_ = 0, packed_step_ = 0;  // bytes from part to part
};

LibraryPlan Plan(const MatmulSpec& spec, int threads) {
  const ScopedLibraryThreads one(1);
  const MatmulCut cut = PlanCut(spec, threads);
  auto call = std::make_unique<DnnlMatmul>(spec, cut, threads);
  std::unique_ptr<LibraryPacking> packing;
  if (call->packed())
    packing = std::make_unique<MatmulPacking>(spec, cut, threads, *call->packed());
  return {std::move(call), std::move(packing)};
}

}  // namespace

absl::StatusOr<LibraryPlan> PlanMatmul(const MatmulSpec& spec, int threads) {
  if (std::unique_ptr<LibraryCall> call = PlanFewRows(spec, threads))
    return LibraryPlan{std::move(call), nullptr};
  if (!IsOfLibrary(spec)) return LibraryPlan{PlanEigenMatmul(spec), nullptr};
  try {
    return Plan(spec, threads);
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_unimplemented) return LibraryPlan{PlanEigenMatmul(spec), nullptr};
    return FromDnnl(error, "planning a matrix multiplication");
  }
}

}  // namespace lazuli::cpu
