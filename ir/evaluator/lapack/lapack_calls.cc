#include "ir/evaluator/lapack_calls.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "ir/evaluator/internal.h"
#include "ir/evaluator/lapack/routines.h"

namespace lazuli::hlo {
namespace {

template <class T>
using RealOf = decltype(std::real(T{}));
template <class T>
constexpr bool kComplex = !std::is_same_v<T, RealOf<T>>;

// One custom call: its operands as LAPACK wants them, and its results as they come back.
class Call {
 public:
  Call(const Instruction& instruction, Operands operands)
      : instruction_(instruction), operands_(operands) {
    const Shape& shape = instruction.shape();
    if (shape.IsTuple()) {
      for (const Shape& element : shape.tuple()) results_.emplace_back(element);
    } else {
      results_.emplace_back(shape);
    }
  }

  const Literal& operand(std::size_t i) const { return *operands_[i]; }
  Matrices matrices(std::size_t i = 0) const { return Matrices(operand(i).shape()); }
  Literal Take() { return TupleOrOne(std::move(results_)); }

  // Matrix `batch` of an operand, column major.
  template <class T>
  std::vector<T> Matrix(int64_t batch, std::size_t i = 0) const {
    const Matrices m = matrices(i);
    const T* from = operand(i).data<T>().data() + batch * m.size();
    std::vector<T> to(static_cast<std::size_t>(m.size()));
    for (int64_t r = 0; r < m.rows; ++r) {
      for (int64_t c = 0; c < m.columns; ++c) to[Index(c * m.rows + r)] = from[r * m.columns + c];
    }
    return to;
  }
  template <class T>
  std::vector<T> Vector(int64_t batch, std::size_t i) const {
    const int64_t n = operand(i).shape().dim(operand(i).shape().rank() - 1);
    const T* from = operand(i).data<T>().data() + batch * n;
    return std::vector<T>(from, from + n);
  }

  // Stores a column-major matrix of at least the result's size; `leading` is its column's length.
  template <class T>
  void StoreMatrix(std::size_t result, int64_t batch, const std::vector<T>& from, int64_t leading) {
    const Matrices m(results_[result].shape());
    T* to = results_[result].mutable_data<T>().data() + batch * m.size();
    for (int64_t r = 0; r < m.rows; ++r) {
      for (int64_t c = 0; c < m.columns; ++c) to[r * m.columns + c] = from[Index(c * leading + r)];
    }
  }
  template <class T>
  void StoreVector(std::size_t result, int64_t batch, const std::vector<T>& from) {
    const Shape& shape = results_[result].shape();
    const int64_t n = shape.rank() == 0 ? 1 : shape.dim(shape.rank() - 1);
    T* to = results_[result].mutable_data<T>().data() + batch * n;
    std::copy_n(from.begin(), std::min(Index(n), from.size()), to);
  }
  void StoreInfo(std::size_t result, int64_t batch, lapack_int info) {
    results_[result].mutable_data<int32_t>()[Index(batch)] = info;
  }
  const Shape& result_shape(std::size_t i) const { return results_[i].shape(); }

  // An attribute of backend_config: "uplo = 76 : ui8".
  std::optional<int64_t> Attribute(std::string_view name) const {
    for (const auto& [key, text] : instruction_.extra_attrs()) {
      const std::size_t at = key == "backend_config" ? text.find(Str(name, " = ")) : text.npos;
      if (at == text.npos) continue;
      int64_t value = 0;
      const char* begin = text.data() + at + name.size() + 3;
      if (std::from_chars(begin, text.data() + text.size(), value).ec == std::errc()) return value;
    }
    return std::nullopt;
  }
  char Letter(std::string_view name, char otherwise) const {
    return static_cast<char>(Attribute(name).value_or(otherwise));
  }

 private:
  static std::size_t Index(int64_t i) { return static_cast<std::size_t>(i); }

  const Instruction& instruction_;
  Operands operands_;
  std::vector<Literal> results_;
};

std::size_t Size(int64_t n) { return static_cast<std::size_t>(std::max<int64_t>(n, 1)); }

template <class T>
void Cholesky(Call& call) {
  const Matrices m = call.matrices();
  for (int64_t b = 0; b < m.count; ++b) {
    auto a = call.Matrix<T>(b);
    const lapack_int info = lapack::Potrf(call.Letter("uplo", 'L'), m.n(), a.data());
    call.StoreMatrix(0, b, a, m.rows);
    call.StoreInfo(1, b, info);
  }
}

template <class T>
void Lu(Call& call) {
  const Matrices m = call.matrices();
  for (int64_t b = 0; b < m.count; ++b) {
    auto a = call.Matrix<T>(b);
    std::vector<int32_t> pivots(Size(std::min(m.rows, m.columns)));
    const lapack_int info = lapack::Getrf(m.m(), m.n(), a.data(), pivots.data());
    call.StoreMatrix(0, b, a, m.rows);
    call.StoreVector(1, b, pivots);
    call.StoreInfo(2, b, info);
  }
}

template <class T>
void Qr(Call& call) {
  const Matrices m = call.matrices();
  for (int64_t b = 0; b < m.count; ++b) {
    auto a = call.Matrix<T>(b);
    std::vector<T> tau(Size(std::min(m.rows, m.columns)));
    lapack::Geqrf(m.m(), m.n(), a.data(), tau.data());
    call.StoreMatrix(0, b, a, m.rows);
    call.StoreVector(1, b, tau);
  }
}

template <class T>
void PivotedQr(Call& call) {
  const Matrices m = call.matrices();
  for (int64_t b = 0; b < m.count; ++b) {
    auto a = call.Matrix<T>(b);
    auto pivots = call.Vector<int32_t>(b, 1);
    std::vector<T> tau(Size(std::min(m.rows, m.columns)));
    lapack::Geqp3(m.m(), m.n(), a.data(), pivots.data(), tau.data());
    call.StoreMatrix(0, b, a, m.rows);
    call.StoreVector(1, b, pivots);
    call.StoreVector(2, b, tau);
  }
}

template <class T>
void Reflectors(Call& call) {
  const Matrices m = call.matrices();
  for (int64_t b = 0; b < m.count; ++b) {
    auto a = call.Matrix<T>(b);
    const auto tau = call.Vector<T>(b, 1);
    lapack::Orgqr(m.m(), m.n(), static_cast<int>(tau.size()), a.data(), tau.data());
    call.StoreMatrix(0, b, a, m.rows);
  }
}

// LAPACK's iterations may not end on a matrix that has an infinity, so they are not called for one:
// the results are NaN and info is 0, which is what they give where they end. LAPACKE itself looks for
// NaN and returns a negative info.
enum class Part { kAll, kLower, kUpper };
template <class T>
bool HasInfinity(const std::vector<T>& a, int64_t rows, Part part = Part::kAll) {
  bool infinite = false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto row = static_cast<int64_t>(i) % rows, column = static_cast<int64_t>(i) / rows;
    if (part == Part::kLower ? row < column : part == Part::kUpper && row > column) continue;
    if (std::isnan(std::real(a[i])) || std::isnan(std::imag(a[i]))) return false;
    infinite |= std::isinf(std::real(a[i])) || std::isinf(std::imag(a[i]));
  }
  return infinite;
}
template <class... Values>
void FillNan(Values&... values) {
  (std::ranges::fill(values, std::numeric_limits<RealOf<typename Values::value_type>>::quiet_NaN()),
   ...);
}

// Results: a overwritten, singular values, u, v transposed, info.
template <class T>
void Svd(Call& call) {
  const Matrices m = call.matrices();
  const char job = call.Letter("mode", 'N');
  const int64_t rank = std::min(m.rows, m.columns);
  const int64_t vt_rows = job == 'A' ? m.columns : rank;
  for (int64_t b = 0; b < m.count; ++b) {
    auto a = call.Matrix<T>(b);
    std::vector<RealOf<T>> s(Size(rank));
    std::vector<T> u(Size(m.rows * std::max(m.rows, rank))), vt(Size(m.columns * m.columns));
    lapack_int info = 0;
    if (HasInfinity(a, m.rows)) {
      FillNan(a, s, u, vt);
    } else {
      info = lapack::Gesdd(job, m.m(), m.n(), a.data(), s.data(), u.data(), vt.data(),
                           static_cast<int>(vt_rows));
    }
    call.StoreMatrix(0, b, a, m.rows);
    call.StoreVector(1, b, s);
    if (job != 'N') {
      call.StoreMatrix(2, b, u, m.rows);
      call.StoreMatrix(3, b, vt, vt_rows);
    }
    call.StoreInfo(4, b, info);
  }
}

template <class T>
lapack_int Syevd(char mode, char uplo, const Matrices& m, std::vector<T>& a,
                 std::vector<RealOf<T>>& w) {
  if (HasInfinity(a, m.rows, uplo == 'L' ? Part::kLower : Part::kUpper)) {
    FillNan(a, w);
    return 0;
  }
  return lapack::Syevd(mode, uplo, m.n(), a.data(), w.data());
}

template <class T>
void SymmetricEigen(Call& call) {
  const Matrices m = call.matrices();
  for (int64_t b = 0; b < m.count; ++b) {
    auto a = call.Matrix<T>(b);
    std::vector<RealOf<T>> w(Size(m.rows));
    const lapack_int info = Syevd(call.Letter("mode", 'V'), call.Letter("uplo", 'L'), m, a, w);
    call.StoreMatrix(0, b, a, m.rows);
    call.StoreVector(1, b, w);
    call.StoreInfo(2, b, info);
  }
}

template <class T>
void TriangularSolve(Call& call) {
  const Matrices a_size = call.matrices(0), m = call.matrices(1);
  const char trans = call.Letter("trans_x", 'N');
  const lapack::TrsmKind kind{
      .side = call.Letter("side", 'L') == 'L' ? CblasLeft : CblasRight,
      .uplo = call.Letter("uplo", 'L') == 'L' ? CblasLower : CblasUpper,
      .transpose = trans == 'N'   ? CblasNoTrans
                   : trans == 'T' ? CblasTrans
                                  : CblasConjTrans,
      .diagonal = call.Letter("diag", 'N') == 'U' ? CblasUnit : CblasNonUnit};
  for (int64_t i = 0; i < m.count; ++i) {
    const auto a = call.Matrix<T>(i, 0);
    auto b = call.Matrix<T>(i, 1);
    lapack::Trsm(kind, m.m(), m.n(), a.data(), lapack::Leading(a_size.m()), b.data());
    call.StoreMatrix(0, i, b, m.rows);
  }
}

// The complex vectors that a real routine packs: a pair of columns for a pair of conjugate values.
template <class T>
std::vector<std::complex<T>> UnpackVectors(int64_t n, const std::vector<T>& imaginary,
                                           const std::vector<T>& packed) {
  std::vector<std::complex<T>> result(packed.size());
  for (int64_t c = 0; c < n; ++c) {
    const bool pair = imaginary[Size(c + 1) - 1] != 0 && c + 1 < n;
    for (int64_t r = 0; r < n; ++r) {
      const auto i = static_cast<std::size_t>(c * n + r),
                 next = static_cast<std::size_t>(i + Size(n));
      result[i] = pair ? std::complex<T>(packed[i], packed[next]) : packed[i];
      if (pair) result[next] = std::conj(result[i]);
    }
    c += pair;
  }
  return result;
}

// Results: values (two vectors of their parts for a real matrix), left vectors, right vectors,
// info.
template <class T>
void Eigen(Call& call) {
  const Matrices m = call.matrices();
  const char left = call.Letter("compute_left", 'N'), right = call.Letter("compute_right", 'N');
  for (int64_t b = 0; b < m.count; ++b) {
    auto a = call.Matrix<T>(b);
    std::vector<T> w(Size(m.rows)), imaginary(Size(m.rows)), vl(Size(m.size())), vr(Size(m.size()));
    lapack_int info = 0;
    const bool infinite = HasInfinity(a, m.rows);
    if (infinite) FillNan(w, imaginary, vl, vr);
    if constexpr (kComplex<T>) {
      if (!infinite)
        info = lapack::Geev(left, right, m.n(), a.data(), w.data(), vl.data(), vr.data());
      call.StoreVector(0, b, w);
      call.StoreMatrix(1, b, vl, m.rows);
      call.StoreMatrix(2, b, vr, m.rows);
      call.StoreInfo(3, b, info);
    } else {
      if (!infinite) {
        info = lapack::Geev(left, right, m.n(), a.data(), w.data(), imaginary.data(), vl.data(),
                            vr.data());
      }
      call.StoreVector(0, b, w);
      call.StoreVector(1, b, imaginary);
      if (left == 'V') call.StoreMatrix(2, b, UnpackVectors(m.rows, imaginary, vl), m.rows);
      if (right == 'V') call.StoreMatrix(3, b, UnpackVectors(m.rows, imaginary, vr), m.rows);
      call.StoreInfo(4, b, info);
    }
  }
}

// Results: the triangular factor, the vectors, values (two vectors of their parts for a real
// matrix), the number of selected values, info.
template <class T>
void Schur(Call& call) {
  const Matrices m = call.matrices();
  const char job = call.Letter("mode", 'V');
  for (int64_t b = 0; b < m.count; ++b) {
    auto a = call.Matrix<T>(b);
    std::vector<T> w(Size(m.rows)), imaginary(Size(m.rows)), vs(Size(m.size()));
    lapack_int selected = 0, info = 0;
    std::size_t next = 3;
    const bool infinite = HasInfinity(a, m.rows);
    if (infinite) FillNan(a, w, imaginary, vs);
    if constexpr (kComplex<T>) {
      if (!infinite) info = lapack::Gees(job, m.n(), a.data(), &selected, w.data(), vs.data());
    } else {
      if (!infinite) {
        info = lapack::Gees(job, m.n(), a.data(), &selected, w.data(), imaginary.data(), vs.data());
      }
      call.StoreVector(next++, b, imaginary);
    }
    call.StoreMatrix(0, b, a, m.rows);
    call.StoreMatrix(1, b, vs, m.rows);
    call.StoreVector(2, b, w);
    call.StoreInfo(next, b, selected);
    call.StoreInfo(next + 1, b, info);
  }
}

template <class T>
void Hessenberg(Call& call) {
  const Matrices m = call.matrices();
  const auto low = static_cast<int>(call.Attribute("low").value_or(1));
  const auto high = static_cast<int>(call.Attribute("high").value_or(m.rows));
  for (int64_t b = 0; b < m.count; ++b) {
    auto a = call.Matrix<T>(b);
    std::vector<T> tau(Size(m.rows - 1));
    const lapack_int info = lapack::Gehrd(m.n(), low, high, a.data(), tau.data());
    call.StoreMatrix(0, b, a, m.rows);
    call.StoreVector(1, b, tau);
    call.StoreInfo(2, b, info);
  }
}

template <class T>
void Tridiagonal(Call& call) {
  const Matrices m = call.matrices();
  for (int64_t b = 0; b < m.count; ++b) {
    auto a = call.Matrix<T>(b);
    std::vector<RealOf<T>> d(Size(m.rows)), e(Size(m.rows - 1));
    std::vector<T> tau(Size(m.rows - 1));
    const lapack_int info =
        lapack::Sytrd(call.Letter("uplo", 'L'), m.n(), a.data(), d.data(), e.data(), tau.data());
    call.StoreMatrix(0, b, a, m.rows);
    call.StoreVector(1, b, d);
    call.StoreVector(2, b, e);
    call.StoreVector(3, b, tau);
    call.StoreInfo(4, b, info);
  }
}

// Operands dl, d, du (all of n elements; dl[0] and du[n-1] do not count) and b.
template <class T>
void TridiagonalSolve(Call& call) {
  const Matrices m = call.matrices(3);
  for (int64_t i = 0; i < m.count; ++i) {
    auto dl = call.Vector<T>(i, 0), d = call.Vector<T>(i, 1), du = call.Vector<T>(i, 2);
    auto b = call.Matrix<T>(i, 3);
    const lapack_int info =
        lapack::Gtsv(m.m(), m.n(), dl.data() + 1, d.data(), du.data(), b.data());
    call.StoreVector(0, i, dl);
    call.StoreVector(1, i, d);
    call.StoreVector(2, i, du);
    call.StoreMatrix(3, i, b, m.rows);
    call.StoreInfo(4, i, info);
  }
}

// A = L D L^T, or L D L^H. Results: both factors in the triangle of `uplo`, pivots, info.
template <class T, bool kHermitian>
void Ldl(Call& call) {
  const Matrices m = call.matrices();
  for (int64_t b = 0; b < m.count; ++b) {
    auto a = call.Matrix<T>(b);
    std::vector<int32_t> pivots(Size(m.rows));
    const char uplo = call.Letter("uplo", 'L');
    lapack_int info = 0;
    if constexpr (kHermitian && kComplex<T>)
      info = lapack::Hetrf(uplo, m.n(), a.data(), pivots.data());
    else
      info = lapack::Sytrf(uplo, m.n(), a.data(), pivots.data());
    call.StoreMatrix(0, b, a, m.rows);
    call.StoreVector(1, b, pivots);
    call.StoreInfo(2, b, info);
  }
}

// X of A X = B. Operands: the factors and pivots of Ldl, and B.
template <class T, bool kHermitian>
void LdlSolve(Call& call) {
  const Matrices m = call.matrices(2);
  for (int64_t i = 0; i < m.count; ++i) {
    const auto a = call.Matrix<T>(i, 0);
    const auto pivots = call.Vector<int32_t>(i, 1);
    auto b = call.Matrix<T>(i, 2);
    const char uplo = call.Letter("uplo", 'L');
    if constexpr (kHermitian && kComplex<T>)
      lapack::Hetrs(uplo, m.m(), m.n(), a.data(), pivots.data(), b.data());
    else
      lapack::Sytrs(uplo, m.m(), m.n(), a.data(), pivots.data(), b.data());
    call.StoreMatrix(0, i, b, m.rows);
  }
}

// torch_xla's "Eigh": vectors, then values. backend_config starts with 1 if the lower triangle
// holds the matrix.
template <class T>
void TorchEigh(Call& call) {
  const Matrices m = call.matrices();
  for (int64_t b = 0; b < m.count; ++b) {
    auto a = call.Matrix<T>(b);
    std::vector<RealOf<T>> w(Size(m.rows));
    Syevd('V', 'L', m, a, w);
    call.StoreMatrix(0, b, a, m.rows);
    call.StoreVector(1, b, w);
  }
}

// Names of a routine for real and for complex types, without the letter of the type; empty if there is
// none.
struct RoutineRow {
  std::string_view real, complex;
  std::size_t operands, real_results, complex_results;
  void (*run[4])(Call&);  // f32, f64, c64, c128
};
#define LAZULI_RUN(function) \
  {function<float>, function<double>, function<std::complex<float>>, function<std::complex<double>>}
#define LAZULI_RUN_OF(function, hermitian)                  \
  {function<float, hermitian>, function<double, hermitian>, \
   function<std::complex<float>, hermitian>, function<std::complex<double>, hermitian>}
const RoutineRow kRoutines[] = {
    {"potrf", "potrf", 1, 2, 2, LAZULI_RUN(Cholesky)},
    {"getrf", "getrf", 1, 3, 3, LAZULI_RUN(Lu)},
    {"geqrf", "geqrf", 1, 2, 2, LAZULI_RUN(Qr)},
    {"geqp3", "geqp3", 2, 3, 3, LAZULI_RUN(PivotedQr)},
    {"orgqr", "ungqr", 2, 1, 1, LAZULI_RUN(Reflectors)},
    {"gesdd", "gesdd", 1, 5, 5, LAZULI_RUN(Svd)},
    {"gesvd", "gesvd", 1, 5, 5, LAZULI_RUN(Svd)},  // another way to the same values
    {"syevd", "heevd", 1, 3, 3, LAZULI_RUN(SymmetricEigen)},
    {"trsm", "trsm", 2, 1, 1, LAZULI_RUN(TriangularSolve)},
    {"geev", "geev", 1, 5, 4, LAZULI_RUN(Eigen)},
    {"gees", "gees", 1, 6, 5, LAZULI_RUN(Schur)},
    {"gehrd", "gehrd", 1, 3, 3, LAZULI_RUN(Hessenberg)},
    {"sytrd", "hetrd", 1, 5, 5, LAZULI_RUN(Tridiagonal)},
    {"gtsv", "gtsv", 4, 5, 5, LAZULI_RUN(TridiagonalSolve)},
    {"sytrf", "sytrf", 1, 3, 3, LAZULI_RUN_OF(Ldl, false)},
    {"", "hetrf", 1, 3, 3, LAZULI_RUN_OF(Ldl, true)},
    {"sytrs", "sytrs", 3, 1, 1, LAZULI_RUN_OF(LdlSolve, false)},
    {"", "hetrs", 3, 1, 1, LAZULI_RUN_OF(LdlSolve, true)},
};
const RoutineRow kTorchRoutines[] = {
    {"Qr", "Qr", 1, 2, 2, LAZULI_RUN(Qr)},
    {"ProductOfElementaryHouseholderReflectors", "", 2, 1, 1, LAZULI_RUN(Reflectors)},
    {"Eigh", "Eigh", 1, 2, 2, LAZULI_RUN(TorchEigh)},
};
#undef LAZULI_RUN_OF
#undef LAZULI_RUN

constexpr DType kTypes[] = {DType::kF32, DType::kF64, DType::kC64, DType::kC128};

// The call of one routine for one type; checks what the routine relies on.
CustomCall CallOf(const RoutineRow& routine, std::size_t type) {
  return [&routine, type](const Instruction& instruction,
                          Operands operands) -> absl::StatusOr<Literal> {
    const std::string& target = instruction.attrs_as<CustomCallAttrs>().custom_call_target;
    const std::size_t results =
        IsComplex(kTypes[type]) ? routine.complex_results : routine.real_results;
    const bool tuple = instruction.shape().IsTuple();
    if (operands.size() != routine.operands ||
        (tuple ? instruction.shape().tuple().size() : std::size_t{1}) != results) {
      return InvalidArgument(target, " takes ", routine.operands, " operands and has ", results,
                             " results");
    }
    const Shape& shape = operands[0]->shape();
    if (shape.dtype() != kTypes[type] || (routine.operands < 4 && shape.rank() < 2))
      return InvalidArgument(target, " of ", shape, ": not a matrix of ", DTypeText(kTypes[type]));
    LAPACKE_set_nancheck(0);  // NaN goes through as it does in XLA
    Call call(instruction, operands);
    routine.run[type](call);
    return call.Take();
  };
}

}  // namespace

std::vector<std::pair<std::string, CustomCall>> LapackCalls() {
  constexpr std::string_view kLetters = "sdcz";
  std::vector<std::pair<std::string, CustomCall>> calls;
  for (const RoutineRow& routine : kRoutines) {
    for (std::size_t type = 0; type < kLetters.size(); ++type) {
      const std::string_view name = type < 2 ? routine.real : routine.complex;
      if (name.empty()) continue;
      calls.emplace_back(Str("lapack_", kLetters[type], name, "_ffi"), CallOf(routine, type));
    }
  }
  for (const RoutineRow& routine : kTorchRoutines) {
    calls.emplace_back(
        routine.real,
        [&routine](const Instruction& instruction, Operands operands) -> absl::StatusOr<Literal> {
          for (std::size_t type = 0; type < std::size(kTypes) && !operands.empty(); ++type) {
            if (operands[0]->shape().dtype() == kTypes[type])
              return CallOf(routine, type)(instruction, operands);
          }
          return InvalidArgument(routine.real, " takes f32, f64, c64 or c128");
        });
  }
  return calls;
}

}  // namespace lazuli::hlo
