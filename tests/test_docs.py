# SPDX-License-Identifier: Apache-2.0
"""The documentation is correct: its links resolve and its examples run."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import audio_files
import fork_server
import pytest
from processes import LIMIT, run_command

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").glob("**/*.md"), *ROOT.glob("examples/**/*.md")]
)
IMAGES = ROOT / "examples" / "images"


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
        if "://" not in link:
            assert (page.parent / link).exists(), f"{page.name} links to {link}"


def anchors_of(page: Path) -> set[str]:
    """The anchors of its headings, as made by GitHub."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.replace("`", "").lower()).replace(" ", "-") for h in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_anchor_in_a_link_is_a_heading(page: Path) -> None:
    for link, anchor in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", page.read_text()):
        if "://" not in link:
            target = page.parent / link if link else page
            assert anchor in anchors_of(target), f"{page.name} links to {link}#{anchor}"


def test_every_command_that_the_readme_names_exists() -> None:
    helps = subprocess.run([ROOT / "dev", "help"], capture_output=True, text=True, check=True)
    for command in re.findall(r"\./dev (\w+)", (ROOT / "README.md").read_text()):
        assert re.search(rf"^  {command} ", helps.stdout, re.MULTILINE), command


def test_the_readme_example_runs(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    for number, picture in enumerate(sorted(IMAGES.glob("*.jpg"))):
        folder = tmp_path / "train" / f"class{number % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, folder)
    (example,) = python_blocks(ROOT / "README.md")
    code = example + "\nprint(tuple(images.shape), images.dtype, labels.dtype)\n"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "(8, 3, 224, 224) torch.float32 torch.int64\n"


RUN = [
    (page, number, block)
    for page in sorted((ROOT / "docs").glob("**/*.md"))
    # tests/frameworks and tests/test_plugins_named.py run these examples.
    if page.name not in ("frameworks.md", "plugins.md")
    for number, block in enumerate(python_blocks(page))
]


@pytest.fixture(scope="module")
def train(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder train/ in the examples: eight images in two classes."""
    root = tmp_path_factory.mktemp("docs") / "train"
    for number, picture in enumerate(sorted(IMAGES.glob("*.jpg"))):
        folder = root / ("cat", "dog")[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, folder)
    return root


@pytest.fixture(scope="module")
def speech(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder speech/ in the examples: a second of audio in each of 128 files."""
    root = tmp_path_factory.mktemp("docs") / "speech"
    for number in range(128):
        folder = root / ("no", "yes")[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        samples = audio_files.int16_waves(16000 + 40 * number, seed=number)
        (folder / f"{number:03}.wav").write_bytes(audio_files.wav_of(samples))
    return root


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder videos/ in the examples: four videos of 40 frames in two classes."""
    root = tmp_path_factory.mktemp("docs") / "videos"
    for number in range(4):
        name = ("hop", "run")[number % 2]
        (root / name).mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "tests" / "videos" / f"{name}.mp4", root / name / f"{number}.mp4")
    return root


@pytest.mark.parametrize(
    ("page", "block"),
    [pytest.param(page, block, id=f"{page.stem}-{number}") for page, number, block in RUN],
)
def test_every_example_in_the_docs_runs(
    page: Path, block: str, train: Path, speech: Path, videos: Path, tmp_path: Path
) -> None:
    (tmp_path / "train").symlink_to(train)
    (tmp_path / "speech").symlink_to(speech)
    (tmp_path / "noises").symlink_to(speech)
    (tmp_path / "videos").symlink_to(videos)
    (tmp_path / "objects.json").symlink_to(ROOT / "examples" / "objects.json")
    (tmp_path / "images").symlink_to(IMAGES)
    if "torchvision" in block:  # which conftest helps to load
        block = f"import sys; sys.path.append({str(ROOT / 'tests')!r}); import conftest\n" + block
    modules = fork_server.TORCH if "torch" in block else fork_server.COMMAND_LINE
    done = fork_server.run(modules, block, folder=tmp_path, timeout=LIMIT)
    missing = re.search(r"No module named '(\w+)'|(HR0370)", done.stderr)
    if missing:
        pytest.skip(f"{page.name} needs {missing[1] or 'headrace-av'}")
    assert done.returncode == 0, done.stderr


OPTIONS = ROOT / "docs/reference/loader-options.md"
KEYWORDS = re.split(r"^### `", OPTIONS.read_text(), flags=re.MULTILINE)[1:]


def test_the_page_of_loader_keywords_lists_each_with_its_default() -> None:
    """Also in the docstring."""
    import headrace

    signature = inspect.signature(headrace.Loader).parameters.values()
    known = [p for p in signature if p.kind is p.KEYWORD_ONLY]
    told = [section.partition("`")[0] for section in KEYWORDS]
    assert sorted(told) == sorted(f"{p.name}={p.default!r}" for p in known)
    doc = str(headrace.Loader.__doc__)
    assert [p.name for p in known if not re.search(rf"\b{p.name}\b", doc)] == []


MAKES_A_BATCH = """
import headrace as hr
from headrace import transforms as T

given = dict({example})
assert {name!r} in given
if "global_batch_size" not in given:
    given.setdefault("batch_size", 2)
size = 8 if "ragged" in given else (8, 8)  # images of differing width
with hr.Loader({train!r}, [T.Resize(size)], **given) as loader:
    assert len(next(iter(loader))[0])
"""


@pytest.mark.parametrize("section", KEYWORDS, ids=lambda text: text.partition("=")[0])
def test_the_example_of_a_keyword_makes_a_batch(
    section: str, train: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = section.partition("=")[0]
    (example,) = re.findall(r"^Example: `(.*)`$", section, re.MULTILINE)
    code = MAKES_A_BATCH.format(example=example, name=name, train=str(train))
    exec(code, {})


@pytest.fixture(scope="module")
def markdown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site's pages as read by Sphinx: the guides, and the generated reference."""
    output = tmp_path_factory.mktemp("site")
    tool = ROOT / "tools" / "site" / "make_site.py"
    command = [sys.executable, tool, output, "--markdown"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return output.with_name(output.name + "-markdown")


def test_the_reference_has_a_page_for_everything_registered(markdown: Path) -> None:
    from headrace.cli.app import application

    from headrace import _core, errors

    reference = markdown / "reference"
    formats = (reference / "formats.md").read_text()
    assert [name for name in _core.formats() if f"## {name}\n" not in formats] == []
    assert [name for name in _core.media()["image"]["formats"] if f"`{name}`" not in formats] == []
    codes = (reference / "errors.md").read_text()
    assert [code for code in errors.all_codes() if f"### {code}: " not in codes] == []
    transforms = "".join(page.read_text() for page in (reference / "transforms").glob("*.md"))
    assert [name for name in _core.operators() if f"## {name}\n" not in transforms] == []
    commands = (reference / "command-line.md").read_text()
    assert [
        c.name for c in application().registered_commands if f"## {c.name}\n" not in commands
    ] == []


def test_every_page_is_in_a_table_of_contents(markdown: Path) -> None:
    """And the site's links lead to existing pages, images and anchors."""
    listed = {"index.md"}
    pages = {page.relative_to(markdown).as_posix(): page for page in markdown.rglob("*.md")}
    for page in pages.values():
        text = page.read_text()
        for block in re.findall(r"```\{toctree\}\n.*?\n\n(.*?)```", text, re.DOTALL):
            for entry in block.split():
                listed.add((page.parent / f"{entry}.md").relative_to(markdown).as_posix())
        for link in re.findall(r"\]\(([^)#\s]+)", text):
            assert "://" in link or (page.parent / link).exists(), f"{page} links to {link}"
    assert {name for name in pages if not name.startswith("files/")} - listed == set()


def test_answers_are_reachable_from_the_first_page(markdown: Path) -> None:
    """How to resume, add boxes, skip bad files, add an operator; why a batch is late."""
    first = (markdown / "index.md").read_text().partition("## ")[0]
    for words, target in (
        ("resume", "guide/resume.md"),
        ("boxes", "guide/transforms/detection.md"),
        ("late", "tools/doctor.md"),
        ("bad files", "reference/loader-options.md#bad-data"),
        ("`dense`", "reference/glossary.md"),
        ("operator", "internals/extending.md#add-an-operator"),
    ):
        rows = [row for row in first.splitlines() if words in row and f"]({target})" in row]
        assert rows, f"the first page does not lead from {words!r} to {target}"


def test_the_page_for_agents_has_the_tables_of_the_reference(markdown: Path) -> None:
    from headrace.insight.model import verdict

    from headrace.loader import dataloader_keywords

    page = (markdown / "start/for-agents.md").read_text()
    words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", page)
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", dataloader_keywords.page_table())
    assert plain in words
    links = re.findall(r"\]\(([^)#\s]+\.md)", page)
    assert [link for link in links if not (markdown / "start" / link).is_file()] == []
    for link in ("migrating/collate-functions.md", "../guide/transforms/detection.md"):
        assert link in links, "a table of another page keeps its links"
    assert [word for word in verdict.WORDS if f"`{word}`" not in page] == []
    assert "| `RandomResizedCrop` | `T.RandomResizedCrop` | native |" in page


def test_no_two_pages_of_the_site_have_the_same_title(markdown: Path) -> None:
    """Otherwise the sidebar has two entries with the same name."""
    titles: dict[str, list[str]] = {}
    for page in sorted(markdown.rglob("*.md")):
        place = page.relative_to(markdown).as_posix()
        if not place.startswith("files/"):
            title = re.search(r"^# (.+)", page.read_text(), re.MULTILINE)
            titles.setdefault(title[1] if title else place, []).append(place)
    assert {title: places for title, places in titles.items() if len(places) > 1} == {}


def test_help_texts_link_to_the_pages_that_they_name(markdown: Path) -> None:
    page = (markdown / "reference/loader-options.md").read_text()
    assert re.findall(r"docs/[\w/-]+\.md", page) == []
    assert "See [Elastic runs](../guide/elastic.md)" in page


def test_the_types_of_the_glossary_exist() -> None:
    text = (ROOT / "docs/reference/glossary.md").read_text()
    sources = [
        p
        for s in ("h", "cc", "py")
        for f in ("headrace", "python")
        for p in (ROOT / f).rglob(f"*.{s}")
    ]
    code = "\n".join(path.read_text() for path in sources)
    for types in re.findall(r"^\| [^|]+ \| ([^|]*) \|", text, re.MULTILINE)[1:]:
        for name in re.findall(r"`([\w.:]+)`", types):
            if name.startswith("headrace."):
                module, _, last = name.rpartition(".")
                found = importlib.util.find_spec(module)
                assert found and (
                    hasattr(importlib.import_module(module), last) or importlib.util.find_spec(name)
                ), name
            else:
                first, _, member = name.partition("::")
                assert re.search(rf"\b(?:class|struct) {first}\b", code), name
                assert re.search(rf"\b{member}\b", code), name


def test_every_error_code_mentioned_is_explained() -> None:
    sources = [*ROOT.glob("headrace/**/*"), *ROOT.glob("python/**/*.py"), *ROOT.glob("bindings/*")]
    pages = [*PAGES, *(path for path in sources if path.suffix in (".cc", ".h", ".py"))]
    written = {
        code
        for path in pages
        if "_test" not in path.stem and "_fuzz" not in path.stem
        for code in re.findall(r"\bHR\d{4}\b", path.read_text())
    }
    done = run_command("explain", "--json")
    assert written - {record["id"] for record in json.loads(done.stdout)} == set()


def test_every_operator_has_a_drawing_or_a_reason() -> None:
    from headrace import _core

    for name, record in _core.operators().items():
        section, step, unseen, _ = record["page"]
        assert bool(step) == bool(section) != bool(unseen), name
        assert not step or step.startswith(f"T.{name}("), name
