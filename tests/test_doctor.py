# SPDX-License-Identifier: Apache-2.0
"""hr.doctor on real loops, each with one planted cause; and without side effects."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import run_command
from timing import with_longer_limits

import headrace as hr
from headrace import transforms as T

PICTURES = Path(__file__).parent.parent / "examples" / "images"
SHORT = 2.5  # seconds: planted causes are large enough for this to suffice
LONGER = (SHORT, 2 * SHORT, 4 * SHORT, 12 * SHORT)  # but on a busy machine it reports less


def assert_finds(report: Any, cause: str) -> None:
    """The cause, or none: if other work on the machine makes windows differ, it must not guess."""
    assert report.verdict in (cause, "unsure"), report


def burn(seconds: float) -> None:
    """Keeps a core busy for this much of this thread's CPU time."""
    stop = time.thread_time() + seconds
    while time.thread_time() < stop:
        pass


def loader_of(*steps: Any, source: Any = PICTURES, **options: Any) -> hr.Loader:
    crop = [T.RandomResizedCrop(32), *steps]
    return hr.Loader(source, crop, **{"batch_size": 1, "shuffle": True, **options})


def nothing(batch: Any) -> None:
    pass


def test_a_slow_step_in_python_is_named() -> None:
    def speckle(image: Any) -> Any:
        burn(0.012)
        return image

    def check(seconds: float) -> None:
        with loader_of(speckle) as loader:
            report = hr.doctor(loader, nothing, seconds=seconds)
        assert_finds(report, "python")
        assert report.verdict == "unsure" or report.detail.cause == "speckle", report
        assert report.stall_share > 0.5
        without = next(r for r in report.remedies if r["name"] == "without speckle")
        assert without["predicted_high"] > 2 * report.rates["real"]

    with_longer_limits(check, LONGER)


def test_a_slow_consumer_is_the_limit() -> None:
    def check(seconds: float) -> None:
        with loader_of() as loader:
            report = hr.doctor(loader, lambda batch: time.sleep(0.05), seconds=seconds)
        assert_finds(report, "consumer")
        assert not report.input_bound and report.stall_share < 0.1
        assert report.rates["ceiling"] <= 20

    with_longer_limits(check, LONGER)


class SlowRecords:
    """Every record takes a while, as from a remote disk."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> dict[str, Any]:
        time.sleep(0.004)
        return {"x": np.full(4, index, np.float32)}


def test_a_slow_source_is_attributed_to_storage() -> None:
    def check(seconds: float) -> None:
        with hr.Loader(SlowRecords(), batch_size=2) as loader:
            report = hr.doctor(loader, nothing, seconds=seconds)
        assert_finds(report, "storage")
        assert report.detail.cause == "reading"

    with_longer_limits(check, LONGER)


def test_large_images_are_attributed_to_decoding() -> None:
    def check(seconds: float) -> None:
        with hr.Loader(PICTURES, [T.Resize((32, 32))], batch_size=1) as loader:
            report = hr.doctor(loader, nothing, seconds=seconds)
        assert_finds(report, "decode")
        assert "decode" in (report.verdict, report.detail.likely), report
        assert any(r["name"] == "pack" for r in report.remedies), report

    with_longer_limits(check, LONGER)


def make_dataloader(**options: Any) -> Any:
    torch = pytest.importorskip("torch")

    class Rows(torch.utils.data.Dataset):  # type: ignore[misc, name-defined]
        transform = staticmethod(slow_rotation)

        def __len__(self) -> int:
            return 200

        def __getitem__(self, index: int) -> Any:
            return self.transform(torch.full((8,), float(index)))

    return torch.utils.data.DataLoader(Rows(), batch_size=4, **options)


def slow_rotation(value: Any) -> Any:
    burn(0.006)
    return value


def test_a_dataloader_without_workers_needs_workers_or_a_faster_operator() -> None:
    def check(seconds: float) -> None:
        report = hr.doctor(make_dataloader(), lambda batch: time.sleep(0.02), seconds=seconds)
        assert_finds(report, "workers")
        assert [price.name for price in report.operator_costs] == ["slow_rotation"]
        assert report.operator_costs[0].seconds >= 0.006
        # If other programs occupy the cores, two workers gain nothing.
        assert report.verdict == "unsure" or any("workers" in r["name"] for r in report.remedies)

    with_longer_limits(check, LONGER)


def test_a_dataloader_with_enough_workers_has_a_slow_operator() -> None:
    cores = len(os.sched_getaffinity(0))

    def check(seconds: float) -> None:
        loader = make_dataloader(num_workers=cores, persistent_workers=True)
        report = hr.doctor(loader, nothing, seconds=seconds, skip=["remedies"])
        assert "operator" in (report.verdict, report.detail.likely), report
        assert report.detail.cause == "slow_rotation"

    with_longer_limits(check, LONGER)


class Endless:
    """An iterable of a class unknown to the doctor."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make

    def __iter__(self) -> Iterator[Any]:
        while True:
            self.make()
            yield np.zeros((4, 2))


@pytest.mark.parametrize(("make", "word"), [(burn, "python"), (time.sleep, "storage")])
def test_any_iterable_shows_whether_it_computes_or_waits(
    make: Callable[[float], None], word: str
) -> None:
    def check(seconds: float) -> None:
        report = hr.doctor(Endless(lambda: make(0.01)), nothing, seconds=seconds)
        assert_finds(report, word)
        assert report.stall_share > 0.9

    with_longer_limits(check, LONGER)


def test_a_loop_that_never_waits_is_fed_or_limited_by_its_step() -> None:
    def check(seconds: float) -> None:
        report = hr.doctor([np.zeros((2, 2))] * 50, lambda batch: burn(0.005), seconds=seconds)
        assert_finds(report, "consumer")
        assert not report.input_bound, report

    with_longer_limits(check, (1, *LONGER))


def test_without_a_step_only_the_loader_is_judged() -> None:
    with loader_of() as loader:
        report = hr.doctor(loader, seconds=1, skip=["remedies", "cold"])
    assert report.stall_share is None and "loader" in report.rates
    assert {"ceiling", "cached", "real"}.isdisjoint(report.rates)
    assert "is unknown without a step" in str(report)


def test_the_first_five_lines_are_self_contained() -> None:
    with loader_of() as loader:
        lines = str(hr.doctor(loader, lambda b: time.sleep(0.02), seconds=1)).splitlines()
    assert lines[5] == "" and all(line.endswith(".") for line in lines[:5])
    assert lines[1].startswith("The loop waits for data ")


def test_json_has_the_keys_of_the_contract() -> None:
    with loader_of() as loader:
        value = hr.doctor(loader, nothing, seconds=1).json()
    assert json.loads(json.dumps(value)) == value
    assert {"verdict", "stall_share", "rates", "resources", "remedies"} <= set(value)
    for remedy in value["remedies"]:
        assert remedy["predicted_low"] <= remedy["predicted_high"]


# No harm.


def test_the_loader_continues_where_it_was() -> None:
    with loader_of() as loader, loader_of() as other:
        iterations = iter(loader), iter(other)
        next(iterations[0]), next(iterations[1])
        hr.doctor(loader, nothing, seconds=0.5)
        assert loader.state_dict() == other.state_dict()
        assert np.array_equal(next(iter(loader)).image, next(iterations[1]).image)


def test_model_optimizer_and_generators_are_restored() -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.BatchNorm1d(2))
    model[1].eval()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step(batch: Any) -> None:
        model.train()
        torch.rand(3), np.random.rand(3)
        optimizer.zero_grad()
        model(torch.as_tensor(batch)).sum().backward()
        optimizer.step()

    before = {name: value.clone() for name, value in model.state_dict().items()}
    draws = torch.random.get_rng_state(), np.random.get_state()[2]
    batches = [np.ones((3, 4), np.float32)] * 4
    report = hr.doctor(batches, step, seconds=0.5, model=model, optimizer=optimizer)
    assert "real" in report.rates and not any("actually ran" in note for note in report.notes)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert model.training and not model[1].training
    assert optimizer.state_dict()["state"] == {}
    assert all(p.grad is None for p in model.parameters())
    assert torch.equal(draws[0], torch.random.get_rng_state())
    assert draws[1] == np.random.get_state()[2]


def test_nothing_is_written_to_the_dataset(pictures: Path) -> None:
    def state() -> list[tuple[Path, int, int]]:
        return [(p, p.stat().st_mtime_ns, p.stat().st_size) for p in sorted(pictures.rglob("*"))]

    before = state()
    with hr.Loader(pictures, [T.Resize((8, 8))], batch_size=4) as loader:
        hr.doctor(loader, nothing, seconds=1)
    assert state() == before


# Bad input: each ends with the available measurements and a sentence.


def test_a_step_that_fails_is_reported() -> None:
    calls = iter(range(1000))

    def step(batch: Any) -> None:
        if next(calls) == 15:
            raise RuntimeError("loss is NaN")
        time.sleep(0.02)

    with loader_of() as loader:
        report = hr.doctor(loader, step, seconds=2, skip=["remedies"])
    assert any("loss is NaN" in note for note in report.notes), report.notes
    assert report.rates


def test_a_loader_that_raises_is_reported() -> None:
    def batches() -> Iterator[Any]:
        for _ in range(5):
            yield np.zeros((2, 2))
        raise OSError("the disk is gone")

    class Broken:
        def __iter__(self) -> Iterator[Any]:
            return batches()

    report = hr.doctor(Broken(), nothing, seconds=1)
    assert any("the disk is gone" in note for note in report.notes), report
    assert str(report).count("\n") > 4


@pytest.mark.parametrize("batches", [[], iter([]), (np.zeros(2) for _ in range(3))])
def test_empty_and_single_use_loaders_get_a_note_and_no_verdict(batches: Any) -> None:
    report = hr.doctor(batches, nothing, seconds=0.5)
    assert report.notes and report.verdict == "unsure"


def test_a_dataset_of_three_records() -> None:
    with loader_of(source=hr.subset(PICTURES, range(3)), batch_size=8) as loader:
        report = hr.doctor(loader, nothing, seconds=1)
    assert report.rates["loader"] > 0, report


def test_ragged_and_unusual_batches() -> None:
    batches = [{"text": ["a", "b", "c"], "n": 3}] * 20
    report = hr.doctor(batches, lambda b: burn(0.001), seconds=0.5, skip=["copy"])
    assert 0 < report.rates["real"] <= 3 * 1000


def test_steps_longer_than_the_time_limit() -> None:
    def check(limit: float) -> None:
        with loader_of() as loader:
            given: dict[str, Any] = {"seconds": limit, "skip": ["remedies"]}
            report = hr.doctor(loader, lambda b: time.sleep(1.5 * limit), **given)
        assert_finds(report, "consumer")

    with_longer_limits(check, (0.2, 1, 4))


def test_ctrl_c_reports_what_was_measured() -> None:
    def press() -> None:
        os.kill(os.getpid(), signal.SIGINT)

    began = threading.Event()

    def step(batch: Any) -> None:
        if began.is_set():
            press()
        burn(0.001)

    def tell(name: str, number: int) -> None:
        if name == "cached":
            began.set()

    with loader_of() as loader:
        report = hr.doctor(loader, step, seconds=1, progress=tell)
    assert report.interrupted and report.rates["real"] > 0
    assert "cached" not in report.rates
    assert "Interrupted" in str(report)


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (([], nothing, {"skip": ["decoding"]}), "did you mean 'decode'", "HR0900"),
        ((7, nothing, {}), "int cannot be iterated", "HR0901"),
        (([], nothing, {"seconds": 0}), "seconds=0", "HR0902"),
    ],
)
def test_wrong_calls_are_corrected_in_the_message(arguments: Any, words: str, code: str) -> None:
    loader, step, options = arguments
    with pytest.raises(hr.ConfigError, match=words) as caught:
        hr.doctor(loader, step, **options)
    assert caught.value.code == code


def test_experiments_can_be_left_out() -> None:
    with loader_of() as loader:
        report = hr.doctor(
            loader, nothing, seconds=0.5, skip=["host", "copy", "decode", "storage", "ceiling"]
        )
    assert not (report.host or report.copies or report.operator_costs or report.storage)
    assert "ceiling" not in report.rates and "real" in report.rates


# Start-up, and the command.


def test_importing_headrace_imports_no_doctor() -> None:
    code = (
        "import sys, headrace as hr\n"
        "assert not any(name.startswith('headrace.insight.examination') for name in sys.modules)\n"
        "import headrace.insight.model.verdict\n"
        "assert callable(hr.doctor) and 'torch' not in sys.modules\n"
        "assert hr.doctor([1], seconds=0.1).verdict\n"
        "assert 'torch' not in sys.modules and 'PIL' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    return run_command("doctor", *arguments)


QUICK = ("--seconds", "1", "--batch-size", "2", "--size", "32", "--skip", "remedies")


def test_the_command_says_whether_data_is_the_bottleneck(tmp_path: Path) -> None:
    pytest.importorskip("typer")
    script = tmp_path / "train.py"
    script.write_text("import time\ndef step(batch): time.sleep(0.3)\ndef none(batch): pass\n")
    fed = command(PICTURES, *QUICK, "--json", "--step", f"{script}:step")
    assert fed.returncode == 0, fed.stderr
    assert json.loads(fed.stdout)["verdict"] in ("consumer", "unsure")
    starved = command(PICTURES, *QUICK, "--json", "--step", f"{script}:none")
    value = json.loads(starved.stdout)
    assert starved.returncode == (0 if value["verdict"] == "unsure" else 1)
    assert value["stall_share"] > 0.5
    text = command(PICTURES, *QUICK)
    assert "This machine" in text.stdout
    assert not text.stderr


@pytest.mark.parametrize("name", ["steps", "by_field", "make"])
def test_the_command_accepts_the_users_pipeline(tmp_path: Path, name: str) -> None:
    pytest.importorskip("typer")
    script = tmp_path / "mine.py"
    script.write_text(
        "from headrace import transforms as T\n"
        "steps = [T.RandomResizedCrop(8), T.RandomHorizontalFlip()]\n"
        "by_field = {'image': steps}\n"
        "def make(): return steps\n"
    )
    done = command(PICTURES, "--json", "--seconds", "1", "--pipeline", f"{script}:{name}")
    assert done.returncode in (0, 1), done.stderr
    value = json.loads(done.stdout)
    assert value["rates"]["loader"] > 0 and not value["failed"]
    assert all(price["name"] == "RandomHorizontalFlip" for price in value["operator_costs"])


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nowhere"], 3, "file or folder not found"),
        ([PICTURES, "--step", "nowhere.py:step"], 2, "no such file"),
        ([PICTURES, "--step", "steps.py:missing"], 2, "has no function missing"),
        ([PICTURES, "--pipeline", "steps.py:missing"], 2, "is not in that file"),
        ([PICTURES, "--pipeline", "steps.py:nothing"], 2, "calling it failed: TypeError"),
        ([PICTURES, "--skip", "lunch"], 2, "HR0900"),
        ([PICTURES, "--seconds", "0"], 2, "seconds"),
    ],
)
def test_the_command_refuses_invalid_arguments(
    arguments: list[Any], code: int, words: str, tmp_path: Path
) -> None:
    pytest.importorskip("typer")
    (tmp_path / "steps.py").write_text("def nothing(batch):\n    pass\n")
    done = run_command("doctor", *arguments, folder=tmp_path)
    assert (done.returncode, words in done.stderr) == (code, True), done.stderr


def test_a_sweep_tries_workers_and_the_other_settings_of_a_dataloader() -> None:
    def check(seconds: float) -> None:
        given: dict[str, Any] = {"skip": ["remedies"], "sweep": True}
        report = hr.doctor(make_dataloader(), nothing, seconds=seconds, **given)
        tried = [(point["workers"], point.get("setting")) for point in report.sweep]
        cores = len(os.sched_getaffinity(0))
        assert tried[: 1 + cores] == [(count, None) for count in range(1 + cores)]
        assert [setting for _, setting in tried[1 + cores :]] == [
            "prefetch_factor=4",
            "persistent_workers=True",
        ]
        assert "prefetch_factor=4" in str(report)

    with_longer_limits(check, LONGER)


def test_a_recreated_dataloader_keeps_its_arguments() -> None:
    torch = pytest.importorskip("torch")
    from headrace.insight.probes.torch_dataloader import rebuilt

    rows = torch.utils.data.TensorDataset(torch.arange(10))
    sampler = torch.utils.data.WeightedRandomSampler([1.0] * 10, 6)
    given = torch.utils.data.DataLoader(
        rows, 4, sampler=sampler, num_workers=2, prefetch_factor=3, timeout=9, drop_last=True
    )
    made = rebuilt(given, num_workers=1)
    assert made.sampler is sampler and made.drop_last and made.batch_size == 4
    assert (made.num_workers, made.prefetch_factor, made.timeout) == (1, 3, 9)
    assert rebuilt(given, num_workers=0).timeout == 0
    batches = [[3, 1], [2]]
    assert (
        rebuilt(torch.utils.data.DataLoader(rows, batch_sampler=batches)).batch_sampler is batches
    )
    single = rebuilt(torch.utils.data.DataLoader(rows, batch_size=None, sampler=[3, 1]))
    assert [int(row[0]) for row in single] == [3, 1]


class Composed:
    """Like torchvision's Compose, and typical wrappers around it."""

    def __init__(self, transforms: Any) -> None:
        self.transforms = transforms

    def __call__(self, value: int) -> int:
        for transform in self.transforms:
            value = transform(value)
        return value


class Preset(Composed):
    def __call__(self, value: int) -> int:
        return int(self.transforms(value)) * 2


class FirstOnly(Composed):
    def __call__(self, value: int) -> int:
        return int(self.transforms[0](value))


def plus_one(value: int) -> int:
    return value + 1


def plus_ten(value: int) -> int:
    return value + 10


class Transformed:
    def __init__(self, transform: Callable[[int], int]) -> None:
        self.transform = transform

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        return self.transform(index)


@pytest.mark.parametrize(
    ("transform", "without", "names"),
    [
        (Composed([plus_one, plus_ten]), Composed([plus_one]), ["plus_one", "plus_ten"]),
        (Preset(Composed([plus_one, plus_ten])), Preset(plus_one), ["plus_one", "plus_ten"]),
        (Preset(Preset(Composed([plus_ten]))), None, ["plus_ten"]),
        (FirstOnly([plus_one, plus_ten]), FirstOnly([plus_one]), ["plus_one"]),
        (plus_one, None, ["plus_one"]),
    ],
    ids=["compose", "preset", "nested", "choice", "function"],
)
def test_wrappers_around_transforms_are_timed_and_called_unchanged(
    transform: Any, without: Any, names: list[str]
) -> None:
    torch = pytest.importorskip("torch")
    from headrace.insight.probes.torch_dataloader import examine, without_transform

    seen: list[int] = []
    loader = torch.utils.data.DataLoader(
        Transformed(transform), batch_size=4, collate_fn=seen.extend
    )
    anatomy, _ = examine(loader, 0.01)
    assert not anatomy.failure
    assert set(seen) == {transform(index) for index in range(4)}, "the user's own, in its way"
    assert {stage.name for stage in anatomy.stages} >= set(names)
    if without is not None:
        rest = without_transform(loader, "plus_ten").dataset
        assert [rest[i] for i in range(4)] == [without(i) for i in range(4)]
    assert [loader.dataset[i] for i in range(4)] == [transform(i) for i in range(4)]


def test_a_nested_module_is_timed_as_one() -> None:
    torch = pytest.importorskip("torch")
    from headrace.insight.probes.torch_dataloader import with_parts

    class Module(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.transforms = torch.nn.Sequential()

    assert with_parts(Module(), lambda parts: parts) is None
