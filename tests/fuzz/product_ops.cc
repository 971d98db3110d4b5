// Ops that sum products in an order of their device's.
#include <utility>

#include "tests/fuzz/op.h"

namespace lazuli::fuzz {
namespace {

// Keeps the elements of chains of products in bounds.
Tensor Mean(const Tensor& sums, const Call& c) {
  return sums * (1.0 / static_cast<double>(c.side));
}

Tensor Left(const Tensor& x) { return narrow(x, 1, 0, 2); }
Tensor Top(const Tensor& x) { return narrow(x, 0, 0, 2); }

// One image of one channel, or one of two channels, and back.
Tensor Image(const Tensor& x, const Call& c) { return x.reshape({1, 1, c.side, c.side}); }
Tensor Image2(const Tensor& x, const Call& c) { return x.reshape({1, 2, c.side / 2, c.side}); }
Tensor Matrix(const Tensor& image, const Call& c) { return image.reshape({c.side, c.side}); }
Tensor Kernel(const Tensor& y) { return narrow(narrow(y, 0, 0, 3), 1, 0, 3).reshape({1, 1, 3, 3}); }
Tensor Kernel2(const Tensor& y) {
  return narrow(narrow(y, 0, 0, 6), 1, 0, 6).reshape({2, 2, 3, 3});
}
Conv2dOptions Same() { return {.padding = {1, 1}}; }

Tensor Leaf(const Tensor& x) { return x.detach().clone().requires_grad_(); }
Tensor Gradient(const Tensor& y, const Tensor& x, const Call& c) {
  c.may_sync();
  return grad({sum(y)}, {x})[0];
}

Tensor MatmulGradient(const Call& c) {
  const Tensor x = Leaf(c.x), y = Leaf(c.y);
  const Tensor product = Mean(matmul(x, y), c);
  c.may_sync();
  return Gradient(tanh(product) * c.z, c.dim == 0 ? x : y, c);
}

// Of weights that every step uses.
Tensor RecurrenceGradient(const Call& c) {
  const Tensor w = Leaf(c.y), h0 = Top(c.x);
  Tensor h = h0;
  for (int step = 0; step < 5; ++step) {
    h = tanh(Mean(matmul(h, w), c) + h0);
    c.may_sync();
  }
  return Gradient(h, w, c);
}

Tensor ConvolutionGradient(const Call& c) {
  const Tensor x = Leaf(c.x), w = Leaf(c.y);
  const Tensor y = conv2d(Image2(x, c), Kernel2(w), {}, Same());
  c.may_sync();
  return Gradient(tanh(y * 0.1), c.dim == 0 ? x : w, c);
}

Tensor Attention(const Call& c) {
  const Tensor weights = softmax(Mean(matmul(c.x, c.y.t()), c), -1);
  c.may_sync();
  return matmul(weights, c.z);
}

Tensor SumOfOuterProducts(const Call& c) {
  Tensor sum = c.z;
  for (int k = 0; k < 5; ++k) {
    sum = sum + matmul(narrow(c.x, 1, k % 5, 1), narrow(c.y, 0, k % 5, 1));
    c.may_sync();
  }
  return tanh(sum);
}

Tensor Narrow(const Call& c) {
  const Tensor product = matmul(c.x.to(kBFloat16), c.y.to(kBFloat16));
  c.may_sync();
  return Mean(product.to(kFloat32), c);
}

Op Product(std::string_view text, std::size_t arity, Tensor (*run)(const Call&)) {
  return {.text = text, .arity = arity, .run = run, .same_bits = false};
}

}  // namespace

const std::vector<Op>& ProductOps() {
  static const std::vector<Op> ops = {
      Product("Mean(matmul(%x, %y))", 2, [](const Call& c) { return Mean(matmul(c.x, c.y), c); }),
      Product("Mean(matmul(%x.t(), %y))", 2,
              [](const Call& c) { return Mean(matmul(c.x.t(), c.y), c); }),
      Product("Mean(matmul(%x, %y.t()))", 2,
              [](const Call& c) { return Mean(matmul(c.x, c.y.t()), c); }),
      Product("matmul(Left(%x), Top(%y)) * 0.5", 2,
              [](const Call& c) { return matmul(Left(c.x), Top(c.y)) * 0.5; }),
      Product("tanh(addmm(%z, Left(%x), Top(%y)))", 3,
              [](const Call& c) { return tanh(addmm(c.z, Left(c.x), Top(c.y))); }),
      Product("SumOfOuterProducts(%x, %y, %z)", 3, SumOfOuterProducts),
      Product(
          "Mean(einsum(\"abc,dcb->ad\", {%x.reshape({%s, 2, -1}), %y.reshape({%s, -1, 2})}))", 2,
          [](const Call& c) {
            const std::int64_t half = c.side / 2;
            return Mean(einsum("abc,dcb->ad",
                               {c.x.reshape({c.side, 2, half}), c.y.reshape({c.side, half, 2})}),
                        c);
          }),
      Product("Wide(Mean(matmul(narrow(%x, 0, 0, 1), %y)))", 2,
              [](const Call& c) { return c.Wide(Mean(matmul(narrow(c.x, 0, 0, 1), c.y), c)); }),
      Product("Wide(Mean(sum(%x * %y)))", 2,
              [](const Call& c) { return c.Wide(Mean(sum(c.x * c.y), c)); }),
      Product("Mean(bmm(%x.reshape({2, -1, %s}), cat({%y, %z}).reshape({2, %s, %s}))", 3,
              [](const Call& c) {
                const Tensor both = cat({c.y, c.z}, 0).reshape({2, c.side, c.side});
                return Mean(Matrix(bmm(c.x.reshape({2, c.side / 2, c.side}), both), c), c);
              }),
      Product("Mean(matmul(%x.to(kBFloat16), %y.to(kBFloat16)).to(kFloat32))", 2, Narrow),
      Product("Mean(matmul(%x.to(kFloat64), %y.to(kFloat64)).to(kFloat32))", 2,
              [](const Call& c) {
                return Mean(matmul(c.x.to(kFloat64), c.y.to(kFloat64)).to(kFloat32), c);
              }),
      Product(
          "relu(Mean(matmul(%x, %y.t())) + narrow(%z, 0, 0, 1))", 3,
          [](const Call& c) { return relu(Mean(matmul(c.x, c.y.t()), c) + narrow(c.z, 0, 0, 1)); }),
      Product("Attention(%x, %y, %z)", 3, Attention),
      Product("conv2d(Image(%x), Kernel(%y), same) * 0.2", 2,
              [](const Call& c) {
                return Matrix(conv2d(Image(c.x, c), Kernel(c.y), {}, Same()), c) * 0.2;
              }),
      Product("conv2d(Image2(%x), Kernel2(%y), same) * 0.1", 2,
              [](const Call& c) {
                return Matrix(conv2d(Image2(c.x, c), Kernel2(c.y), {}, Same()), c) * 0.1;
              }),
      Product("conv2d(Image2(%x), flip(Kernel2(%y), {2, 3}), same) * 0.1", 2,
              [](const Call& c) {
                const Tensor kernel = flip(Kernel2(c.y), {2, 3});
                c.may_sync();
                return Matrix(conv2d(Image2(c.x, c), kernel, {}, Same()), c) * 0.1;
              }),
      Product("conv_transpose2d(Image2(%x), Kernel2(%y), padding 1) * 0.1", 2,
              [](const Call& c) {
                return Matrix(nn::functional::conv_transpose2d(Image2(c.x, c), Kernel2(c.y), {},
                                                               {1, 1}, {1, 1}),
                              c) *
                       0.1;
              }),
      Product("relu(max_pool2d(Image(%x), 3, 1, 1))", 1,
              [](const Call& c) { return Matrix(relu(max_pool2d(Image(c.x, c), 3, 1, 1)), c); }),
      Product("avg_pool2d(Image(%x), 3, 1, 1)", 1,
              [](const Call& c) { return Matrix(avg_pool2d(Image(c.x, c), 3, 1, 1), c); }),
      Product("layer_norm(%x, {%s})", 1,
              [](const Call& c) { return nn::functional::layer_norm(c.x, {c.side}); }),
      Product("Wide(var(%x, {%d}, 1, true))", 1,
              [](const Call& c) { return c.Wide(var(tanh(c.x), {c.dim}, 1.0, /*keepdim=*/true)); }),
      Product("MatmulGradient(%x, %y, %z, %d)", 3, MatmulGradient),
      Product("RecurrenceGradient(%x, %y)", 2, RecurrenceGradient),
      Product("ConvolutionGradient(%x, %y, %d)", 2, ConvolutionGradient),
      {.text = "%x.addmm_(Left(%y), Top(%z), 0.5, 0.25)",
       .arity = 3,
       .run = [](const Call& c) { return Tensor(c.x).addmm_(Left(c.y), Top(c.z), 0.5, 0.25); },
       .in_place = true,
       .same_bits = false},
  };
  return ops;
}

}  // namespace lazuli::fuzz
