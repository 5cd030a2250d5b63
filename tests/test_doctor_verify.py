# SPDX-License-Identifier: Apache-2.0
"""Applies a remedy for real: its arithmetic, its files, and its refusals."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from headrace.insight.examination.findings import Findings
from headrace.insight.measure.loop import time_loop
from headrace.insight.model.case import Case, Stage
from headrace.insight.model.prediction import Remedy
from headrace.insight.model.verified import Verified
from headrace.insight.probes.ours import Anatomy, Price
from headrace.insight.remedies import applying, verify
from headrace.insight.report.text import verified_lines
from timing import with_longer_limits

import headrace as hr
from headrace import transforms as T

PICTURES = Path(__file__).parent.parent / "examples" / "images"
STAGES = (Stage("decode", "decode", 0.002),)


def loader_of(*steps: Any, **options: Any) -> hr.Loader:
    crop = [T.RandomResizedCrop(24), *steps, T.ToDtype("float32", scale=True)]
    return hr.Loader(PICTURES, crop, **{"batch_size": 2, "shuffle": True, "threads": 1, **options})


def findings(loader: Any, name: str, step: Any = None) -> Findings:
    """The result of an examination that offers one remedy, which doubles the rate."""
    found = Findings(loader, step)
    found.alone = time_loop(loader, None, 0.05)
    found.anatomy = Anatomy(STAGES, [Price("RandomHorizontalFlip", 0.002, 0.0)], 500.0)
    case = Case(STAGES, 1, 1)
    twice = Case((Stage("decode", "decode", 0.001),), 1, 1)
    found.offers = [Remedy(name, name, case, twice)]
    return found


# The arithmetic.

MADE = Verified("pack", low=900, high=1100, measured=500, before=400, after=840, records=8, whole=8)


def test_gains_are_compared_despite_a_varying_machine() -> None:
    assert MADE.predicted_gain == 2.0
    assert MADE.measured_gain == pytest.approx(2.1)
    assert MADE.error == pytest.approx(-0.0476, abs=1e-4)
    assert MADE.in_range  # 2.1 times 500


@pytest.mark.parametrize(
    ("after", "in_range"), [(719, False), (721, True), (879, True), (881, False)]
)
def test_the_range_has_a_low_and_a_high_end(after: float, in_range: bool) -> None:
    assert Verified("x", 900, 1100, 500, 400, after, 8, 8).in_range is in_range


def test_the_result_is_given_as_text_and_as_plain_values() -> None:
    text = "\n".join(": ".join(line) for line in verified_lines(MADE))
    assert "predicted: 2.00x (1.80 to 2.20), 900 to 1,100 records/s" in text
    assert "found: 2.10x, 840 records/s, and 400 without it: inside the range" in text
    assert "off by -5%" in text and "of 8 records" not in text
    value = MADE.json()
    assert json.loads(json.dumps(value)) == value
    assert value["applied"] and value["in_range"] and value["measured_gain"] == pytest.approx(2.1)
    part = Verified("x", 9, 11, 5, 4, 8, records=1000, whole=2000, disk_bytes=5_000_000)
    text = "\n".join(": ".join(line) for line in verified_lines(part))
    assert "1,000 of 2,000 records" in text and "5.0 MB" in text


def test_remedies_that_were_not_applied_say_why() -> None:
    made = Verified("resize once", reason="left to you")
    assert verified_lines(made) == [("resize once", "not applied: left to you")]
    assert made.json() == {"name": "resize once", "applied": False, "reason": "left to you"}


# On real loops: that it was applied, never how fast it was.


def assert_applied(made: Verified, records: int = 0) -> None:
    assert made.reason == "" and made.before > 0 and made.after > 0, made
    assert made.predicted_gain > 0 and made.measured_gain > 0
    if records:
        assert made.records == made.whole == records


def test_threads_are_applied() -> None:
    with loader_of() as loader:
        case = Case(STAGES, 1, 2)
        found = findings(loader, "2 workers")
        found.anatomy = Anatomy(case.stages, [], 500.0)
        if hr._core.allowed_cores() < 2:
            pytest.skip("one core has no more threads to give")
        found.offers = [Remedy(f"{hr._core.allowed_cores()} workers", "", case, case)]
        assert_applied(verify.verify(found, "threads", 0.2), len(loader.source))


@pytest.mark.parametrize("name", ["uint8", "pack", "index", "resident", "without RandomHorizontal"])
def test_applicable_remedies_are_applied_and_cleaned_up(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = sorted((p, p.stat().st_mtime_ns) for p in PICTURES.rglob("*"))
    names = {"uint8": "uint8, normalized on the device"}
    with loader_of(T.RandomHorizontalFlip()) as loader:
        offered = names.get(name, name)
        offered = "without RandomHorizontalFlip" if name.startswith("without") else offered
        state = loader.state_dict()
        made = verify.verify(findings(loader, offered), name, 0.2)
        assert_applied(made, len(loader.source))
        assert loader.state_dict().keys() == state.keys()
    assert made.name == offered
    assert (made.disk_bytes > 0) is (name in ("pack", "index"))
    assert list(tmp_path.iterdir()) == []
    assert sorted((p, p.stat().st_mtime_ns) for p in PICTURES.rglob("*")) == before


def test_a_pack_without_disk_space_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    full = shutil.disk_usage("/")._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: full)
    with loader_of() as loader:
        made = verify.verify(findings(loader, "pack"), "pack", 0.2)
    assert "GB free; set TMPDIR to another folder" in made.reason and made.before == 0


def test_records_beyond_the_time_limit_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applying, "_LONGEST", 0.0)
    for name in ("pack", "index"):
        with loader_of() as loader:
            made = verify.verify(findings(loader, name), name, 0.2)
            assert_applied(made)
            assert 0 < made.records <= made.whole == len(loader.source)


def test_a_step_that_needs_floats_is_reported_as_ending_early() -> None:
    def step(batch: Any) -> None:
        if batch.image.dtype != np.float32:
            raise TypeError("expected float32")

    with loader_of() as loader:
        found = findings(loader, "uint8, normalized on the device", step)
        made = verify.verify(found, "uint8", 0.2)
    assert "with it ended early" in made.reason and "expected float32" in made.reason


def test_views_of_frameworks_are_kept() -> None:
    torch = pytest.importorskip("torch")
    seen = set()

    def step(batch: Any) -> None:
        seen.add((type(batch[0]), batch[0].dtype))

    with loader_of() as loader:
        found = findings(loader.torch(), "uint8, normalized on the device", step)
        assert_applied(verify.verify(found, "uint8", 0.2))
    assert seen == {(torch.Tensor, torch.float32), (torch.Tensor, torch.uint8)}


def test_remedies_left_to_the_user_say_so() -> None:
    with loader_of() as loader:
        made = verify.verify(findings(loader, "resize once"), "resize once", 0.2)
    assert "make the change yourself" in made.reason


def test_workers_and_transforms_of_a_dataloader_are_applied() -> None:
    torch = pytest.importorskip("torch")

    class Compose:
        def __init__(self, transforms: list[Any]) -> None:
            self.transforms = transforms

        def __call__(self, value: Any) -> Any:
            for call in self.transforms:
                value = call(value)
            return value

    class Rows(torch.utils.data.Dataset):  # type: ignore[misc, name-defined]
        transform = Compose([torch.sin, torch.cos])

        def __len__(self) -> int:
            return 8

        def __getitem__(self, index: int) -> Any:
            return self.transform(torch.full((2,), float(index)))

    loader = torch.utils.data.DataLoader(Rows(), batch_size=2)
    for name in ("1 workers", "without cos", "prefetch"):
        assert_applied(verify.verify(findings(loader, name), name, 0.1))
    assert len(loader.dataset.transform.transforms) == 2


def test_an_iterable_is_prefetched() -> None:
    batches = [np.zeros((4, 2), np.float32)] * 20
    assert_applied(verify.verify(findings(batches, "prefetch"), "prefetch", 0.1))
    assert (
        "make the change yourself" in verify.verify(findings(batches, "pack"), "pack", 0.1).reason
    )


# The entry points.


def test_the_doctor_verifies_and_reports() -> None:
    def check(seconds: float) -> None:
        with loader_of() as loader:
            given: dict[str, Any] = {"verify": True, "skip": ["cold", "samples"]}
            report = hr.doctor(loader, lambda batch: time.sleep(1e-4), seconds=seconds, **given)
        assert report.verified is not None
        assert report.json()["verified"]["name"] == report.verified.name
        assert "A remedy applied" in str(report)

    with_longer_limits(check, (1, 4, 16))


def test_a_report_without_verification_has_no_result() -> None:
    report = hr.doctor([np.zeros((2, 2))] * 9, seconds=0.2)
    assert report.json()["verified"] is None and "A remedy applied" not in str(report)


def test_an_unknown_remedy_is_refused_at_once() -> None:
    with pytest.raises(hr.ConfigError, match="did you mean 'pack'") as caught:
        hr.doctor([], verify="packs")
    assert caught.value.code == "HR0926"
    for name in (True, "first", "pack", "8 workers", "without Resize", "Headrace"):
        verify.check(name)


def test_untried_remedies_have_no_prediction() -> None:
    made = verify.verify(findings([np.zeros((2, 2))] * 9, "prefetch"), "pack", 0.1)
    assert "not predicted" in made.reason
