# SPDX-License-Identifier: Apache-2.0
"""`headrace bench SOURCE`: how fast this machine turns this dataset into batches."""

from __future__ import annotations

import enum
import hashlib
import statistics
import time
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from headrace.cli import output
from headrace.cli.loader_options import DECODING, Kinds, kinds_from, loader_options
from headrace.cli.preset import ABOUT, DEFAULT, PRESETS, default_for, loader_of
from headrace.counters import COPIES, STAGES, added

DEVICES = ("host", "simulated", "cuda")


class PixelType(str, enum.Enum):
    float32 = "float32"
    float16 = "float16"
    uint8 = "uint8"


EXAMPLES = (
    "headrace bench train/",
    "headrace bench train/ --preset decode --threads 2",
    "headrace bench train.hrpack --dtype float16 --json",
    "headrace bench train/ --device host",
)


@output.command
@loader_options(
    "on_error", "finish", "decode", *DECODING, "exif_orientation", on_error="substitute"
)
def run(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A path or URL that headrace.open() accepts.")
    ],
    preset: Annotated[
        str | None,
        typer.Option(
            **output.one_of((*PRESETS, "raw")),
            help=f"{ABOUT}; raw: read the bytes, decode nothing. {DEFAULT}",
        ),
    ] = None,
    size: Annotated[
        int, typer.Option(metavar="N", min=1, help="Height and width of the delivered images.")
    ] = 224,
    dtype: Annotated[
        PixelType, typer.Option(help="Dtype of the delivered images.")
    ] = PixelType.float32,
    batch_size: Annotated[int, typer.Option(metavar="N", min=1)] = 128,
    threads: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Number of threads; default: the cores available to this process.",
        ),
    ] = None,
    epochs: Annotated[
        int, typer.Option(metavar="N", min=1, help="Epochs to time, after a warm-up epoch.")
    ] = 3,
    repeat: Annotated[
        int, typer.Option(metavar="N", min=1, help="Read the source N times per epoch.")
    ] = 1,
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, help="Seed for the order and random transforms.")
    ] = 0,
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Use only the first N records.")
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            **output.one_of(DEVICES),
            help="Copy batches to a GPU, to host memory, or to a simulated device, which runs "
            "queued work as late as the API permits and interleaves streams at random. Default: no "
            "copy.",
        ),
    ] = None,
    kinds: Kinds = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    **keywords: Any,
) -> int:
    """Measure images per second, CPU seconds, memory and stages.

    The first epoch is a warm-up: its batches are hashed, but not timed.

    The rate is the median of the timed epochs.
    """
    from headrace.insight.measure.processes import PeakMemory

    start = time.perf_counter()
    opened = output.open_source(source, **kinds_from(kinds))
    keywords.update(batch_size=batch_size, threads=threads, seed=seed)
    preset = preset or default_for(opened)
    if device and preset == "raw":
        output.fail("headrace: --device copies batches, but --preset raw makes none", output.USAGE)
    loader, records = make_loader(
        opened, preset, size, dtype.value, repeat, limit, keywords, device
    )
    everything = (epochs + 1) * records
    with output.progress("measuring", everything, quiet=json) as done, PeakMemory() as peak:
        result = measure(loader, records, epochs, start, done)
    result["peak_pss_mib"] = None if peak.mib is None else round(peak.mib, 1)
    loader.close()
    if not result["images_per_second"]:
        output.fail("headrace: nothing was measured: no record could be used", output.DATA)
    if json:
        output.print_json(result)
    else:
        print_result(source, preset, result, values_of(opened))
    return output.GOOD


def make_loader(
    source: Any,
    preset: str,
    size: int,
    dtype: str,
    repeat: int,
    limit: int | None,
    keywords: dict[str, Any],
    device: str | None = None,
) -> tuple[Any, int]:
    """The loader to measure, and how many records an epoch has. keywords: those of Loader."""
    import numpy as np

    import headrace

    indices = np.arange(min(len(source), limit or len(source)))
    if repeat > 1 or limit:
        source = headrace.subset(source, np.tile(indices, repeat))
    if preset == "raw":
        from headrace import _core
        from headrace.insight.measure.stored import RawReader

        threads = keywords["threads"] or _core.allowed_cores()
        return RawReader(source, keywords["batch_size"], threads), len(source)
    loader = loader_of(source, preset, size, dtype, **keywords)
    return loader.dlpack(device_of(device)) if device else loader.numpy(), len(source)


def device_of(name: str) -> Any:
    """The engine's device for one of DEVICES; the host counts as a device here."""
    from headrace import _core
    from headrace.loader.own_device import open_device

    if name == "simulated":
        return _core.simulated_device(seed=0)
    return open_device("cpu" if name == "host" else name)


def measure(loader: Any, records: int, epochs: int, start: float, done: Any) -> dict[str, Any]:
    """One hashed epoch, then `epochs` timed ones. `start`: the time at which opening the source
    began.
    """
    from headrace.insight.measure import instructions
    from headrace.insight.measure.processes import Processes

    digest = hashlib.sha256()
    first_batch, seen = hashed_epoch(loader, digest, done)
    copied_before = copied_bytes(loader)
    rates: list[float] = []
    stages_before, cpu_before = stages_of(loader), Processes().cpu_seconds()
    timed = 0
    for _ in range(epochs):
        begin = time.perf_counter()
        count = timed_epoch(loader, seen + timed, done)
        rates.append(count / (time.perf_counter() - begin))
        timed += count
    cpu = Processes().cpu_seconds() - cpu_before
    stages_after = stages_of(loader)
    copied = copied_bytes(loader) - copied_before
    return {
        "images_per_second": round(statistics.median(rates), 1),
        "images_per_second_epochs": [round(rate, 1) for rate in rates],
        "first_batch_ms": round(1000 * (first_batch - start), 2),
        "cpu_seconds_per_1000": round(1000 * cpu / max(1, timed), 4),
        "peak_rss_mib": round(peak_rss_mib(), 1),
        "threads": loader.stats()["threads"],
        "simd": instructions.in_force(),
        "instructions": instructions.text(),
        "batch_size": loader.batch_size,
        "records": records,
        "epochs": epochs,
        "bad_records": bad_records(loader),
        "batch_hash": f"sha256:{digest.hexdigest()}",
        "device": device_name(loader),
        "finish": loader.stats().get("finish", ""),
        "decode": loader.stats().get("decode", ""),
        "decoded": dict(loader.stats().get("decoded", {})),
        "copied_bytes_per_record": round(copied / max(1, timed), 1),
        "stages": {name: round(stages_after[name] - stages_before[name], 4) for name in STAGES},
    }


# In separate functions, so that no batch is held when the next epoch starts.


def hashed_epoch(loader: Any, digest: Any, done: Any) -> tuple[float, int]:
    """When the first batch arrived, and the number of records."""
    first_batch, seen = 0.0, 0
    for batch in loader:
        first_batch = first_batch or time.perf_counter()
        seen += add_to_hash(digest, batch)
        done(seen)
    return first_batch, seen


def timed_epoch(loader: Any, before: int, done: Any) -> int:
    """Number of records, once all of them have arrived at their destination."""
    count, batch = 0, ()
    for batch in loader:
        count += rows_of(batch[0])
        done(before + count)
    await_copies(batch)
    return count


def add_to_hash(digest: Any, batch: Any) -> int:
    """Adds every value of a batch to the hash, in the order of its fields; returns the number of
    records.
    """
    import numpy as np

    for field in batch:
        for value in field if isinstance(field, Sequence) else [field]:
            if isinstance(value, str):
                digest.update(value.encode())
            elif isinstance(value, bytes):
                digest.update(value)
            else:
                if hasattr(value, "on_host"):  # an array of the engine on a device
                    value = np.asarray(value.on_host())
                digest.update(np.ascontiguousarray(value).view(np.uint8).data)
    return rows_of(batch[0])


def rows_of(field: Any) -> int:
    """Number of records in a field of a batch."""
    return int(field.shape[0]) if hasattr(field, "shape") else len(field)


def await_copies(batch: Any) -> None:
    """Returns once the batch and all earlier ones are on the device."""
    there = [field for field in batch if hasattr(field, "on_host")]
    if there:
        min(there, key=lambda field: field.nbytes).on_host()


def device_name(loader: Any) -> str | None:
    """The device that batches are copied to."""
    return next(iter(loader.stats().get("devices", {})), None)


def copied_bytes(loader: Any) -> int:
    """Bytes copied to devices so far."""
    devices = loader.stats().get("devices", {}).values()
    return int(added(devices, COPIES).get("bytes", 0))


def stages_of(loader: Any) -> dict[str, float]:
    """Seconds per stage so far, summed over threads."""
    stages = loader.stats()["stages"]
    return {name: float(stages[name]) for name in STAGES}


def bad_records(loader: Any) -> int:
    """Number of bad records; each is counted once, not once per epoch."""
    return len({entry["record"] for entry in getattr(loader, "quarantine", ())})


def peak_rss_mib() -> float:
    """Peak resident memory of this process in MiB. From /proc, since getrusage may report the peak
    of the process that started this one.
    """
    try:
        with open("/proc/self/status") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) / 1024
    except OSError:
        pass
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def device_facts(result: dict[str, Any]) -> dict[str, str]:
    if result["device"] is None:
        return {}
    return {
        "copied": f"{result['copied_bytes_per_record']:,.0f} bytes per record to "
        "{result['device']}",
        "finish": str(result["finish"]),
        "decode": decode_fact(result),
    }


def decode_fact(result: dict[str, Any]) -> str:
    """How many images were decoded on the CPU and on the device, and why."""
    counts = [f"{count:,} {place}" for place, count in result["decoded"].items() if count]
    return str(result["decode"]) + (f" ({', '.join(counts)})" if counts else "")


def values_of(source: Any) -> str:
    """The main kind of a record: images, audio clips, videos or something else."""
    kinds = {field.kind for field in source.schema}
    names = {"image": "images", "video": "videos", "audio": "audio clips"}
    return next((name for kind, name in names.items() if kind in kinds), "records")


def print_result(source: str, preset: str, result: dict[str, Any], values: str) -> None:
    from rich.markup import escape

    rates = ", ".join(f"{rate:,.0f}" for rate in result["images_per_second_epochs"])
    stages = ", ".join(f"{name} {seconds:.2f}" for name, seconds in result["stages"].items())
    count = output.count_text(result["records"], "record")
    console = output.console()
    facts = {
        "each epoch": rates,
        "first batch": f"{result['first_batch_ms']:,.0f} ms after the start",
        "CPU": f"{result['cpu_seconds_per_1000']:.3f} s per 1,000 {values}",
        "memory": f"{result['peak_rss_mib']:,.0f} MiB at most",
        "threads": str(result["threads"]),
        "instructions": result["instructions"],
        "an epoch": f"{count} in batches of {result['batch_size']}",
        "stages": f"{stages} (seconds, all threads together)",
        **device_facts(result),
        "batches": output.shortened(result["batch_hash"], console.width - 14),
    }
    if result["bad_records"]:
        facts["bad records"] = f"{result['bad_records']:,}; headrace scan lists them"
    rate = f"{result['images_per_second']:,.0f} {values}/s"
    source = output.shortened(source, max(24, console.width - len(rate) - len(preset) - 6))
    console.print(f"[bold]{rate}[/]  ({preset}, {escape(source)})")
    output.facts(facts)
