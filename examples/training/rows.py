# SPDX-License-Identifier: Apache-2.0
"""Train a network on rows of a table, which are made here: 40 columns, 8 classes.

python rows.py --epochs 3
"""

import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


def make_table(rows, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 8, rows)
    centers = rng.normal(size=(8, 40))
    return centers[labels] + rng.normal(size=(rows, 40)), labels


def accuracy(model, loader, device):
    model.eval()
    right = seen = 0
    with torch.no_grad():
        for x, y in loader:
            right += (model(x.to(device)).argmax(1) == y.to(device)).sum().item()
            seen += len(y)
    return right / seen


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()

    x, y = make_table(args.rows)
    dataset = TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y))
    train, test = random_split(dataset, [0.9, 0.1])
    train_loader = DataLoader(train, batch_size=256, shuffle=True)
    test_loader = DataLoader(test, batch_size=1024)

    device = "cuda" if torch.cuda.is_available() else "cpu"
    layers = [nn.Linear(40, 1024), nn.ReLU()]
    for _ in range(4):
        layers += [nn.Linear(1024, 1024), nn.ReLU(), nn.Dropout(0.1)]
    model = nn.Sequential(*layers, nn.Linear(1024, 8)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    print(f"before: {accuracy(model, test_loader, device):.3f}")

    for epoch in range(args.epochs):
        model.train()
        for features, labels in train_loader:
            loss = nn.functional.cross_entropy(model(features.to(device)), labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {accuracy(model, test_loader, device):.3f}")


if __name__ == "__main__":
    main()
