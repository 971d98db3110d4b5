"""Lesson 4: NumPy in and out, and batches of arrays."""

import numpy as np

import lazuli as lz

# from_numpy() takes the array's memory, tensor() a copy; numpy() gives the tensor's memory, read-only.
array = np.linspace(0, 1, 5, dtype=np.float32)
x = lz.from_numpy(array)
print("shared:", np.shares_memory(x.numpy(), array))
y = np.asarray(x * 2)
print("doubled:", y, y.dtype)

# Arrays do not take part in arithmetic by themselves: whether they are copied should be seen.
try:
    x + array
except TypeError as error:
    print(error)


class Moons:
    """Whatever has a length and samples is a data set; get(indices) may make a whole batch at once."""

    def __init__(self, samples):
        random = np.random.default_rng(0)
        angle = random.uniform(0, np.pi, samples)
        self.y = random.integers(0, 2, samples)
        upper = np.stack([np.cos(angle), np.sin(angle)], 1)
        lower = np.stack([1 - np.cos(angle), 0.5 - np.sin(angle)], 1)
        self.x = np.where(self.y[:, None] == 0, upper, lower).astype(np.float32)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


lz.manual_seed(1)
net = lz.nn.Sequential(lz.nn.Linear(2, 32), lz.relu, lz.nn.Linear(32, 2))
opt = lz.optim.Adam(net.parameters(), lr=0.02)
moons = Moons(1000)
loader = lz.data.DataLoader(moons, batch_size=100, shuffle=True)  # prepares batches on a thread of its own
for _ in range(10):
    for points, labels in loader:
        opt.zero_grad()
        lz.nn.functional.cross_entropy(net(points), labels).backward()
        opt.step()
        lz.mark_step()

with lz.no_grad():
    guesses = net(lz.from_numpy(moons.x)).argmax(1).numpy()
print(f"{100 * np.mean(guesses == moons.y):.0f} % of the points are on the right side")
