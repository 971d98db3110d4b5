// Windows of pooling: reduce-window, and select-and-scatter, the gradient of max pooling.
//
// One point of the iteration space is an output (a source) position; the window's positions are
// further variables of the plan. Vectors lie along the innermost dimension in memory, over which
// the window must not slide: where it does, points go one by one. Outputs fold their window in
// row-major order from init, and positions in the padding are left out, as in the evaluator. Where
// windows tile the array, elementwise work on the result of a select-and-scatter is done as each
// element is written.
#include <algorithm>
#include <functional>

#include "backend/cpu/codegen/element_ops.h"
#include "backend/cpu/codegen/kernel_builder.h"
#include "backend/cpu/codegen/kernel_emitters.h"
#include "ir/hlo/dense_map.h"
#include "ir/hlo/monoid.h"
#include "ir/hlo/windows.h"
#include "ir/support/status.h"

namespace lazuli::cpu {
namespace {

using hlo::Instruction;
using Values = std::vector<llvm::Value*>;

// Windows of at most so many positions, none of them padding, are written out.
constexpr int64_t kUnrolledWindow = 32;

// The window and the two spaces it joins: outer (its positions' space: outputs or sources) and
// inner (what it slides over).
class WindowSpace {
 public:
  WindowSpace(const hlo::Window& window, const Shape& inner, const Shape& outer)
      : window_(window), inner_(inner), outer_(outer) {
    variables_ = PhysicalVariables(outer, sizes_);
    if (sizes_.empty()) sizes_.push_back(1);
    outer_rank_ = sizes_.size();
    for (const hlo::WindowDim& dim : window) {
      taps_.push_back(dim.size);
      sizes_.push_back(dim.size);
    }
    for (std::size_t d = 0; d < window.size(); ++d) never_pads_ &= !Pads(static_cast<int64_t>(d));
  }

  const Dims& sizes() const { return sizes_; }
  const Dims& taps() const { return taps_; }
  const Dims& variables() const { return variables_; }
  std::size_t outer_rank() const { return outer_rank_; }
  bool unrolls() const { return never_pads_ && NumTaps() <= kUnrolledWindow; }
  int64_t NumTaps() const {
    int64_t count = 1;
    for (int64_t t : taps_) count *= t;
    return count;
  }

  Point OuterPoint() const { return IdentityPoint(variables_, Rank()); }
  Point InnerPoint() const {
    Point point = OuterPoint();
    for (std::size_t d = 0; d < window_.size(); ++d) {
      for (int64_t& c : point[d].coefficients) c *= window_[d].stride;
      point[d].coefficients[outer_rank_ + d] = window_[d].window_dilation;
      point[d].constant = -window_[d].pad_low;
    }
    return point;
  }

  // The variable that is innermost in memory, if vectors may lie along it: -1 if not.
  int64_t VectorVariable(int width) const {
    for (std::size_t d = 0; d < variables_.size(); ++d) {
      if (variables_[d] + 1 == static_cast<int64_t>(outer_rank_)) {
        return window_[d] == hlo::WindowDim{} && outer_.dim(static_cast<int64_t>(d)) >= width
                   ? variables_[d]
                   : -1;
      }
    }
    return -1;
  }

  // Calls body(taps, carried) for the positions of the window at outer index `at` that are not
  // padding, in order.
  Values ForEachTap(
      KernelBuilder& e, absl::Span<llvm::Value* const> at, Values carried,
      const std::function<Values(const Values& taps, absl::Span<llvm::Value* const> carried)>& body)
      const {
    if (unrolls()) {
      ForEachIndex(taps_, [&](absl::Span<const int64_t> index) {
        Values taps;
        for (int64_t t : index) taps.push_back(e.Index(t));
        carried = body(taps, carried);
      });
      return carried;
    }
    Values taps;
    return LoopTaps(e, at, taps, carried, body);
  }

 private:
  int64_t Rank() const { return static_cast<int64_t>(sizes_.size()); }

  bool Pads(int64_t d) const {
    const hlo::WindowDim& w = window_[static_cast<std::size_t>(d)];
    return w.pad_low > 0 ||
           (outer_.dim(d) - 1) * w.stride + (w.size - 1) * w.window_dilation - w.pad_low >=
               inner_.dim(d);
  }

  Values LoopTaps(
      KernelBuilder& e, absl::Span<llvm::Value* const> at, Values& taps, const Values& carried,
      const std::function<Values(const Values&, absl::Span<llvm::Value* const>)>& body) const {
    const std::size_t d = taps.size();
    if (d == taps_.size()) return body(taps, carried);
    llvm::Value* first = e.Index(0);
    llvm::Value* last = e.Index(taps_[d]);
    if (Pads(static_cast<int64_t>(d)))
      Clip(e, d, at[static_cast<std::size_t>(variables_[d])], first, last);
    Values result = e.LoopCarrying(
        first, last, 1, carried, [&](llvm::Value* t, absl::Span<llvm::Value* const> inside) {
          taps.push_back(t);
          Values next = LoopTaps(e, at, taps, Values(inside.begin(), inside.end()), body);
          taps.pop_back();
          return next;
        });
    result.erase(result.begin());
    return result;
  }

  // Taps t with 0 <= outer * stride - pad_low + t * dilation < size.
  void Clip(KernelBuilder& e, std::size_t d, llvm::Value* outer, llvm::Value*& first,
            llvm::Value*& last) const {
    const hlo::WindowDim& w = window_[d];
    IrBuilder& b = e.b();
    llvm::Value* start =
        b.CreateNSWSub(b.CreateNSWMul(outer, e.Index(w.stride)), e.Index(w.pad_low));
    const auto ceil_divide = [&](llvm::Value* x) {  // of what is not negative
      return b.CreateUDiv(b.CreateNSWAdd(x, e.Index(w.window_dilation - 1)),
                          e.Index(w.window_dilation));
    };
    const auto at_least_zero = [&](llvm::Value* x) {
      return b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, x, e.Index(0));
    };
    first = ceil_divide(at_least_zero(b.CreateNeg(start)));
    llvm::Value* room = ceil_divide(
        at_least_zero(b.CreateNSWSub(e.Index(inner_.dim(static_cast<int64_t>(d))), start)));
    last = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, room, last);
  }

  const hlo::Window& window_;
  const Shape& inner_;
  const Shape& outer_;
  Dims variables_, sizes_, taps_;
  std::size_t outer_rank_ = 0;
  bool never_pads_ = true;
};

// Loops over the outer variables [from, rank), the last in vectors where it can; `at` holds the
// indices so far.
void OuterLoops(KernelBuilder& e, const WindowSpace& space, int width, Values& at,
                const std::function<void(const Values& at, int width)>& body) {
  const std::size_t v = at.size();
  if (v == space.outer_rank()) return body(at, 1);
  const auto loop = [&](llvm::Value* first, int64_t step, int lanes) {
    return e.Loop(first, e.Index(space.sizes()[v]), step, [&](llvm::Value* i) {
      at.push_back(i);
      if (lanes > 1) {
        body(at, lanes);
      } else {
        OuterLoops(e, space, width, at, body);
      }
      at.pop_back();
    });
  };
  llvm::Value* first = e.Index(0);
  if (width > 1 && v + 1 == space.outer_rank()) {
    first = loop(first, width, width);
    if (space.sizes()[v] % width == 0) return;
  }
  loop(first, 1, 1);
}

struct InitialValue {
  BodyPlan plan;
  int32_t node;
  explicit InitialValue(const Instruction* value) {
    plan.sizes.push_back(1);
    node = Planner(plan).Add(value, Point{});
  }
  Emitted Emit(KernelBuilder& e, absl::Span<const uint8_t> overwritten) const {
    llvm::Value* const origin[] = {e.Index(0)};
    return e.Nodes(plan, {node}, origin, {}, overwritten)[0];
  }
};

// A value at each point of the space.
struct WindowValue {
  BodyPlan plan;
  int32_t node;
  WindowValue(const WindowSpace& space, const Instruction* value, const Point& point) {
    plan.sizes = space.sizes();
    node = Planner(plan).Add(value, point);
  }
  llvm::Value* Emit(KernelBuilder& e, const Values& at, const Values& taps, Lanes lanes,
                    absl::Span<const uint8_t> overwritten) const {
    Values all = at;
    all.insert(all.end(), taps.begin(), taps.end());
    all.resize(plan.sizes.size(), e.Index(0));
    return e.Widen(e.Nodes(plan, {node}, all, lanes, overwritten)[0], lanes.width);
  }
};

std::string Describe(const char* what, const WindowSpace& space, int width) {
  return Str(what, " [", Join(space.sizes(), ","), "] x", width,
             space.unrolls() ? " unrolled" : "");
}

}  // namespace

absl::StatusOr<KernelShape> EmitReduceWindowKernel(llvm::Module* module,
                                                   const KernelRequest& request) {
  const Instruction& root = *request.body.root();
  const WindowSpace space(root.attrs_as<hlo::WindowAttrs>().window, root.operand(0)->shape(),
                          root.shape());
  const DType dtype = root.shape().dtype();
  const hlo::Opcode monoid = *hlo::MonoidOf(*root.to_apply());
  const WindowValue input(space, root.operand(0), space.InnerPoint());
  const InitialValue init(root.operand(1));
  const Affine output =
      Offset(root.shape(), space.OuterPoint(), static_cast<int64_t>(space.sizes().size()));
  const int64_t variable = space.VectorVariable(request.vector_width);
  const int width = variable < 0 ? 1 : request.vector_width;
  const auto num_params = static_cast<int64_t>(request.body.parameters().size());
  KernelShape shape;
  shape.in_place.assign(static_cast<std::size_t>(num_params), 0);

  // Items are the indices of all variables but the last two.
  const std::size_t range =
      space.outer_rank() > 2 ? space.outer_rank() - 2 : space.outer_rank() - 1;
  const absl::Span<const int64_t> range_sizes(space.sizes().data(), range);
  for (int64_t size : range_sizes) shape.items *= size;
  const auto emit = [&] {
    KernelBuilder e(*module, request.name, num_params + 1);
    const auto point = [&](const Values& at, int lanes) {
      const Values result = space.ForEachTap(
          e, at, {e.Widen(init.Emit(e, shape.in_place), lanes)},
          [&](const Values& taps, absl::Span<llvm::Value* const> sum) {
            llvm::Value* x = input.Emit(e, at, taps, {variable, lanes}, shape.in_place);
            return Values{EmitBinary(e.b(), monoid, dtype, sum[0], x)};
          });
      Values all = at;
      all.resize(space.sizes().size(), e.Index(0));
      e.Store(dtype, e.arg(num_params), output, all, {variable, lanes}, {result[0], lanes == 1});
    };
    e.Loop(e.begin(), e.end(), 1, [&](llvm::Value* item) {
      Values at = e.Unflatten(item, range_sizes);
      OuterLoops(e, space, width, at, point);
    });
    e.Finish();
  };
  if (module != nullptr) emit();
  int64_t points = space.NumTaps();
  for (std::size_t v = range; v < space.outer_rank(); ++v) points *= space.sizes()[v];
  shape.grain = GrainFor(CostOf(input.plan) * points);
  FindParts(shape, request, {&input.plan, &init.plan}, output, root.shape().num_elements());
  shape.details = Describe("reduce-window", space, width);
  return shape;
}

const Instruction* FindSelectAndScatter(const hlo::Computation& body) {
  for (const auto& i : body.instructions()) {
    if (i->opcode() == hlo::Opcode::kSelectAndScatter) return i.get();
  }
  return nullptr;
}

namespace {

class SelectAndScatter {
 public:
  SelectAndScatter(llvm::Module* module, const KernelRequest& request)
      : module_(module),
        request_(request),
        scatter_(*FindSelectAndScatter(request.body)),
        window_(scatter_.attrs_as<hlo::WindowAttrs>().window),
        space_(window_, scatter_.shape(), scatter_.operand(1)->shape()),
        input_(space_, scatter_.operand(0), space_.InnerPoint()),
        source_(space_, scatter_.operand(1), space_.OuterPoint()),
        result_(space_, request.body.root(), space_.InnerPoint()),
        init_(scatter_.operand(2)),
        target_(Offset(scatter_.shape(), space_.InnerPoint(),
                       static_cast<int64_t>(space_.sizes().size()))),
        dtype_(scatter_.shape().dtype()),
        variable_(space_.VectorVariable(request.vector_width)),
        width_(variable_ < 0 ? 1 : request.vector_width),
        num_params_(static_cast<int64_t>(request.body.parameters().size())) {}

  absl::StatusOr<KernelShape> Run();

 private:
  bool Overlaps() const { return hlo::WindowsOverlap(window_); }
  bool Covers() const {
    return hlo::WindowsCover(window_, scatter_.shape(), scatter_.operand(1)->shape());
  }
  void FindOverwritten();
  // `parallel`: an item is an outermost index, else all is one. `fill`: init is not written otherwise.
  void Emit(bool parallel, bool fill);
  void FillSlice(KernelBuilder& e, llvm::Value* item);
  void EmitPoint(KernelBuilder& e, const Values& at, int lanes);
  std::pair<llvm::Value*, llvm::Value*> TapNumber(KernelBuilder& e, const Values& taps, int lanes);

  llvm::Module* module_;
  const KernelRequest& request_;
  const Instruction& scatter_;
  const hlo::Window& window_;
  WindowSpace space_;
  WindowValue input_, source_, result_;
  InitialValue init_;
  Affine target_;
  DType dtype_;
  int64_t variable_;
  int width_;
  int64_t num_params_;
  std::vector<uint8_t> in_place_;
};

// The result may take a parameter's memory if each of its elements is read only by the window that
// overwrites it: windows read all they want before they write.
void SelectAndScatter::FindOverwritten() {
  const bool fills = Overlaps() || !Covers();
  in_place_.assign(static_cast<std::size_t>(num_params_), fills ? 0 : 1);
  for (const BodyPlan* plan : {&input_.plan, &source_.plan, &result_.plan, &init_.plan}) {
    for (const PlanNode& node : plan->nodes) {
      if (node.kind == PlanNode::Kind::kLoad && !(node.form == target_))
        in_place_[static_cast<std::size_t>(node.instruction->parameter_number())] = 0;
    }
  }
}

// Writes init over everything that shares the outermost index `item`.
void SelectAndScatter::FillSlice(KernelBuilder& e, llvm::Value* item) {
  Dims sizes;
  PhysicalVariables(scatter_.shape(), sizes);
  int64_t elements = 1;
  for (std::size_t v = 1; v < sizes.size(); ++v) elements *= sizes[v];
  const Emitted init = init_.Emit(e, in_place_);
  const auto store = [&](llvm::Value* i, int lanes) {
    llvm::Value* const at[] = {item, i};
    e.Store(dtype_, e.arg(num_params_), {0, {elements, 1}}, at, {1, lanes}, init);
  };
  llvm::Value* stopped = e.Loop(e.Index(0), e.Index(elements), request_.vector_width,
                                [&](llvm::Value* i) { store(i, request_.vector_width); });
  e.Loop(stopped, e.Index(elements), 1, [&](llvm::Value* i) { store(i, 1); });
}

// The root of a computation of parameters and elementwise instructions.
llvm::Value* EmitElements(IrBuilder& b, const hlo::Computation& computation,
                          absl::Span<llvm::Value* const> parameters) {
  hlo::DenseMap<llvm::Value*> values(computation);
  for (const Instruction* i : computation.PostOrder()) {
    if (i->opcode() == hlo::Opcode::kParameter) {
      values[i] = parameters[static_cast<std::size_t>(i->parameter_number())];
      continue;
    }
    Values operands;
    for (const Instruction* operand : i->operands()) operands.push_back(values[operand]);
    values[i] = EmitElement(b, *i, operands);
  }
  return values[computation.root()];
}

// The position's number in the window, as a scalar and in every lane.
std::pair<llvm::Value*, llvm::Value*> SelectAndScatter::TapNumber(KernelBuilder& e,
                                                                  const Values& taps, int lanes) {
  llvm::Value* number = e.Index(0);
  for (std::size_t d = 0; d < taps.size(); ++d) {
    number = e.b().CreateNSWAdd(e.b().CreateNSWMul(number, e.Index(space_.taps()[d])), taps[d]);
  }
  number = e.b().CreateTrunc(number, e.b().getInt32Ty());
  return {number, e.Widen({number, true}, lanes)};
}

void SelectAndScatter::EmitPoint(KernelBuilder& e, const Values& at, int lanes) {
  IrBuilder& b = e.b();
  const Lanes here{variable_, lanes};
  llvm::Value* none = e.Widen({b.getInt32(static_cast<uint32_t>(-1)), true}, lanes);
  llvm::Value* zero =
      llvm::Constant::getNullValue(WithElement(none->getType(), RegisterType(b, dtype_)));
  const Values chosen = space_.ForEachTap(
      e, at, {zero, none}, [&](const Values& taps, absl::Span<llvm::Value* const> best) {
        llvm::Value* x = input_.Emit(e, at, taps, here, in_place_);
        llvm::Value* keep =
            b.CreateAnd(EmitElements(b, *scatter_.called()[0], {best[0], x}),
                        b.CreateICmpSGE(best[1], llvm::Constant::getNullValue(none->getType())));
        return Values{b.CreateSelect(keep, best[0], x),
                      b.CreateSelect(keep, best[1], TapNumber(e, taps, lanes).second)};
      });
  const hlo::Opcode scatter = *hlo::MonoidOf(*scatter_.called()[1]);
  llvm::Value* source = source_.Emit(e, at, {}, here, in_place_);
  llvm::Value* init = e.Widen(init_.Emit(e, in_place_), lanes);
  const bool overlaps = Overlaps();
  space_.ForEachTap(e, at, {}, [&](const Values& taps, absl::Span<llvm::Value* const>) {
    Values all = at;
    all.insert(all.end(), taps.begin(), taps.end());
    llvm::Value* old =
        overlaps ? e.Widen(e.Load(dtype_, e.arg(num_params_), target_, all, here, true), lanes)
                 : init;
    llvm::Value* is_chosen = b.CreateICmpEQ(chosen[1], TapNumber(e, taps, lanes).second);
    llvm::Value* value =
        b.CreateSelect(is_chosen, EmitBinary(b, scatter, dtype_, old, source), old);
    e.set_given([given = Emitted{value, lanes == 1}](const PlanNode&) { return given; });
    e.Store(request_.body.root()->shape().dtype(), e.arg(num_params_), target_, all, here,
            {result_.Emit(e, at, taps, here, in_place_), lanes == 1});
    return Values{};
  });
}

void SelectAndScatter::Emit(bool parallel, bool fill) {
  KernelBuilder e(*module_, request_.name, num_params_ + 1);
  e.Loop(e.begin(), e.end(), 1, [&](llvm::Value* item) {
    Values at;
    if (parallel) {
      if (fill) FillSlice(e, item);
      at.push_back(item);
    } else if (fill) {
      Dims sizes;
      PhysicalVariables(scatter_.shape(), sizes);
      e.Loop(e.Index(0), e.Index(sizes.empty() ? 1 : sizes[0]), 1,
             [&](llvm::Value* outermost) { FillSlice(e, outermost); });
    }
    OuterLoops(e, space_, width_, at,
               [&](const Values& point, int lanes) { EmitPoint(e, point, lanes); });
  });
  e.Finish();
}

absl::StatusOr<KernelShape> SelectAndScatter::Run() {
  const bool fill = Overlaps() || !Covers();
  if (fill && &scatter_ != request_.body.root())
    return Internal("windows of ", scatter_.name(), " do not tile its result");
  KernelShape shape;
  FindOverwritten();
  shape.in_place = in_place_;
  // Windows at different outermost indices do not meet unless the window slides over that
  // dimension.
  const Dims minor_to_major = scatter_.shape().minor_to_major();
  const bool parallel =
      !minor_to_major.empty() &&
      window_[static_cast<std::size_t>(minor_to_major.back())] == hlo::WindowDim{} &&
      scatter_.shape().minor_to_major() == scatter_.operand(1)->shape().minor_to_major();
  shape.items = parallel ? space_.sizes()[0] : 1;
  if (module_ != nullptr) Emit(parallel, fill);
  int64_t points = 2 * space_.NumTaps();
  for (std::size_t v = parallel ? 1 : 0; v < space_.outer_rank(); ++v) points *= space_.sizes()[v];
  shape.grain = GrainFor((CostOf(input_.plan) + CostOf(result_.plan)) * points);
  FindParts(shape, request_, {&input_.plan, &source_.plan, &result_.plan, &init_.plan}, target_,
            scatter_.shape().num_elements());
  shape.details = Describe("select-and-scatter", space_, width_);
  return shape;
}

}  // namespace

absl::StatusOr<KernelShape> EmitSelectAndScatterKernel(llvm::Module* module,
                                                       const KernelRequest& request) {
  return SelectAndScatter(module, request).Run();
}

}  // namespace lazuli::cpu
