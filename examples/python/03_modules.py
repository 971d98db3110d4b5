"""Lesson 3: a module, a loss and an optimiser. Fits a curve, and keeps what it learned."""

import pathlib
import tempfile

import lazuli as lz


class Curve(lz.nn.Module):
    """Modules and parameters that become attributes are registered under their names."""

    def __init__(self, width):
        super().__init__()
        self.body = lz.nn.Sequential(lz.nn.Linear(1, width), lz.nn.Tanh(), lz.nn.Linear(width, 1))
        self.scale = lz.nn.Parameter(lz.ones(1))

    def forward(self, x):
        return self.body(x) * self.scale


lz.manual_seed(1)
x = lz.rand(256, 1) * 6 - 3
y = x.sin()

net = Curve(width=32)
print(net)
print("parameters:", [name for name, _ in net.named_parameters()])

opt = lz.optim.Adam(net.parameters(), lr=0.01)
for step in range(301):
    opt.zero_grad()
    loss = lz.nn.functional.mse_loss(net(x), y)
    loss.backward()
    opt.step()
    lz.mark_step()
    if step % 100 == 0:
        # The learning rate is an input of the compiled program: changing it costs nothing.
        opt.lr *= 0.7
        print(f"step {step}: loss {loss.item():.4f}")

# The state of a module is a dict of tensors; a file of it is one that other libraries read, too.
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "curve.safetensors"
    lz.nn.save(net, path)
    again = Curve(width=32)
    lz.nn.load(again, path)
net.eval()
print("the copy computes the same:", (again(x) != net(x)).sum().item() == 0)
