// LAPACK's routines as overloads on the element type: column major, leading dimensions as tight as
// LAPACK allows. Each returns `info`: 0, or the number of the column, pivot or value that failed.
#pragma once

#include <algorithm>
#include <complex>

// The C headers take these for C++.
#define lapack_complex_float std::complex<float>
#define lapack_complex_double std::complex<double>
#include <cblas.h>
#include <lapacke.h>

namespace lazuli::hlo::lapack {

inline lapack_int Leading(lapack_int rows) { return std::max<lapack_int>(rows, 1); }

// p: the letter of the type; q: how its unitary routines are called; h: its Hermitian ones; R: the
// type of its magnitudes.
#define LAZULI_LAPACK(T, R, p, q, h)                                                            \
  inline lapack_int Potrf(char uplo, lapack_int n, T* a) {                                      \
    return LAPACKE_##p##potrf(LAPACK_COL_MAJOR, uplo, n, a, Leading(n));                        \
  }                                                                                             \
  inline lapack_int Getrf(lapack_int m, lapack_int n, T* a, lapack_int* pivots) {               \
    return LAPACKE_##p##getrf(LAPACK_COL_MAJOR, m, n, a, Leading(m), pivots);                   \
  }                                                                                             \
  inline lapack_int Geqrf(lapack_int m, lapack_int n, T* a, T* tau) {                           \
    return LAPACKE_##p##geqrf(LAPACK_COL_MAJOR, m, n, a, Leading(m), tau);                      \
  }                                                                                             \
  inline lapack_int Geqp3(lapack_int m, lapack_int n, T* a, lapack_int* pivots, T* tau) {       \
    return LAPACKE_##p##geqp3(LAPACK_COL_MAJOR, m, n, a, Leading(m), pivots, tau);              \
  }                                                                                             \
  inline lapack_int Orgqr(lapack_int m, lapack_int n, lapack_int k, T* a, const T* tau) {       \
    return LAPACKE_##p##q##gqr(LAPACK_COL_MAJOR, m, n, k, a, Leading(m), tau);                  \
  }                                                                                             \
  inline lapack_int Gesdd(char job, lapack_int m, lapack_int n, T* a, R* s, T* u, T* vt,        \
                          lapack_int vt_rows) {                                                 \
    return LAPACKE_##p##gesdd(LAPACK_COL_MAJOR, job, m, n, a, Leading(m), s, u, Leading(m), vt, \
                              Leading(vt_rows));                                                \
  }                                                                                             \
  inline lapack_int Syevd(char job, char uplo, lapack_int n, T* a, R* w) {                      \
    return LAPACKE_##p##h##evd(LAPACK_COL_MAJOR, job, uplo, n, a, Leading(n), w);               \
  }                                                                                             \
  inline lapack_int Gehrd(lapack_int n, lapack_int low, lapack_int high, T* a, T* tau) {        \
    return LAPACKE_##p##gehrd(LAPACK_COL_MAJOR, n, low, high, a, Leading(n), tau);              \
  }                                                                                             \
  inline lapack_int Sytrd(char uplo, lapack_int n, T* a, R* d, R* e, T* tau) {                  \
    return LAPACKE_##p##h##trd(LAPACK_COL_MAJOR, uplo, n, a, Leading(n), d, e, tau);            \
  }                                                                                             \
  inline lapack_int Sytrf(char uplo, lapack_int n, T* a, lapack_int* pivots) {                  \
    return LAPACKE_##p##sytrf(LAPACK_COL_MAJOR, uplo, n, a, Leading(n), pivots);                \
  }                                                                                             \
  inline lapack_int Sytrs(char uplo, lapack_int n, lapack_int columns, const T* a,              \
                          const lapack_int* pivots, T* b) {                                     \
    return LAPACKE_##p##sytrs(LAPACK_COL_MAJOR, uplo, n, columns, a, Leading(n), pivots, b,     \
                              Leading(n));                                                      \
  }                                                                                             \
  inline lapack_int Gtsv(lapack_int n, lapack_int columns, T* dl, T* d, T* du, T* b) {          \
    return LAPACKE_##p##gtsv(LAPACK_COL_MAJOR, n, columns, dl, d, du, b, Leading(n));           \
  }
LAZULI_LAPACK(float, float, s, or, sy)
LAZULI_LAPACK(double, double, d, or, sy)
LAZULI_LAPACK(std::complex<float>, float, c, un, he)
LAZULI_LAPACK(std::complex<double>, double, z, un, he)
#undef LAZULI_LAPACK

// Eigenvalues and -vectors of a general matrix. Real routines split values into their parts and
// pack conjugate pairs of vectors.
#define LAZULI_LAPACK(T, p)                                                                       \
  inline lapack_int Geev(char left, char right, lapack_int n, T* a, T* re, T* im, T* vl, T* vr) { \
    return LAPACKE_##p##geev(LAPACK_COL_MAJOR, left, right, n, a, Leading(n), re, im, vl,         \
                             Leading(n), vr, Leading(n));                                         \
  }                                                                                               \
  inline lapack_int Gees(char job, lapack_int n, T* a, lapack_int* sdim, T* re, T* im, T* vs) {   \
    return LAPACKE_##p##gees(LAPACK_COL_MAJOR, job, 'N', nullptr, n, a, Leading(n), sdim, re, im, \
                             vs, Leading(n));                                                     \
  }
LAZULI_LAPACK(float, s)
LAZULI_LAPACK(double, d)
#undef LAZULI_LAPACK
#define LAZULI_LAPACK(T, p)                                                                      \
  inline lapack_int Geev(char left, char right, lapack_int n, T* a, T* w, T* vl, T* vr) {        \
    return LAPACKE_##p##geev(LAPACK_COL_MAJOR, left, right, n, a, Leading(n), w, vl, Leading(n), \
                             vr, Leading(n));                                                    \
  }                                                                                              \
  inline lapack_int Gees(char job, lapack_int n, T* a, lapack_int* sdim, T* w, T* vs) {          \
    return LAPACKE_##p##gees(LAPACK_COL_MAJOR, job, 'N', nullptr, n, a, Leading(n), sdim, w, vs, \
                             Leading(n));                                                        \
  }
LAZULI_LAPACK(std::complex<float>, c)
LAZULI_LAPACK(std::complex<double>, z)
#undef LAZULI_LAPACK

#define LAZULI_LAPACK(T, p)                                                                 \
  inline lapack_int Hetrf(char uplo, lapack_int n, T* a, lapack_int* pivots) {              \
    return LAPACKE_##p##hetrf(LAPACK_COL_MAJOR, uplo, n, a, Leading(n), pivots);            \
  }                                                                                         \
  inline lapack_int Hetrs(char uplo, lapack_int n, lapack_int columns, const T* a,          \
                          const lapack_int* pivots, T* b) {                                 \
    return LAPACKE_##p##hetrs(LAPACK_COL_MAJOR, uplo, n, columns, a, Leading(n), pivots, b, \
                              Leading(n));                                                  \
  }
LAZULI_LAPACK(std::complex<float>, c)
LAZULI_LAPACK(std::complex<double>, z)
#undef LAZULI_LAPACK

// b := op(a)^-1 b, or b op(a)^-1.
struct TrsmKind {
  CBLAS_SIDE side;
  CBLAS_UPLO uplo;
  CBLAS_TRANSPOSE transpose;
  CBLAS_DIAG diagonal;
};
inline void Trsm(TrsmKind k, int m, int n, const float* a, int lda, float* b) {
  cblas_strsm(CblasColMajor, k.side, k.uplo, k.transpose, k.diagonal, m, n, 1, a, lda, b,
              Leading(m));
}
inline void Trsm(TrsmKind k, int m, int n, const double* a, int lda, double* b) {
  cblas_dtrsm(CblasColMajor, k.side, k.uplo, k.transpose, k.diagonal, m, n, 1, a, lda, b,
              Leading(m));
}
inline void Trsm(TrsmKind k, int m, int n, const std::complex<float>* a, int lda,
                 std::complex<float>* b) {
  const std::complex<float> one = 1;
  cblas_ctrsm(CblasColMajor, k.side, k.uplo, k.transpose, k.diagonal, m, n, &one, a, lda, b,
              Leading(m));
}
inline void Trsm(TrsmKind k, int m, int n, const std::complex<double>* a, int lda,
                 std::complex<double>* b) {
  const std::complex<double> one = 1;
  cblas_ztrsm(CblasColMajor, k.side, k.uplo, k.transpose, k.diagonal, m, n, &one, a, lda, b,
              Leading(m));
}

}  // namespace lazuli::hlo::lapack
