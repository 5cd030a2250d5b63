# SPDX-License-Identifier: Apache-2.0
"""memory_limit holds, nothing grows with time, and everything is freed.

The growth of the whole process is measured, so each case runs in a separate process. The baseline
is its resident memory after ``import headrace`` and a loader of one tiny image that used the same
steps and threads.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageFile
from timing import with_attempts

import headrace as hr
from headrace import transforms as T

MIB = 1 << 20

PROGRAM = """
import ctypes, json, os, sys, time
import headrace as hr
from headrace import transforms as T

def kib(name):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(name))

def live_kib():
    "Resident, without what malloc merely keeps: how much that is depends on timing."
    ctypes.CDLL(None).malloc_trim(0)
    return kib("VmRSS")

def untouched(image):
    return image

class Stored:
    "Encoded images from a Python object."
    def __init__(self, paths): self.paths = paths
    def __len__(self): return len(self.paths)
    def __getitem__(self, i):
        with open(self.paths[i], "rb") as file:
            return {"image": file.read()}

STEPS = {
    "fused": [T.Resize((64, 64))],
    "between": [T.Resize((1200, 1800)), T.Resize((64, 64))],
    "tiny between": [T.Resize((48, 48)), T.Resize((32, 32))],
    "measured": [T.RandomEqualize(0.3), T.Resize((64, 64))],
    "seldom between": [T.RandomGrayscale(0.3), T.Resize((64, 64))],
    "python": [untouched, T.Resize((64, 64))],
}
case = json.loads(sys.argv[1])

def loader(paths, **options):
    source = Stored(paths) if case.get("object") else hr.records(image=paths)
    steps = STEPS[case.get("steps", "fused")]
    return hr.Loader(source, steps, **{**case["options"], **options})

def run_through(source):
    records = 0
    for batch in source:
        records += len(batch.image)
    return records
"""

LIMIT = (
    PROGRAM
    + """
with loader([case["tiny"]]) as tiny:
    run_through(tiny)
before = kib("VmRSS")
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # VmHWM begins again
with loader(case["paths"]) as big:
    records = run_through(big) + run_through(big)
    peak = big.stats().memory_peak
growth = kib("VmHWM") - before
print(json.dumps({"records": records, "growth": growth * 1024, "peak": peak,
                  "left": (kib("VmRSS") - before) * 1024}))
"""
)

EPOCHS = (
    PROGRAM
    + """
source = loader(case["paths"], shuffle=True)
for batch in source:
    time.sleep(0.02)  # a late consumer has every slot filled now, not at some later time
grown = []
for epoch in range(52):
    assert run_through(source) == len(case["paths"])
    if epoch in (1, 51):
        grown.append(live_kib())
print(json.dumps({"growth": (grown[1] - grown[0]) * 1024}))
"""
)

LEFTOVERS = (
    PROGRAM
    + """
def here():
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

def use(number):
    source = loader(case["paths"], shuffle=True)
    for taken, batch in enumerate(source):
        if number % 2 and taken == 3:
            return  # dropped in the middle of its epoch

use(0), use(1)
before, resident = here(), live_kib()
for number in range(50):
    use(number)
print(json.dumps({"before": before, "after": here(),
                  "growth": (live_kib() - resident) * 1024}))
"""
)


ENLARGED = (
    PROGRAM
    + """
import numpy as np
steps = {
    "listed": [T.Resize(9000)],
    "open": [T.Letterbox((9024, 9024), stride=32)],
    "warped": [T.Resize(6000), T.RandomRotation((45, 45), expand=True)],
    "mirrored": [T.Pad(5000, padding_mode="symmetric")],
    "mixed": [T.Pad(2500), T.AugMix()],
    "python": [T.Resize(5000), untouched],
}
small = [{"image": np.zeros((3, 20 + i, 30), np.uint8)} for i in range(4)]
source = hr.open(small, kinds={"image": "image"}, shapes={"image": (3, -1, -1)})
run_through(hr.Loader(source, [T.Pad(1), untouched], ragged="list", **case["options"]))
found = {}
for name, chain in steps.items():
    before = kib("VmRSS")
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    code = ""
    try:
        run_through(hr.Loader(source, chain, ragged="list", **case["options"]))
    except hr.Error as error:
        code = error.code
    found[name] = [code, (kib("VmHWM") - before) * 1024]
print(json.dumps(found))
"""
)


def report(program: str, **case: Any) -> Any:
    case["options"] = {"batch_size": 4, "threads": 2, **case.get("options", {})}
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(case)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def camera(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Three photos of 6 million pixels, 3 to 6 MB each: baseline, without subsampling, progressive.
    A progressive one takes 36 MiB of coefficients."""
    folder = tmp_path_factory.mktemp("camera")
    rng = np.random.default_rng(0)
    photo = Image.fromarray(rng.integers(40, 216, (2000, 3000, 3), dtype=np.uint8))
    buffer, ImageFile.MAXBLOCK = ImageFile.MAXBLOCK, 1 << 25
    photo.save(folder / "0.jpg", quality=70)
    photo.save(folder / "1.jpg", quality=70, subsampling=0)
    photo.save(folder / "2.jpg", quality=60, subsampling=0, progressive=True)
    ImageFile.MAXBLOCK = buffer
    return [str(path) for path in sorted(folder.iterdir())]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """200 photos of 24 x 24."""
    folder = tmp_path_factory.mktemp("tiny")
    rng = np.random.default_rng(1)
    for number in range(200):
        pixels = rng.integers(0, 256, (24, 24, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:03}.jpg", progressive=number % 5 == 0)
    return [str(path) for path in sorted(folder.iterdir())]


@pytest.mark.parametrize(
    ("limit_mib", "case"),
    [
        (160, {"options": {"threads": 2}, "records": 30}),
        (160, {"options": {"threads": 8}, "records": 18}),
        (160, {"steps": "between", "records": 12}),
        (160, {"steps": "measured", "options": {"threads": 8}, "records": 18}),
        (160, {"steps": "seldom between", "options": {"threads": 8}, "records": 18}),
        (224, {"steps": "python", "records": 12}),
        (160, {"object": True, "records": 12}),
    ],
    ids=[
        "two threads",
        "eight threads",
        "pixels in between",
        "measured",
        "seldom",
        "python step",
        "python object",
    ],
)
def test_the_process_stays_within_the_limit(
    limit_mib: int, case: dict[str, Any], camera: list[str], tiny: list[str]
) -> None:
    options = {**case.get("options", {}), "memory_limit": f"{limit_mib} MiB"}
    paths = (camera * 10)[: case["records"]]
    consumers = 2 * 4 * 3 * 64 * 64  # its batch, and the previous one
    if case.get("object"):
        # bytes allocated by Python
        consumers += 2 * max(Path(path).stat().st_size for path in paths)
    threads = case.get("options", {}).get("threads", 2)

    def check() -> None:
        found = report(LIMIT, **{**case, "options": options}, paths=paths, tiny=tiny[0])
        assert found["records"] == 2 * len(paths)
        assert found["growth"] <= 1.05 * limit_mib * MIB + consumers
        assert found["peak"] <= limit_mib * MIB
        # Everything large goes back to the system; of blocks below a mebibyte, malloc keeps some
        # per thread that existed.
        assert found["left"] <= max(16, 3 * threads) * MIB

    with_attempts(check)


@pytest.mark.parametrize(
    ("steps", "most_mib"),
    # Python's allocator takes mebibytes; leaking every picture would take 17 of them.
    [("fused", 1), ("tiny between", 1), ("python", 4)],
)
def test_nothing_grows_with_the_epochs(steps: str, most_mib: int, tiny: list[str]) -> None:
    options = {"batch_size": 32}

    def check() -> None:
        found = report(EPOCHS, steps=steps, paths=tiny, options=options)
        assert found["growth"] < most_mib * MIB

    with_attempts(check)


def test_dropped_loaders_free_their_memory(tiny: list[str]) -> None:
    def check() -> None:
        found = report(LEFTOVERS, paths=tiny, steps="python")
        assert found["after"] == found["before"]  # open files, threads
        assert found["growth"] < 4 * MIB

    with_attempts(check)


def test_images_that_steps_enlarge_too_much_are_refused_before_allocation() -> None:
    """Memory is reserved for the header's size; the decoded picture may be a thousand times as
    large."""

    def check() -> None:
        found = report(ENLARGED, options={"memory_limit": "64 MiB", "batch_size": 1, "threads": 1})
        codes = {name: code for name, (code, _) in found.items()}
        listed = dict.fromkeys(("listed", "open"), "HR0707")
        assert codes == listed | dict.fromkeys(("warped", "mirrored", "mixed", "python"), "HR0127")
        for name, (_, growth) in found.items():
            assert growth < 1.05 * 64 * MIB, name

    with_attempts(check)


def test_a_limit_that_is_too_small_names_one_that_suffices(tiny: list[str]) -> None:
    def make(limit: str) -> hr.Loader:
        source = hr.records(image=tiny)
        return hr.Loader(
            source, [T.Resize((256, 256))], batch_size=64, threads=3, memory_limit=limit
        )

    with pytest.raises(hr.ConfigError) as caught:
        make("20 MiB")
    error = caught.value
    assert error.code == "HR0702"
    assert "memory_limit is 20 MiB" in str(error) and "2 batches of 12 MiB, 3 threads" in str(error)
    for way in ("memory_limit", "batch_size", "threads"):
        assert way in error.hint
    least = re.search(r"the minimum here is (\d+) MiB", str(error))
    assert least
    with make(f"{least[1]} MiB") as enough:
        records = 0
        for batch in enough:
            records += len(batch.image)
            del batch  # two slots: one is filled while the other is used
        assert records == len(tiny)
    with pytest.raises(hr.ConfigError):
        make(f"{int(least[1]) - 1} MiB")


def test_batches_held_by_the_consumer_do_not_count_and_the_limit_holds(tiny: list[str]) -> None:
    source = hr.records(image=tiny)
    options: dict[str, Any] = {"batch_size": 4, "threads": 2, "memory_limit": "32 MiB"}
    loader = hr.Loader(source, [T.Resize((200, 200))], **options)
    with pytest.warns(match="held by the consumer") as warned:
        kept = list(loader)
    assert len(warned) == 1
    size = sum(batch.image.nbytes for batch in kept)
    assert size > 22 * MIB and loader.stats().copies > 0
    assert loader.stats().memory_peak <= 32 * MIB
    again = hr.Loader(source, [T.Resize((200, 200))], **options)
    for batch, expected in zip(kept, again, strict=True):
        np.testing.assert_array_equal(batch.image, expected.image)
