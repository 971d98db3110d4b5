// Names of types in LibTorch's words.
#include <iostream>
#include <string>

#include "lazuli/torch/tensor.h"

namespace lazuli::torch_names {

std::ostream& operator<<(std::ostream& os, MemoryFormat format) {
  switch (format) {
    case MemoryFormat::Contiguous:
      return os << "Contiguous";
    case MemoryFormat::Preserve:
      return os << "Preserve";
    case MemoryFormat::ChannelsLast:
      return os << "ChannelsLast";
    case MemoryFormat::ChannelsLast3d:
      return os << "ChannelsLast3d";
  }
  return os << "MemoryFormat";
}

const char* toString(DType dtype) {
  switch (dtype) {
    case kBool:
      return "Bool";
    case kByte:
      return "Byte";
    case kChar:
      return "Char";
    case kShort:
      return "Short";
    case kInt:
      return "Int";
    case kLong:
      return "Long";
    case DType::kU16:
      return "UInt16";
    case DType::kU32:
      return "UInt32";
    case DType::kU64:
      return "UInt64";
    case kHalf:
      return "Half";
    case kBFloat16:
      return "BFloat16";
    case kFloat:
      return "Float";
    case kDouble:
      return "Double";
    case kComplexFloat:
      return "ComplexFloat";
    case kComplexDouble:
      return "ComplexDouble";
    case DType::kF8E5M2:
      return "Float8_e5m2";
    case DType::kF8E4M3FN:
      return "Float8_e4m3fn";
    default:
      return lazuli::to_string(dtype).data();
  }
}

std::string TensorType::toString() const {
  const std::string platform(device_.type().name);
  std::string upper;
  for (const char c : platform) upper += static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
  return upper + torch_names::toString(dtype_) + "Type";
}

}  // namespace lazuli::torch_names

namespace lazuli {

std::string Tensor::toString() const { return type().toString(); }

void Tensor::print() const {
  if (defined())
    std::cerr << '[' << toString() << ' ' << sizes() << "]\n";
  else
    std::cerr << "[UndefinedTensor]\n";
}

}  // namespace lazuli
