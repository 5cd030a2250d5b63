# SPDX-License-Identifier: Apache-2.0
"""The reference of transforms: parameters, the library whose result each equals, and images.

The images are drawn by a loader's ``show()``, so they show what training would get.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from guides import linked_by_name
from reference import Record, joined, params_table, python, table

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLES = ROOT / "examples" / "images"
HEIGHT, WIDTH = 150, 200


def records(mixed: bool) -> Any:
    """The example images as a source, with boxes and labels; or one label per image, to be
    mixed."""
    import headrace as hr

    if mixed:
        paths = [str(EXAMPLES / f"{name}.jpg") for name in ("cat", "astronaut", "coffee", "rocket")]
        return hr.records(image=paths, label=list(range(len(paths))))
    shown = range(4)  # the last one has none
    return hr.subset(hr.coco(EXAMPLES.parent / "objects.json", images=EXAMPLES), shown)


def images_of(step: str | None, boxes: bool = True) -> Any:
    """The result of ``show()`` on the example images after the transform: a grid."""
    import headrace as hr
    from headrace import transforms as T

    source = records(mixed=not boxes)
    steps = [T.Resize((HEIGHT, WIDTH))]
    if step:
        steps.append(eval(step, {"T": T}))
    fields = ("image", "boxes", "labels") if boxes else ("image", "label")
    options = {"batch_size": len(source), "ragged": "list", "shuffle": False, "seed": 4}
    with hr.Loader(source, steps, fields=fields, **options) as loader:
        return loader.show(len(source), columns=len(source))


def draw(folder: Path, operators: Mapping[str, Record]) -> None:
    """Draws all transforms that can be shown, into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    images_of(None).save(folder / "before.png")
    for name, record in operators.items():
        _, step, _, boxes = record["page"]
        if step:
            images_of(step, boxes).save(folder / f"{name}.png")


def pages(operators: Mapping[str, Record], guides: Mapping[str, str]) -> dict[str, str]:
    """A page for each group of transforms, and one that lists them all."""
    groups: dict[str, list[str]] = {}
    for name, record in sorted(operators.items()):
        groups.setdefault(group_of(record), []).append(name)
    out = {}
    parts = [
        "# All transforms",
        "`from headrace import transforms as T`; each is a class of that module. The images below "
        "are drawn by `loader.show()`: they are what training gets. Before any transform:",
        "![before](../../images/transforms/before.png)",
    ]
    for title, names in sorted(groups.items()):
        page = re.sub(r"\W+", "-", title.lower()).strip("-") + ".md"
        place = f"reference/transforms/{page}"
        text = joined(
            f"# {title}", *(block for name in names for block in one(name, operators[name]))
        )
        out[place] = linked_by_name(text, place, guides)
        rows = ((f"[{name}]({page}#{name.lower()})", sentence(operators[name])) for name in names)
        parts += [f"## [{title}]({page})", table(("transform", "what it does"), rows)]
    out["reference/transforms/index.md"] = joined(*parts)
    return out


# Transforms that cannot be drawn, by the guide that their record links to.
# No title is also the title of a guide.
SECTIONS = {
    "vision-language": "Native resolution",
    "audio": "Audio transforms",
    "audio-features": "Audio feature transforms",
    "detection": "Detection transforms",
    "fields": "Splitting fields",
    "gpu": "Choice of device",
    "policies": "Batch mixing",
    "video": "Video transforms",
}


def group_of(record: Record) -> str:
    """The section of a transform in the reference."""
    section, _, unseen, _ = record["page"]
    link = re.search(r"\]\(([\w-]+)\.md", unseen or "")
    return section or (SECTIONS[link[1]] if link else "Other transforms")


def one(name: str, record: Record) -> list[str]:
    _, step, unseen, _ = record["page"]
    image = f"![{name}](../../images/transforms/{name}.png)\n\n`{step}`" if step else ""
    equals = f"Equals: {record['oracle']}." if record["oracle"] else ""
    draws = "Random: drawn per record from seed, epoch and position." if record["random"] else ""
    page = (unseen or "").partition(": ")[2]
    guide = f"Guide: {page}." if page else ""
    return [
        f"## {name}",
        record["doc"],
        image,
        python(record["example"]),
        params_table(record["params"]),
        *(line for line in (equals, draws, guide) if line),
    ]


def sentence(record: Record) -> str:
    return re.split(r"(?<=\.) |\n", record["doc"])[0]
