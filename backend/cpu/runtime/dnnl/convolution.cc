// Convolutions by oneDNN. The batch is cut into parts that single-threaded primitives work on, so
// that no thread waits inside the library for another that the system holds up, and so that what
// follows can be done part by part (chain_thunk.h). For the gradient of the weights each thread
// sums over its share of the batch; the sums are added in order.
#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

#include "backend/cpu/runtime/dnnl/dnnl_util.h"
#include "backend/cpu/runtime/library.h"
#include "backend/cpu/runtime/parts.h"
#include "backend/cpu/runtime/strided_copy.h"
#include "ir/support/parallel_for.h"

namespace lazuli::backend {
namespace {

using Desc = dnnl::memory::desc;
using Computes = ConvolutionSpec::Computes;
using DataType = dnnl::memory::data_type;

constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;

int64_t Product(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

// Parts a thread: more even out threads of different speed, fewer cost less to begin.
constexpr int64_t kPartsPerThread = 8;
// Multiplications in a part: some microseconds, which is more than beginning one takes.
constexpr int64_t kPartWork = 500000;

// How the work is shared out.
struct Cut {
  int64_t parts = 1;        // convolutions over equal shares of the batch
  int library_threads = 1;  // of each of them
};

Cut PlanCut(const ConvolutionSpec& spec, int threads) {
  const int64_t batch = spec.source[0];
  const int64_t source = Product(spec.source), target = Product(spec.target);
  const int64_t work = target * Product(spec.weights) / spec.weights[0];
  if (threads == 1 && spec.computes == Computes::kWeights) return {};
  const Cut whole{.parts = 1, .library_threads = work < 2 * kPartWork ? 1 : threads};
  if (spec.source_strides[0] * batch != source || spec.target_strides[0] * batch != target)
    return whole;  // the batch is not outermost in memory
  if (spec.computes == Computes::kWeights) {
    const bool small_sums = Product(spec.weights) * (threads - 1) <= source + target;
    return work >= 2 * kPartWork && batch % threads == 0 && small_sums ? Cut{.parts = threads}
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

using Arguments = std::unordered_map<int, dnnl::memory>;

// The common part: weights are packed into the library's layout before, or unpacked after. Scratch
// holds packed weights (for their gradient, one sum for each part), flipped weights, and a
// scratchpad for each worker.
class DnnlConvolution : public LibraryCall {
 public:
  // What a primitive says of itself.
  struct Plan {
    Desc packed, scratchpad;
    std::string implementation;
  };

  // `roles` are those of one part.
  DnnlConvolution(const ConvolutionSpec& spec, const Roles& roles, const Plan& plan, Cut cut,
                  int threads)
      : computes_(spec.computes),
        parts_(cut.parts),
        workers_(WorkersFor(cut.parts, threads)),
        library_threads_(cut.library_threads),
        source_(roles.source_desc),
        target_(roles.target_desc),
        plain_(roles.plain_weights),
        packed_(plan.packed),
        scratchpad_(plan.scratchpad),
        implementation_(plan.implementation) {
    if (spec.flip_weights) PlanFlip(spec);
    if (packed_ == plain_) return;
    const bool unpack = computes_ == Computes::kWeights;
    const Desc& from = unpack ? packed_ : plain_;
    const Desc& to = unpack ? plain_ : packed_;
    pack_ = dnnl::reorder(dnnl::reorder::primitive_desc(DnnlEngine(), from, DnnlEngine(), to));
  }

  int64_t scratch_bytes() const override { return ScratchpadAt(workers_); }

  absl::Status Run(const LibraryBuffers& buffers) const override {
    if (computes_ == Computes::kWeights) return RunWeights(buffers);
    LAZULI_RETURN_IF_ERROR(Prepare(buffers));
    return ForEachPart(parts_, workers_, [&](Part part) { return RunPart(buffers, part); });
  }

  Parts parts() const override {
    if (computes_ == Computes::kWeights) return {};
    const bool forward = computes_ == Computes::kTarget;
    return {.count = parts_, .a = forward && parts_ > 1, .b = !forward && parts_ > 1};
  }

  absl::Status Prepare(const LibraryBuffers& buffers) const override {
    const std::byte* weights = computes_ == Computes::kTarget ? buffers.b : buffers.a;
    if (flip_) flip_->Run(weights + flip_offset_, buffers.scratch + FlippedAt());
    if (!pack_) return absl::OkStatus();
    if (flip_) weights = buffers.scratch + FlippedAt();
    return Reorder({{DNNL_ARG_FROM, DnnlMemory(plain_, weights)},
                    {DNNL_ARG_TO, DnnlMemory(packed_, buffers.scratch)}});
  }

  absl::Status RunPart(const LibraryBuffers& buffers, Part part) const override {
    const bool forward = computes_ == Computes::kTarget;
    const std::byte* weights = forward ? buffers.b : buffers.a;
    if (flip_) weights = buffers.scratch + FlippedAt();
    if (pack_) weights = buffers.scratch;
    const dnnl::memory packed = DnnlMemory(packed_, weights);
    if (forward) {
      return Execute({{DNNL_ARG_SRC, PartMemory(source_, buffers.a, part)},
                      {DNNL_ARG_WEIGHTS, packed},
                      {DNNL_ARG_DST, PartMemory(target_, buffers.result, part)}},
                     buffers, part);
    }
    return Execute({{DNNL_ARG_WEIGHTS, packed},
                    {DNNL_ARG_DIFF_DST, PartMemory(target_, buffers.b, part)},
                    {DNNL_ARG_DIFF_SRC, PartMemory(source_, buffers.result, part)}},
                   buffers, part);
  }

  std::string Details() const override {
    return Str("oneDNN ", implementation_, parts_ > 1 ? Str(", ", parts_, " parts") : "");
  }

 protected:
  virtual void RunPrimitive(const Arguments& arguments) const = 0;

 private:
  // Offsets in the scratch memory.
  int64_t PackedBytes() const { return DnnlBytes(packed_); }
  int64_t FlippedAt() const {
    const bool sums = computes_ == Computes::kWeights;
    return PackedBytes() * (sums ? parts_ - (pack_ ? 0 : 1) : pack_ ? 1 : 0);
  }
  int64_t ScratchpadAt(int64_t worker) const {
    return FlippedAt() + (flip_ ? DnnlBytes(plain_) : 0) + worker * DnnlBytes(scratchpad_);
  }
  // The sum over one part of the batch; the first lies in the result if the library's layout is
  // that of the result.
  std::byte* Sum(const LibraryBuffers& buffers, int64_t part) const {
    if (pack_) return buffers.scratch + part * PackedBytes();
    return part == 0 ? buffers.result : buffers.scratch + (part - 1) * PackedBytes();
  }

  static dnnl::memory PartMemory(const Desc& desc, const std::byte* all, Part part) {
    return DnnlMemory(desc, all + part.index * static_cast<int64_t>(desc.get_size()));
  }

  absl::Status Execute(Arguments arguments, const LibraryBuffers& buffers, Part part) const {
    const ScopedLibraryThreads threads(library_threads_);
    if (scratchpad_.get_size() > 0) {
      arguments[DNNL_ARG_SCRATCHPAD] =
          DnnlMemory(scratchpad_, buffers.scratch + ScratchpadAt(part.worker));
    }
    try {
      RunPrimitive(arguments);
    } catch (const dnnl::error& error) {
      return FromDnnl(error, "a convolution");
    }
    return absl::OkStatus();
  }

  absl::Status Reorder(const Arguments& arguments) const {
    const ScopedLibraryThreads threads(library_threads_);
    try {
      pack_->execute(DnnlStream(), arguments);
    } catch (const dnnl::error& error) {
      return FromDnnl(error, "packing the weights of a convolution");
    }
    return absl::OkStatus();
  }

  absl::Status RunWeights(const LibraryBuffers& buffers) const {
    LAZULI_RETURN_IF_ERROR(ForEachPart(parts_, workers_, [&](Part part) {
      const dnnl::memory sum = DnnlMemory(packed_, Sum(buffers, part.index));
      return Execute({{DNNL_ARG_SRC, PartMemory(source_, buffers.a, part)},
                      {DNNL_ARG_DIFF_DST, PartMemory(target_, buffers.b, part)},
                      {DNNL_ARG_DIFF_WEIGHTS, sum}},
                     buffers, part);
    }));
    AddSums(buffers);
    if (!pack_) return absl::OkStatus();
    return Reorder({{DNNL_ARG_FROM, DnnlMemory(packed_, Sum(buffers, 0))},
                    {DNNL_ARG_TO, DnnlMemory(plain_, buffers.result)}});
  }

  void AddSums(const LibraryBuffers& buffers) const {
    constexpr int64_t kGrain = 16384;
    auto* total = reinterpret_cast<float*>(Sum(buffers, 0));
    const auto elements = static_cast<int64_t>(packed_.get_size() / sizeof(float));
    for (int64_t part = 1; part < parts_; ++part) {
      const auto* sum = reinterpret_cast<const float*>(Sum(buffers, part));
      ParallelFor(elements, kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) total[i] += sum[i];
      });
    }
  }

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

  Computes computes_;
  int64_t parts_, workers_;
  int library_threads_;
  Desc source_, target_;  // of one part
  Desc plain_, packed_, scratchpad_;
  std::string implementation_;
  std::optional<dnnl::reorder> pack_;
  std::optional<StridedCopy> flip_;
  int64_t flip_offset_ = 0;
};

template <class Primitive>
class DnnlConvolutionOf final : public DnnlConvolution {
 public:
  DnnlConvolutionOf(const ConvolutionSpec& spec, const Roles& roles,
                    const typename Primitive::primitive_desc& desc, const Desc& packed, Cut cut,
                    int threads)
      : DnnlConvolution(spec, roles, {packed, desc.scratchpad_desc(), desc.impl_info_str()}, cut,
                        threads),
        primitive_(desc) {}

 private:
  void RunPrimitive(const Arguments& arguments) const override {
    primitive_.execute(DnnlStream(), arguments);
  }
  Primitive primitive_;
};

std::unique_ptr<LibraryCall> Plan(const ConvolutionSpec& spec, int threads) {
  const Cut cut = PlanCut(spec, threads);
  const ScopedLibraryThreads planned_for(cut.library_threads);
  const Roles roles(PartOf(spec, cut.parts));
  switch (spec.computes) {
    case Computes::kTarget: {
      const auto desc = roles.Forward();
      return std::make_unique<DnnlConvolutionOf<dnnl::convolution_forward>>(
          spec, roles, desc, desc.weights_desc(), cut, threads);
    }
    case Computes::kSource: {
      const auto desc = roles.BackwardData();
      return std::make_unique<DnnlConvolutionOf<dnnl::convolution_backward_data>>(
          spec, roles, desc, desc.weights_desc(), cut, threads);
    }
    case Computes::kWeights: {
      const auto desc = roles.BackwardWeights();
      return std::make_unique<DnnlConvolutionOf<dnnl::convolution_backward_weights>>(
          spec, roles, desc, desc.diff_weights_desc(), cut, threads);
    }
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LibraryCall>> PlanConvolution(const ConvolutionSpec& spec,
                                                             int threads) {
  try {
    return Plan(spec, threads);
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_unimplemented || error.status == dnnl_invalid_arguments)
      return nullptr;
    return FromDnnl(error, "planning a convolution");
  }
}

}  // namespace lazuli::backend
