# SPDX-License-Identifier: Apache-2.0
"""Pairs of an image and an audio clip: an image of 32 x 32, and a log-mel spectrogram of 0.9 s.

Variants: "dataloader" with the number of workers after a colon, on Pillow, torch.stft and
torchvision; "headrace", the loader of examples/audio_and_image.py. Each also with a "+" at its end:
augmented. `photos` is the folder with faces/ and speech/ that the example makes.
"""

import sys
import wave
from pathlib import Path

import numpy as np
from protocol import serve

RATE, SIDE, SAMPLES = 16_000, 32, 14_400


def with_dataloader(job, workers, augment):
    import torch
    from PIL import Image
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    crop = [v2.Resize((SIDE, SIDE), antialias=True)]
    if augment:
        crop = [
            v2.RandomResizedCrop(SIDE, scale=(0.7, 1.0), ratio=(0.9, 1.1), antialias=True),
            v2.RandomHorizontalFlip(),
            v2.ColorJitter(brightness=0.4, contrast=0.4),
        ]
    moments = v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    image_transform = v2.Compose(
        [v2.PILToTensor(), *crop, v2.ToDtype(torch.float32, scale=True), moments]
    )
    window, filters = torch.hann_window(1024), mel_filters(40, 1024)

    def spectrogram(samples):
        begin = int(torch.randint(0, RATE - SAMPLES + 1, ())) if augment else (RATE - SAMPLES) // 2
        samples = samples[begin : begin + SAMPLES]
        spectrum = torch.stft(samples, 1024, 320, window=window, return_complex=True).abs() ** 2
        mel = 10 * torch.log10((filters @ spectrum).clamp(min=1e-10))
        mel = mel.clamp(min=float(mel.max()) - 60)
        if augment:
            for axis, most in ((0, 4), (1, 10)):
                width = int(torch.randint(0, most, ()))
                start = int(torch.randint(0, mel.shape[axis] - width, ()))
                mel.narrow(axis, start, width).zero_()
        return mel[None]

    faces = sorted(Path(job.photos, "faces").rglob("*.jpg"))
    clips = sorted(Path(job.photos, "speech").rglob("*.wav"))

    class Pairs(torch.utils.data.Dataset):
        def __len__(self):
            return len(faces)

        def __getitem__(self, index):
            with wave.open(str(clips[index])) as file:
                samples = np.frombuffer(file.readframes(RATE), np.int16).astype(np.float32)
            image = Image.open(faces[index]).convert("RGB")
            return image_transform(image), spectrogram(torch.from_numpy(samples / 32768))

    loader = torch.utils.data.DataLoader(
        Pairs(), job.batch_size, True, num_workers=workers, persistent_workers=workers > 0
    )
    return lambda: (len(images) for images, _ in loader)


def mel_filters(count, n_fft):
    """Triangles on the mel scale of HTK."""
    import torch

    top = 2595 * np.log10(1 + RATE / 2 / 700)
    edges = 700 * (10 ** (np.linspace(0, top, count + 2) / 2595) - 1)
    frequencies = np.linspace(0, RATE / 2, n_fft // 2 + 1)
    up = (frequencies - edges[:-2, None]) / np.diff(edges)[:-1, None]
    down = (edges[2:, None] - frequencies) / np.diff(edges)[1:, None]
    return torch.from_numpy(np.clip(np.minimum(up, down), 0, None).astype(np.float32))


def with_headrace(job, augment):
    sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
    from audio_and_image import steps

    import headrace as hr

    clips = hr.join(
        Path(job.photos, "faces"),
        Path(job.photos, "speech"),
        rename={"label": "audio_label"},
    )
    loader = hr.Loader(
        clips,
        {**steps(augment), "audio_label": None},
        batch_size=job.batch_size,
        shuffle=True,
        threads=job.threads,
    ).torch()
    return lambda: (len(batch["image"]) for batch in loader)


def make_batches(job):
    name, _, workers = job.variant.rstrip("+").partition(":")
    augment = job.variant.endswith("+")
    if name == "headrace":
        return with_headrace(job, augment)
    return with_dataloader(job, int(workers), augment)


serve(make_batches)
