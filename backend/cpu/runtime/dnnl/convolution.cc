#include <optional>

#include "backend/cpu/runtime/dnnl/dnnl_util.h"
#include "backend/cpu/runtime/library.h"
#include "backend/cpu/runtime/strided_copy.h"

namespace lazuli::backend {
namespace {

using Desc = dnnl::memory::desc;
using Computes = ConvolutionSpec::Computes;
using DataType = dnnl::memory::data_type;

constexpr int64_t kAlignment = 64;
constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;

int64_t Padded(std::size_t bytes) {
  return (static_cast<int64_t>(bytes) + kAlignment - 1) / kAlignment * kAlignment;
}

// {o, i, spatial...} as {g, o / g, i, spatial...} where there are groups.
Dims Grouped(const Dims& weights, int64_t groups, int64_t first) {
  Dims result = weights;
  if (groups == 1) return result;
  result[0] = weights[0] / groups;
  result.insert(result.begin(), first);
  return result;
}

// Sizes, with the weights in the order the library wants.
struct Roles {
  explicit Roles(const ConvolutionSpec& spec)
      : source(ToDnnl(spec.source)),
        weights(ToDnnl(Grouped(spec.weights, spec.groups, spec.groups))),
        target(ToDnnl(spec.target)),
        stride(ToDnnl(spec.stride)),
        pad_low(ToDnnl(spec.pad_low)),
        pad_high(ToDnnl(spec.pad_high)) {
    for (int64_t d : spec.dilation) dilation.push_back(d - 1);
    // Activations keep the layout they have; of the weights the library chooses its own.
    source_desc = Desc(source, DataType::f32, ToDnnl(spec.source_strides));
    target_desc = Desc(target, DataType::f32, ToDnnl(spec.target_strides));
    any_weights = Desc(weights, DataType::f32, dnnl::memory::format_tag::any);
    Dims strides = Grouped(spec.weights_strides, spec.groups,
                           spec.weights_strides[0] * (spec.weights[0] / spec.groups));
    if (spec.groups > 1) strides[1] = spec.weights_strides[0];
    plain_weights = Desc(weights, DataType::f32, ToDnnl(strides));
  }
  dnnl::convolution_forward::primitive_desc Forward() const {
    return {dnnl::convolution_forward::desc(dnnl::prop_kind::forward_training, kAlgorithm,
                                            source_desc, any_weights, target_desc, stride, dilation,
                                            pad_low, pad_high),
            DnnlEngine()};
  }
  dnnl::convolution_backward_data::primitive_desc BackwardData() const {
    return {dnnl::convolution_backward_data::desc(kAlgorithm, source_desc, any_weights, target_desc,
                                                  stride, dilation, pad_low, pad_high),
            DnnlEngine(), Forward()};
  }
  dnnl::convolution_backward_weights::primitive_desc BackwardWeights() const {
    return {
        dnnl::convolution_backward_weights::desc(kAlgorithm, source_desc, any_weights, target_desc,
                                                 stride, dilation, pad_low, pad_high),
        DnnlEngine(), Forward()};
  }

  dnnl::memory::dims source, weights, target, stride, dilation, pad_low, pad_high;
  Desc source_desc, target_desc, any_weights, plain_weights;
};

// The common part: weights are packed into the library's layout before, or unpacked after.
class DnnlConvolution : public LibraryCall {
 public:
  DnnlConvolution(const ConvolutionSpec& spec, const Roles& roles, const Desc& packed,
                  std::string implementation)
      : computes_(spec.computes),
        source_(roles.source_desc),
        target_(roles.target_desc),
        plain_(roles.plain_weights),
        packed_(packed),
        implementation_(std::move(implementation)) {
    if (spec.flip_weights) PlanFlip(spec);
    if (packed_ == plain_) return;
    const bool unpack = computes_ == Computes::kWeights;
    const Desc& from = unpack ? packed_ : plain_;
    const Desc& to = unpack ? plain_ : packed_;
    pack_ = dnnl::reorder(dnnl::reorder::primitive_desc(DnnlEngine(), from, DnnlEngine(), to));
  }

  int64_t scratch_bytes() const override {
    return (pack_ ? Padded(packed_.get_size()) : 0) + (flip_ ? Padded(plain_.get_size()) : 0);
  }

  absl::Status Run(const std::byte* a, const std::byte* b, std::byte* result,
                   std::byte* scratch) const override {
    try {
      switch (computes_) {
        case Computes::kTarget:
          RunPrimitive({{DNNL_ARG_SRC, DnnlMemory(source_, a)},
                        {DNNL_ARG_WEIGHTS, Packed(b, scratch)},
                        {DNNL_ARG_DST, DnnlMemory(target_, result)}});
          break;
        case Computes::kSource:
          RunPrimitive({{DNNL_ARG_WEIGHTS, Packed(a, scratch)},
                        {DNNL_ARG_DIFF_DST, DnnlMemory(target_, b)},
                        {DNNL_ARG_DIFF_SRC, DnnlMemory(source_, result)}});
          break;
        case Computes::kWeights: {
          const dnnl::memory packed = DnnlMemory(packed_, pack_ ? scratch : result);
          RunPrimitive({{DNNL_ARG_SRC, DnnlMemory(source_, a)},
                        {DNNL_ARG_DIFF_DST, DnnlMemory(target_, b)},
                        {DNNL_ARG_DIFF_WEIGHTS, packed}});
          if (pack_)
            pack_->execute(DnnlStream(),
                           {{DNNL_ARG_FROM, packed}, {DNNL_ARG_TO, DnnlMemory(plain_, result)}});
          break;
        }
      }
    } catch (const dnnl::error& error) {
      return FromDnnl(error, "a convolution");
    }
    return absl::OkStatus();
  }

  std::string Details() const override { return Str("oneDNN ", implementation_); }

 protected:
  virtual void RunPrimitive(const std::unordered_map<int, dnnl::memory>& arguments) const = 0;

 private:
  // Flipped weights are stored row major by role; what follows reads those.
  void PlanFlip(const ConvolutionSpec& spec) {
    Dims from = spec.weights_strides, to(spec.weights.size());
    int64_t stride = 1;
    for (std::size_t d = to.size(); d-- > 0; stride *= spec.weights[d]) to[d] = stride;
    for (std::size_t d = 2; d < from.size(); ++d) {
      flip_offset_ += (spec.weights[d] - 1) * from[d] * static_cast<int64_t>(sizeof(float));
      from[d] = -from[d];
    }
    flip_ = StridedCopy(sizeof(float), spec.weights, from, to);
    Dims strides = Grouped(to, spec.groups, to[0] * (spec.weights[0] / spec.groups));
    if (spec.groups > 1) strides[1] = to[0];
    plain_ = Desc(plain_.dims(), DataType::f32, ToDnnl(strides));
  }

  dnnl::memory Packed(const std::byte* weights, std::byte* scratch) const {
    if (flip_) {
      std::byte* flipped = scratch + (pack_ ? Padded(packed_.get_size()) : 0);
      flip_->Run(weights + flip_offset_, flipped);
      weights = flipped;
    }
    if (!pack_) return DnnlMemory(plain_, weights);
    dnnl::memory packed = DnnlMemory(packed_, scratch);
    pack_->execute(DnnlStream(),
                   {{DNNL_ARG_FROM, DnnlMemory(plain_, weights)}, {DNNL_ARG_TO, packed}});
    return packed;
  }

  Computes computes_;
  Desc source_, target_, plain_, packed_;
  std::string implementation_;
  std::optional<dnnl::reorder> pack_;
  std::optional<StridedCopy> flip_;
  int64_t flip_offset_ = 0;
};

template <class Primitive, class PrimitiveDesc>
class DnnlConvolutionOf final : public DnnlConvolution {
 public:
  DnnlConvolutionOf(const ConvolutionSpec& spec, const Roles& roles, const PrimitiveDesc& desc,
                    const Desc& packed)
      : DnnlConvolution(spec, roles, packed, desc.impl_info_str()), primitive_(desc) {}

 private:
  void RunPrimitive(const std::unordered_map<int, dnnl::memory>& arguments) const override {
    primitive_.execute(DnnlStream(), arguments);
  }
  Primitive primitive_;
};

std::unique_ptr<LibraryCall> Plan(const ConvolutionSpec& spec) {
  const Roles roles(spec);
  switch (spec.computes) {
    case Computes::kTarget: {
      const auto desc = roles.Forward();
      return std::make_unique<
          DnnlConvolutionOf<dnnl::convolution_forward, dnnl::convolution_forward::primitive_desc>>(
          spec, roles, desc, desc.weights_desc());
    }
    case Computes::kSource: {
      const auto desc = roles.BackwardData();
      return std::make_unique<DnnlConvolutionOf<dnnl::convolution_backward_data,
                                                dnnl::convolution_backward_data::primitive_desc>>(
          spec, roles, desc, desc.weights_desc());
    }
    case Computes::kWeights: {
      const auto desc = roles.BackwardWeights();
      return std::make_unique<DnnlConvolutionOf<
          dnnl::convolution_backward_weights, dnnl::convolution_backward_weights::primitive_desc>>(
          spec, roles, desc, desc.diff_weights_desc());
    }
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LibraryCall>> PlanConvolution(const ConvolutionSpec& spec) {
  try {
    return Plan(spec);
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_unimplemented || error.status == dnnl_invalid_arguments)
      return nullptr;
    return FromDnnl(error, "planning a convolution");
  }
}

}  // namespace lazuli::backend
