# SPDX-License-Identifier: Apache-2.0
"""Predicted gains of remedies, on a virtual clock; useless remedies are not offered."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from headrace.insight.measure.file_reads import Reads
from headrace.insight.measure.paired import agreed, compare
from headrace.insight.model import prediction as remedies
from headrace.insight.model.case import Case, Stage, loop_bounds
from headrace.insight.probes.ours import Anatomy, Price, names_of, without
from headrace.insight.remedies import changes, resizing, trials
from headrace.insight.remedies.changes import Change
from simulated_loader import simulate
from test_doctor_verdict import CAUSES, between, planted

import headrace as hr
from headrace import transforms as T
from headrace.pipeline import Pipeline

PICTURES = Path(__file__).parent.parent / "examples" / "images"
CASES = 12  # for each cause


def offered(case: Case, draw: random.Random) -> list[remedies.Remedy]:
    ratio = draw.choice([1.0, 1.5, 3.0, 10.0])
    around = (ratio * 0.97, ratio * 1.03)
    found = [
        remedies.compared(case, "pack", "pack", around, read=(1.0, 0.2)),
        remedies.compared(case, "uint8", "uint8", around, copy=(0.3, 0.25)),
        remedies.compared(case, "resident", "resident", around, read=(0.05, 0.0)),
        remedies.compared(case, "threads", "threads", (1.9, 2.0), workers=case.workers * 2),
        remedies.block_shuffled(case, "blocks", draw.uniform(0.05, 0.6)),
    ]
    if case.copy_seconds > 0:
        found.append(remedies.copied_aside(case, "prefetch", draw.uniform(0.2, 0.9)))
    return found


@pytest.mark.parametrize("cause", CAUSES)
def test_measured_comparisons_predict_the_loops_rate(cause: str) -> None:
    missed = []
    for seed in range(CASES):
        case = planted(cause, seed)
        before = simulate(case).rate
        for remedy in offered(case, random.Random(f"{cause} {seed}")):
            prediction = remedies.predict(case, remedy, before)
            after = simulate(between(remedy, random.Random(seed).random())).rate
            if not prediction.low <= after <= prediction.high:
                missed.append((seed, remedy.name, prediction.low, after, prediction.high))
    assert missed == []


@pytest.mark.parametrize("cause", ["decode", "operator", "collate", "workers"])
def test_predicted_ranges_from_comparisons_are_narrow(cause: str) -> None:
    widths = []
    for seed in range(CASES):
        case = planted(cause, seed)
        remedy = remedies.compared(case, "index", "index", (1.18, 1.22))
        prediction = remedies.predict(case, remedy, simulate(case).rate)
        widths.append(prediction.high / prediction.low)
    assert sorted(widths)[CASES // 2] < 1.4


def test_doubling_the_loaders_rate_doubles_an_input_bound_loop() -> None:
    case = Case((Stage("decode", "decode", 0.01),), workers=2, cores=2, step_seconds=1e-5)
    prediction = remedies.predict(case, remedies.compared(case, "p", "p", (2.0, 2.0)), 200.0)
    assert prediction.low == pytest.approx(400, rel=0.05)
    assert prediction.high == pytest.approx(400, rel=0.05)


def test_a_step_that_computes_takes_its_cores_from_the_loader() -> None:
    """Two cores, one of which is used by a step of 4 ms: records are made as cores become free."""
    stages = (Stage("decode", "decode", 0.006),)
    case = Case(stages, workers=4, cores=2, step_seconds=0.004, step_cores=0.004)
    low, high = loop_bounds(case)
    assert low <= simulate(case).rate <= high * 1.02
    assert high == pytest.approx(200)


def test_a_step_slowed_by_the_loader_is_predicted_to_reach_its_speed_alone() -> None:
    busy = Case((Stage("decode", "decode", 0.02),), 2, 2, step_seconds=0.008, step_alone=0.005)
    remedy = remedies.compared(busy, "pack", "pack", (10.0, 10.0))
    prediction = remedies.predict(busy, remedy, 100.0)
    assert prediction.high == pytest.approx(200, rel=0.04)
    assert prediction.low > 180


@pytest.mark.parametrize(("input_seconds", "step_seconds"), [(0.02, 0.003), (0.003, 0.02)])
def test_predictions_include_the_start_and_end_of_short_epochs(
    input_seconds: float, step_seconds: float
) -> None:
    epochs, batches, now = 50, 6, 0.0
    for _ in range(epochs):
        made = now
        for _ in range(batches):
            made += input_seconds
            now = max(now, made) + step_seconds
    stages = (Stage("decode", "decode", input_seconds),)
    case = Case(stages, workers=1, cores=1, step_seconds=step_seconds, epoch=batches)
    assert loop_bounds(case)[1] == pytest.approx(epochs * batches / now)


# Turns.


def test_disturbed_rounds_do_not_count() -> None:
    quiet = [100.0, 101.0, 99.0, 100.0, 100.5]
    old, new = [*quiet, 60.0, 20.0], [*(2 * rate for rate in quiet), 90.0, 199.0]
    low, high = agreed(old, new)
    assert low < 2 < high and high / low < 1.1


def test_rounds_that_disagree_make_a_wide_range() -> None:
    low, high = agreed([100, 130, 90, 120], [200, 260, 300, 150])
    assert high / low > 1.1


class Counted:
    """A loader that records the start of each epoch."""

    def __init__(self, name: str, log: list[str], batches: int = 2) -> None:
        self.name, self.log, self.batches = name, log, batches

    def __iter__(self) -> Any:
        self.log.append(self.name)
        return iter([np.zeros((4, 1))] * self.batches)


def test_two_compared_loaders_alternate_in_running_first() -> None:
    log: list[str] = []
    compare(Counted("a", log), Counted("b", log), 0.0)
    assert log == ["a", "b", "a", "b", "b", "a", "a", "b"]


def test_an_empty_loader_has_no_rate() -> None:
    with pytest.raises(ValueError, match="no batch"):
        compare(Counted("a", [], 0), Counted("b", []), 0.0)


# The remedies offered.

NO_PRICES = Anatomy((Stage("decode", "decode", 0.001),), [], 1000.0)


def names(loader: hr.Loader, anatomy: Anatomy = NO_PRICES, workers: int = 1) -> set[str]:
    case = Case(anatomy.stages, workers, cores=4)
    return {change.name for change in changes.changes_of(loader, case, anatomy)}


def loader_of(steps: Any = None, source: Any = PICTURES, **options: Any) -> hr.Loader:
    steps = hr.presets.imagenet_train(32) if steps is None else steps
    return hr.Loader(source, steps, batch_size=4, **options)


def test_images_are_offered_all_applicable_remedies() -> None:
    with loader_of() as loader:
        assert names(loader) == {
            "4 workers",
            "uint8, normalized on the device",
            "pack",
            "index",
            "resident",
        }
        assert "4 workers" not in names(loader, workers=4)


def test_a_pack_is_offered_neither_a_pack_nor_an_index(tmp_path: Path) -> None:
    hr.pack(PICTURES, tmp_path / "p.hrpack")
    for source in (tmp_path / "p.hrpack", hr.subset(tmp_path / "p.hrpack", [0, 1])):
        with loader_of(source=source) as loader:
            assert not names(loader) & {"pack", "index"}
    both = hr.concat(hr.open(tmp_path / "p.hrpack"), hr.open(tmp_path / "p.hrpack"))
    with loader_of(source=both) as loader:
        assert "pack" not in names(loader)


def test_a_folder_named_pack_is_not_a_pack(tmp_path: Path, pictures: Path) -> None:
    folder = tmp_path / "a pack of wolves"
    folder.symlink_to(pictures)
    with loader_of(source=folder) as loader:
        assert "pack" in names(loader)


def test_data_without_images_is_offered_no_pack() -> None:
    with hr.Loader(hr.records(x=np.zeros((8, 2), np.float32)), batch_size=4) as loader:
        assert names(loader) == {"4 workers"}


def change_named(loader: hr.Loader, name: str) -> Change:
    case = Case(NO_PRICES.stages, 1, 4)
    (found,) = (c for c in changes.changes_of(loader, case, NO_PRICES) if c.name == name)
    return found


def test_no_index_is_offered_if_no_image_could_have_one(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    for number in range(4):
        image.new("RGB", (64, 48), (number, 0, 0)).save(tmp_path / f"{number}.png")
    with loader_of(source=tmp_path) as loader:
        change = change_named(loader, "index")
        with pytest.raises(hr.ConfigError, match="no image") as caught:
            change.apply(changes.maker(loader), loader.source, str(tmp_path), None)
    assert caught.value.code == "HR0925"


def test_uint8_is_offered_for_steps_that_end_in_floats() -> None:
    with loader_of(hr.presets.imagenet_train(32, dtype="uint8")) as loader:
        assert not any("uint8" in name for name in names(loader))
    by_field = {"image": hr.presets.imagenet_train(32)}
    with loader_of(by_field) as loader:
        change = change_named(loader, "uint8, normalized on the device")
        with change.apply(changes.maker(loader), loader.source, "", None) as made:
            assert next(iter(made)).image.dtype == np.uint8


def test_only_removing_expensive_steps_is_offered() -> None:
    prices = [Price("RandomHorizontalFlip", 1e-6, 0.0), Price("Normalize", 5e-4, 0.0)]
    with loader_of() as loader:
        found = names(loader, Anatomy(NO_PRICES.stages, prices, 1000.0))
    assert "without Normalize" in found and "without RandomHorizontalFlip" not in found


def test_steps_of_per_field_lists_are_removed_by_number() -> None:
    pipeline = Pipeline({"image": [T.Resize(8), T.Resize(9), T.CenterCrop(4)], "label": None})
    assert names_of(pipeline) == ["Resize", "Resize (2)", "CenterCrop"]
    shorter = without(pipeline, {1})
    assert shorter.by_field["image"] == [T.Resize(8), T.CenterCrop(4)]
    assert shorter.dropped == ["label"]


def test_resizing_is_offered_if_images_are_much_larger(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    for folder, side in (("large", 200), ("small", 40)):
        (tmp_path / folder).mkdir()
        for number in range(4):
            picture = image.new("RGB", (side, side), (number, 9, 0))
            picture.save(tmp_path / folder / f"{number}.jpg")
    for folder, applies in (("large", True), ("small", False)):
        with loader_of(source=tmp_path / folder) as loader:
            change = resizing.change_of(loader)
            assert change is not None and "37 pixels" in change.what
            out = tmp_path / f"{folder}.out"
            out.mkdir()
            make = changes.maker(loader)
            if not applies:
                with pytest.raises(hr.ConfigError, match="hardly larger"):
                    change.apply(make, loader.source, str(out), None)
                continue
            with change.apply(make, loader.source, str(out), None) as made:
                assert made.source[0]["image"].shape == (3, 37, 37)


WAITS = Case((Stage("decode", "decode", 0.001), Stage("reading", "storage", 0.02, ("disk",))), 4, 4)


def test_a_loader_waiting_for_a_disk_is_offered_memory_and_long_reads() -> None:
    reads = Reads({1: 50.0}, 100e6, 1e5, 0.02, 0.0, True, False)
    with loader_of(shuffle=True) as loader:
        found = trials._of_storage(loader, WAITS, reads)
        assert [offer.name for offer in found] == ["cache in memory", "block shuffle"]
        assert "blocks" in found[1].what
        assert trials._of_storage(loader, Case(NO_PRICES.stages, 4, 4), reads) == []
    with loader_of(shuffle=False) as loader:
        assert len(trials._of_storage(loader, WAITS, reads)) == 1


def test_pageable_copies_are_offered_pinned_memory() -> None:
    case = dataclasses.replace(WAITS, copy_seconds=0.01)
    copies = {"host": 1e10, "pageable": 6e9, "pinned": 24e9}
    (found,) = trials._of_copies(case, copies, "hr.prefetch")
    assert found.worst.copy_seconds == pytest.approx(0.0025) and found.best.copy_overlapped
    assert trials._of_copies(WAITS, copies, "hr.prefetch") == []
    assert trials._of_copies(case, {"host": 1e10}, "hr.prefetch") == []


@pytest.mark.parametrize(
    ("step_cores", "workers", "told"), [(2, 2, True), (1, 1, False), (2, 0, False)]
)
def test_a_multithreaded_step_with_workers_is_warned_about(
    step_cores: float, workers: int, told: bool
) -> None:
    from headrace.insight.examination import conclusion
    from headrace.insight.examination.findings import Findings

    found = Findings([], None)
    found.real = object()  # type: ignore[assignment]
    case = Case((), workers, cores=2, step_seconds=0.01, step_alone=0.01)
    case = dataclasses.replace(case, step_cores=0.01 * step_cores)
    conclusion._note_crowded_cores(found, case)
    assert any("OMP_NUM_THREADS=1" in note for note in found.report.notes) == told
