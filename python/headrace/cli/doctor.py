# SPDX-License-Identifier: Apache-2.0
"""`headrace doctor SOURCE`: whether training waits for data, which part of loading is slow, and
what would help.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli import (
    doctor_files,
    doctor_reads,
    doctor_script,
    doctor_system,
    named,
    output,
)
from headrace.cli.loader_options import DECODING, Kinds, kinds_from, loader_options
from headrace.cli.preset import ABOUT, DEFAULT, PRESETS, default_for, loader_of

if TYPE_CHECKING:
    from headrace.insight.report.report import Report

EXAMPLES = (
    "headrace doctor train/ --step 2ms",
    "headrace doctor train/ --step step.py:step --html report.html",
    "headrace doctor --script train.py -- --epochs 1",
    "headrace doctor train/ --nodes 2",
    "headrace doctor --system",
)


@output.command
@loader_options("on_error", *DECODING, "exif_orientation", on_error="substitute")
def run(
    source: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SOURCE | FILE.py | -- ARGS",
            help="A path or URL that headrace.open() accepts; or a training script (as with "
            "--script) and its arguments.",
        ),
    ] = None,
    script: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.py",
            help="Run this unmodified training script, examine its loader, then stop the script.",
        ),
    ] = None,
    module: Annotated[
        str | None, typer.Option("-m", "--module", help="Like --script, for a module (python -m).")
    ] = None,
    patience: Annotated[
        float,
        typer.Option(
            metavar="N",
            min=0.1,
            help="Seconds after which a batch or a training step counts as hanging.",
        ),
    ] = 120.0,
    preset: Annotated[
        str | None,
        typer.Option(**output.one_of(PRESETS), help=f"{ABOUT}. {DEFAULT}"),
    ] = None,
    pipeline: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.py:NAME",
            help="Use these transforms: a list, a dict of lists by field, or a function that "
            "returns one.",
        ),
    ] = None,
    size: Annotated[
        int, typer.Option(metavar="N", min=1, help="Height and width of the delivered images.")
    ] = 224,
    batch_size: Annotated[int, typer.Option(metavar="N", min=1)] = 64,
    threads: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Number of threads; default: the cores available to this process.",
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option(metavar="N", min=0.1, help="Approximate duration in seconds.")
    ] = 40.0,
    step: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.py:NAME|TIME",
            help="Your training step: a function that takes a batch, which the doctor runs, or the "
            "duration of a simulated step: 2ms, 40us/record.",
        ),
    ] = None,
    device_copy: Annotated[
        str | None,
        typer.Option(
            metavar="RATE", help="Transfer rate to the simulated device, for example 12GB/s."
        ),
    ] = None,
    kinds: Kinds = None,
    skip: Annotated[list[str] | None, typer.Option(help="Experiment to skip (repeatable).")] = None,
    sweep: Annotated[
        bool,
        typer.Option("--sweep", help="Also try other thread counts; adds 50% to the duration."),
    ] = False,
    verify: Annotated[
        str | None,
        typer.Option(
            metavar="REMEDY",
            help="Apply a remedy and compare: pack, threads, uint8, ...; 'first': the top one.",
        ),
    ] = None,
    nodes: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Only estimate the requests, bytes and cost of an epoch on N machines, for each "
            "record order.",
        ),
    ] = None,
    global_batch: Annotated[
        int, typer.Option(metavar="N", min=1, help="With --nodes: global batch size.")
    ] = 2048,
    price: Annotated[
        float,
        typer.Option(metavar="DOLLARS", min=0, help="With --nodes: price of 1,000 read requests."),
    ] = 0.0004,
    system: Annotated[
        bool,
        typer.Option(
            "--system",
            help="Only print versions, processor, limits, libraries and devices: for a bug report.",
        ),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write an HTML report with charts.")
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Also write a trace, for ui.perfetto.dev (.gz: smaller)."
        ),
    ] = None,
    merge_trace: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Merge the trace into this PyTorch profiler trace."),
    ] = None,
    **keywords: Any,
) -> int:
    """Find out whether training waits for data, and what would help.

    Exit code 0: training is not waiting for data, or no verdict. 1: data is the bottleneck. 3:
    nothing could be measured.
    """
    from headrace.insight import doctor
    from headrace.insight.examination.experiments import EXPERIMENTS
    from headrace.loader import Loader

    doctor_files.check(html, trace, merge_trace)
    here = [path.absolute() if path else None for path in (html, trace, merge_trace)]

    def show(report: Report) -> int:
        if json:
            output.print_json(report.json())
        else:
            doctor_files.show(report)
        doctor_files.write(report, *here)
        if report.interrupted:
            return output.INTERRUPTED
        if report.failed and report.verdict == "unsure":
            return output.DATA
        return output.BAD_ANSWER if report.input_bound else output.GOOD

    if system:
        if source or script or module:
            output.fail("headrace: --system takes neither a SOURCE nor a script", output.USAGE)
        return doctor_system.show(json)
    if script is None and module is None and source and is_script(source[0]):
        script, source = source[0], source[1:]
    if script is not None or module is not None:
        doctor_script.examine(script, module, source or (), seconds, patience, skip or (), show)
    if source is None or len(source) != 1:
        output.fail("headrace: give one SOURCE, or --script FILE.py", output.USAGE)
    called = step_named(step, device_copy)
    opened = output.open_source(source[0], **kinds_from(kinds))
    if nodes is not None:
        return doctor_reads.show_plan(source[0], opened, nodes, global_batch, price, json)
    keywords.update(batch_size=batch_size, threads=threads)
    if pipeline is not None:
        transforms = named.transforms("--pipeline", pipeline)
        loader = Loader(opened, transforms, shuffle=True, **keywords)
    else:
        loader = loader_of(opened, preset or default_for(opened), size, **keywords)
    with output.progress("examining", len(EXPERIMENTS), quiet=json) as done:
        report = doctor(
            loader,
            called,
            seconds=seconds,
            skip=skip or (),
            sweep=sweep,
            patience=patience,
            verify=verify or False,
            progress=lambda name, number: done(number),
        )
    loader.close()
    return show(report)


def is_script(path: str) -> bool:
    """Whether the argument is a script: datasets are never Python files."""
    return path.endswith(".py") and os.path.isfile(path)


def step_named(text: str | None, device_copy: str | None) -> Callable[[Any], Any] | None:
    """The step given by ``--step``: a simulated step for a duration, otherwise the user's
    function."""
    from headrace.insight.stand_in import is_stand_in, stand_in_from

    if text is not None and is_stand_in(text):
        return stand_in_from(text, device_copy)
    if device_copy is not None:
        output.fail("headrace: --device-copy needs a --step that is a duration", output.USAGE)
    return named.function("--step", text) if text else None
