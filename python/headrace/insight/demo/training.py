# SPDX-License-Identifier: Apache-2.0
"""Consumes batches: trains a small convolutional network in PyTorch, or a smaller one in NumPy."""

from __future__ import annotations

import importlib.util
from typing import Any, Protocol

import numpy as np


class Trainer(Protocol):
    """Does one training step on a batch of normalized (B, 3, 224, 224) float32 images."""

    name: str

    def step(self, images: Any, labels: Any) -> float:
        """The loss before the step."""


def has_torch() -> bool:
    return importlib.util.find_spec("torch") is not None


def make_trainer(classes: int, use_torch: bool) -> Trainer:
    return TorchTrainer(classes) if use_torch else NumpyTrainer(classes)


class TorchTrainer:
    """Four convolutions and a linear layer; on a GPU if available, otherwise on one core."""

    def __init__(self, classes: int) -> None:
        import torch
        from torch import nn

        torch.manual_seed(0)
        torch.set_num_threads(1)
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.name = f"a small convolutional net, PyTorch {torch.__version__} on {self.device}"
        layers: list[nn.Module] = []
        for inputs, outputs, kernel, stride in ((3, 16, 8, 8), (16, 32, 3, 2), (32, 64, 3, 2)):
            layers += [
                nn.Conv2d(inputs, outputs, kernel, stride),
                nn.BatchNorm2d(outputs),
                nn.ReLU(),
            ]
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes)]
        self._net = nn.Sequential(*layers).to(self.device)
        self._optimizer = torch.optim.SGD(self._net.parameters(), lr=0.05, momentum=0.9)
        self._loss = nn.CrossEntropyLoss()

    def step(self, images: Any, labels: Any) -> float:
        images, labels = (x.to(self.device, non_blocking=True) for x in (images, labels))
        loss = self._loss(self._net(images), labels)
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self._optimizer.step()
        return float(loss.detach())


class NumpyTrainer:
    """Two dense layers on images averaged down to 28x28; plain gradient descent."""

    name = "a small dense net in NumPy (PyTorch is not installed)"

    def __init__(self, classes: int) -> None:
        rng = np.random.default_rng(0)
        inputs, hidden = 3 * 28 * 28, 256
        self._w1 = rng.standard_normal((inputs, hidden), np.float32) / np.float32(inputs**0.5)
        self._w2 = rng.standard_normal((hidden, classes), np.float32) / np.float32(hidden**0.5)

    def step(self, images: Any, labels: Any) -> float:
        images, labels = np.asarray(images), np.asarray(labels)
        count = len(images)
        x = images.reshape(count, 3, 28, 8, 28, 8).mean((3, 5)).reshape(count, -1)
        hidden = np.maximum(x @ self._w1, 0)
        scores = hidden @ self._w2
        scores -= scores.max(1, keepdims=True)
        chance = np.exp(scores)
        chance /= chance.sum(1, keepdims=True)
        loss = -np.log(chance[np.arange(count), labels] + 1e-9).mean()
        chance[np.arange(count), labels] -= 1
        chance /= count
        back = (chance @ self._w2.T) * (hidden > 0)
        self._w2 -= 0.03 * (hidden.T @ chance)
        self._w1 -= 0.03 * (x.T @ back)
        return float(loss)
