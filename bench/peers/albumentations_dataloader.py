# SPDX-License-Identifier: Apache-2.0
"""PyTorch's DataLoader with OpenCV and Albumentations."""

import albumentations as A
import cv2
import torch
from albumentations.pytorch import ToTensorV2
from protocol import serve


def steps_of(job):
    steps = [A.RandomResizedCrop((224, 224)), A.HorizontalFlip()]
    if job.workload == "color-jitter":
        steps.append(
            A.ColorJitter((0.6, 1.4), (0.6, 1.4), (0.6, 1.4), (-0.1, 0.1), p=1.0),
        )
    if job.workload == "trivial-augment":
        steps.append(trivial_augment())
    steps += [A.Normalize(job.mean, job.std)]
    if job.workload == "trivial-augment":
        steps.append(A.Erasing(p=0.1))
    return A.Compose([*steps, ToTensorV2()])


def trivial_augment():
    """Albumentations has none: approximates TrivialAugmentWide by one of its own transforms per
    operation, with the same ranges."""
    return A.OneOf(
        [
            A.NoOp(),
            A.Affine(shear={"x": (-44.7, 44.7), "y": (0, 0)}, p=1.0),
            A.Affine(shear={"x": (0, 0), "y": (-44.7, 44.7)}, p=1.0),
            A.Affine(translate_px={"x": (-32, 32), "y": (0, 0)}, p=1.0),
            A.Affine(translate_px={"x": (0, 0), "y": (-32, 32)}, p=1.0),
            A.Rotate((-135, 135), p=1.0),
            A.ColorJitter((0.01, 1.99), (1, 1), (1, 1), (0, 0), p=1.0),
            A.ColorJitter((1, 1), (1, 1), (0.01, 1.99), (0, 0), p=1.0),
            A.ColorJitter((1, 1), (0.01, 1.99), (1, 1), (0, 0), p=1.0),
            A.Sharpen(p=1.0),
            A.Posterize((2, 7), p=1.0),
            A.Solarize((0, 1), p=1.0),
            A.AutoContrast(p=1.0),
            A.Equalize(p=1.0),
        ],
        p=1.0,
    )


class Photos(torch.utils.data.Dataset):
    def __init__(self, job):
        self.files, self.labels, self.transforms = job.files, job.labels, steps_of(job)
        cv2.setNumThreads(0)

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        picture = cv2.imread(self.files[index], cv2.IMREAD_COLOR_RGB)
        return self.transforms(image=picture)["image"], self.labels[index]


def make_batches(job):
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(
        Photos(job),
        batch_size=job.batch_size,
        shuffle=True,
        num_workers=job.threads,
        persistent_workers=True,
    )
    return lambda: (len(images) for images, _ in loader)


serve(make_batches)
