# SPDX-License-Identifier: Apache-2.0
"""Images of the size of MNIST in memory, converted to shuffled float32 batches.

Variants: "dataloader" with the number of workers after a colon, whose dataset converts each image
as torchvision's MNIST with ToTensor does; "prefetched" takes these batches from a queue that a
thread fills, "hr.prefetch" likewise with ours; "slices" indexes tensors that were converted before;
"headrace" is hr.resident.
"""

import queue
import threading

import numpy as np
from protocol import serve

COUNT = 60_000


def images_and_labels():
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (COUNT, 1, 28, 28), np.uint8)
    return images, random.integers(0, 10, COUNT)


def dataloader(job, workers):
    import torch
    from PIL import Image
    from torchvision.transforms import functional

    torch.set_num_threads(1)
    images, labels = images_and_labels()

    class Digits(torch.utils.data.Dataset):
        def __len__(self):
            return COUNT

        def __getitem__(self, index):
            return functional.to_tensor(Image.fromarray(images[index, 0])), int(labels[index])

    return torch.utils.data.DataLoader(
        Digits(), job.batch_size, True, num_workers=workers, persistent_workers=workers > 0
    )


def from_a_queue(loader):
    """What articles call a data prefetcher, or BackgroundGenerator."""
    ready = queue.Queue(2)

    def fill():
        for batch in loader:
            ready.put(batch)
        ready.put(None)

    threading.Thread(target=fill, daemon=True).start()
    while (batch := ready.get()) is not None:
        yield batch


def slices(job):
    import torch

    images, labels = (torch.from_numpy(array) for array in images_and_labels())
    images = images.float() / 255

    def epoch():
        order = torch.randperm(COUNT)
        for begin in range(0, COUNT, job.batch_size):
            chosen = order[begin : begin + job.batch_size]
            yield images[chosen], labels[chosen]

    return epoch


def resident(job):
    import headrace as hr
    from headrace import transforms as T

    images, labels = images_and_labels()
    loader = hr.resident(
        {"image": images, "label": labels},
        job.batch_size,
        shuffle=True,
        transforms=[T.ToDtype("float32", scale=True)],
    ).torch()
    return lambda: loader


def prefetched(job):
    import headrace as hr

    batches = hr.prefetch(dataloader(job, 0), "cpu")
    return lambda: batches


def make_batches(job):
    name, _, workers = job.variant.partition(":")
    if name == "dataloader":
        loader = dataloader(job, int(workers))
        batches = lambda: loader  # noqa: E731
    elif name == "prefetched":
        loader = dataloader(job, int(workers))
        batches = lambda: from_a_queue(loader)  # noqa: E731
    else:
        batches = {"slices": slices, "headrace": resident, "hr.prefetch": prefetched}[name](job)
    return lambda: (len(images) for images, _ in batches())


serve(make_batches)
