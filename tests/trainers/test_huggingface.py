# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's Trainer takes loaders in place of its datasets, and resumes exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forked import notes_of, output_of

import headrace as hr

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")
from headrace.trainers import huggingface  # noqa: E402


class Trainer(huggingface.Loaders, transformers.Trainer):  # type: ignore[misc, name-defined]
    pass


class Model(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Linear(1, 2)
        self.seen: list[list[int]] = []

    def forward(self, x: Any, labels: Any) -> Any:
        self.seen.append(x[:, 0].long().tolist())
        logits = self.net(x)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


def loader_of(count: int = 22, **options: Any) -> hr.Loader:
    numbers = np.arange(count)
    source = hr.records(x=numbers.astype(np.float32)[:, None], labels=numbers % 2)
    return hr.Loader(source, **{"batch_size": 4, "seed": 3, **options})


def trainer_of(folder: Path, train: Any = None, evaluation: Any = None, **options: Any) -> Any:
    settings = {
        "per_device_train_batch_size": 4,
        "per_device_eval_batch_size": 4,
        "save_steps": 3,
        "logging_steps": 3,
        "num_train_epochs": 2,
        **options,
    }
    arguments = transformers.TrainingArguments(
        output_dir=str(folder), report_to=[], use_cpu=True, disable_tqdm=True, **settings
    )
    return Trainer(model=Model(), args=arguments, train_dataset=train, eval_dataset=evaluation)


def test_two_ranks_resume_exactly_after_a_kill(tmp_path: Path) -> None:
    output_of("trainers/ranks_huggingface.py", tmp_path, cwd=tmp_path)
    for rank in range(2):
        whole, killed, resumed = (
            notes_of(tmp_path, name, rank) for name in ("whole", "killed", "resumed")
        )
        options: dict[str, Any] = {"shuffle": True, "last_batch": "drop", "shard": (rank, 2)}
        loader = loader_of(45, **options)
        expected = [batch.x[:, 0].tolist() for _ in range(3) for batch in loader]
        assert whole == expected and len(whole) == 15
        assert killed == whole[:11]
        assert resumed == whole[7:], "nothing is seen twice, and what was trained is not made again"
        weights, waits, metrics = notes_of(tmp_path, "whole_ended", rank)
        assert notes_of(tmp_path, "resumed_ended", rank)[0] == weights
        assert all(0 <= share <= 1 for share in waits) and len(waits) == 7
        assert metrics["eval_all_once"] == 1.0


def test_a_checkpoint_of_another_global_batch_is_refused(tmp_path: Path) -> None:
    trainer_of(tmp_path, loader_of(shuffle=True)).train()
    checkpoint = str(tmp_path / "checkpoint-3")
    other = trainer_of(tmp_path, loader_of(batch_size=2), per_device_train_batch_size=2)
    with pytest.raises(hr.ConfigError, match="HR0711"):
        other.train(resume_from_checkpoint=checkpoint)
    records = trainer_of(tmp_path, loader_of(24, shuffle=True))
    with pytest.raises(hr.ConfigError, match="HR0711"):
        records.train(resume_from_checkpoint=checkpoint)


def test_a_checkpoint_that_the_trainer_would_misplace_is_refused(tmp_path: Path) -> None:
    trainer_of(tmp_path, loader_of()).train()
    checkpoint = str(tmp_path / "checkpoint-3")
    other = trainer_of(tmp_path, loader_of(), gradient_accumulation_steps=2)
    with pytest.raises(hr.ConfigError, match=r"HR0850.*batch 3 of epoch 0.*batch 0 of epoch 1"):
        other.train(resume_from_checkpoint=checkpoint)
    again = trainer_of(tmp_path, loader_of(), gradient_accumulation_steps=2, ignore_data_skip=True)
    again.train(resume_from_checkpoint=checkpoint)


def test_a_checkpoint_made_without_the_callback_is_resumed(tmp_path: Path) -> None:
    plain = transformers.Trainer(model=Model(), args=trainer_of(tmp_path).args)
    plain.get_train_dataloader = lambda: loader_of(shuffle=True).torch(batch="dict")
    plain.train()
    resumed = trainer_of(tmp_path, loader_of(shuffle=True))
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-3"))
    assert resumed.model.seen == plain.model.seen[3:]


def test_a_batch_size_unknown_to_the_trainer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(hr.ConfigError, match=r"(?s)HR0850.*per_device_train_batch_size=5"):
        trainer_of(tmp_path, loader_of(batch_size=5)).train()
    with pytest.raises(hr.ConfigError, match=r"(?s)HR0850.*per_device_eval_batch_size=5"):
        trainer_of(tmp_path, evaluation=loader_of(batch_size=5)).evaluate()
    with pytest.raises(hr.ConfigError, match=r"(?s)HR0850.*\.torch\(batch="):
        trainer_of(tmp_path, loader_of().numpy()).train()


def test_evaluation_over_unequal_ranks_is_refused(tmp_path: Path) -> None:
    trainer = trainer_of(tmp_path)
    for options in ({}, {"batch_size": None, "global_batch_size": 7, "uneven": True}):
        with pytest.raises(hr.ConfigError, match=r'(?s)HR0850.*last_batch="pad"'):
            evaluation = loader_of(21, shard=(0, 2), **options)
            trainer.get_eval_dataloader(evaluation)


@pytest.mark.parametrize(("counts", "refused"), [((7, 4), True), ((4, 2), False)])
def test_each_size_of_evaluation_batches_is_checked(
    tmp_path: Path, counts: tuple[int, int], refused: bool
) -> None:
    groups = np.repeat([0, 1], counts)  # in batches of 4, and one of 3, or of 2
    loaders = [
        loader_of(
            len(groups),
            batch_size=None,
            sampler=hr.sampling.grouped(groups, 4),
            shard=(rank, 2),
        )
        for rank in range(2)
    ]
    trainer = trainer_of(tmp_path)
    if refused:
        for loader in loaders:
            with pytest.raises(hr.ConfigError, match=r"(?s)HR0850.*1 of 3 evaluation batches"):
                trainer.get_eval_dataloader(loader)
        return
    first, second = (trainer.get_eval_dataloader(loader) for loader in loaders)
    for one, other in zip(first, second, strict=True):
        assert len(one["x"]) == len(other["x"])


def test_other_datasets_are_left_to_the_trainer(tmp_path: Path) -> None:
    records = [{"x": torch.ones(1), "labels": 0}] * 8
    trainer = trainer_of(tmp_path, records, {"ours": loader_of(), "theirs": records})
    trainer.train()
    metrics = trainer.evaluate()
    assert {"eval_ours_loss", "eval_theirs_loss"} <= set(metrics)
    assert trainer.predict(records).predictions.shape == (8, 2)
    assert trainer.predict(loader_of(6, last_batch="pad")).predictions.shape == (6, 2)
