"""Lesson 8: Fourier transforms. The spectrogram of a rising tone, and the tone without its noise."""

import math

import lazuli as lz

RATE, SIZE = 8000, 256
lz.manual_seed(0)
t = lz.arange(RATE) / RATE
tone = (2 * math.pi * (200 * t + 800 * t**2)).sin()  # from 200 Hz to 1800 Hz in a second
heard = tone + 0.5 * lz.randn(RATE)

window = lz.hann_window(SIZE)
spectrogram = lz.stft(heard, SIZE, hop_length=SIZE // 4, window=window, return_complex=True)  # [129, frames]
loudest = lz.fft.rfftfreq(SIZE, 1 / RATE)[spectrogram.abs().argmax(0)]
print("frames:", spectrogram.shape[1], "loudest from", loudest[2].item(), "Hz to", loudest[-3].item(), "Hz")
for frame in range(4, spectrogram.shape[1], 24):
    print(f"{frame * SIZE / 4 / RATE:5.2f} s |" + "#" * int(loudest[frame].item() / 40))

# What is quiet is left out of every frame.
kept = lz.where(spectrogram.abs() > 0.35 * spectrogram.abs().amax(0), spectrogram, 0)
cleaned = lz.istft(kept, SIZE, hop_length=SIZE // 4, window=window, length=RATE)


def noise(x):
    return (x - tone).square().mean().sqrt().item()


print(f"noise: {noise(heard):.2f} before, {noise(cleaned):.2f} after")
