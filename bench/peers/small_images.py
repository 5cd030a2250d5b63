# SPDX-License-Identifier: Apache-2.0
"""Small gray images of 48 x 48 in folders by class, the layout of FER-2013: a shifted crop, a flip,
normalized float32, shuffled batches.

Variants: "headrace", "dali", or "dataloader" with the number of workers after a colon. The
DataLoader reads what `photos` is: a folder, an HDF5 file, an LMDB environment of Caffe's messages
that hold PNG files, or a .pth file of tensors. The variant "headrace" reads these and packs.
"""

import io
import os

from protocol import serve

MEAN, STD = 0.5, 0.25
PNG = b"\x89PNG"  # begins the file in a message, which begins with the label


def dataset(path):
    """An item is a Pillow image, as in torchvision's datasets, and its label."""
    from PIL import Image

    kind = os.path.splitext(path)[1]
    if kind == ".h5":
        import h5py

        class Rows:
            def __init__(self):
                self.file = None
                with h5py.File(path) as file:
                    self.count = len(file["label"])

            def __len__(self):
                return self.count

            def __getitem__(self, index):
                if self.file is None:  # one for each worker
                    self.file = h5py.File(path)
                pixels = self.file["image"][index].reshape(48, 48)
                return Image.fromarray(pixels), int(self.file["label"][index])

    elif kind == ".lmdb":
        import lmdb

        class Rows:
            def __init__(self):
                self.environment = None
                environment = lmdb.open(path, subdir=False, readonly=True, lock=False)
                self.count = environment.stat()["entries"]
                environment.close()

            def __len__(self):
                return self.count

            def __getitem__(self, index):
                if self.environment is None:
                    self.environment = lmdb.open(path, subdir=False, readonly=True, lock=False)
                with self.environment.begin() as transaction:
                    value = transaction.get(b"%08d" % index)
                return Image.open(io.BytesIO(value[value.index(PNG) :])), value[1]

    elif kind == ".pth":
        import torch

        class Rows:
            def __init__(self):
                held = torch.load(path)
                self.images, self.labels = held["image"], held["label"]

            def __len__(self):
                return len(self.images)

            def __getitem__(self, index):
                pixels = self.images[index].numpy().reshape(48, 48)
                return Image.fromarray(pixels), int(self.labels[index])

    else:
        from torchvision.datasets import ImageFolder

        return ImageFolder(path, loader=Image.open)
    return Rows()


def with_dataloader(job):
    import torch
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    transform = v2.Compose(
        [
            v2.RandomCrop(48, padding=4),
            v2.RandomHorizontalFlip(),
            v2.PILToTensor(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize([MEAN], [STD]),
        ]
    )
    inner = dataset(job.photos)

    class Transformed(torch.utils.data.Dataset):
        def __len__(self):
            return len(inner)

        def __getitem__(self, index):
            image, label = inner[index]
            return transform(image), label

    workers = int(job.variant.partition(":")[2])
    loader = torch.utils.data.DataLoader(
        Transformed(),
        batch_size=job.batch_size,
        shuffle=True,
        num_workers=workers,
        persistent_workers=workers > 0,
    )
    return lambda: (len(images) for images, _ in loader)


def with_dali(job):
    from nvidia.dali import fn, pipeline_def, types

    @pipeline_def(batch_size=job.batch_size, num_threads=job.threads, device_id=None)
    def pipeline():
        encoded, label = fn.readers.file(file_root=job.photos, random_shuffle=True, name="reader")
        x = fn.decoders.image(encoded, device="cpu", output_type=types.GRAY)
        start = fn.random.uniform(values=list(range(-4, 5)), shape=[2])
        x = fn.slice(
            x,
            start=fn.cast(start, dtype=types.INT32),
            shape=[48, 48],
            axes=[0, 1],
            out_of_bounds_policy="pad",
        )
        mean, std = [255 * MEAN], [255 * STD]
        x = fn.crop_mirror_normalize(
            x,
            dtype=types.FLOAT,
            output_layout="CHW",
            mirror=fn.random.coin_flip(),
            mean=mean,
            std=std,
        )
        return x, label

    pipe = pipeline()
    pipe.build()
    count = pipe.reader_meta("reader")["epoch_size"]

    def epoch():
        images = 0
        while images < count:  # the last batch is filled with images of the next epoch
            size = len(pipe.run()[0])
            images += size
            yield size

    return epoch


def with_headrace(job):
    os.environ["HEADRACE_CACHE"] = job.prepared
    import headrace as hr
    from headrace import transforms as T

    transforms = [
        T.RandomCrop(48, padding=4),
        T.RandomHorizontalFlip(),
        T.ToDtype("float32", scale=True),
        T.Normalize([MEAN], [STD]),
    ]
    loader = hr.Loader(
        hr.open(job.photos),
        {"image": transforms},
        batch_size=job.batch_size,
        shuffle=True,
        threads=job.threads,
    ).numpy()
    return lambda: (len(batch["image"]) for batch in loader)


def make_batches(job):
    if job.variant == "headrace":
        return with_headrace(job)
    return with_dali(job) if job.variant == "dali" else with_dataloader(job)


serve(make_batches)
