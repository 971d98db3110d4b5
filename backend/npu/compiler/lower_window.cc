// reduce-window and select-and-scatter.

#include <algorithm>
#include <cstring>
#include <utility>

#include "backend/npu/compiler/lowering.h"
#include "backend/npu/compiler/reductions.h"
#include "backend/npu/compiler/window_kernel.h"
#include "ir/hlo/monoid.h"
#include "ir/hlo/windows.h"

namespace lazuli::npu {
namespace {

uint32_t BitsOf(const Literal& scalar) {
  uint32_t bits = 0;
  std::memcpy(&bits, scalar.raw(), static_cast<std::size_t>(ByteWidth(scalar.shape().dtype())));
  return bits;
}

bool HasNoElements(const hlo::Window& window) {
  return std::any_of(window.begin(), window.end(),
                     [](const hlo::WindowDim& w) { return w.size == 0; });
}

}  // namespace

void Lowering::LowerReduceWindow(const hlo::Instruction& i) {
  const hlo::Opcode monoid = *hlo::MonoidOf(*i.to_apply());
  const View result = NewArray(i);
  Set(i, result);
  const hlo::Instruction &x = *i.operand(0), &init = *i.operand(1);
  const hlo::Window& window = i.attrs_as<hlo::WindowAttrs>().window;
  if (x.shape().num_elements() == 0 || HasNoElements(window))
    return FillWith(ValueOf(init), result);
  const WindowKernel kernel{window, ValueOf(x), result, ValueOf(init)};
  EmitReduceWindow(kernel, ReductionOf(monoid, i.shape().dtype()),
                   BitsOf(hlo::IdentityOf(monoid, i.shape().dtype())), IsIdentity(init, monoid),
                   b_);
}

std::optional<Micro> ScatterJoinOf(const hlo::Instruction& i) {
  const std::optional<hlo::Opcode> monoid = hlo::MonoidOf(*i.called()[1]);
  if (!monoid || *monoid == hlo::Opcode::kXor) return std::nullopt;
  return JoiningMicro(ReductionOf(*monoid, i.shape().dtype()));
}

void Lowering::LowerSelectAndScatter(const hlo::Instruction& i) {
  const hlo::Instruction &x = *i.operand(0), &source = *i.operand(1), &init = *i.operand(2);
  const hlo::Window& window = i.attrs_as<hlo::WindowAttrs>().window;
  const View result = NewArray(i);
  Set(i, result);
  bool padded = false;
  for (const hlo::WindowDim& w : window) padded = padded || w.pad_low != 0 || w.pad_high != 0;
  // What lies in no window keeps the initial value.
  if (padded || HasNoElements(window) || !hlo::WindowsCover(window, x.shape(), source.shape()))
    FillWith(ValueOf(init), result);
  if (source.shape().num_elements() == 0 || HasNoElements(window)) return;
  EmitSelectAndScatter({window, ValueOf(x), result, ValueOf(init)}, ValueOf(source), *i.called()[0],
                       *ScatterJoinOf(i), b_);
}

}  // namespace lazuli::npu
