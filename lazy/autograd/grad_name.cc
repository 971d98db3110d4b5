#include "lazy/autograd/grad_name.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string_view>
#include <utility>

namespace lazuli::lazy {
namespace {

// Ops that PyTorch has by another name.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"batch_norm", "NativeBatchNorm"},
    {"bce", "BinaryCrossEntropy"},
    {"bce_with_logits", "BinaryCrossEntropyWithLogits"},
    {"broadcast_to", "Expand"},
    {"conv2d", "Convolution"},
    {"cross_entropy", "NllLoss"},
    {"layer_norm", "NativeLayerNorm"},
    {"linear", "Addmm"},
    {"matmul", "Mm"},
    {"max_pool2d", "MaxPool2DWithIndices"},
    {"norm", "LinalgVectorNorm"},
    {"pow_integer", "Pow"},
    {"pow_number", "Pow"},
    {"reshape", "View"},
    {"to", "ToCopy"},
};

}  // namespace

std::string GradName(const GradNode& node) {
  const std::string_view op = node.name();
  if (op.empty() || std::isupper(static_cast<unsigned char>(op[0])) != 0) return std::string(op);
  const auto* other = std::find_if(std::begin(kOtherNames), std::end(kOtherNames),
                                   [&](const auto& entry) { return entry.first == op; });
  std::string name;
  if (other != std::end(kOtherNames)) {
    name = other->second;
  } else {
    bool capital = true;
    for (const char c : op) {
      if (c != '_') name += capital ? static_cast<char>(std::toupper(c)) : c;
      capital = c == '_';
    }
  }
  return name + "Backward0";
}

}  // namespace lazuli::lazy
