# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's Trainer, accelerate and Lightning resume in mid-epoch from only a view's parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr

torch = pytest.importorskip("torch")

RECORDS = 26


def make_view(batch: str = "tuple") -> Any:
    x = np.arange(RECORDS * 2, dtype=np.float32).reshape(RECORDS, 2)
    source = hr.records(x=x, labels=np.arange(RECORDS))
    return hr.Loader(source, batch_size=4, shuffle=True, seed=3).torch(batch=batch)


class Seen:
    """A view that records the labels of its batches."""

    def __init__(self, batch: str = "tuple") -> None:
        self.batches: list[list[int]] = []
        self.view = make_view(batch)
        structure = self.view.form.structure

        def noted(layout: Any, values: Any) -> Any:
            values = list(values)
            self.batches.append(values[1].tolist())
            return structure(layout, values)

        self.view.form.structure = noted


def epochs(count: int) -> list[list[list[int]]]:
    view = make_view()
    return [[batch[1].tolist() for batch in view] for _ in range(count)]


def test_accelerate_skips_batches_without_making_them() -> None:
    accelerate = pytest.importorskip("accelerate")
    seen = Seen()
    view = accelerate.Accelerator(cpu=True).prepare(seen.view)
    assert view is seen.view
    first, second = epochs(2)
    rest = [batch[1].tolist() for batch in accelerate.skip_first_batches(view, 5)]
    assert rest == first[5:] == seen.batches
    assert [batch[1].tolist() for batch in view] == second


@pytest.mark.parametrize("accumulation", [1, 2])
def test_the_trainer_resumes_exactly(tmp_path: Path, accumulation: int) -> None:
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.net = torch.nn.Linear(2, RECORDS)

        def forward(self, x: Any, labels: Any) -> Any:
            logits = self.net(x / 50)
            return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}

    def run(checkpoint: Any = None) -> tuple[Seen, Any]:
        seen = Seen("dict")

        class Trainer(transformers.Trainer):
            def get_train_dataloader(self) -> Any:
                return seen.view

        arguments = transformers.TrainingArguments(
            output_dir=str(tmp_path),
            num_train_epochs=3,
            per_device_train_batch_size=4,
            gradient_accumulation_steps=accumulation,
            save_strategy="steps",
            save_steps=3,
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
        )
        model = Model()
        Trainer(model=model, args=arguments).train(resume_from_checkpoint=checkpoint)
        return seen, model.state_dict()

    through, weights = run()
    assert through.batches == [batch for epoch in epochs(3) for batch in epoch]
    for step in (3, 9):
        resumed, again = run(str(tmp_path / f"checkpoint-{step}"))
        steps = -(-7 // accumulation)  # of an epoch
        done = 7 * (step // steps) + accumulation * (step % steps)
        assert resumed.batches == through.batches[done:]
        assert all(torch.equal(weights[name], again[name]) for name in weights)


def test_lightning_sets_the_epoch_itself(tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning")

    class Model(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.net = torch.nn.Linear(2, RECORDS)

        def training_step(self, batch: Any, _: int) -> Any:
            return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.01)

    def run(epochs: int, checkpoint: Any = None) -> Seen:
        seen = Seen()
        saves = lightning.pytorch.callbacks.ModelCheckpoint(
            dirpath=tmp_path, filename="{step}", every_n_train_steps=5, save_top_k=-1
        )
        trainer = lightning.Trainer(
            max_epochs=epochs,
            accelerator="cpu",
            logger=False,
            callbacks=[saves],
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(Model(), seen.view, ckpt_path=checkpoint)
        return seen

    through = run(3)
    assert through.batches == [batch for epoch in epochs(3) for batch in epoch]
    for step in (5, 10):
        resumed = run(3, str(tmp_path / f"step={step}.ckpt"))
        assert resumed.batches == through.batches[step:]
