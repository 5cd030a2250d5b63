# SPDX-License-Identifier: Apache-2.0
"""Promise: a loader's options are declared once, and all documents agree with the declaration."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace import _core
from headrace.loader import dataloader_keywords, options

ROOT = Path(__file__).parent.parent
PACKAGE = Path(str(hr.__file__)).parent


def described() -> dict[str, inspect.Parameter]:
    parameters = inspect.signature(hr.Loader).parameters.values()
    return {p.name: p for p in parameters if p.kind is p.KEYWORD_ONLY}


def test_the_stub_has_every_keyword_with_its_type() -> None:
    tree = ast.parse((PACKAGE / "loader/keywords.pyi").read_text())
    (typed,) = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    fields = [node for node in typed.body if isinstance(node, ast.AnnAssign)]
    told = {ast.unparse(node.target): ast.unparse(node.annotation) for node in fields}
    assert told == {name: p.annotation for name, p in described().items()}


def test_every_engine_option_is_a_keyword_or_internal() -> None:
    own = {"sampler", "shard", "workers"}  # only in Python
    groups = {record["name"]: record["group"] for record in _core.loader_options()}
    assert {name for name, group in groups.items() if group} == set(described()) - own
    assert all(record["doc"] for record in _core.loader_options() if record["group"])


# Otherwise available memory is used, which fluctuates; and pictures of differing size.
USUAL: dict[str, Any] = {"batch_size": 4, "memory_limit": "64 MiB", "ragged": "list"}


@pytest.mark.parametrize("name", sorted(set(described()) - set(USUAL)))
def test_passing_a_default_explicitly_changes_nothing(name: str, pictures: Path) -> None:
    given = USUAL | {name: described()[name].default}
    with hr.Loader(pictures, [], **given) as loader, hr.Loader(pictures, [], **USUAL) as plain:
        assert repr(loader) == repr(plain)


WRONG: list[tuple[str, Any, str]] = [
    ("batch_size", 0, "batch_size must be an integer >= 1"),
    ("threads", 2**31, "threads must be an integer <= 2147483647"),
    ("threads", True, "threads must be an integer >= 1"),
    ("on_error", "skipp", "did you mean 'skip'"),
    ("last_batch", None, "'keep' or 'drop' or 'pad'"),
    ("sixteen_bit", "high-byte", "did you mean 'high_byte'"),
    ("damaged", 1, "damaged must be 'error' or 'repair'"),
    ("ragged", "lists", "did you mean 'list'"),
    ("strict", 1, "strict must be True or False"),
    ("memory_limit", "2 GBB", "not a size"),
    ("shuffle", 1, "shuffle must be True, False, 'blocks' or 'streams'"),
    ("resident", 1, "resident must be 'auto' or True or False"),
    ("index", "yes", "index must be 'use' or 'auto' or False or a path"),
    ("error_budget", 1.5, "between 0 and 1"),
    ("patience", -1, "patience must be seconds, 0 or more"),
    ("record_timeout", -1, "record_timeout must be seconds, 0 or more"),
    ("fields", [1], "fields are names"),
    ("python_workers", -1, "python_workers must be an integer >= 0"),
    ("max_pixels", 0, "max_pixels must be an integer >= 1"),
    ("seed", 2**64, "seed must be an integer <= 18446744073709551615"),
]


@pytest.mark.parametrize(("name", "value", "said"), WRONG, ids=[w[0] for w in WRONG])
def test_a_value_that_does_not_fit_is_refused_and_named(
    name: str, value: Any, said: str, pictures: Path
) -> None:
    given = USUAL | {name: value}
    with pytest.raises(hr.ConfigError, match=f"HR0160[^\0]*{said}"):
        hr.Loader(pictures, [], **given)


def test_ragged_has_a_name_for_its_default(pictures: Path) -> None:
    given = USUAL | {"ragged": "error"}
    with pytest.raises(hr.ConfigError, match="HR0114"):
        hr.Loader(pictures, [], **given)
    hr.Loader(pictures, [hr.transforms.Resize((8, 8))], **given).close()


def test_a_64_bit_seed_is_unchanged(pictures: Path) -> None:
    with hr.Loader(pictures, [], seed=2**64 - 1, **USUAL) as loader:
        assert loader.state_dict()["seed"] == 2**64 - 1


@pytest.fixture(scope="module")
def tables() -> Callable[[], dict[str, str]]:
    spec = importlib.util.spec_from_file_location("write_tables", ROOT / "tools/write_tables.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Callable[[], dict[str, str]] = module.tables
    return found


def test_the_guides_have_the_tables_of_the_code(tables: Callable[[], dict[str, str]]) -> None:
    for page, text in tables().items():
        assert text in (ROOT / page).read_text(), f"run tools/write_tables.py: {page}"


def test_every_keyword_of_torchs_dataloader_has_an_answer() -> None:
    data = pytest.importorskip("torch.utils.data")
    theirs = set(inspect.signature(data.DataLoader.__init__).parameters) - {"self"}
    assert theirs <= set(dataloader_keywords.KEYWORDS)
    for name in theirs - set(options.KEYWORDS):
        with pytest.raises(hr.ConfigError, match="HR0158"):
            hr.Loader([], [], **{name: 1})


def test_from_dataloader_reports_each_unneeded_keyword() -> None:
    torch = pytest.importorskip("torch")
    pixels = torch.zeros(8, 3, 4, 4, dtype=torch.uint8)
    dataloader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(pixels),
        batch_size=4,
        num_workers=2,
        prefetch_factor=7,
        multiprocessing_context="spawn",
        persistent_workers=True,
        timeout=9,
        worker_init_fn=print,
        pin_memory=True,
        in_order=False,
    )
    with hr.from_dataloader(dataloader, verbose=False) as loader:
        told = str(loader.report)
    unneeded = {n for n, k in dataloader_keywords.KEYWORDS.items() if k.unneeded}
    assert [
        name for name in sorted(unneeded - {"pin_memory_device"}) if f"{name}=" not in told
    ] == []


GOOD = """
import headrace as hr
loader = hr.Loader("train/", batch_size=4, shuffle="blocks", memory_limit="2 GiB", resident="auto")
"""
BAD = """
import headrace as hr
hr.Loader("train/", batch_size="4")
hr.Loader("train/", batch_sise=4)
"""


def test_type_checkers_know_the_keywords(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "good.py").write_text(GOOD)
    (tmp_path / "bad.py").write_text(BAD)

    cache = Path(__file__).parent.parent / "build" / ".mypy_cache"  # the value in `./dev test`
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(cache)]
    said = subprocess.run(
        [*command, "good.py", "bad.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    ).stdout
    assert "good.py" not in said
    assert 'Argument "batch_size"' in said
    assert '"batch_sise"' in said


def test_a_wait_may_be_unlimited(pictures: Path) -> None:
    with hr.Loader(pictures, [], **USUAL, patience=float("inf")) as loader:
        assert len(list(loader)) == len(loader)
