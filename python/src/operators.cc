// The operators of Tensor.
#include "lazuli/ops.h"
#include "python/src/arguments.h"
#include "python/src/bindings.h"
#include "python/src/caller.h"
#include "python/src/errors.h"

namespace lazuli::python {
namespace {

// Python then asks the other operand, and says what does not fit; an array's answer would be of no
// help.
PyObject* NoOperand(PyObject* object) {
  const std::string_view type = Py_TYPE(object)->tp_name;
  if (type == "numpy.ndarray")
    ThrowTypeError("an operator takes tensors and numbers, not " + std::string(type) +
                   "; convert it by lazuli.tensor()");
  Py_RETURN_NOTIMPLEMENTED;
}

using Binary = Tensor (*)(const Operand&, const Operand&);
using InPlace = Tensor& (Tensor::*)(const Operand&);
using Unary = Tensor (*)(const Tensor&, SourceLocation);

PyObject* CallBinary(Binary function, PyObject* x, PyObject* y) {
  return Guarded([&]() -> PyObject* {
    Argument<Operand>::Stored l, r;
    if (!Argument<Operand>::Load(x, l)) return NoOperand(x);
    if (!Argument<Operand>::Load(y, r)) return NoOperand(y);
    const Caller caller;
    return ToPython(function(*l, *r)).release().ptr();
  });
}
PyObject* CallInPlace(InPlace method, PyObject* x, PyObject* y) {
  return Guarded([&]() -> PyObject* {
    Argument<Operand>::Stored other;
    if (!Argument<Operand>::Load(y, other)) Py_RETURN_NOTIMPLEMENTED;
    const Caller caller;
    Tensor target = *AsTensor(x);
    (target.*method)(*other);
    return Py_NewRef(x);
  });
}

// Operators, by the function they are.
template <Binary kFunction>
PyObject* BinaryOperator(PyObject* x, PyObject* y) {
  return CallBinary(kFunction, x, y);
}
PyObject* Power(PyObject* x, PyObject* y, PyObject* modulus) {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return BinaryOperator<&lazuli::pow>(x, y);
}
Tensor MatMul(const Operand& x, const Operand& y) {
  if (x.tensor() == nullptr || y.tensor() == nullptr)
    throw Error(ErrorCode::kWrongType,
                "matmul: takes two tensors, no number (" + SiteScope::place() + ")");
  return matmul(*x.tensor(), *y.tensor());
}
template <InPlace kMethod>
PyObject* InPlaceOperator(PyObject* x, PyObject* y) {
  return CallInPlace(kMethod, x, y);
}
PyObject* InPlacePower(PyObject* x, PyObject* y, PyObject* modulus) {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return InPlaceOperator<&Tensor::pow_>(x, y);
}
template <Unary kFunction>
PyObject* UnaryOperator(PyObject* x) {
  return Guarded([&] {
    const Caller caller;
    return ToPython(kFunction(*AsTensor(x), SourceLocation::current())).release().ptr();
  });
}
PyObject* Compare(PyObject* x, PyObject* y, int operation) {
  switch (operation) {
    case Py_LT:
      return BinaryOperator<&lt>(x, y);
    case Py_LE:
      return BinaryOperator<&le>(x, y);
    case Py_EQ:
      return BinaryOperator<&eq>(x, y);
    case Py_NE:
      return BinaryOperator<&ne>(x, y);
    case Py_GT:
      return BinaryOperator<&gt>(x, y);
    default:
      return BinaryOperator<&ge>(x, y);
  }
}

}  // namespace

void SetOperators(PyHeapTypeObject* type) {
  PyNumberMethods& number = type->as_number;
  number.nb_add = BinaryOperator<&add>;
  number.nb_subtract = BinaryOperator<&sub>;
  number.nb_multiply = BinaryOperator<&mul>;
  number.nb_true_divide = BinaryOperator<&lazuli::div>;
  number.nb_floor_divide = BinaryOperator<&floor_divide>;
  number.nb_remainder = BinaryOperator<&remainder>;
  number.nb_matrix_multiply = BinaryOperator<&MatMul>;
  number.nb_power = Power;
  number.nb_and = BinaryOperator<&bitwise_and>;
  number.nb_or = BinaryOperator<&bitwise_or>;
  number.nb_xor = BinaryOperator<&bitwise_xor>;
  number.nb_negative = UnaryOperator<&neg>;
  number.nb_positive = UnaryOperator<&positive>;
  number.nb_absolute = UnaryOperator<&lazuli::abs>;
  number.nb_invert = UnaryOperator<&bitwise_not>;
  number.nb_lshift = BinaryOperator<&bitwise_left_shift>;
  number.nb_rshift = BinaryOperator<&bitwise_right_shift>;
  number.nb_inplace_add = InPlaceOperator<&Tensor::add_>;
  number.nb_inplace_subtract = InPlaceOperator<&Tensor::sub_>;
  number.nb_inplace_multiply = InPlaceOperator<&Tensor::mul_>;
  number.nb_inplace_true_divide = InPlaceOperator<&Tensor::div_>;
  number.nb_inplace_floor_divide = InPlaceOperator<&Tensor::floor_divide_>;
  number.nb_inplace_remainder = InPlaceOperator<&Tensor::remainder_>;
  number.nb_inplace_power = InPlacePower;
  number.nb_inplace_and = InPlaceOperator<&Tensor::bitwise_and_>;
  number.nb_inplace_or = InPlaceOperator<&Tensor::bitwise_or_>;
  number.nb_inplace_xor = InPlaceOperator<&Tensor::bitwise_xor_>;
  number.nb_inplace_lshift = InPlaceOperator<&Tensor::bitwise_left_shift_>;
  number.nb_inplace_rshift = InPlaceOperator<&Tensor::bitwise_right_shift_>;
  type->ht_type.tp_richcompare = Compare;
}

}  // namespace lazuli::python
