# SPDX-License-Identifier: Apache-2.0
"""`headrace info SOURCE`: the contents of a dataset."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from headrace.cli import output, pack_report, sound_report
from headrace.cli.one_file import open_source_or_file
from headrace.whole_file import write_whole

PREVIEW_COLUMNS, PREVIEW_LINES = 56, 20
CLASSES_SHOWN = 8
HEADERS = 2000  # number of audio files that are inspected
EXAMPLES = (
    "headrace info train/",
    "headrace info train/ --record 3 --image record.png",
    "headrace info photo.jpg",
)


@output.command
def run(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A path or URL that headrace.open() accepts, or an image, audio or video file.",
        ),
    ],
    record: Annotated[int, typer.Option(metavar="N", min=0, help="The record to show.")] = 0,
    image: Annotated[
        Path | None, typer.Option("--image", "-i", help="Write the record's image to this PNG.")
    ] = None,
    recover: Annotated[
        bool, typer.Option("--recover", help="Open the complete part of a truncated pack.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Show records, fields, bytes, classes, and one image.

    For audio, also sample rates and lengths; for a pack, also its levels and sizes.
    """
    output.writable("--image", image)
    opened = open_source_or_file(source, **({"recover": True} if recover else {}))
    facts = describe(source, opened)
    if (summary := pack_summary(source, recover)) is not None:
        facts["pack"] = summary
    if record >= max(1, len(opened)):
        output.fail(f"headrace: record {record} is outside 0..{len(opened) - 1}", output.USAGE)
    pixels = None
    if len(opened) and (image or (output.use_color() and not json)):
        pixels = image_of(opened, record)
    if image:
        if pixels is None:
            output.fail(f"headrace: {source} has no images", output.DATA)
        from headrace.drawing.png import png_from_pixels

        write_whole(image, png_from_pixels(pixels))
        facts["image"] = str(image)
    if json:
        output.print_json(facts)
        return output.GOOD
    print_facts(facts)
    if pixels is not None and output.use_color():
        print_preview(pixels, f"record {record}: {opened.key(record)}")
    return output.GOOD


def describe(path: str, source: Any) -> dict[str, Any]:
    """The facts of a source as one JSON-able object."""
    import numpy as np

    from headrace.insight.measure import instructions

    fields = [
        {
            "name": field.name,
            "kind": str(field.kind),
            "dtype": str(field.dtype),
            "shape": None if field.shape is None else [int(n) for n in field.shape],
        }
        for field in source.schema
    ]
    facts: dict[str, Any] = {
        "source": path,
        "description": repr(source),
        "records": len(source),
        "bytes": bytes_on_disk(path),
        "fields": fields,
        "classes": list(source.classes),
        "fingerprint": source.fingerprint,
        "simd": instructions.in_force(),
        "instructions": instructions.text(),
    }
    if sounds := sound_report.describe(source, HEADERS):
        facts["audio"] = sounds
    if len(source) and (video := video_facts(source)):
        facts["video"] = video
    if source.classes and any(field["name"] == "label" for field in fields):
        labels = np.asarray(source.column("label"))
        labels = labels[labels >= 0]
        counts = np.bincount(labels, minlength=len(source.classes))
        facts["records_per_class"] = [int(n) for n in counts]
    return facts


def video_facts(source: Any, most: int = 64) -> dict[str, Any] | None:
    """Number, codecs, sizes, frames and seconds of the first videos; None without videos."""
    from headrace import _core

    names = [field.name for field in source.schema if field.kind == "video"]
    if not names:
        return None
    codecs: dict[str, int] = {}
    sizes: dict[str, int] = {}
    frames, seconds, bad = 0, 0.0, 0
    inspected = min(len(source), most)
    for number in range(inspected):
        try:
            header = _core.video_header(source[number][names[0]])
        except Exception:
            bad += 1
            continue
        codecs[header["codec"]] = codecs.get(header["codec"], 0) + 1
        size = f"{header['width']} x {header['height']}"
        sizes[size] = sizes.get(size, 0) + 1
        frames += header["frames"]
        seconds += header["end_seconds"] - header["times"][0]
    return {
        "inspected": inspected,
        "unreadable": bad,
        "codecs": codecs,
        "sizes": sizes,
        "frames": frames,
        "seconds": round(seconds, 3),
        "frames_per_second": round(frames / seconds, 3) if seconds > 0 else None,
    }


def pack_summary(path: str, recover: bool) -> dict[str, Any] | None:
    """A pack's shards, pages, and images by level and by reason; None if the source is not a
    pack."""
    from headrace import _core

    if not _core.is_pack(path):
        return None
    summary = _core.pack_summary(path, recover)
    return {**summary, "ratio": pack_report.ratio_of(summary["images"])}


def bytes_on_disk(path: str) -> int:
    """Size in bytes of a file, of all files below a folder, or of all files that match a
    pattern."""
    from headrace import _core

    if _core.scheme_of(path):
        return sum(_core.bytes_below(file) for file in _core.shard_files(path))
    if not os.path.exists(path):
        return sum(os.path.getsize(file) for file in _core.shard_files(path))
    if os.path.isfile(path):
        return os.path.getsize(path)
    total, folders = 0, [path]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif entry.is_file():
                    total += entry.stat().st_size
    return total


def image_of(source: Any, record: int) -> Any:
    """The first field of a record that is an image, as uint8 (C, H, W) that a PNG can hold."""
    import numpy as np

    values = source[record]
    for field in source.schema:
        value = np.asarray(values[field.name]) if field.is_picture else None
        if value is not None and value.ndim == 3 and value.dtype == np.uint8:
            return value[:3] if value.shape[0] >= 3 else value[:1]
    return None


def print_facts(facts: dict[str, Any]) -> None:
    from rich.markup import escape
    from rich.padding import Padding
    from rich.table import Table

    console = output.console()
    size = output.size_text(facts["bytes"])
    output.headline(facts["source"], f"{output.count_text(facts['records'], 'record')}, {size}")
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("field", "kind", "dtype", "shape"):
        table.add_column(name)
    for field in facts["fields"]:
        shape = (
            ""
            if not field["shape"]
            else " x ".join("?" if n < 0 else str(n) for n in field["shape"])
        )
        name = output.shortened(field["name"], max(16, console.width // 2))
        table.add_row(escape(name), field["kind"], field["dtype"], shape)
    console.print(table)
    for sounds in facts.get("audio", ()):
        for line in sound_report.lines(sounds, facts["records"]):
            console.print(f"[dim]{escape(sounds['field'])}[/] {escape(line)}")
    if "video" in facts:
        print_video(facts["video"])
    if "pack" in facts:
        print_pack(facts["pack"])
    console.print(f"[dim]runs[/] {escape(facts['instructions'])}")
    classes = facts["classes"]
    if not classes:
        return
    counts: list[int] = facts.get("records_per_class", [])
    console.print(f"[dim]{output.count_text(len(classes), 'class', 'es')}[/]{spread_text(counts)}")
    shown = [output.shortened(name, console.width // 2) for name in classes[:CLASSES_SHOWN]]
    names = ", ".join(shown) + (", …" if len(classes) > CLASSES_SHOWN else "")
    console.print(Padding(escape(names), (0, 0, 0, 2), expand=False))


def print_video(video: dict[str, Any]) -> None:
    def counted(counts: dict[str, int]) -> str:
        most = sorted(counts, key=lambda name: -counts[name])
        return ", ".join(most[:3]) + (", …" if len(most) > 3 else "")

    rate = video["frames_per_second"]
    parts = [
        f"{video['frames']:,} frames in {video['seconds']:,.1f} s"
        + (f", {rate:g} per second" if rate else ""),
        counted(video["sizes"]),
        counted(video["codecs"]),
        f"{video['unreadable']} unreadable" if video["unreadable"] else "",
    ]
    first = output.count_text(video["inspected"], "video")
    output.console().print(f"[dim]among the first {first}[/] " + "; ".join(filter(None, parts)))


def spread_text(counts: list[int]) -> str:
    """Range of the classes' record counts: ", 3 to 12 records each"."""
    if not counts:
        return ""
    low, high = min(counts), max(counts)
    most = output.count_text(high, "record")
    return f", {most} each" if low == high else f", {low:,} to {most} each"


def print_pack(summary: dict[str, Any]) -> None:
    from rich.markup import escape

    console = output.console()
    console.print(
        f"[dim]shards[/] {summary['shards']:,}  [dim]pages[/] {summary['pages']:,}  "
        f"[dim]fingerprint[/] {summary['fingerprint']:016x}"
    )
    pack_report.print_pictures(summary)
    if summary["unusable_count"]:
        console.print(f"[bold red]{summary['unusable_count']:,} unusable[/] when it was packed:")
        pack_report.print_unusable(summary)
    if summary["missing"]:
        console.print(f"[bold red]recovered:[/] {escape(summary['missing'])}")


def print_preview(pixels: Any, caption: str) -> None:
    """Prints the image in half blocks: each character shows two pixels, one above the other."""
    import numpy as np
    from rich.text import Text

    console = output.console()
    channels, height, width = pixels.shape
    columns = min(
        PREVIEW_COLUMNS, width, console.width, max(1, 2 * PREVIEW_LINES * width // height)
    )
    rows = min(2 * PREVIEW_LINES, max(2, round(height * columns / width) // 2 * 2))
    ys, xs = (np.linspace(0, n, k + 1).astype(int) for n, k in ((height, rows), (width, columns)))
    sums = np.add.reduceat(np.add.reduceat(pixels.astype(np.int64), ys[:-1], 1), xs[:-1], 2)
    areas = np.maximum(1, np.diff(ys))[:, None] * np.maximum(1, np.diff(xs))[None, :]
    small = np.broadcast_to(sums // areas, (channels, rows, columns))
    small = np.repeat(small, 3, 0) if channels == 1 else small
    preview = Text()
    for y in range(0, rows, 2):
        for x in range(columns):
            top, low = (",".join(map(str, small[:, y + i, x])) for i in (0, 1))
            preview.append("▀", f"rgb({top}) on rgb({low})")
        preview.append("\n")
    console.print(preview, caption, sep="", markup=False)
