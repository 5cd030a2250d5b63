# SPDX-License-Identifier: Apache-2.0
"""`headrace scan SOURCE`: lists every bad record."""

from __future__ import annotations

import json as jsonlib
import time
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from headrace.cli import output, sound_report
from headrace.cli.loader_options import DECODING, Kinds, kinds_from, loader_options
from headrace.cli.one_file import open_source_or_file
from headrace.cli.part import PartOption, print_part
from headrace.whole_file import write_whole

BATCH = 32  # small, since whole images of any size are held
SHOWN = 20
EXAMPLES = (
    "headrace scan train/",
    "headrace scan train/ --strict -o bad.jsonl",
    "headrace scan train/ -o scanned/ --part 1/2",
)


@output.command
@loader_options(*DECODING, "mode")
def run(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A path or URL that headrace.open() accepts, or an image, audio or video file.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write all bad records to this file (JSON lines)."),
    ] = None,
    recover: Annotated[
        bool, typer.Option("--recover", help="Scan the complete part of a truncated pack.")
    ] = False,
    threads: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Number of threads; default: the cores available to this process.",
        ),
    ] = None,
    kinds: Kinds = None,
    part: PartOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    **keywords: Any,
) -> int:
    """Decode every record completely and list the bad ones.

    For videos, read the whole index and decode eight evenly spaced frames. For audio, also count
    sample rates and channels. For a pack, verify all checksums, and its pages against its index.
    Exit code 1 if anything is bad.
    """
    if not part:
        output.writable("--output", out)
    opened = open_source_or_file(
        source, **kinds_from(kinds), **({"recover": True} if recover else {})
    )
    if part:
        return scan_part(source, opened, out, part, {**keywords, "threads": threads}, json)
    begin = time.perf_counter()
    damage = "" if recover else index_damage(source)
    bad, repaired = find_bad_records(opened, {**keywords, "threads": threads}, quiet=json)
    sounds = sound_report.describe(opened)
    seconds = time.perf_counter() - begin
    if out:
        write_whole(out, "".join(jsonlib.dumps(entry) + "\n" for entry in bad))
    if json:
        summary = {
            "source": source,
            "description": repr(opened),
            "records": len(opened),
            "bad": len(bad),
            "repaired": repaired,
            "seconds": round(seconds, 3),
            "strict": keywords["strict"],
            "bad_records": bad,
        }
        if sounds:
            summary["audio"] = sounds
        if damage:
            summary["index_damage"] = damage
        output.print_json(summary)
    else:
        print_bad(len(opened), bad, seconds, out)
        if repaired:
            output.console().print(
                f"[dim]{repaired:,} more have damage that decoders can repair: --strict lists "
                "them[/]"
            )
        for facts in sounds:
            for line in sound_report.lines(facts, len(opened)):
                output.console().print(line, style="dim", markup=False)
        output.console().print(repr(opened), style="dim", markup=False, soft_wrap=True)
        if damage:
            output.console().print(damage, style="red", markup=False)
    return output.BAD_ANSWER if bad or damage else output.GOOD


def scan_part(
    path: str, source: Any, out: Path | None, given: str, keywords: dict[str, Any], json: bool
) -> int:
    """Writes the bad records of a part, by their numbers in the whole dataset, as a file in the
    job's folder.
    """
    import headrace
    from headrace.jobs.folder import plan_of, write_part
    from headrace.jobs.part import part_from

    if out is None:
        output.fail("headrace: --part needs a folder: -o DEST", output.USAGE)
    begin = time.perf_counter()
    part = part_from(given)
    records = part.of(len(source))
    options = {name: value for name, value in keywords.items() if name != "threads"}
    name = f"{part.name}.jsonl"

    def make(folder: Path) -> dict[str, Any]:
        chosen = source if part.parts == 1 else headrace.subset(source, records)
        bad, repaired = find_bad_records(chosen, keywords, quiet=json)
        for entry in bad:
            entry["record"] += records.start
        # A pack's checksums are per file, and are verified once.
        damage = index_damage(path) if part.number == 0 else ""
        write_whole(folder / name, "".join(jsonlib.dumps(entry) + "\n" for entry in bad))
        found = {"bad": len(bad), "repaired": repaired, "index_damage": int(bool(damage))}
        return {"first": records.start, "records": len(records), **found}

    plan = plan_of("scan", [source.engine], **options)
    entry = write_part(out, part, plan, [name], make)
    entry["seconds"] = round(time.perf_counter() - begin, 3)
    if json:
        output.print_json({"output": str(out), **entry})
    else:
        print_part(entry)
    return output.GOOD


def index_damage(path: str) -> str:
    """The page of a pack that differs from the index, as text; empty if all agree."""
    import headrace
    from headrace import _core

    if not _core.is_pack(path):
        return ""
    try:
        _core.check_pack(path, None)
    except headrace.DataError as error:
        return str(error)
    return ""


def find_bad_records(
    source: Any, keywords: dict[str, Any], quiet: bool = False
) -> tuple[list[dict[str, Any]], int]:
    """The bad records in order, with reasons; and the number of images whose damage was repaired.
    keywords: those of Loader.
    """
    import headrace

    bad: list[dict[str, Any]] = []
    repaired = seen = 0
    with output.progress("scanning", len(source), quiet) as done:
        for records in alike(source):
            part = source if len(records) == len(source) else headrace.subset(source, records)
            found: list[dict[str, Any]] = []
            scan = Scan(part, keywords, found, lambda n, before=seen: done(before + n))
            first = 0
            while first < len(part):
                first = scan.run(first, len(part), BATCH)
                if first < len(part):  # several large records: each may fit alone
                    scan.run(first, min(first + BATCH, len(part)), 1)
                    first += BATCH
            bad += [{**entry, "record": int(records[entry["record"]])} for entry in found]
            repaired += scan.repaired
            seen += len(part)
    return sorted(bad, key=lambda entry: entry["record"]), repaired


def alike(source: Any) -> list[Any]:
    """The records of a source, grouped by the sample rate of their audio, since a batch has only
    one. Files that cannot be opened belong to the largest group.
    """
    import numpy as np

    rates = [sound_report.forms_of(source, name)[:, 1] for name in sound_report.fields_of(source)]
    if not rates:
        return [range(len(source))]
    of_each = np.stack(rates, 1)
    groups = np.unique(of_each[of_each.min(1) > 0], axis=0, return_inverse=True, return_counts=True)
    found, number, counts = groups
    if len(found) < 2:
        return [range(len(source))]
    group_of = np.full(len(source), int(np.argmax(counts)))
    group_of[of_each.min(1) > 0] = number.ravel()
    return [np.flatnonzero(group_of == group) for group in range(len(found))]


def looked_at(source: Any) -> list[Any]:
    """The transforms for a scan: whole images and audio clips, some frames of each video."""
    import headrace.transforms as T

    videos = any(field.kind == "video" for field in source.schema)
    return [T.UniformVideoClips(1, num_clips=8)] if videos else []


class Scan:
    """Iterates over ranges of the records; ``bad`` collects the bad ones."""

    TOO_LARGE = "HR0705"  # a batch of images does not fit into memory_limit
    ALL_BAD = "HR0785"

    def __init__(
        self, source: Any, keywords: dict[str, Any], bad: list[dict[str, Any]], done: Any
    ) -> None:
        self.source, self.bad, self.done = source, bad, done
        self.repaired = 0
        self.keywords = keywords  # of Loader

    def run(self, begin: int, end: int, size: int) -> int:
        """Runs up to ``end`` or the first batch that is too large; a record that is too large by
        itself is bad.
        """
        import headrace

        while begin < end:
            loader = headrace.Loader(
                self.source,
                looked_at(self.source),
                sampler=range(begin, end),
                batch_size=size,
                on_error="skip",
                error_budget=len(self.source) + 1,
                ragged="list",
                **self.keywords,
            ).numpy()
            stopped = None
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", headrace.Warning)  # included in the report
                    for number, _ in enumerate(loader, 1):
                        self.done(min(begin + number * size, end))
            except headrace.Error as error:
                if error.code not in (self.TOO_LARGE, self.ALL_BAD):
                    raise
                stopped = error if error.code == self.TOO_LARGE else None
            self.bad += [entry_of(record) for record in loader.quarantine]
            self.repaired += loader.stats()["repaired"]
            reached = begin + int(loader.state_dict()["batch"]) * size
            loader.close()
            if stopped is None:
                return end
            if size > 1:
                return reached
            key = self.source.key(reached)
            what = "its pixels do not fit into memory_limit: " + str(stopped).splitlines()[0]
            self.bad.append({"record": reached, "key": key, "code": stopped.code, "what": what})
            begin = reached + 1
        return end


def entry_of(record: dict[str, Any]) -> dict[str, Any]:
    """One entry of the quarantine, without the fields that only apply to a run."""
    return {name: record[name] for name in record if name not in ("epoch", "position", "action")}


def print_bad(records: int, bad: list[dict[str, Any]], seconds: float, out: Path | None) -> None:
    from rich.markup import escape

    console = output.console()
    for entry in bad[:SHOWN]:
        output.bad_record(entry, f"[red]{entry['code']}[/] {escape(entry['what'])}")
    if len(bad) > SHOWN:
        console.print(
            f"  … and {len(bad) - SHOWN:,} more" + ("" if out else "; list them all with -o FILE")
        )
    style = "bold red" if bad else "bold green"
    console.print(f"[{style}]{len(bad):,} bad[/] of {records:,} records ({seconds:.1f} s)")
    if out:
        console.print(f"written to {out}")
    if bad:
        console.print("[dim]`headrace explain CODE` explains a code.[/]")
