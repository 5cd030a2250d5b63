# SPDX-License-Identifier: Apache-2.0
"""Python transforms in worker processes: the same batches, and no leftover processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import worker_steps as steps
from digests import epoch_hash
from headrace.readable import is_readable
from timing import PATIENCE

import headrace as hr
from headrace import transforms as T

SMALL = T.Resize((8, 8))


def children() -> set[int]:
    """Processes that this one has started and that are not yet reaped."""
    tasks = Path("/proc/self/task").glob("*/children")
    return {int(pid) for task in tasks for pid in task.read_text().split()}


def descriptors() -> list[str]:
    """The file descriptors of this process that could be the workers'."""
    links = [os.readlink(path) for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
    return sorted(link for link in links if link.startswith(("socket:", "pipe:", "/memfd:")))


@pytest.fixture(autouse=True)
def nothing_is_left_over() -> Iterator[None]:
    processes, files = children(), descriptors()
    yield
    assert children() <= processes
    assert not Counter(descriptors()) - Counter(files)


def test_batches_are_the_same_for_any_number_of_workers(pictures: Path) -> None:
    def run(**changes: Any) -> list[str]:
        pipeline = [T.RandomResizedCrop(16), steps.noise, T.RandomHorizontalFlip(), steps.noise]
        options = {"batch_size": 5, "shuffle": True, "seed": 3, **changes}
        with hr.Loader(pictures, pipeline, **options) as loader:
            return [epoch_hash(loader), epoch_hash(loader)]

    expected = run()
    assert expected[0] != expected[1]
    for workers in (1, 2):
        assert run(python_workers=workers) == expected
    assert run(python_workers=2, threads=4) == expected


def test_a_run_resumes_with_another_number_of_workers(pictures: Path) -> None:
    def loader(workers: int) -> hr.Loader:
        return hr.Loader(
            pictures, [SMALL, steps.noise], batch_size=4, shuffle=True, python_workers=workers
        )

    with loader(0) as whole, loader(2) as first, loader(1) as second:
        expected = [batch.image.copy() for batch in whole]
        iterator = iter(first)
        got = [next(iterator).image.copy() for _ in range(2)]
        second.load_state_dict(first.state_dict())
        got += [batch.image.copy() for batch in second]
    np.testing.assert_array_equal(np.concatenate(got), np.concatenate(expected))


def test_a_batch_by_number_equals_that_of_the_iteration(pictures: Path) -> None:
    with hr.Loader(pictures, [SMALL, steps.noise], batch_size=4, python_workers=1) as loader:
        by_number = loader.batch(0, 2).image.copy()
        np.testing.assert_array_equal(list(loader)[2].image, by_number)
        assert len(loader.trace(0)) == 3


def test_steps_run_in_the_requested_number_of_processes(pictures: Path) -> None:
    step = T.Python(steps.with_process, returns={"process": ("int64", ())})
    options: dict[str, Any] = {"batch_size": 4, "python_workers": 2}
    before = children()  # of other tests
    with hr.Loader(pictures, [SMALL, step], **options) as loader:
        seen = {int(pid) for _ in range(4) for batch in loader for pid in batch.process}
        counted = loader.stats()["python_workers"]
        assert os.getpid() not in seen
        assert seen <= set(counted["processes"]) == children() - before
        assert len(counted["processes"]) == 2
        assert counted["records"] == 4 * 23 and 0 < counted["messages"] <= 4 * 23
        assert loader.stats()["stages"]["python"] > 0
        assert "2" in repr(loader).split("python_workers")[1].splitlines()[0]


def test_nested_steps_run_in_workers_too(pictures: Path) -> None:
    def run(workers: int) -> np.ndarray[Any, Any]:
        nested = [SMALL, T.RandomApply([steps.noise], p=0.5)]
        with hr.Loader(pictures, nested, batch_size=23, python_workers=workers) as loader:
            image = next(iter(loader)).image.copy()
            assert bool(loader.stats()["python_workers"]["records"]) == bool(workers)
        return image

    np.testing.assert_array_equal(run(1), run(0))


def test_text_bytes_and_numbers_can_be_passed() -> None:
    vector = np.arange(300.0)
    records = [{"text": f"äb{i}", "data": bytes([i, 0]), "vector": vector} for i in range(3)]
    with hr.Loader(records, [steps.words], batch_size=3, python_workers=1) as loader:
        batch = next(iter(loader))
    assert batch.text == ["0bä", "1bä", "2bä"]
    assert batch.data == [b"\0\0", b"\0\1", b"\0\2"]
    np.testing.assert_array_equal(batch.vector, [vector * 2] * 3)


def test_steps_may_modify_their_arguments(pictures: Path) -> None:
    with hr.Loader(pictures, [SMALL, steps.overwrite], batch_size=23, python_workers=1) as loader:
        assert (next(iter(loader)).image == 7).all()


def test_errors_equal_those_of_the_step_in_process(pictures: Path) -> None:
    def text(step: Any, workers: int) -> str:
        options: dict[str, Any] = {"batch_size": 4, "python_workers": workers}
        with (
            pytest.raises(hr.DataError) as caught,
            hr.Loader(pictures, [SMALL, step], **options) as loader,
        ):
            list(loader)
        return str(caught.value)

    assert "RuntimeError: no dogs" in text(steps.picky, 1)
    assert f"{steps.__file__}, line" in text(steps.picky, 1)
    assert "complex64" in text(steps.complex_numbers, 1)
    assert "SystemExit: 4" in text(steps.ask_to_exit, 1)
    for step in (steps.picky, steps.complex_numbers, steps.ask_to_exit):
        assert text(step, 1) == text(step, 0)


def test_bad_records_follow_the_policy(pictures: Path) -> None:
    options: dict[str, Any] = {"on_error": "skip", "error_budget": 100, "python_workers": 2}
    with hr.Loader(pictures, [SMALL, steps.picky], batch_size=4, **options) as loader:
        assert {int(label) for batch in loader for label in batch.label} == {0, 2}


@pytest.mark.parametrize(
    ("step", "end"),
    [
        (steps.kill_itself, "was ended by SIGKILL"),
        (steps.crash, "was ended by SIGSEGV"),
        (steps.leave, "exited with status 3"),
    ],
)
def test_a_worker_that_dies_ends_the_run(pictures: Path, step: Any, end: str) -> None:
    options: dict[str, Any] = {"on_error": "skip", "python_workers": 2}
    with (
        pytest.raises(hr.StorageError, match=end) as caught,
        hr.Loader(pictures, [SMALL, step], batch_size=4, **options) as loader,
    ):
        list(loader)
    assert caught.value.code == "HR0833"
    assert f"[{step.__name__}] worker " in str(caught.value)
    assert "python_workers=0" in caught.value.hint


def test_a_dead_worker_is_replaced(pictures: Path, tmp_path: Path) -> None:
    step = steps.Once(tmp_path / "died")
    with hr.Loader(pictures, [SMALL, step], batch_size=4, python_workers=1) as loader:
        with pytest.raises(hr.StorageError, match="exited with status 9"):
            list(loader)
        assert sum(len(batch.image) for batch in loader) == 23


def test_a_worker_killed_from_outside_is_replaced(pictures: Path) -> None:
    with hr.Loader(pictures, [SMALL, steps.same], batch_size=4, python_workers=1) as loader:
        list(loader)
        (process,) = loader.stats()["python_workers"]["processes"]
        os.kill(process, signal.SIGKILL)
        with pytest.raises(hr.StorageError, match="SIGKILL"):
            list(loader)
        assert sum(len(batch.image) for batch in loader) == 23


def test_shared_memory_has_the_size_of_the_largest_message() -> None:
    records = [{"image": np.full((3, 200, 200), i, np.uint8)} for i in range(240)]
    with hr.Loader(records, [steps.same], batch_size=120, python_workers=1) as loader:
        for _ in range(3):
            images = np.concatenate([batch.image.copy() for batch in loader])
            assert (images == np.arange(240, dtype=np.uint8).reshape(-1, 1, 1, 1)).all()
        # 4 MiB of arrays per message, rounded up to a record, in either direction.
        assert loader.stats()["python_workers"]["shared_bytes"] < 2 * (4 << 20) + (1 << 20)


def test_steps_that_cannot_be_pickled_are_refused_before_anything_starts(pictures: Path) -> None:
    def local(image: Any) -> Any:
        return image

    for step in (lambda image: image, local, T.RandomApply([local])):
        with pytest.raises(hr.ConfigError, match="at the top of a module") as caught:
            hr.Loader(pictures, [SMALL, step], batch_size=4, python_workers=1)
        assert caught.value.code == "HR0830"
    hr.Loader(pictures, [SMALL, local], batch_size=4).close()
    with pytest.raises(hr.ConfigError, match="python_workers"):
        hr.Loader(pictures, [SMALL], batch_size=4, python_workers=-1)


def test_no_process_starts_without_a_step_in_python_or_an_iteration(pictures: Path) -> None:
    with hr.Loader(pictures, [SMALL], batch_size=4, python_workers=2) as loader:
        list(loader)
        assert not loader.stats()["python_workers"]["processes"]
    with hr.Loader(pictures, [SMALL, steps.same], batch_size=4, python_workers=2) as loader:
        assert len(loader) == 6
        assert not loader.stats()["python_workers"]["processes"]


def test_close_ends_a_step_that_hangs(pictures: Path) -> None:
    loader = hr.Loader(pictures, [SMALL, steps.hang], batch_size=4, python_workers=2)
    iter(loader)
    loader.close()


def test_an_abandoned_loader_ends_its_workers(pictures: Path) -> None:
    loader = hr.Loader(pictures, [SMALL, steps.same], batch_size=4, python_workers=1)
    list(loader)
    del loader


# Scripts.

HEAD = """
import os, signal, sys
import numpy as np
import headrace as hr
from headrace import transforms as T
sys.path.insert(0, {tests!r})
import worker_steps as steps
"""


def start(tmp_path: Path, body: str) -> subprocess.Popen[str]:
    script = tmp_path / "script.py"
    head = HEAD.format(tests=str(Path(__file__).parent))
    script.write_text(head + textwrap.dedent(body))
    return subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def wait_until_gone(pids: list[int]) -> None:
    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        assert is_readable(descriptor, PATIENCE), f"process {pid} is still there"
        os.close(descriptor)


def test_workers_work_in_a_process_with_many_open_files(tmp_path: Path) -> None:
    """select() does not support descriptors above 1023."""
    run = start(
        tmp_path,
        """
        import resource
        if __name__ == "__main__":
            hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
            held = [os.open("/dev/null", os.O_RDONLY) for _ in range(1100)]
            source = hr.records(image=np.zeros((8, 3, 4, 4), np.uint8))
            loader = hr.Loader(source, [steps.same], batch_size=4, python_workers=1)
            print(sum(len(batch[0]) for batch in loader))
        """,
    )
    out, err = run.communicate(timeout=300)
    assert out.split() == ["8"], err


def test_a_function_of_the_main_script_is_found(tmp_path: Path) -> None:
    run = start(
        tmp_path,
        """
        def double(x):
            return x * 2

        if __name__ == "__main__":
            records = [{"x": np.float32([i])} for i in range(6)]
            loader = hr.Loader(records, [double], batch_size=3, python_workers=1)
            print([batch.x.ravel().tolist() for batch in loader])
        """,
    )
    out, err = run.communicate(timeout=300)
    assert out == "[[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]\n", err
    assert err == "" and run.returncode == 0


def test_a_script_without_a_guard_gets_an_error(tmp_path: Path) -> None:
    run = start(
        tmp_path,
        """
        def double(x):
            return x * 2

        list(hr.Loader([{"x": np.ones(2)}] * 4, [double], batch_size=2, python_workers=2))
        """,
    )
    _, err = run.communicate(timeout=300)
    assert run.returncode == 1
    assert "HR0832" in err.splitlines()[-2] and "__name__ == '__main__'" in err.splitlines()[-1]


def test_a_function_defined_at_a_prompt_is_refused(tmp_path: Path) -> None:
    code = HEAD.format(tests=str(Path(__file__).parent)) + textwrap.dedent(
        """
        def double(x):
            return x * 2
        hr.Loader([{"x": np.ones(2)}] * 4, [double], batch_size=2, python_workers=2)
        """
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert "HR0830" in done.stderr and "at a prompt" in done.stderr


HANGING = """
if __name__ == "__main__":
    from pathlib import Path
    records = [{{"image": np.zeros((3, 4, 4), np.uint8)}}] * 8
    loader = hr.Loader(records, [steps.HoldTheGil(Path({told!r}))], batch_size=4, python_workers=2)
    iterator = iter(loader)
    print(*loader.stats()["python_workers"]["processes"], flush=True)
    {last}
"""


@pytest.mark.parametrize("signal_sent", [signal.SIGINT, signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_the_process(tmp_path: Path, signal_sent: signal.Signals) -> None:
    run = start(tmp_path, HANGING.format(told=str(tmp_path / "told"), last="next(iterator)"))
    assert run.stdout
    pids = [int(pid) for pid in run.stdout.readline().split()]
    assert len(pids) == 2
    while not (tmp_path / "told").exists():  # a worker is inside the step
        assert run.poll() is None
    run.send_signal(signal_sent)
    _, err = run.communicate(timeout=300)
    wait_until_gone(pids)
    assert ("KeyboardInterrupt" in err) == (signal_sent == signal.SIGINT)


def test_workers_end_when_the_interpreter_exits(tmp_path: Path) -> None:
    run = start(tmp_path, HANGING.format(told=str(tmp_path / "told"), last="sys.exit(5)"))
    out, err = run.communicate(timeout=300)
    assert run.returncode == 5, err
    wait_until_gone([int(pid) for pid in out.split()])


def test_workers_import_the_package_of_this_process() -> None:
    from headrace.workers.pool import _command

    folder = Path(hr.__file__).parents[1]
    assert (folder / "headrace" / "workers" / "process.py").is_file()
    assert any(f"sys.path.insert(0, {str(folder)!r})" in part for part in _command(3, 4))
