# SPDX-License-Identifier: Apache-2.0
"""One process per device: `torchrun --nproc-per-node 4 examples/devices/one_process_each.py`.

Each process gets its part of every global batch on its own device, which is what "cuda" means under
torchrun (LOCAL_RANK). Without GPUs the processes share the CPU; without torchrun there is one
process.
"""

import os
import sys
from pathlib import Path

import headrace as hr
from headrace import transforms as T

try:
    import torch
except ImportError:
    sys.exit(print("This example needs PyTorch: pip install torch"))

is_one_of_several = "RANK" in os.environ
has_gpu = torch.cuda.is_available()
if has_gpu:
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
if is_one_of_several:
    torch.distributed.init_process_group("nccl" if has_gpu else "gloo")

files = sorted(Path(__file__).parent.glob("../images/*.jpg"))
source = hr.records(image=[str(file) for file in files], label=list(range(len(files))))
source = hr.subset(source, list(range(len(files))) * 16)
steps = [
    T.RandomResizedCrop(64),
    T.ToDevice(),  # bytes are copied to the device, which does the rest
    T.RandomHorizontalFlip(),
    T.ToDtype("float32", scale=True),
    T.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
]
train = hr.Loader(source, steps, global_batch_size=32, shuffle=True).torch(
    "cuda" if has_gpu else None
)

torch.manual_seed(0)
net = torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 8, stride=8),
    torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool2d(2),
    torch.nn.Flatten(),
    torch.nn.Linear(64, len(files)),
)
if has_gpu:
    net = net.cuda()
if is_one_of_several:
    net = torch.nn.parallel.DistributedDataParallel(net)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)

for epoch in range(3):
    total = 0.0
    for images, labels in train:
        loss = torch.nn.functional.cross_entropy(net(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(train):.3f}")

if is_one_of_several:
    torch.distributed.destroy_process_group()
