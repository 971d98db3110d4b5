#include "backend/cpu/runtime/eigen/matmul.h"

#include "backend/cpu/runtime/dnnl/dnnl_util.h"
#include "backend/cpu/runtime/library.h"

namespace lazuli::backend {
namespace {

using Desc = dnnl::memory::desc;

Desc MatrixDesc(const MatmulSpec& spec, int64_t rows, int64_t columns,
                const std::array<int64_t, 3>& strides) {
  using DataType = dnnl::memory::data_type;
  if (spec.batch == 1)
    return Desc({rows, columns}, DataType::f32, dnnl::memory::dims{strides[1], strides[2]});
  return Desc({spec.batch, rows, columns}, DataType::f32,
              dnnl::memory::dims{strides[0], strides[1], strides[2]});
}

class DnnlMatmul final : public LibraryCall {
 public:
  explicit DnnlMatmul(const MatmulSpec& spec)
      : a_(MatrixDesc(spec, spec.m, spec.k, spec.a_strides)),
        b_(MatrixDesc(spec, spec.k, spec.n, spec.b_strides)),
        c_(MatrixDesc(spec, spec.m, spec.n, spec.c_strides)),
        desc_(dnnl::matmul::desc(a_, b_, c_), DnnlEngine()),
        primitive_(desc_) {}

  absl::Status Run(const std::byte* a, const std::byte* b, std::byte* result,
                   std::byte*) const override {
    try {
      primitive_.execute(DnnlStream(), {{DNNL_ARG_SRC, DnnlMemory(a_, a)},
                                        {DNNL_ARG_WEIGHTS, DnnlMemory(b_, b)},
                                        {DNNL_ARG_DST, DnnlMemory(c_, result)}});
    } catch (const dnnl::error& error) {
      return FromDnnl(error, "a matrix multiplication");
    }
    return absl::OkStatus();
  }
  std::string Details() const override { return Str("oneDNN ", desc_.impl_info_str()); }

 private:
  Desc a_, b_, c_;
  dnnl::matmul::primitive_desc desc_;
  dnnl::matmul primitive_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LibraryCall>> PlanMatmul(const MatmulSpec& spec) {
  if (spec.dtype != DType::kF32) return PlanEigenMatmul(spec);
  try {
    return std::make_unique<DnnlMatmul>(spec);
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_unimplemented) return PlanEigenMatmul(spec);
    return FromDnnl(error, "planning a matrix multiplication");
  }
}

}  // namespace lazuli::backend
