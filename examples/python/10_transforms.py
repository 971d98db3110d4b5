"""Lesson 10: functions of functions. Gradients per sample, a Newton step, and the fine-tuning of a module from a file."""

import lazuli as lz
from lazuli import func

lz.manual_seed(0)

# A gradient for each sample, all of them computed as one batch.
model = lz.nn.Sequential(lz.nn.Linear(4, 16), lz.nn.Tanh(), lz.nn.Linear(16, 3))
weights = {name: p.detach() for name, p in model.named_parameters()}
x, labels = lz.randn(8, 4), lz.randint(0, 3, (8,))


def loss_of(weights, x, label):
    return lz.nn.functional.cross_entropy(func.functional_call(model, weights, (x[None],)), label[None])


per_sample = func.vmap(func.grad(loss_of), in_dims=(None, 0, 0))(weights, x, labels)
sizes = sum((g.reshape(8, -1) ** 2).sum(1) for g in per_sample.values()).sqrt()
print("sizes of 8 gradients:", [round(size, 2) for size in sizes.tolist()])
clipped = {name: (g * (1 / sizes).clamp(max=1).reshape(-1, *[1] * (g.dim() - 1))).mean(0) for name, g in per_sample.items()}
print("size of the mean, clipped to 1 per sample:", f"{sum((g ** 2).sum() for g in clipped.values()).sqrt().item():.3f}")


# Newton's method: the Hessian of a function is forward mode over reverse mode.
def f(x):
    return (x.exp() - 2 * x).sum() + (x[0] * x[1]) ** 2


point = lz.tensor([1.0, 1.0])
for _ in range(6):
    point = point - lz.linalg.solve(func.hessian(f)(point), func.grad(f)(point))
print(f"slope after 6 steps: {func.grad(f)(point).abs().max().item():.0e}")

# A module that another framework wrote is a function like any other: it can be differentiated, batched and trained.
module = lz.hlo.HloModule.parse("""
HloModule features

ENTRY main {
  x = f32[2] parameter(0)
  w = f32[2,8] parameter(1)
  product = f32[8] dot(x, w), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  ROOT y = f32[8] tanh(product)
}
""").vmap(4, in_dims=(0, None))
w, head = lz.randn(2, 8).requires_grad_(), lz.nn.Linear(8, 1)
points, answers = lz.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), lz.tensor([0.0, 1.0, 1.0, 0.0])
opt = lz.optim.Adam([w, *head.parameters()], lr=0.1)
for i in range(201):
    (features,) = module.call([points, w])
    loss = lz.nn.functional.binary_cross_entropy_with_logits(head(features).squeeze(1), answers)
    opt.zero_grad()
    loss.backward()
    opt.step()
    lz.mark_step()
    if i % 100 == 0:
        print(f"step {i}: loss {loss.item():.4f}")
