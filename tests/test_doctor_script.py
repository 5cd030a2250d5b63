# SPDX-License-Identifier: Apache-2.0
"""headrace doctor --script: typical scripts are measured, unmodified and unharmed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

import fork_server
import pytest
from processes import MAIN
from timing import with_longer_limits

pytest.importorskip("typer")
pytest.importorskip("torch")

LEFT_OUT = ("cold", "storage", "decode", "copy", "remedies")
QUICK = ("--seconds", "1.5", *(word for name in LEFT_OUT for word in ("--skip", name)))

HEAD = """
import time
import torch
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __init__(self, count=4000, seconds=0.0):
        self.count, self.seconds = count, seconds
    def __len__(self):
        return self.count
    def __getitem__(self, index):
        time.sleep(self.seconds)
        return torch.full((4,), float(index)), index % 3

torch.set_num_threads(1)
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)

def train_on(x, y, seconds=0.0):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
    time.sleep(seconds)
"""

OURS = """
import numpy as np
import headrace as hr

class Records:
    def __len__(self):
        return 64
    def __getitem__(self, index):
        return {"x": np.full(4, index, np.float32)}
"""


class Done(NamedTuple):
    code: int
    report: dict[str, Any]
    out: str
    err: str


def start(folder: Path, body: str, *options: str, head: str = HEAD) -> Any:
    """In an interpreter of its own, in which the script imports torch."""
    (folder / "train.py").write_text(head + textwrap.dedent(body))
    words = [sys.executable, "-m", "headrace", "doctor", "--json", "--script", "train.py"]
    return subprocess.Popen(
        [*words, *(options if "--seconds" in options else (*QUICK, *options))],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def examine_alone(folder: Path, body: str, *options: str, head: str = HEAD) -> Done:
    with start(folder, body, *options, head=head) as process:
        out, err = process.communicate(timeout=300)
    return Done(process.returncode, json.loads(out) if out else {}, out, err)


def examine(folder: Path, body: str, *options: str, head: str = HEAD) -> Done:
    """Where torch has been imported before."""
    (folder / "train.py").write_text(head + textwrap.dedent(body))
    words = ["doctor", "--json", "--script", "train.py", *QUICK, *options]
    done = fork_server.run(fork_server.TORCH, MAIN, *words, folder=folder, timeout=300)
    report = json.loads(done.stdout) if done.stdout else {}
    return Done(done.returncode, report, done.stdout, done.stderr)


def line_of(folder: Path, text: str) -> str:
    """The location of a script's line, as in the report."""
    lines = (folder / "train.py").read_text().splitlines()
    (number,) = [n for n, line in enumerate(lines, 1) if line.strip() == text]
    return f"train.py:{number}"


def assert_measured(done: Done) -> None:
    assert {"real", "cached", "ceiling", "loader"} <= set(done.report["rates"]), done
    assert done.report["stall_share"] is not None and done.report["wait_seconds"], done
    assert not done.report["failed"]


def notes(done: Done) -> str:
    return "\n".join(done.report["notes"])


# Typical scripts.


def test_a_plain_loop_is_measured_and_ended(tmp_path: Path) -> None:
    def check(seconds: float) -> None:
        done = examine_alone(
            tmp_path,
            """
            loader = DataLoader(Rows(seconds=0.02), batch_size=4, shuffle=True)
            for epoch in range(10 ** 6):
                for x, y in loader:
                    train_on(x, y)
            """,
            *QUICK,
            *("--seconds", str(seconds)),
        )
        assert_measured(done)
        assert done.report["script"]["loop"] == line_of(tmp_path, "for x, y in loader:")
        assert done.report["script"]["trains"]
        assert done.report["rates"]["real"] <= 50 < done.report["rates"]["cached"]
        assert done.report["verdict"] in ("workers", "storage", "unsure")
        assert done.code == (0 if done.report["verdict"] == "unsure" else 1)

    with_longer_limits(check, (1.5, 4, 16))


def test_a_slow_step_is_not_blamed_on_the_data(tmp_path: Path) -> None:
    def check(seconds: float) -> None:
        done = examine(
            tmp_path,
            """
            for x, y in DataLoader(Rows(), batch_size=2):
                train_on(x, y, 0.05)
            """,
            *("--seconds", str(seconds)),
        )
        assert_measured(done)
        assert done.report["verdict"] in ("consumer", "fed", "unsure") and done.code == 0
        assert done.report["stall_share"] < 0.5 and done.report["rates"]["ceiling"] <= 40

    with_longer_limits(check, (1.5, 4, 16))


TQDM = """
class tqdm:
    def __init__(self, iterable, **options):
        self.iterable = iterable
    def __iter__(self):
        for item in self.iterable:
            yield item
"""


@pytest.mark.parametrize(
    "loop",
    [
        "for i, (x, y) in enumerate(loader):",
        "for x, y in tqdm(loader, desc='train'):",
        "for (x, y), z in zip(loader, range(10 ** 9)):",
        "for x, y in Endless(Rows(), batch_size=4):",
    ],
)
def test_code_around_the_loader_does_not_affect_the_report(tmp_path: Path, loop: str) -> None:
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "tqdm.py").write_text(TQDM)
    done = examine(
        tmp_path,
        f"""
        import sys
        sys.path.insert(0, "site-packages")
        from tqdm import tqdm

        class Endless(DataLoader):  # as Ultralytics has it
            def __iter__(self):
                if not hasattr(self, "iterator"):
                    object.__setattr__(self, "iterator", self._get_iterator())
                for _ in range(len(self)):
                    yield next(self.iterator)

        loader = DataLoader(Rows(), batch_size=4)
        {loop}
            train_on(x, y, 0.002)
        """,
    )
    assert_measured(done)
    assert done.report["script"]["loop"] == line_of(tmp_path, loop)


def test_a_script_with_workers_a_main_guard_and_arguments_is_measured(tmp_path: Path) -> None:
    body = """
    import argparse, os, sys

    def main():
        parser = argparse.ArgumentParser()
        parser.add_argument("data")
        parser.add_argument("--workers", type=int)
        args = parser.parse_args()
        assert sys.argv[0] == "train.py" and args.data == "somewhere"
        assert sys.path[0] == os.path.dirname(os.path.abspath(__file__))
        loader = DataLoader(Rows(seconds=0.001), batch_size=8, num_workers=args.workers)
        while True:
            for x, y in loader:
                train_on(x, y)

    if __name__ == "__main__":
        main()
    """
    done = examine_alone(tmp_path, body, "--", "somewhere", "--workers", "2")
    assert_measured(done)
    assert "num_workers=2" in done.report["script"]["loader"]


def test_a_script_with_our_loader_is_measured(tmp_path: Path) -> None:
    done = examine_alone(
        tmp_path,
        """
        loader = hr.Loader(Records(), batch_size=4)
        for epoch in range(10 ** 6):
            for (x,) in loader.torch():
                model(x).sum().backward()
        """,
        head=OURS + "import torch\nmodel = torch.nn.Linear(4, 3)\n",
    )
    assert_measured(done)
    assert "batch_size=4" in done.report["script"]["loader"]


def test_a_script_that_closes_its_loader_is_still_examined(tmp_path: Path) -> None:
    done = examine(
        tmp_path,
        """
        with hr.Loader(Records(), batch_size=4) as loader:
            for epoch in range(10 ** 6):
                for (x,) in loader.torch():
                    model(x).sum().backward()
        """,
        head=OURS + "import torch\nmodel = torch.nn.Linear(4, 3)\n",
    )
    assert_measured(done)
    assert done.report["rates"]["loader"] > 0 and "closed" not in str(done.report["notes"])


def test_records_compared_in_a_migration_are_not_the_scripts_loop(tmp_path: Path) -> None:
    done = examine(
        tmp_path,
        """
        import headrace as hr
        rows = torch.utils.data.TensorDataset(torch.rand(64, 4))
        loader = hr.from_dataloader(torch.utils.data.DataLoader(rows, batch_size=4), verbose=False)
        for epoch in range(10 ** 6):
            for (x,) in loader.torch():
                model(x).sum().backward()
        """,
        head="import torch\nmodel = torch.nn.Linear(4, 3)\n",
    )
    assert_measured(done)
    assert done.report["script"]["other_loops"] == []


def test_a_program_without_torch_is_measured(tmp_path: Path) -> None:
    done = examine_alone(
        tmp_path,
        """
        import time
        loader = hr.Loader(Records(), batch_size=4)
        for epoch in range(10 ** 6):
            for batch in loader:
                time.sleep(0.001)
        """,
        head=OURS,
    )
    assert_measured(done)
    assert not done.report["script"]["trains"]


def test_validation_and_statistics_are_not_mistaken_for_training(tmp_path: Path) -> None:
    done = examine(
        tmp_path,
        """
        loader = DataLoader(Rows(count=40), batch_size=4)
        for i, (x, y) in enumerate(loader):
            if i == 3:
                break
        checks = DataLoader(Rows(count=2000, seconds=0.0005), batch_size=4)
        model.eval()
        with torch.no_grad():
            for x, y in checks:
                model(x)
        for epoch in range(10 ** 6):
            for x, y in loader:
                train_on(x, y)
            with torch.no_grad():
                for a, b in checks:
                    model(a)
        """,
    )
    assert_measured(done)
    script = done.report["script"]
    assert script["loop"] == line_of(tmp_path, "for x, y in loader:") and script["trains"]
    others = [other["loop"] for other in script["other_loops"]]
    assert line_of(tmp_path, "for i, (x, y) in enumerate(loader):") in others
    assert line_of(tmp_path, "for x, y in checks:") in others


def test_a_script_that_only_predicts_is_measured_too(tmp_path: Path) -> None:
    done = examine(
        tmp_path,
        """
        with torch.no_grad():
            for x, y in DataLoader(Rows(count=10 ** 7), batch_size=4):
                model(x)
        """,
    )
    assert_measured(done)
    assert "does not train" in notes(done)


def test_a_step_that_changes_its_batch_gets_fresh_batches(tmp_path: Path) -> None:
    done = examine(
        tmp_path,
        """
        for epoch in range(10 ** 6):
            for x, y in DataLoader(Rows(), batch_size=4):
                y -= 1
                assert y.min() >= -1 and y.max() <= 1, y
                train_on(x, y.clamp(0, 2))
        """,
    )
    assert_measured(done)


def test_a_new_iterator_for_each_batch_is_noticed(tmp_path: Path) -> None:
    done = examine(
        tmp_path,
        """
        loader = DataLoader(Rows(), batch_size=4, shuffle=True)
        for step in range(10 ** 6):
            x, y = next(iter(loader))
            train_on(x, y)
        """,
    )
    assert "A new iterator is created for nearly every batch" in notes(done), done
    assert done.report["rates"]["real"] > 0


def test_a_module_is_measured_like_a_script(tmp_path: Path) -> None:
    package = tmp_path / "project"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "data.py").write_text(HEAD)
    (package / "train.py").write_text(
        "import sys\nfrom .data import DataLoader, Rows, train_on\n"
        "assert sys.argv[1:] == ['--fast'] and __name__ == '__main__'\n"
        "for x, y in DataLoader(Rows(), batch_size=4):\n    train_on(x, y, 0.002)\n"
    )
    words = [sys.executable, "-m", "headrace", "doctor", "--json", "-m", "project.train", *QUICK]
    done = subprocess.run(
        [*words, "--", "--fast"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    report = json.loads(done.stdout)
    assert report["script"]["loop"] == os.path.join("project", "train.py:4"), done.stderr


def test_only_the_report_is_printed(tmp_path: Path) -> None:
    done = examine(
        tmp_path,
        """
        import os
        print("epoch 1")
        os.system("echo from a child")
        for x, y in DataLoader(Rows(), batch_size=4):
            print("loss")
            train_on(x, y)
        """,
    )
    assert json.loads(done.out)["verdict"]
    assert "epoch 1" in done.err and "from a child" in done.err


def test_json_equals_that_of_the_other_ways_of_calling(tmp_path: Path) -> None:
    import numpy as np

    import headrace as hr

    called = hr.doctor([np.zeros((2, 2))] * 50, lambda batch: None, seconds=0.3).json()
    done = examine(tmp_path, "for x, y in DataLoader(Rows(), batch_size=4): train_on(x, y)\n")
    assert set(done.report) == set(called)


# No harm.


def test_files_are_restored_and_experiment_trackers_disabled(tmp_path: Path) -> None:
    (tmp_path / "wandb.py").write_text(
        "import os\ndef init(project=None, mode=None):\n"
        "    print('wandb', mode, os.environ['WANDB_MODE'])\n"
    )
    (tmp_path / "best.pt").write_bytes(b"the weights of last week")
    (tmp_path / "old.txt").write_text("old")
    (tmp_path / "gone.txt").write_text("still needed")
    done = examine_alone(
        tmp_path,
        """
        import os, wandb
        wandb.init(project="it")
        os.makedirs("out/deep")
        torch.save(model.state_dict(), "best.pt")
        with open("out/deep/log.txt", "w") as log, open("old.txt", "w") as old:
            log.write("started"), old.write("new")
        os.remove("gone.txt")
        with open("last.pt.part", "wb") as part:
            part.write(b"weights")
        os.replace("last.pt.part", "best.pt")
        for x, y in DataLoader(Rows(), batch_size=4):
            train_on(x, y)
            torch.save(model, "each.pt")
        """,
    )
    assert "Run it in a scratch folder" in done.err and "Weights & Biases" in done.err
    assert done.err.index("Disabled") < done.err.index("wandb None disabled")
    assert (tmp_path / "best.pt").read_bytes() == b"the weights of last week"
    assert (tmp_path / "old.txt").read_text() == "old"
    assert (tmp_path / "gone.txt").read_text() == "still needed"
    text = notes(done)
    assert "which remain: each.pt, out/deep/log.txt." in text
    assert "which were restored: best.pt, old.txt, gone.txt." in text


def test_a_script_that_catches_every_exception_is_ended(tmp_path: Path) -> None:
    done = examine(
        tmp_path,
        """
        loader = DataLoader(Rows(), batch_size=4)
        while True:
            try:
                for x, y in loader:
                    train_on(x, y)
            except BaseException:
                pass
        """,
    )
    assert done.report["rates"]["real"] > 0 and done.code in (0, 1), done
    assert "catches the exception that ends it" in notes(done)


def test_finally_blocks_run_but_exit_handlers_do_not(tmp_path: Path) -> None:
    done = examine(
        tmp_path,
        """
        import atexit
        atexit.register(lambda: print("at exit"))
        try:
            for x, y in DataLoader(Rows(), batch_size=4):
                train_on(x, y)
        except Exception:
            print("an exception")
        finally:
            print("cleaned up")
        """,
    )
    assert_measured(done)
    assert "cleaned up" in done.err
    assert "an exception" not in done.err and "at exit" not in done.err


# Bad input: each ends with the available measurements and a sentence.


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("for batch in ([0] * 4 for _ in range(9)): pass", "hr.doctor(loader, step) takes any"),
        ("raise SystemExit(0)", "HR0905"),
        ("import sys; sys.exit(3)", "ended by sys.exit(3)"),
        ("x = 1\nraise OSError('no such disk')", "train.py:2: OSError: no such disk"),
        ("def broken(:", "train.py, line 1: SyntaxError"),
        ("while True: pass", "has requested no batch for"),
    ],
)
def test_scripts_without_a_loader(tmp_path: Path, body: str, words: str) -> None:
    def check(patience: float) -> None:
        done = examine(tmp_path, body, "--patience", str(patience), head="")
        assert done.code == 2 and done.out == "" and words in done.err, done
        assert "Traceback" not in done.err

    with_longer_limits(check, (2, 10, 60))


def test_missing_scripts(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "headrace", "doctor", "--json"]
    for wrong, said in (
        (["--script", "nowhere.py"], "HR0903 script or module not found: nowhere.py"),
        (["-m", "no.where"], "HR0903"),
        (["--script", "a.py", "-m", "a"], "exclude each other"),
        ([], "one SOURCE"),
    ):
        done = subprocess.run([*words, *wrong], cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode, said in done.stderr) == (2, True), done


def test_a_script_that_raises_in_the_middle(tmp_path: Path) -> None:
    done = examine(
        tmp_path,
        """
        for step, (x, y) in enumerate(DataLoader(Rows(), batch_size=4)):
            if step == 20:
                raise RuntimeError("loss is NaN")
            train_on(x, y)
        """,
    )
    assert "RuntimeError: loss is NaN" in notes(done), done
    assert done.report["failed"] and done.report["rates"]["loader"] > 0
    assert done.code == (3 if done.report["verdict"] == "unsure" else 1)


def test_a_script_that_ends_before_enough_was_measured(tmp_path: Path) -> None:
    done = examine(
        tmp_path,
        """
        for step, (x, y) in enumerate(DataLoader(Rows(), batch_size=4)):
            if step == 4:
                break
            train_on(x, y)
        """,
    )
    assert "ended before its loop had been measured for long enough" in notes(done)
    assert done.report["rates"]["loader"] > 0 and not done.report["failed"]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_that_hangs(tmp_path: Path, workers: int) -> None:
    done = examine(
        tmp_path,
        f"""
        class Hangs(Rows):
            def __getitem__(self, index):
                if index > 20:  # before the loop has been measured, however slow the machine is
                    time.sleep(1000)
                return super().__getitem__(index)
        for x, y in DataLoader(Hangs(), batch_size=4, num_workers={workers}):
            try:
                train_on(x, y)
            except BaseException:
                pass
        """,
        "--patience",
        "3",
    )
    assert "The loader has delivered no batch for 3 seconds, so it was stopped." in notes(done), (
        done
    )
    assert done.report["failed"] and done.code in (1, 3)


def test_a_worker_that_dies(tmp_path: Path) -> None:
    done = examine(
        tmp_path,
        """
        import os
        class Dies(Rows):
            def __getitem__(self, index):
                # In the second batch, before the loop has been measured.
                if index >= 4 and torch.utils.data.get_worker_info():
                    os._exit(9)
                return super().__getitem__(index)
        for x, y in DataLoader(Dies(), batch_size=4, num_workers=1):
            train_on(x, y)
        """,
    )
    assert "DataLoader worker" in notes(done) and done.report["failed"], done


def test_a_dead_worker_is_only_reported_by_its_loader(tmp_path: Path) -> None:
    """torch's SIGCHLD handler would raise wherever the main thread is: here, in the step."""
    done = examine_alone(
        tmp_path,
        """
        import os, time
        class Dies(Rows):
            def __getitem__(self, index):
                if index >= 4:
                    os._exit(9)
                return super().__getitem__(index)
        batches = iter(DataLoader(Dies(), batch_size=4, num_workers=1))
        for x, y in batches:
            train_on(x, y)
            begin = time.monotonic()
            try:
                while time.monotonic() < begin + 0.05:
                    pass
            except RuntimeError:
                print("raised in the step")
        """,
    )
    assert "raised in the step" not in done.out + done.err
    assert "DataLoader worker" in notes(done) and done.report["failed"], done


def test_long_steps_and_few_records(tmp_path: Path) -> None:
    done = examine(
        tmp_path,
        """
        for epoch in range(10 ** 6):
            for x, y in DataLoader(Rows(count=3), batch_size=8):
                train_on(x, y, 1.0)
        """,
    )
    assert_measured(done)
    assert done.report["rates"]["ceiling"] <= 3


def test_ctrl_c_gives_what_was_measured(tmp_path: Path) -> None:
    with start(
        tmp_path,
        """
        import sys
        for step, (x, y) in enumerate(DataLoader(Rows(), batch_size=4)):
            train_on(x, y, 0.01)
            if step == 60:
                print("now", file=sys.stderr, flush=True)
        """,
        "--seconds",
        "600",
    ) as process:
        for line in process.stderr:
            if line.startswith("now"):
                process.send_signal(signal.SIGINT)
                break
        out, _ = process.communicate(timeout=300)
    report = json.loads(out)
    assert process.returncode == 130 and report["interrupted"]
    assert report["script"]["batches"] > 50 and report["rates"].get("real", 1) > 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_write_permission(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(HEAD)
    tmp_path.chmod(0o500)
    try:
        done = examine(tmp_path, "for x, y in DataLoader(Rows(), batch_size=4): train_on(x, y)\n")
    finally:
        tmp_path.chmod(0o700)
    assert_measured(done)


def test_a_script_that_counts_its_batches_has_not_failed(tmp_path: Path) -> None:
    done = examine(
        tmp_path,
        """
        loader = DataLoader(Rows(20), batch_size=4)
        for index, (x, y) in enumerate(loader):
            train_on(x, y)
            assert index < len(loader)
        """,
    )
    assert done.report["failed"] is False and done.code in (0, 1)
    assert "continued past the 5 batches of its epoch" in notes(done)
    assert "AssertionError" in notes(done)


def test_a_schedule_that_ends_with_the_epoch_has_not_failed(tmp_path: Path) -> None:
    done = examine(
        tmp_path,
        """
        loader = DataLoader(Rows(48), batch_size=4)
        optimizer = torch.optim.SGD(model.parameters(), 1e-6)
        steps = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-5, total_steps=len(loader))
        for x, y in loader:
            train_on(x, y)
            optimizer.step()
            steps.step()
        """,
    )
    assert done.report["failed"] is False and done.code in (0, 1)
    assert "continued past the 12 batches of its epoch" in notes(done)
    assert "Tried to step 13 times" in notes(done)
