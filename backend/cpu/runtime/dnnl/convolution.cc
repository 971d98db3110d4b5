// Convolutions by oneDNN. The batch is cut into parts that single-threaded primitives work on, so
// that no thread waits inside the library for another that the system holds up, and so that what
// follows can be done part by part (chain_thunk.h). For the gradient of the weights each thread
// sums over its share of the batch; the sums are added in order.
#include <algorithm>
#include <functional>
#include <new>
#include <numeric>
#include <optional>

#include "backend/cpu/runtime/dnnl/dnnl_call.h"
#include "backend/cpu/runtime/dnnl/dnnl_util.h"
#include "backend/cpu/runtime/library.h"
#include "backend/cpu/runtime/parts.h"
#include "backend/cpu/runtime/strided_copy.h"
#include "ir/support/parallel_for.h"

namespace lazuli::cpu {
namespace {

using Desc = dnnl::memory::desc;
using Computes = ConvolutionSpec::Computes;
using DataType = dnnl::memory::data_type;

constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;

int64_t Product(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

// Parts per thread: more even out threads of different speed, fewer cost less to begin.
constexpr int64_t kPartsPerThread = 8;

// How the work is shared out.
struct ConvolutionCut {
  int64_t parts = 1;        // convolutions over equal shares of the batch
  int library_threads = 1;  // of each of them
};

ConvolutionCut PlanCut(const ConvolutionSpec& spec, int threads) {
  const int64_t batch = spec.source[0];
  const int64_t source = Product(spec.source), target = Product(spec.target);
  const int64_t work = target * Product(spec.weights) / spec.weights[0];
  if (threads == 1 && spec.computes == Computes::kWeights) return {};
  const ConvolutionCut whole{.parts = 1, .library_threads = work < 2 * kPartWork ? 1 : threads};
  if (spec.source_strides[0] * batch != source || spec.target_strides[0] * batch != target)
    return whole;  // the batch is not outermost in memory
  if (spec.computes == Computes::kWeights) {
    const bool small_sums = Product(spec.weights) * (threads - 1) <= source + target;
    return work >= 2 * kPartWork && batch % threads == 0 && small_sums
               ? ConvolutionCut{.parts = threads}
               : whole;
  }
  const int64_t most = std::min({kPartsPerThread * threads, work / kPartWork, batch});
  for (int64_t parts = most; parts >= std::max(threads, 2); --parts) {
    if (batch % parts == 0) return {.parts = parts};
  }
  return whole;
}

ConvolutionSpec PartOf(ConvolutionSpec spec, int64_t parts) {
  spec.source[0] /= parts;
  spec.target[0] /= parts;
  return spec;
}

// The weights {o, i, spatial...} as {g, o / g, i, spatial...} where there are groups: `first`
// before the rest, and `per_group` output features.
Dims Grouped(const Dims& weights, int64_t groups, int64_t first, int64_t per_group) {
  Dims result = weights;
  if (groups == 1) return result;
  result[0] = per_group;
  result.insert(result.begin(), first);
  return result;
}
Dims GroupedSizes(const ConvolutionSpec& spec) {
  return Grouped(spec.weights, spec.groups, spec.groups, spec.weights[0] / spec.groups);
}
Dims GroupedStrides(const ConvolutionSpec& spec) {
  return Grouped(spec.weights_strides, spec.groups, spec.group_stride, spec.weights_strides[0]);
}

Desc WeightsDesc(const ConvolutionSpec& spec, const Dims& grouped_strides) {
  return Desc(ToDnnl(GroupedSizes(spec)), DataType::f32, ToDnnl(grouped_strides));
}

// Sizes, with the weights in the order the library wants.
struct Roles {
  explicit Roles(const ConvolutionSpec& spec)
      : source(ToDnnl(spec.source)),
        weights(ToDnnl(GroupedSizes(spec))),
        target(ToDnnl(spec.target)),
        stride(ToDnnl(spec.stride)),
        pad_low(ToDnnl(spec.pad_low)),
        pad_high(ToDnnl(spec.pad_high)) {
    for (int64_t d : spec.dilation) dilation.push_back(d - 1);
    // Activations keep the layout they have; of the weights the library chooses its own.
    source_desc = Desc(source, DataType::f32, ToDnnl(spec.source_strides));
    target_desc = Desc(target, DataType::f32, ToDnnl(spec.target_strides));
    any_weights = Desc(weights, DataType::f32, dnnl::memory::format_tag::any);
    plain_weights = WeightsDesc(spec, GroupedStrides(spec));
  }
  dnnl::convolution_forward::primitive_desc Forward() const {
    return {dnnl::convolution_forward::desc(dnnl::prop_kind::forward_training, kAlgorithm,
                                            source_desc, any_weights, target_desc, stride, dilation,
                                            pad_low, pad_high),
            DnnlUserScratchpad(), DnnlEngine()};
  }
  dnnl::convolution_backward_data::primitive_desc BackwardData() const {
    return {dnnl::convolution_backward_data::desc(kAlgorithm, source_desc, any_weights, target_desc,
                                                  stride, dilation, pad_low, pad_high),
            DnnlUserScratchpad(), DnnlEngine(), Forward()};
  }
  dnnl::convolution_backward_weights::primitive_desc BackwardWeights() const {
    return {
        dnnl::convolution_backward_weights::desc(kAlgorithm, source_desc, any_weights, target_desc,
                                                 stride, dilation, pad_low, pad_high),
        DnnlUserScratchpad(), DnnlEngine(), Forward()};
  }

  dnnl::memory::dims source, weights, target, stride, dilation, pad_low, pad_high;
  Desc source_desc, target_desc, any_weights, plain_weights;
};

// Writes weights in the library's layout, flipped first where the convolution wants them so.
class WeightsPacking final : public LibraryPacking {
 public:
  // Null if the weights are good as they are.
  static std::unique_ptr<LibraryPacking> Plan(const ConvolutionSpec& spec, const Desc& plain,
                                              const Desc& packed) {
    if (spec.flip_weights) {
      Flip flip(spec);
      std::optional<DnnlCall> reorder;
      if (flip.result != packed) reorder = DnnlReorder(flip.result, packed);
      return std::make_unique<WeightsPacking>(std::move(flip), std::move(reorder), packed);
    }
    if (plain == packed) return nullptr;
    return std::make_unique<WeightsPacking>(std::nullopt, DnnlReorder(plain, packed), packed);
  }

  // Row major by role.
  struct Flip {
    explicit Flip(const ConvolutionSpec& spec) {
      const Dims sizes = GroupedSizes(spec);
      Dims from = GroupedStrides(spec), to(sizes.size());
      int64_t stride = 1;
      for (std::size_t d = to.size(); d-- > 0; stride *= sizes[d]) to[d] = stride;
      for (std::size_t d = sizes.size() - spec.stride.size(); d < from.size(); ++d) {
        offset += (sizes[d] - 1) * from[d] * static_cast<int64_t>(sizeof(float));
        from[d] = -from[d];
      }
      copy = StridedCopy(sizeof(float), sizes, from, to);
      result = WeightsDesc(spec, to);
    }
    std::optional<StridedCopy> copy;
    int64_t offset = 0;  // of the element that comes first
    Desc result;
  };

  WeightsPacking(std::optional<Flip> flip, std::optional<DnnlCall> reorder, const Desc& packed)
      : flip_(std::move(flip)), reorder_(std::move(reorder)), packed_bytes_(DnnlBytes(packed)) {}

  // The packed weights; behind them, flipped ones that have yet to be packed.
  int64_t bytes() const override {
    return packed_bytes_ + (flip_ && reorder_ ? DnnlBytes(flip_->result) : 0);
  }
  absl::Status Run(const std::byte* weights, std::byte* packed) const override {
    if (flip_) {
      std::byte* const flipped = reorder_ ? packed + packed_bytes_ : packed;
      flip_->copy->Run(weights + flip_->offset, flipped);
      weights = flipped;
    }
    if (!reorder_) return absl::OkStatus();
    const ScopedLibraryThreads one(1);
    return reorder_->Run({weights, packed}, 0, "packing the weights of a convolution");
  }

 private:
  std::optional<Flip> flip_;
  std::optional<DnnlCall> reorder_;
  int64_t packed_bytes_;
};

// The primitive of one part, planned.
struct PartPlan {
  dnnl::primitive primitive;
  Desc weights, scratchpad;
  std::string implementation;

  template <class Primitive, class PrimitiveDesc>
  static PartPlan Of(const PrimitiveDesc& desc, const Desc& weights) {
    return {Primitive(desc), weights, desc.scratchpad_desc(), desc.impl_info_str()};
  }
  static PartPlan Of(Computes computes, const Roles& roles) {
    switch (computes) {
      case Computes::kTarget: {
        const auto desc = roles.Forward();
        return Of<dnnl::convolution_forward>(desc, desc.weights_desc());
      }
      case Computes::kSource: {
        const auto desc = roles.BackwardData();
        return Of<dnnl::convolution_backward_data>(desc, desc.weights_desc());
      }
      case Computes::kWeights:
        break;
    }
    const auto desc = roles.BackwardWeights();
    return Of<dnnl::convolution_backward_weights>(desc, desc.diff_weights_desc());
  }
};

// The target or the gradient of the source; the weights come in the library's layout. Scratch holds
// a scratchpad for each worker.
class DnnlConvolution final : public LibraryCall {
 public:
  // `roles` and `plan` are those of one part.
  DnnlConvolution(Computes computes, const Roles& roles, PartPlan plan, ConvolutionCut cut,
                  int threads)
      : forward_(computes == Computes::kTarget),
        parts_(cut.parts),
        workers_(WorkersFor(cut.parts, threads)),
        library_threads_(cut.library_threads),
        source_step_(static_cast<int64_t>(roles.source_desc.get_size())),
        target_step_(static_cast<int64_t>(roles.target_desc.get_size())),
        scratchpad_bytes_(DnnlBytes(plan.scratchpad)),
        implementation_(std::move(plan.implementation)),
        call_(std::move(plan.primitive),
              {{forward_ ? DNNL_ARG_SRC : DNNL_ARG_DIFF_SRC, roles.source_desc},
               {DNNL_ARG_WEIGHTS, plan.weights},
               {forward_ ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, roles.target_desc},
               {DNNL_ARG_SCRATCHPAD, plan.scratchpad}},
              workers_) {}

  int64_t scratch_bytes() const override { return workers_ * scratchpad_bytes_; }
  absl::Status Run(const LibraryBuffers& buffers) const override {
    return ForEachPart(parts_, workers_, [&](Part part) { return RunPart(buffers, part); });
  }
  Parts parts() const override {
    return {.count = parts_, .a = forward_ && parts_ > 1, .b = !forward_ && parts_ > 1};
  }
  absl::Status RunPart(const LibraryBuffers& buffers, Part part) const override {
    const ScopedLibraryThreads threads(library_threads_);
    const std::byte* const source = forward_ ? buffers.a : buffers.result;
    const std::byte* const weights = forward_ ? buffers.b : buffers.a;
    const std::byte* const target = forward_ ? buffers.result : buffers.b;
    return call_.Run(
        {source + part.index * source_step_, weights, target + part.index * target_step_,
         buffers.scratch + part.worker * scratchpad_bytes_},
        part.worker, "a convolution");
  }
  std::string Details() const override { return DnnlDetails(implementation_, parts_); }

 private:
  bool forward_;
  int64_t parts_, workers_;
  int library_threads_;
  int64_t source_step_, target_step_, scratchpad_bytes_;  // bytes from one to the next
  std::string implementation_;
  DnnlCall call_;
};

// The gradient of the weights. Scratch holds a sum for each part, but the first where it lies in
// the result, and a scratchpad for each worker.
class DnnlWeightsGradient final : public LibraryCall {
 public:
  DnnlWeightsGradient(const Roles& roles, PartPlan plan, ConvolutionCut cut, int threads)
      : parts_(cut.parts),
        workers_(WorkersFor(cut.parts, threads)),
        library_threads_(cut.library_threads),
        source_step_(static_cast<int64_t>(roles.source_desc.get_size())),
        target_step_(static_cast<int64_t>(roles.target_desc.get_size())),
        sum_elements_(static_cast<int64_t>(plan.weights.get_size() / sizeof(float))),
        sum_step_(DnnlBytes(plan.weights)),
        scratchpad_bytes_(DnnlBytes(plan.scratchpad)),
        implementation_(std::move(plan.implementation)),
        call_(std::move(plan.primitive),
              {{DNNL_ARG_SRC, roles.source_desc},
               {DNNL_ARG_DIFF_WEIGHTS, plan.weights},
               {DNNL_ARG_DIFF_DST, roles.target_desc},
               {DNNL_ARG_SCRATCHPAD, plan.scratchpad}},
              workers_) {
    if (plan.weights != roles.plain_weights)
      unpack_ = DnnlReorder(plan.weights, roles.plain_weights);
  }

  int64_t scratch_bytes() const override { return ScratchpadAt(workers_); }
  absl::Status Run(const LibraryBuffers& buffers) const override {
    LAZULI_RETURN_IF_ERROR(ForEachPart(parts_, workers_, [&](Part part) {
      const ScopedLibraryThreads threads(library_threads_);
      return call_.Run(
          {buffers.a + part.index * source_step_, Sum(buffers, part.index),
           buffers.b + part.index * target_step_, buffers.scratch + ScratchpadAt(part.worker)},
          part.worker, "the gradient of a convolution's weights");
    }));
    AddSums(buffers);
    if (!unpack_) return absl::OkStatus();
    const ScopedLibraryThreads one(1);
    return unpack_->Run({Sum(buffers, 0), buffers.result}, 0, "unpacking a gradient");
  }
  std::string Details() const override { return DnnlDetails(implementation_, parts_); }

 private:
  int64_t ScratchpadAt(int64_t worker) const {
    return sum_step_ * (parts_ - (unpack_ ? 0 : 1)) + worker * scratchpad_bytes_;
  }
  // The sum over one part of the batch; the first lies in the result if the library's layout is
  // that of the result.
  std::byte* Sum(const LibraryBuffers& buffers, int64_t part) const {
    if (unpack_) return buffers.scratch + part * sum_step_;
    return part == 0 ? buffers.result : buffers.scratch + (part - 1) * sum_step_;
  }
  void AddSums(const LibraryBuffers& buffers) const {
    constexpr int64_t kGrain = 16384;
    auto* total = reinterpret_cast<float*>(Sum(buffers, 0));
    for (int64_t part = 1; part < parts_; ++part) {
      const auto* sum = reinterpret_cast<const float*>(Sum(buffers, part));
      ParallelFor(sum_elements_, kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) total[i] += sum[i];
      });
    }
  }

  int64_t parts_, workers_;
  int library_threads_;
  int64_t source_step_, target_step_;  // bytes from part to part
  int64_t sum_elements_, sum_step_, scratchpad_bytes_;
  std::string implementation_;
  DnnlCall call_;
  std::optional<DnnlCall> unpack_;
};

// Those by matrix products gather zeros; so do those of single elements, for the weights. All others
// leave out what lies in the padding.
bool MultipliesPadding(const ConvolutionSpec& spec, std::string_view implementation) {
  const auto any = [](const Dims& padding) {
    return std::any_of(padding.begin(), padding.end(), [](int64_t p) { return p > 0; });
  };
  const bool single = std::all_of(spec.weights.begin() + 2, spec.weights.end(),
                                  [](int64_t size) { return size == 1; });
  return (any(spec.pad_low) || any(spec.pad_high)) &&
         (implementation.find("gemm") != std::string_view::npos ||
          (single && spec.computes == Computes::kWeights));
}

LibraryPlan Plan(const ConvolutionSpec& spec, int threads) {
  const ConvolutionCut cut = PlanCut(spec, threads);
  const ScopedLibraryThreads planned_for(cut.library_threads);
  const Roles roles(PartOf(spec, cut.parts));
  PartPlan part = PartPlan::Of(spec.computes, roles);
  const bool padding = MultipliesPadding(spec, part.implementation);
  if (spec.computes == Computes::kWeights)
    return {std::make_unique<DnnlWeightsGradient>(roles, std::move(part), cut, threads), nullptr,
            padding};
  auto packing = WeightsPacking::Plan(spec, roles.plain_weights, part.weights);
  return {std::make_unique<DnnlConvolution>(spec.computes, roles, std::move(part), cut, threads),
          std::move(packing), padding};
}

}  // namespace

absl::StatusOr<LibraryPlan> PlanConvolution(const ConvolutionSpec& spec, int threads) {
  try {
    return Plan(spec, threads);
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_unimplemented || error.status == dnnl_invalid_arguments)
      return LibraryPlan();
    return FromDnnl(error, "planning a convolution");
  }
}

}  // namespace lazuli::cpu
