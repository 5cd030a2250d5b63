# SPDX-License-Identifier: Apache-2.0
"""Inspection of a loader: its plan, one record after each transform, images, times, and their
meaning."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from headrace import _core
from headrace.drawing.drawn import draw, enlargement
from headrace.drawing.grid import Grid, visible
from headrace.drawing.player import audio_element, clip_element, sound_element
from headrace.drawing.strip import frames_of, strip_picture
from headrace.drawing.waveform import waveform_picture
from headrace.loader.options import KEYWORDS
from headrace.loader.viewed import ViewedLoader
from headrace.overlays import can_be_drawn, overlay_of
from headrace.per_record import Layout, per_record
from headrace.printable import for_terminal
from headrace.sources.source import described


class Text(str):
    """Text that a notebook or prompt shows unquoted."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class Stats(dict[str, Any]):
    """Counters by name, available as attributes too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class Stage:
    """One record after one transform: ``stage.values["image"]``."""

    def __init__(self, label: str, values: dict[str, Any], image: Any) -> None:
        self.label = label
        self.values = values
        self.image = image

    def __repr__(self) -> str:
        def one(value: Any) -> str:
            if isinstance(value, bytes):
                return f"{len(value):,} bytes"
            if not hasattr(value, "shape"):
                return repr(value)
            if value.shape == ():
                return str(value)
            text = f"{value.dtype} {tuple(value.shape)}"
            if value.size:
                text += f" {value.min():.4g}..{value.max():.4g}"
            return text

        fields = ", ".join(f"{name} {one(value)}" for name, value in self.values.items())
        return f"{self.label}: {fields}"


class Trace(list[Stage]):
    """A record from the source to the batch, one Stage per transform."""

    def __repr__(self) -> str:
        return "\n".join(map(repr, self))

    @property
    def images(self) -> Grid:
        """The images of all stages, as one image, with annotations drawn over them. Clips are shown
        as frames, audio clips as waveforms.
        """
        images = [stage.image for stage in self if stage.image is not None]
        if not images:
            raise ValueError(
                "no transform of this record has a field to show: an image, clip or audio"
            )
        return Grid(images)

    def _repr_png_(self) -> bytes:
        return self.images._repr_png_()


# Options with which a loader delivers single records, of any shape; the order stays the run's.
_ONE_RECORD = {
    "batch_size": 1,
    "global_batch_size": None,
    "threads": 1,
    "shard": False,
    "fields": None,
    "for_inspection": True,  # includes fields that the loader does not deliver
    "ragged": "list",
    "pad_value": None,
    "last_batch": "keep",
    "quarantine": None,
    "index": False,
    "resident": False,
    "view": False,
    "on_error": "raise",
    "memory_format": "channels_first",
}


def has_scope(step: Any, scopes: Collection[str]) -> bool:
    """Whether the scope of the transform, or of one inside it, is among these: "batch",
    "mixed_in"."""
    record = getattr(step, "record", {})
    inner = getattr(step, "arguments", {}).get("transforms", ())
    return record.get("scope") in scopes or any(
        has_scope(each, scopes)
        for entry in inner
        for each in (entry if isinstance(entry, list) else [entry])
    )


def trace(loader: ViewedLoader, position: int) -> Trace:
    """See Loader.trace. The random draws are the same as in the run: they depend on the position,
    not on the batch.
    """
    epoch = loader.epoch
    steps = loader.assembly.pipeline.all_steps()
    while steps and has_scope(steps[-1], ("batch",)):  # a single record cannot be mixed
        steps.pop()
    stages = Trace()
    classes = getattr(loader.source, "classes", None)
    scale = 0
    for count in range(len(steps) + 1):
        engine = loader.assembly.make(
            pipeline=loader.assembly.pipeline.prefix(count), **_ONE_RECORD
        )
        outputs = {output["name"]: output for output in engine.outputs()}
        _, _, values = engine.batch(epoch, position)
        engine.close()
        record = {n: _first(value) for n, value in zip(outputs, values, strict=True)}
        label = repr(steps[count - 1]) if count else f"record {position} of epoch {epoch}"
        image = _picture_of(record, steps[:count])
        if image is None:
            image = _clip_or_sound(record, outputs, steps[:count])
        else:
            scale = scale or enlargement(image)  # the same for all, so that sizes can be compared
            fields = {n: value for n, value in record.items() if can_be_drawn(outputs[n])}
            over = overlay_of(fields, outputs, image.shape[1:], classes)
            image = draw(image, over, scale)
        stages.append(Stage(label, record, image))
    return stages


_SHOWN = ("image", "video", "audio")  # the first one that exists


def show(loader: ViewedLoader, count: int, draws: bool = True, columns: int | None = None) -> Grid:
    """See Loader.show."""
    loader.place()
    state = loader.present_state()
    pictures: list[Any] = []
    mean_std = _normalization(loader.assembly.pipeline.all_steps())
    inspector = loader.assembly.inspector()
    outputs = {output["name"]: output for output in inspector.outputs()}
    shown = [name for name in outputs if outputs[name]["kind"] in _SHOWN]
    image = min(shown, key=lambda name: _SHOWN.index(outputs[name]["kind"]), default=None)
    if image is None:
        raise ValueError("show() needs a field that is an image, a video or audio")
    kind = outputs[image]["kind"]
    over = [n for n, output in outputs.items() if draws and can_be_drawn(output)]
    # Outputs that belong to a clip: the times of its frames, and the audio of its record.
    times = f"{image}_times" if kind == "video" and f"{image}_times" in outputs else None
    heard = next((n for n in shown if kind == "video" and outputs[n]["kind"] == "audio"), None)
    beside = [name for name in (times, heard) if name is not None and name not in over]
    players: list[str] = []
    classes = getattr(loader.source, "classes", None)
    batches = len(loader)
    for number in range(state["batch"], state["batch"] + batches):
        epochs, index = divmod(number, batches)
        _, _, values = inspector.batch(state["epoch"] + epochs, index)
        readable = {name: _readable(value) for name, value in zip(outputs, values, strict=True)}
        layout = Layout.of([*outputs.values()])
        for record in per_record(layout, readable, [image, *over, *beside]):
            fields = {name: _readable(value) for name, value in record.items()}
            value = fields.pop(image)
            if kind == "audio":
                pictures.append(waveform_picture(value))
                rate = outputs[image]["sample_rate"]
                players.append(sound_element(value, rate, pictures[-1]))
            elif kind == "video":
                frames = frames_of(value)
                pictures.append(strip_picture(frames, *mean_std))
                seen = [visible(frame, *mean_std) for frame in frames]
                seconds = None if times is None else np.ravel(fields[times])[: len(seen)]
                element = clip_element(seen, seconds)
                if heard is not None:
                    element += audio_element(fields[heard], outputs[heard]["sample_rate"])
                players.append(element)
            else:
                picture = visible(value, *mean_std)
                over_it = overlay_of(fields, outputs, picture.shape[1:], classes)
                pictures.append(draw(picture, over_it))
            if len(pictures) == count:
                return Grid(pictures, columns, players)
    return Grid(pictures, columns, players)


def value_rows(value: Any) -> list[Any]:
    """The records of one field of a batch."""
    return list(_readable(value)) if isinstance(value, _core.Array) else list(value)


def _readable(value: Any) -> Any:
    """An array of the engine as NumPy's; bfloat16 becomes float32."""
    if not isinstance(value, _core.Array):
        return value
    if value.dtype != "bfloat16":
        return np.asarray(value)
    bits = np.asarray(value.bits())  # the upper half of a float32's
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _first(value: Any) -> Any:
    rows = value_rows(value)
    return _readable(rows[0])


def _normalization(steps: list[Any]) -> tuple[Any, Any]:
    """Mean and std of the last Normalize, to undo it for display."""
    for step in reversed(steps):
        if step.name == "Normalize":
            return step.arguments.get("mean"), step.arguments.get("std")
    return None, None


def _picture_of(record: dict[str, Any], steps: list[Any]) -> Any:
    image: Any = record.get("image")
    if getattr(image, "ndim", 0) != 3 or len(image) not in (1, 3, 4):
        return None
    return visible(image, *_normalization(steps))


def _clip_or_sound(record: dict[str, Any], outputs: dict[str, Any], steps: list[Any]) -> Any:
    for name, value in record.items():
        kind = outputs[name]["kind"]
        if kind == "video" and getattr(value, "ndim", 0) >= 4:
            return strip_picture(frames_of(value), *_normalization(steps))
        if kind == "audio" and getattr(value, "ndim", 0) == 2:
            return waveform_picture(value)
    return None


_ADVICE = {
    "read": "reading: a pack, or a faster disk, would help",
    "decode": "decoding: `headrace pack` or more threads would help",
    "prepare": "preparing images that the device decodes: more threads would help",
    "transform": "transforms: fewer pixels or more threads would help",
    "resample": "resizing: a smaller source size or more threads would help",
    "store": "writing batches: a smaller dtype would help",
    "python": "the Python transforms: built-in transforms, or python_workers=, would help",
}


def bottleneck(stats: Stats, packs: bool = True) -> str:
    """See Loader.bottleneck. packs: whether the records have images, so that packing would help."""
    if not stats["batches"] or not stats["wall_seconds"]:
        return "Nothing is known yet: no batch was delivered."
    waited = stats["wait_seconds"] / stats["wall_seconds"]
    work = {name: seconds for name, seconds in stats["stages"].items() if name in _ADVICE}
    total = sum(work.values())
    if waited < 0.05 or not total:
        return (
            f"The loop is fed: it waited for data {waited:.0%} of the time, "
            f"{stats['threads']} threads suffice."
        )
    name = max(work, key=lambda stage: work[stage])
    advice = _ADVICE[name]
    if name == "decode" and not packs:
        advice = "decoding: more threads would help"
    return (
        f"The loop waited for data {waited:.0%} of the time; {work[name] / total:.0%} of the work "
        f"of {stats['threads']} threads is {advice}."
    )


# Keywords that are shown on another's line: "batch_size", "batches" or "order".
_WITH_OTHERS = {"global_batch_size", "last_batch", "shuffle", "shuffle_window", "seed", "sampler"}


def _batches(loader: ViewedLoader) -> str:
    try:
        return f"{len(loader):,}"
    except TypeError:  # a stream's
        return "unknown number"


def describe(loader: ViewedLoader) -> str:
    """The repr: every resolved value and where it comes from, then the other arguments."""
    assembly = loader.assembly
    engine, given = assembly.present_engine, assembly.given
    if engine is None:
        return "<Loader, closed>"
    rank_batch, global_batch = assembly.batch_sizes()
    shard, workers = assembly.shard, assembly.workers
    on_cpu = engine.resolved("decode_note")
    settled = "" if assembly.is_settled else ", until the first iteration"
    lines = {
        "source": described(loader.source),
        "transforms": ", ".join(map(repr, assembly.pipeline.all_steps())) or "none",
        "fields": ", ".join(output["name"] for output in engine.outputs()),
        "batch_size": f"{rank_batch} per rank, {global_batch} global",
        "batches": f"{_batches(loader)} per epoch, last_batch={given['last_batch']!r}",
        "order": f"{engine.resolved('order')}, seed={given['seed']}",
        "shard": f"rank {shard.rank} of {shard.world_size} ({shard.origin}{settled})",
        "threads": engine.resolved("threads"),
        "memory_limit": engine.resolved("memory_limit"),
        **({"cache": engine.resolved("cache")} if given["cache"] else {}),
        "resident": engine.resolved("resident"),
        "finish": engine.resolved("finish"),
        "decode": engine.resolved("decode") + (f"; on the CPU, {on_cpu}" if on_cpu else ""),
        "python_workers": f"{workers.processes} of {workers.count} requested"
        if workers.count
        else "0: Python transforms run on one thread",
        "index": engine.resolved("row_index"),
        "on_error": repr(given["on_error"]),
    }
    if given["workers"] is not None:
        lines["workers"] = loader.remote_text
    for name, keyword in KEYWORDS.items():
        if name not in lines and name not in _WITH_OTHERS and given[name] != keyword.default:
            lines[name] = repr(given[name])
    width = max(map(len, lines))
    shown = "\n".join(f"  {name:{width}}  {text}" for name, text in lines.items())
    return for_terminal(f"Loader\n{shown}")
