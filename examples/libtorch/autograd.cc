// Gradients in LibTorch's words: of results, of gradients, and of functions that say their own.
//
//   libtorch_autograd
#include <iostream>

#include <lazuli/torch.h>

namespace torch = lazuli::torch_names;
using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::tensor_list;

// What an op records, and what backward() leaves behind.
void First() {
  auto x = torch::ones({2, 2}, torch::requires_grad());
  auto y = x + 2;
  auto z = y * y * 3;
  auto out = z.mean();
  std::cout << y.grad_fn()->name() << ", " << z.grad_fn()->name() << ", " << out.grad_fn()->name()
            << '\n';
  out.backward();
  std::cout << "d out / d x: " << x.grad() << '\n';

  auto a = torch::randn({2, 2});
  a = (a * 3) / (a - 1);
  std::cout << "wants a gradient: " << a.requires_grad();
  a.requires_grad_(true);
  std::cout << ", " << (a * a).sum().requires_grad() << '\n';
}

// A product of a vector and the Jacobian, and tensors that are left out.
void Products() {
  auto x = torch::full({3}, 0.5, torch::requires_grad());
  auto y = x * 2;
  while (y.norm().item<double>() < 100) y = y * 2;
  auto v = torch::tensor({0.1, 1.0, 0.0001}, torch::kFloat);
  y.backward(v);
  std::cout << "v^T J: " << x.grad() << '\n';

  std::cout << "history: " << x.requires_grad() << x.pow(2).requires_grad();
  {
    torch::NoGradGuard no_grad;
    std::cout << x.pow(2).requires_grad();
  }
  auto cut = x.detach();
  std::cout << cut.requires_grad() << x.eq(cut).all().item<bool>() << '\n';
}

// A loss with a penalty on the gradient's length.
void HigherOrder() {
  auto model = torch::nn::Linear(4, 3);
  auto input = torch::randn({3, 4}).requires_grad_(true);
  auto output = model(input);
  auto loss = torch::nn::MSELoss()(output, torch::randn({3, 3}));
  auto gradient =
      torch::autograd::grad({output}, {input}, /*grad_outputs=*/{torch::ones_like(output)},
                            /*retain_graph=*/std::nullopt, /*create_graph=*/true)[0];
  auto penalty = torch::pow(gradient.norm(2, /*dim=*/1) - 1, 2).mean();
  (loss + penalty).backward();
  std::cout << "gradient penalty reaches the weight: "
            << (model->weight.grad().abs().sum().item<float>() > 0)
            << ", the input: " << input.grad().sizes() << '\n';
}

// input weight^T + bias, and the gradients of the three.
class LinearFunction : public Function<LinearFunction> {
 public:
  static torch::Tensor forward(AutogradContext* ctx, torch::Tensor input, torch::Tensor weight,
                               torch::Tensor bias = torch::Tensor()) {
    ctx->save_for_backward({input, weight, bias});
    auto output = input.mm(weight.t());
    if (bias.defined()) output += bias.unsqueeze(0).expand_as(output);
    return output;
  }
  static tensor_list backward(AutogradContext* ctx, tensor_list grad_outputs) {
    auto saved = ctx->get_saved_variables();
    auto input = saved[0], weight = saved[1], bias = saved[2], grad = grad_outputs[0];
    auto grad_bias = torch::Tensor();
    if (bias.defined()) grad_bias = grad.sum(0);
    return {grad.mm(weight), grad.t().mm(input), grad_bias};
  }
};

// A number is saved beside the tensors; its own gradient is undefined.
class MulConstant : public Function<MulConstant> {
 public:
  static torch::Tensor forward(AutogradContext* ctx, torch::Tensor tensor, double constant) {
    ctx->saved_data["constant"] = constant;
    return tensor * constant;
  }
  static tensor_list backward(AutogradContext* ctx, tensor_list grad_outputs) {
    return {grad_outputs[0] * ctx->saved_data["constant"].toDouble(), torch::Tensor()};
  }
};

void OwnFunctions() {
  auto x = torch::ones({2, 3}).requires_grad_(), weight = torch::full({4, 3}, 0.5).requires_grad_();
  LinearFunction::apply(x, weight).sum().backward();
  std::cout << "own linear: " << x.grad().sum().item<float>() << ' '
            << weight.grad().sum().item<float>() << '\n';

  auto y = torch::full({2}, 3.0).requires_grad_();
  MulConstant::apply(y, 5.5).sum().backward();
  std::cout << "own product: " << y.grad() << '\n';
}

int main() {
  torch::manual_seed(0);
  First();
  Products();
  HigherOrder();
  OwnFunctions();
}
