# SPDX-License-Identifier: Apache-2.0
"""Draws what each operator does to the example pictures, as its record says, and the page of it.

Used by make_reference.py. A row of pictures is what a loader's ``show()`` gives, so it is what
training would get.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).resolve().parent.parent / "examples" / "pictures"
HEIGHT, WIDTH = 150, 200


def records(mixed: bool) -> Any:
    """The example pictures as a source, with boxes and labels; or a label each, to be mixed."""
    import headrace as hr

    if mixed:
        paths = [str(EXAMPLES / f"{name}.jpg") for name in ("cat", "astronaut", "coffee", "rocket")]
        return hr.records(image=paths, label=list(range(len(paths))))
    shown = range(4)  # the last one has none
    return hr.subset(hr.coco(EXAMPLES.parent / "objects.json", images=EXAMPLES), shown)


def pictures_of(step: str | None, boxes: bool = True) -> Any:
    """What ``show()`` gives of the example pictures after the step: a grid."""
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


def write_pages(folder: Path, operators: dict[str, dict[str, Any]]) -> str:
    """Draws all into ``folder``/images/transforms; returns the page."""
    drawn = folder / "images" / "transforms"
    drawn.mkdir(parents=True, exist_ok=True)
    pictures_of(None).save(drawn / "before.png")
    parts = [
        "# What each transform does",
        "Every operator on the same four pictures, as `loader.show()` shows what training would "
        "get. What is random is drawn again for each picture. [Operators](operators.md) has all "
        "parameters.",
        "![before](images/transforms/before.png)",
    ]
    sections: dict[str, list[str]] = {}
    for name, record in operators.items():
        section, step, _, boxes = record["page"]
        if not step:
            continue
        pictures_of(step, boxes).save(drawn / f"{name}.png")
        first = record["doc"].partition("\n")[0]
        picture = f"![{name}](images/transforms/{name}.png)"
        sections.setdefault(section, []).extend(
            (f"### [{name}](operators.md#{name.lower()})", f"{first} `{step}`", picture)
        )
    for section in sorted(sections):
        parts += [f"## {section}", *sections[section]]
    parts.append("## Not shown")
    unseen = {name: record["page"][2] for name, record in operators.items()}
    parts += [f"- `{name}`: {why}." for name, why in unseen.items() if why]
    return "\n\n".join(parts) + "\n"
