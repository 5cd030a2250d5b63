# SPDX-License-Identifier: Apache-2.0
"""`./dev reliability`: each trial runs and passes; one that fails is counted, shown and reflected
in the exit code."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import random
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from timing import with_longer_limits

FOLDER = Path(__file__).parent.parent / "bench" / "reliability"
TRIALS = (
    *("mutated", "flipped", "bombs", "hostile", "bad-records", "bad-cost", "unreadable"),
    *(
        "messages",
        "pixels",
        "full-disk",
        "device-lost",
        "resumed",
        "ranks",
        "killed",
        "interrupted",
        "exits",
        "forked",
        "reopened",
        "soak",
        "limited",
    ),
)
SHORT = 0.0002  # hours; each trial runs at least once


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports a module of the command."""
    monkeypatch.delitem(sys.modules, "forked", raising=False)  # the tests have one, too
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(FOLDER), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=3600)


@pytest.mark.parametrize("name", TRIALS)
def test_every_trial_passes(name: str, tmp_path: Path) -> None:
    kept = tmp_path / "results.json"
    done = run(name, "--hours", SHORT, "--patience", 60, "--json", kept)
    assert done.returncode == 0, done.stdout + done.stderr
    (result,) = json.loads(kept.read_text())["trials"]
    assert result["failed"] == 0 and result["failures"] == []
    if name == "full-disk" and result["figures"].get("not_run"):
        pytest.skip(result["figures"]["not_run"])
    assert result["inputs"] > 0


def test_an_unknown_trial_name_lists_the_trials() -> None:
    done = run("sunk")
    assert done.returncode == 2
    assert all(name in done.stderr for name in TRIALS)


def attempt_of(modules: Any, folder: Path) -> Any:
    return modules("trial").Attempt(folder, 3, 60.0, random.Random(1))


def test_a_silent_change_is_found(modules: Any, tmp_path: Path, monkeypatch: Any) -> None:
    flipped = modules("flipped")
    values = iter([[[("x", b"1")]], [[("x", b"2")]]])  # intact, then changed without an error
    monkeypatch.setattr(flipped, "values_of", lambda _: next(values))
    file = tmp_path / "file"
    file.write_bytes(b"12345678")
    attempt = attempt_of(modules, tmp_path)
    assert not flipped.flip(attempt, file, flipped.values_of(file))
    assert attempt.failed == 1 and "no error" in attempt.failures[0]
    assert file.read_bytes() == b"12345678"


def test_a_crash_is_a_failure_and_the_other_results_are_read(modules: Any, tmp_path: Path) -> None:
    mutated, child = modules("mutated"), modules("child")
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "read_mutated.py").write_text(
        "import os, sys\n"
        "for n in range(int(sys.argv[2]), int(sys.argv[2]) + int(sys.argv[3])):\n"
        "    os.abort() if n == 2 else print(n, 'read', flush=True)\n"
    )
    before, child.PROGRAMS = child.PROGRAMS, programs
    try:
        attempt = attempt_of(modules, tmp_path)
        told = mutated.read(attempt, tmp_path / "seed", 0, 5)
    finally:
        child.PROGRAMS = before
    assert attempt.failed == 1 and "ends by -6" in attempt.failures[0]
    assert sorted(told) == [0, 1, 2, 3, 4]


def test_refused_allocations_are_tried_in_a_separate_program(
    modules: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(modules("refused"), "OPERATIONS", ("open a folder",))
    monkeypatch.setattr(modules("refused"), "BATCH", 10)
    attempt = attempt_of(modules, tmp_path)
    attempt.until = 0  # ends after one process
    modules("refused").run(attempt)
    assert attempt.inputs == 10 and sum(attempt.figures["outcomes"].values()) == 10
    assert attempt.figures["outcomes"]["MemoryError"] > 0
    assert attempt.target == 2 * attempt.figures["allocations"]["open a folder"] > 40


@pytest.mark.parametrize(
    ("per_refusal", "once", "leaks"), [(0, 0, False), (0, 16, False), (1, 16, True)]
)
def test_objects_left_by_each_refusal_are_a_leak_and_those_made_once_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, per_refusal: int, once: int, leaks: bool
) -> None:
    objects = [100]

    def faults(*_: object) -> Any:
        return contextlib.nullcontext()

    def operation() -> str:
        objects[0] += per_refusal
        return ""

    stub = SimpleNamespace(ALLOCATIONS=1, EVER=9, faults=faults, live=lambda: objects[0])
    monkeypatch.setitem(sys.modules, "faults", stub)
    monkeypatch.setattr(sys, "argv", ["refused", str(tmp_path)])
    path = FOLDER / "programs" / "refused.py"
    spec = importlib.util.spec_from_file_location("refused_program", path)
    assert spec and spec.loader
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    objects[0] += once + per_refusal
    assert program.leaked(operation, 1, 1, 100) is leaks


def test_crashes_hangs_and_wrong_values_under_faults_are_failures(
    modules: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preloaded, child = modules("preloaded"), modules("child")
    (tmp_path / "failing.py").write_text(
        "import os, sys, time\n"
        "for n in range(int(sys.argv[2]), int(sys.argv[2]) + int(sys.argv[3])):\n"
        "    print('next', n, f'fault {n}', flush=True)\n"
        "    if n == 1: os.abort()\n"
        "    if n == 2: time.sleep(1000)\n"
        "    print('done', n, 'WRONG: other values' if n == 3 else 'MemoryError', flush=True)\n"
    )
    monkeypatch.setattr(child, "PROGRAMS", tmp_path)

    def check(limit: float) -> None:
        monkeypatch.setattr(preloaded, "PATIENCE", limit)
        attempt = attempt_of(modules, tmp_path)
        found = preloaded.run(attempt, tmp_path / "none.so", "failing", ["x"], 5, "made up")
        assert attempt.inputs == 5 and attempt.failed == 3
        assert found == {"MemoryError": 2, "WRONG": 1, "ends by -6": 1, "hangs": 1}
        assert attempt.failures[0].startswith("made up, 1 fault 1: ends by -6")
        assert attempt.failures[1].startswith("made up, 2 fault 2: hangs")
        assert attempt.failures[2] == "made up, 3 fault 3: WRONG: other values"

    with_longer_limits(check, (2, 10, 60))


def fuzz_target(folder: Path, name: str, runs: int, code: int) -> None:
    """A program that ends like a fuzz target, and keeps its options."""
    target = folder / f"{name}_fuzz"
    target.write_text(
        f"#!/bin/sh\necho $@ >{folder}/{name}.options\n"
        f"echo 'stat::number_of_executed_units: {runs}' >&2\n"
        f"echo 'ERROR: heap-buffer-overflow' >&2\nexit {code}\n"
    )
    target.chmod(0o755)


def test_the_least_tried_fuzz_target_counts(
    modules: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fuzzed = modules("fuzzed")
    monkeypatch.setattr(fuzzed, "build", lambda preset: tmp_path)
    fuzz_target(tmp_path, "fast", 7, 0)
    fuzz_target(tmp_path, "slow", 2, 0)
    attempt = attempt_of(modules, tmp_path)
    attempt.target = 5
    fuzzed.run(attempt)
    assert attempt.failed == 0
    assert attempt.inputs == 6 and attempt.figures["least_tried"] == "slow_fuzz"
    assert attempt.figures["all_targets"] == 13  # the fast one had enough after a round
    options = (tmp_path / "slow.options").read_text()
    assert "-rss_limit_mb=512 -timeout=1 " in options


def test_a_finding_is_a_failure_and_ends_its_fuzz_target(
    modules: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fuzzed = modules("fuzzed")
    monkeypatch.setattr(fuzzed, "build", lambda preset: tmp_path)
    fuzz_target(tmp_path, "good", 5, 0)
    fuzz_target(tmp_path, "bad", 2, 77)
    attempt = attempt_of(modules, tmp_path)
    attempt.target = 10
    fuzzed.run(attempt)
    assert attempt.inputs == 2 and attempt.failed == 1
    assert "bad_fuzz" in attempt.failures[0] and "heap-buffer-overflow" in attempt.failures[0]


def test_fuzz_targets_that_cannot_be_built_fail_the_trial(
    modules: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(modules("built"), "ROOT", tmp_path)  # which has no presets
    with pytest.raises(RuntimeError, match="cmake --preset fuzz: "):
        modules("fuzzed").run(attempt_of(modules, tmp_path))
    monkeypatch.setattr(modules("fuzzed"), "build", lambda preset: tmp_path)
    attempt = attempt_of(modules, tmp_path)
    modules("fuzzed").run(attempt)
    assert attempt.inputs == 0 and "no fuzz targets" in attempt.failures[0]


def test_a_race_is_a_failure(modules: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    races = modules("races")
    program = tmp_path / "races"
    program.write_text(
        "#!/bin/sh\ntest $2 = 8 || { echo 3; exit 0; }\n"
        "echo ================== >&2; echo 'WARNING: ThreadSanitizer: data race' >&2\nexit 66\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(races, "compiled", lambda folder: program)
    attempt = attempt_of(modules, tmp_path)
    attempt.until = 0
    races.run(attempt)
    assert attempt.failed == 1 and attempt.figures["loaders"] == 12
    assert attempt.failures[0].startswith("8 threads, seed ")
    assert attempt.failures[0].endswith("66: WARNING: ThreadSanitizer: data race")


def test_other_pixels_are_a_failure(
    modules: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pixels = modules("pixels")
    decoded = pixels.decoded

    def one_off(data: bytes, **more: Any) -> Any:
        found = decoded(data, **more).copy()
        found[0, 0, 0] ^= 2
        return found

    for wrong, what in ((False, "other pixels"), (True, "resized, ")):
        monkeypatch.setattr(
            pixels,
            "decoded",
            lambda data, wrong=wrong, **more: (one_off if bool(more) == wrong else decoded)(
                data, **more
            ),
        )
        attempt = attempt_of(modules, tmp_path)
        pixels.run(attempt)
        assert attempt.failed == attempt.inputs == 3
        assert all(what in failure for failure in attempt.failures)


def test_a_message_without_a_file_is_a_failure_and_one_without_a_hint_is_counted(
    modules: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages, child = modules("messages"), modules("child")
    (tmp_path / "messages.py").write_text(
        "import json, sys\n"
        "good = {'code': 'HR1', 'file': True, 'offset': True, 'hint': True, 'text': 'cut'}\n"
        "for more in ({}, {'file': False}, {'hint': False}):\n"
        "    print(json.dumps({**good, **more}))\n"
    )
    monkeypatch.setattr(child, "PROGRAMS", tmp_path)
    monkeypatch.setattr(messages.mutated, "seed_files", lambda _: iter([tmp_path / "image.png"]))
    attempt = attempt_of(modules, tmp_path)
    messages.run(attempt)
    assert attempt.inputs == 3 and attempt.failures == ["image.png: no file: cut"]
    assert attempt.figures["short_of_the_target"] == "1 have no hint"
    assert attempt.figures["without"] == {"HR1 hint": 1}


def test_lost_workers_are_counted_with_their_epochs(
    modules: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost_workers, child = modules("lost_workers"), modules("child")
    (tmp_path / "lost_workers.py").write_text(
        "print('batch 0.1\\nkilled 1\\nbatch 9.0\\nwrong 1\\nkilled 1')\n"
    )
    monkeypatch.setattr(child, "PROGRAMS", tmp_path)
    monkeypatch.setattr(lost_workers, "python_with_ray", lambda: Path(sys.executable))
    attempt = attempt_of(modules, tmp_path)
    lost_workers.run(attempt)
    assert attempt.inputs == 2 and attempt.figures["batches"] == 2
    assert "other batches in epoch 1" in attempt.failures[0]
    assert "1 % of batches take 8.9 s" in attempt.failures[1]


def test_what_is_opened_or_made_outside_is_seen(modules: Any, tmp_path: Path) -> None:
    hostile = modules("hostile")
    (tmp_path / "secret").write_text("x")
    watch = hostile.Watch(tmp_path)
    assert watch.seen() == []
    (tmp_path / "secret").read_text()
    (tmp_path / "made").mkdir()
    assert {"secret", "made"} <= set(watch.seen())
    assert watch.seen() == []
    watch.close()


def test_an_archive_that_is_followed_out_of_its_folder_is_a_failure(
    modules: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that would follow names that lead out, and deliver what it finds."""
    hostile, child = modules("hostile"), modules("child")
    (tmp_path / "read_archive.py").write_text(
        "import pathlib, sys\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "data = (folder / '../secret.jpg').read_bytes()\n"
        "(folder.parent / 'executed').mkdir()\n"
        "pathlib.Path(sys.argv[2]).mkdir()\n"
        "(pathlib.Path(sys.argv[2]) / 'leak').write_bytes(data)\n"
        'print(\'{"outcomes": ["UNNAMED x"], "leaked": true}\')\n'
    )
    monkeypatch.setattr(child, "PROGRAMS", tmp_path)
    attempt = attempt_of(modules, tmp_path)
    attempt.target = 1
    hostile.run(attempt)
    assert attempt.inputs == 1
    found = " ".join(attempt.failures)
    for part in ("'secret.jpg'] outside opened", "made ", "the secret is in", "was delivered"):
        assert part in found
    assert attempt.failed == 5  # and the error without a code


def test_a_bomb_that_takes_memory_is_named_and_a_large_one_is_a_failure(
    modules: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bombs, child = modules("bombs"), modules("child")
    (tmp_path / "read_hostile.py").write_text(
        "import pathlib, sys\n"
        "size = 600 << 20 if sys.argv[2].endswith('.jpg') else 100 << 20\n"
        'print(f\'{{"outcome": "read", "bytes": {size}, "ms": 1.0}}\')\n'
    )
    monkeypatch.setattr(child, "PROGRAMS", tmp_path)
    names = ("JPEG of 4 gigapixels", "PPM of 4 gigapixels")
    monkeypatch.setattr(bombs, "MAKERS", {name: bombs.MAKERS[name] for name in names})
    attempt = attempt_of(modules, tmp_path)
    attempt.target = 2
    bombs.run(attempt)
    assert attempt.failures == ["JPEG of 4 gigapixels: read, and 629 MB of memory"]
    assert attempt.figures["above_64_MiB_(bytes)"] == {names[0]: 600 << 20, names[1]: 100 << 20}


def test_without_root_full_disks_are_not_tried_and_the_figures_say_so(
    modules: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full_disk = modules("full_disk")
    monkeypatch.setattr(full_disk.os, "geteuid", lambda: 1000)
    attempt = attempt_of(modules, tmp_path)
    full_disk.run(attempt)
    assert attempt.inputs == 0 and "root" in attempt.figures["not_run"]


def command_of(modules: Any) -> Any:
    """bench/reliability/__main__.py, whose imports are found because `modules` adds its folder."""
    spec = importlib.util.spec_from_file_location("reliability_command", FOLDER / "__main__.py")
    assert spec and spec.loader
    command = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(command)
    return command


def result_of(name: str, **more: Any) -> dict[str, Any]:
    return {
        **{"name": name, "promise": "It swims", "unit": "ships", "inputs": 3, "target": 5},
        **{
            "seconds": 360.0,
            "failed": 0,
            "failures": [],
            "figures": {},
            "command": f"./dev reliability {name}",
        },
        **{"date": "2026-01-01", "commit": "abc", **more},
    }


def test_the_page_has_each_target_with_its_figure_or_not_measured(
    modules: Any, tmp_path: Path
) -> None:
    page, trial = modules("page"), modules("trial")
    trials = [
        trial.Trial(name, "It swims", 5, "ships", print, targets=targets)
        for name, targets in (("sunk", ("R1", "R2")), ("afloat", ("R2",)), ("skipped", ("R3",)))
    ]
    for result in (
        result_of("sunk", failed=1, failures=["ship 2: sank"], figures={"deepest_metres": 11_000}),
        result_of("afloat", figures={"short_of_the_target": "too slow"}),
        result_of("skipped", inputs=0, figures={"not_run": "no sea"}),
    ):
        page.keep(result, tmp_path / "kept")
    text = page.text(trials, page.kept(tmp_path / "kept"))
    row = "| `sunk` | It swims | 3 of 5 ships | 1 | deepest metres 11,000 | 2026-01-01 | `abc` |"
    assert row in text
    assert "- `sunk`: ship 2: sank" in text
    rest = "`./dev reliability sunk`, 10 min"
    cells = f"| `./dev reliability sunk` | 3 of 5 ships, 1 failed | {rest} | 2026-01-01 | `abc` |\n"
    assert text.count(cells) == 2
    short = "3 of 5 ships, 0 failed; short of the target: too slow | `./dev reliability afloat`, "
    assert f"| | | `./dev reliability afloat` | {short}" in text
    assert "`skipped`" not in text
    assert "| R3 | " in text and "| | not measured | `./dev reliability skipped` | | |\n" in text
    assert "| | not measured | `./dev coverage` " in text
    unmeasured = text.count("| | not measured | ")
    assert unmeasured == len(page.TARGETS) - 2


def test_the_page_in_the_documentation_is_made_of_the_kept_results(modules: Any) -> None:
    command, page = command_of(modules), modules("page")
    kept = page.kept()
    assert set(kept) <= {trial.name for trial in command.TRIALS}
    named = {target for trial in command.TRIALS for target in trial.targets}
    assert named <= set(page.TARGETS) and len(page.TARGETS) == 24
    written = FOLDER.parents[1] / "docs" / "internals" / "reliability.md"
    assert written.read_text() == page.text(command.TRIALS, kept)


def test_a_failing_trial_sets_the_exit_code(
    modules: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kept = tmp_path / "results.json"
    command = command_of(modules)
    trial = modules("trial").Trial("sunk", "It swims", 1, "ships", lambda one: one.fails("sank"))
    monkeypatch.setattr(command, "TRIALS", (trial,))
    monkeypatch.setattr(sys, "argv", ["reliability", "--json", str(kept)])
    assert command.main() == 1
    assert json.loads(kept.read_text())["trials"][0]["failures"] == ["sank"]
