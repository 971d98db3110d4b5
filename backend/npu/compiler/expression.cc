#include "backend/npu/compiler/expression.h"

#include <bit>

namespace lazuli::npu {

int Expression::Add(const Node& node) {
  const auto [at, added] = known_.emplace(node, static_cast<int>(nodes_.size()));
  if (added) nodes_.push_back(node);
  return at->second;
}

int Expression::Load(int stream, Type type) {
  Node node{Node::Kind::kLoad};
  node.load = stream;
  node.type = type == Type::kF32 || type == Type::kBf16 ? kFloats
              : type == Type::kU32                      ? kUnsigned
                                                        : kSigned;
  return Add(node);
}

int Expression::Literal(uint32_t bits, int type) {
  Node node{Node::Kind::kLiteral};
  node.literal = bits;
  node.type = type;
  return Add(node);
}

int Expression::Float(float value) { return Literal(std::bit_cast<uint32_t>(value), kFloats); }

int Expression::Op(Micro op, int type, int a, int b, int c) {
  return Add({Node::Kind::kOp, op, type, a, b, c, 0, -1});
}

int ArithmeticOf(DType dtype) {
  if (IsFloat(dtype)) return kFloats;
  return dtype == DType::kU32 ? kUnsigned : kSigned;
}

std::optional<Type> TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kPred:
      return Type::kPred;
    case DType::kS8:
      return Type::kS8;
    case DType::kU8:
      return Type::kU8;
    case DType::kS16:
      return Type::kS16;
    case DType::kS32:
      return Type::kS32;
    case DType::kU32:
      return Type::kU32;
    case DType::kBF16:
      return Type::kBf16;
    case DType::kF16:
      return Type::kF16;
    case DType::kF32:
      return Type::kF32;
    case DType::kS64:
      return Type::kS64;
    default:
      break;
  }
  switch (IsArray(dtype) ? ByteWidth(dtype) : 0) {
    case 1:
      return Type::kU8;
    case 2:
      return Type::kS16;
    case 4:
      return Type::kU32;
    case 8:
      return Type::kS64;
    default:
      return std::nullopt;
  }
}

bool Computes(DType dtype) {
  switch (dtype) {
    case DType::kPred:
    case DType::kS8:
    case DType::kU8:
    case DType::kS16:
    case DType::kS32:
    case DType::kU32:
    case DType::kBF16:
    case DType::kF32:
      return true;
    default:
      return false;
  }
}

bool IsWide(DType dtype) { return dtype == DType::kS64 || dtype == DType::kU64; }

}  // namespace lazuli::npu
