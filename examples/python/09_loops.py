"""Lesson 9: loops and branches on the device. A recurrent model of one's own by scan, and a beam search by fori_loop."""

import lazuli as lz
from lazuli import control

lz.manual_seed(0)

# A recurrent layer with a gate: the loop over a sequence is one operation, however long the sequence is.
HIDDEN = 16
weights = {name: lz.nn.Parameter(lz.randn(HIDDEN, HIDDEN + 2) * 0.2) for name in ("gate", "new")}
out = lz.nn.Linear(HIDDEN, 1)
steps_traced = 0


def step(h, x):
    global steps_traced
    steps_traced += 1
    both = lz.cat([h, x], dim=1)
    gate = (both @ weights["gate"].T).sigmoid()
    return gate * h + (1 - gate) * (both @ weights["new"].T).tanh(), None


def predict(xs):
    h, _ = control.scan(step, lz.zeros(xs.shape[1], HIDDEN), xs)
    return out(h).squeeze(1)


def batch(length=30, size=32):
    """Numbers with a flag at two of them; the answer is the sum of these two."""
    x = lz.rand(length, size)
    places = lz.rand(length, size).topk(2, dim=0).indices
    flags = lz.zeros(length, size).scatter(0, places, 1.0)
    return lz.stack([x, flags], dim=2), (x * flags).sum(0)


opt = lz.optim.Adam([*weights.values(), *out.parameters()], lr=0.01)
for i in range(401):
    xs, wanted = batch()
    loss = ((predict(xs) - wanted) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    lz.mark_step()
    if i % 200 == 0:
        print(f"step {i}: loss {loss.item():.4f}")
    if i == 3:
        compiled = lz.metrics.counter("UncachedCompile")
print("compiled later:", lz.metrics.counter("UncachedCompile") - compiled, "traced for each batch:", steps_traced // 401)

# The best sequences of 8 words by a beam of 4, where each word's score depends on the word before.
WORDS, BEAM, LENGTH = 10, 4, 8
scores = lz.randn(WORDS, WORDS)


def extend(i, beam):
    """All words after all sequences of the beam, of which the best stay."""
    total = beam["score"][:, None] + scores[beam["words"][:, i]]
    best, place = total.flatten().topk(BEAM)
    words = beam["words"][place // WORDS]
    here = lz.arange(LENGTH + 1)[None, :] == i + 1
    return {"words": lz.where(here, (place % WORDS)[:, None], words), "score": best}


start = {"words": lz.zeros(BEAM, LENGTH + 1, dtype=lz.int64), "score": lz.tensor([0.0] + [-1e9] * (BEAM - 1))}
beam = control.fori_loop(0, LENGTH, extend, start)
best = beam["words"][0]
print("words", best.tolist(), f"score {beam['score'][0].item():.3f}")
print("score of these words:", f"{sum(scores[a, b].item() for a, b in zip(best[:-1].tolist(), best[1:].tolist())):.3f}")
