# SPDX-License-Identifier: Apache-2.0
"""Train on pairs of an audio clip and an image: two encoders, fused, with one classifier on top.

    python audio_and_image.py AUDIO IMAGES --workers 2

AUDIO is a folder of mono .wav files named LABEL_anything.wav, IMAGES one of .jpg files; the
n-th audio clip goes with the n-th image.
"""

import argparse
import wave
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Pairs(Dataset):
    def __init__(self, audio, images):
        self.audio = sorted(Path(audio).rglob("*.wav"))
        self.images = sorted(Path(images).rglob("*.jpg"))
        names = sorted({path.name.split("_")[0] for path in self.audio})
        self.classes = {name: number for number, name in enumerate(names)}

    def __len__(self):
        return len(self.audio)

    def read_audio(self, path):
        with wave.open(str(path)) as file:
            samples = np.frombuffer(file.readframes(8000), np.int16) / 32768
        samples = torch.tensor(np.resize(samples, 8000), dtype=torch.float32)
        window = torch.hann_window(256)
        spectrum = torch.stft(samples, 256, 64, window=window, return_complex=True).abs()
        return torch.log1p(spectrum)[None]

    def read_image(self, path):
        image = Image.open(path).convert("RGB").resize((128, 128), Image.BICUBIC)
        return torch.tensor(np.asarray(image)).permute(2, 0, 1).float() / 255

    def __getitem__(self, index):
        audio = self.audio[index]
        image = self.images[index % len(self.images)]
        label = self.classes[audio.name.split("_")[0]]
        return {
            "audio": self.read_audio(audio),
            "image": self.read_image(image),
            "label": label,
        }


class Encoder(nn.Sequential):
    def __init__(self, channels):
        super().__init__(
            nn.Conv2d(channels, 16, 5, stride=4),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )


class Fused(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.audio = Encoder(1)
        self.image = Encoder(3)
        self.head = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, classes))

    def forward(self, batch):
        both = torch.cat([self.audio(batch["audio"]), self.image(batch["image"])], dim=1)
        return self.head(both)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("audio")
    parser.add_argument("images")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--workers", type=int, default=0)
    args = parser.parse_args()

    dataset = Pairs(args.audio, args.images)
    loader = DataLoader(dataset, batch_size=16, shuffle=True, num_workers=args.workers)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Fused(len(dataset.classes)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    for epoch in range(args.epochs):
        for step, batch in enumerate(loader):
            batch = {name: value.to(device) for name, value in batch.items()}
            loss = nn.functional.cross_entropy(model(batch), batch["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 10 == 0:
                print(f"epoch {epoch}, step {step}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
