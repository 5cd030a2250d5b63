# SPDX-License-Identifier: Apache-2.0
"""Run by far_peers.py in a separate environment per peer: `far_loaders.py NAME JOB prepare|read`.

JOB is JSON: the store's URL, the folder that it serves, a folder for caches, a time limit in
seconds. All decode with Pillow, crop and flip the same way, and make uint8 batches of 64 with two
workers; Headrace uses two threads.
"""

import importlib
import io
import json
import math
import os
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import numpy as np
import torch
from PIL import Image
from process_tree import cpu_seconds, pss_mib

BATCH, WORKERS = 64, 2
MODULES = {"lance": "lance.torch.data"}  # a package that is not named like the peer


def import_peer(name):
    """Before the timing starts."""
    name = "headrace.transforms" if name.startswith("headrace") else name
    importlib.import_module(MODULES.get(name, name))
    torch.set_num_threads(1)


def transformed(photo):
    """A JPEG's bytes as uint8 of 3 x 224 x 224: RandomResizedCrop and a flip with the same result
    as torchvision's on Pillow images, without torchvision."""
    image = Image.open(io.BytesIO(photo)).convert("RGB")
    width, height = image.size
    for _ in range(10):
        area = width * height * random.uniform(0.08, 1)
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        wide, high = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if wide <= width and high <= height:
            break
    else:
        wide, high = min(width, height), min(width, height)
    left, top = random.randint(0, width - wide), random.randint(0, height - high)
    box = (left, top, left + wide, top + high)
    image = image.resize((224, 224), Image.Resampling.BILINEAR, box=box)
    if random.random() < 0.5:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return torch.from_numpy(np.ascontiguousarray(np.asarray(image).transpose(2, 0, 1)))


def pair_of(sample):
    return transformed(sample["image"]), int(sample["label"])


def data_loader(dataset, **options):
    options = {"batch_size": BATCH, "num_workers": WORKERS, **options}
    return torch.utils.data.DataLoader(dataset, **options)


def photos(job):
    """(path, class), in order."""
    files = sorted((Path(job["folder"]) / "photos").rglob("*.jpg"))
    return [(str(path), int(path.parent.name)) for path in files]


def read_headrace(job, path, shuffle):
    import headrace as hr
    from headrace import transforms as T

    steps = [T.RandomResizedCrop(224), T.RandomHorizontalFlip()]
    loader = hr.Loader(path, steps, batch_size=BATCH, threads=WORKERS, shuffle=shuffle, seed=3)
    return loader.torch()


def read_headrace_tar(job):
    return read_headrace(job, f"s3://data/{job['tars']}", "blocks")


def read_headrace_pack(job):
    return read_headrace(job, "s3://data/photos.hrpack", "blocks")


def read_headrace_files(job):
    return read_headrace(job, "s3://data/photos", True)


def read_webdataset(job):
    import webdataset

    first, last = job["tars"].split("{")[1].split("}")[0].split("..")
    pattern = job["tars"].split("{")[0]
    urls = [f"{job['url']}/data/{pattern}{i:03}.tar" for i in range(int(first), int(last) + 1)]
    shards = webdataset.WebDataset(urls, shardshuffle=len(urls), empty_check=False)
    samples = shards.shuffle(1000).to_tuple("jpg", "cls")
    return data_loader(samples.map_tuple(transformed, int))


def litdata_sample(item):
    path, label = item
    return {"image": Path(path).read_bytes(), "label": label}


def prepare_litdata(job):
    import litdata

    litdata.optimize(
        fn=litdata_sample,
        inputs=photos(job),
        output_dir=str(Path(job["folder"]) / "litdata"),
        chunk_bytes="32MB",
        num_workers=1,
    )


def read_litdata(job):
    import litdata
    from litdata.streaming import downloader

    downloader._OBSTORE_CLIENT_OPTIONS["allow_http"] = True  # the loopback server has no TLS

    class Photos(litdata.StreamingDataset):
        def __getitem__(self, index):
            return pair_of(super().__getitem__(index))

    dataset = Photos(
        "s3://data/litdata",
        cache_dir=job["cache"],
        shuffle=True,
        storage_options={
            "endpoint_url": job["url"],
            "aws_access_key_id": "key",
            "aws_secret_access_key": "secret",
            "region_name": "us-east-1",
        },
    )
    return litdata.StreamingDataLoader(dataset, batch_size=BATCH, num_workers=WORKERS)


def prepare_streaming(job):
    from streaming import MDSWriter

    columns = {"image": "bytes", "label": "int"}
    with MDSWriter(
        out=str(Path(job["folder"]) / "mds"), columns=columns, size_limit=32 << 20
    ) as out:
        for item in photos(job):
            out.write(litdata_sample(item))


def read_streaming(job):
    os.environ["S3_ENDPOINT_URL"] = job["url"]
    from streaming import StreamingDataset
    from streaming.base.util import clean_stale_shared_memory

    clean_stale_shared_memory()

    class Photos(StreamingDataset):
        def __getitem__(self, index):
            return pair_of(super().__getitem__(index))

    return data_loader(
        Photos(remote="s3://data/mds", local=job["cache"], shuffle=True, batch_size=BATCH)
    )


def prepare_lance(job):
    import lance
    import pyarrow

    samples = [litdata_sample(item) for item in photos(job)]
    table = pyarrow.table(
        {
            "image": pyarrow.array([sample["image"] for sample in samples], pyarrow.binary()),
            "label": [sample["label"] for sample in samples],
        }
    )
    lance.write_dataset(table, str(Path(job["folder"]) / "photos.lance"), max_rows_per_group=256)


def lance_batch(samples):
    pairs = [pair_of(sample) for sample in samples]
    return torch.stack([image for image, _ in pairs]), torch.tensor([label for _, label in pairs])


def read_lance(job):
    from lance.torch.data import SafeLanceDataset

    options = {
        "endpoint": job["url"],
        "allow_http": "true",
        "aws_access_key_id": "key",
        "aws_secret_access_key": "secret",
        "region": "us-east-1",
    }
    dataset = SafeLanceDataset(
        "s3://data/photos.lance", dataset_options={"storage_options": options}
    )
    return data_loader(
        dataset, shuffle=True, collate_fn=lance_batch, multiprocessing_context="spawn"
    )


def s3torch_photo(reader):
    return transformed(reader.read()), int(reader.key.split("/")[1])


def read_s3torchconnector(job):
    from s3torchconnector import S3ClientConfig, S3MapDataset

    dataset = S3MapDataset.from_prefix(
        "s3://data/photos/",
        region="us-east-1",
        endpoint=job["url"],
        transform=s3torch_photo,
        s3client_config=S3ClientConfig(force_path_style=True),
    )
    return data_loader(dataset, shuffle=True)


def images_of(batch):
    return batch["image"] if isinstance(batch, dict) else batch[0]


def read(name, job):
    loader_of = globals()[f"read_{name}"]
    import_peer(name)
    began = time.perf_counter()
    cpu = cpu_seconds(os.getpid())
    iterator = iter(loader_of(job))
    images, first, memory = 0, None, 0.0
    for batch in iterator:
        shape = tuple(images_of(batch).shape)
        assert shape[1:] == (3, 224, 224), shape
        images += shape[0]
        now = time.perf_counter() - began
        if first is None:
            first, first_images = now, images
            memory = pss_mib(os.getpid())
        if now > job["seconds"]:
            break
    seconds = time.perf_counter() - began
    used = cpu_seconds(os.getpid()) - cpu
    answer = {
        "images": images,
        "rate": images / seconds,
        "after_first": (images - first_images) / max(seconds - first, 1e-9),
        "first_batch": first,
        "cpu": used / images * 1000,
        "pss_mib": memory,
    }
    print("FIGURES " + json.dumps(answer), flush=True)
    os._exit(0)  # a loader need not close cleanly


if __name__ == "__main__":
    which, given, what = sys.argv[1:]
    if what == "prepare":
        globals()[f"prepare_{which}"](json.loads(given))
    else:
        read(which, json.loads(given))
