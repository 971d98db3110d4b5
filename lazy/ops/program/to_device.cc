#include "lazy/ops/program/to_device.h"

#include "lazy/ops/core/record.h"
#include "lazy/tensor/site_scope.h"
#include "lazy/tensor/tape.h"

namespace lazuli::lazy {
namespace {

class ToDeviceGrad final : public GradNode {
 public:
  explicit ToDeviceGrad(const Tensor& source) : GradNode(CurrentSite()), device_(source.device()) {
    edges_.push_back(GradEdge(source));
  }
  std::string_view name() const override { return "to"; }
  Tensors Backward(absl::Span<const Tensor> dys) override { return {ToDevice(dys[0], device_)}; }
  void ReleaseSaved() override {}

 private:
  backend::Device device_;
};

}  // namespace

Tensor ToDevice(const Tensor& tensor, backend::Device device) {
  Tensor moved = FromLiteral(ToLiteral(tensor), device);
  const Operand in(tensor);
  if (WantsGrad(absl::MakeConstSpan(&in, 1)))
    AttachGrad(MakeIntrusive<ToDeviceGrad>(tensor), absl::MakeSpan(&moved, 1));
  return moved;
}

}  // namespace lazuli::lazy
