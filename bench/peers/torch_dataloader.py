# SPDX-License-Identifier: Apache-2.0
"""PyTorch's DataLoader with torchvision v2.

Variants: "tensor" (decode_jpeg, transforms on uint8 tensors), "pil" (ImageFolder's default loader).
"""

import torch
from PIL import Image
from protocol import serve
from torchvision.io import ImageReadMode, decode_jpeg, read_file
from torchvision.transforms import v2


class Photos(torch.utils.data.Dataset):
    def __init__(self, job):
        self.files, self.labels, self.pil = job.files, job.labels, job.variant == "pil"
        if job.crop == 224:
            steps = [v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip()]
        else:
            steps = [v2.RandomCrop(32, padding=4), v2.RandomHorizontalFlip()]
        if job.workload == "color-jitter":
            steps.append(v2.ColorJitter(0.4, 0.4, 0.4, 0.1))
        if job.workload == "trivial-augment":
            steps.append(v2.TrivialAugmentWide(interpolation=v2.InterpolationMode.BILINEAR))
        if self.pil:
            steps.append(v2.PILToTensor())
        steps += [v2.ToDtype(torch.float32, scale=True), v2.Normalize(job.mean, job.std)]
        if job.workload == "trivial-augment":
            steps.append(v2.RandomErasing(0.1))
        self.transforms = v2.Compose(steps)

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        path = self.files[index]
        if self.pil:
            with open(path, "rb") as file:
                picture = Image.open(file).convert("RGB")
        else:
            picture = decode_jpeg(read_file(path), mode=ImageReadMode.RGB)
        return self.transforms(picture), self.labels[index]


def mixed(batch):
    """As in torchvision's reference scripts."""
    mixes = [v2.MixUp(alpha=0.2, num_classes=1000), v2.CutMix(alpha=1.0, num_classes=1000)]
    return v2.RandomChoice(mixes)(*torch.utils.data.default_collate(batch))


def make_batches(job):
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(
        Photos(job),
        batch_size=job.batch_size,
        shuffle=True,
        num_workers=job.threads,
        persistent_workers=True,
        collate_fn=mixed if job.workload == "mix" else None,
    )
    return lambda: (len(images) for images, _ in loader)


if __name__ == "__main__":
    serve(make_batches)
