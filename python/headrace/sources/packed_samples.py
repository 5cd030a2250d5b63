# SPDX-License-Identifier: Apache-2.0
"""The part of ``hr.packed`` that prepares documents: images, masks and ids."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from headrace import arguments
from headrace.errors import declare
from headrace.sources.source import Progress, Source, header_sizes
from headrace.transforms import flatten

_NOT_TOGETHER = declare(
    "HR0194",
    "config",
    "invalid arguments for packing images",
    "hr.packed(images=...) needs the id of the placeholder, and the number of tokens per image: "
    "from image_transforms= that end with Patchify, or from image_tokens=. Documents with images "
    "are never split: one that is longer than a row is an error, or dropped.",
)
_TOO_LONG = ("split", "truncate", "drop", "error")


class Preparation:
    """The checked arguments of ``hr.packed``, and their form for the engine."""

    def __init__(
        self,
        mask: str | None,
        ignore_tokens: Iterable[int],
        vocab_size: int | None,
        images: str | Iterable[str],
        placeholder: int | None,
        expand: bool,
        image_transforms: Any,
        image_tokens: int | None,
        patches_per_token: int,
        bad_images: str,
        exif_orientation: bool | None,
    ) -> None:
        self.images = [images] if isinstance(images, str) else [str(name) for name in images]
        self.transforms = flatten(image_transforms)
        ids = [arguments.integer("ignore_tokens", id, -arguments.INT64) for id in ignore_tokens]
        if vocab_size is not None:
            arguments.integer("vocab_size", vocab_size, 1)
        if image_tokens is not None:
            arguments.integer("image_tokens", image_tokens, 1, arguments.INT32)
        self.arguments: dict[str, Any] = {
            "mask": mask,
            "ignore_tokens": ids,
            "vocab_size": vocab_size,
            "images": self.images,
            "placeholder": placeholder,
            "expand": arguments.switch("expand", expand),
            "image_transforms": self.transforms,
            "image_tokens": image_tokens,
            "patches_per_token": arguments.integer(
                "patches_per_token", patches_per_token, 1, arguments.INT32
            ),
            "bad_images": arguments.one_of("bad_images", bad_images, ("error", "drop")),
            "exif_orientation": exif_orientation
            if exif_orientation is None
            else arguments.switch("exif_orientation", exif_orientation),
        }
        self._check_images()

    def _check_images(self) -> None:
        given = self.arguments
        if not self.images:
            alone = [n for n in ("placeholder", "image_tokens") if given[n] is not None]
            if alone or self.transforms:
                name = (alone or ["image_transforms"])[0]
                raise _NOT_TOGETHER.error(f"{name}= needs images=, the names of their fields")
            return
        if len(set(self.images)) < len(self.images):
            raise _NOT_TOGETHER.error(f"images={self.images} lists a field twice")
        if given["placeholder"] is None:
            raise _NOT_TOGETHER.error(
                "images= needs placeholder=, the id that stands for an image among the tokens",
                hint='tokenizer.convert_tokens_to_ids("<|image_pad|>") of Qwen2-VL',
            )
        vocabulary = given["vocab_size"]
        arguments.integer(
            "placeholder",
            given["placeholder"],
            maximum=arguments.INT64 if vocabulary is None else vocabulary - 1,
        )
        if given["image_tokens"] is None and not self.transforms:
            raise _NOT_TOGETHER.error(
                "the number of tokens per image is unknown",
                hint="image_transforms=[..., T.Patchify(16)], or image_tokens=256",
            )

    def check_labels(self, shift: int | None, labels: str | None) -> None:
        """Raises HR0160 for options about labels if there are none."""
        if shift is not None:
            return
        given = {**self.arguments, "labels": labels}
        for name in ("mask", "ignore_tokens", "labels"):
            if given[name]:
                raise arguments.BAD_VALUE.error(
                    f"{name}={given[name]!r} concerns labels, but rows have none with shift=None",
                    hint="shift=1 (targets) or shift=0 (labels)",
                )

    def upright(self, documents: Source) -> bool:
        """Whether images are rotated by their Exif orientation when counting tokens, and by default
        when read."""
        said = self.arguments["exif_orientation"]
        return documents.upright if said is None else bool(said)

    def too_long(self, given: str | None, method: str) -> str:
        """The policy for documents longer than a row. Raises HR0194 if it would split an image's
        tokens.
        """
        chosen = given if given is not None else "error" if self.images else "split"
        arguments.one_of("too_long", chosen, _TOO_LONG)
        if self.images and (chosen in ("split", "truncate") or method == "split"):
            word = f"too_long={chosen!r}" if method != "split" else "method='split'"
            raise _NOT_TOGETHER.error(
                f"{word} would split documents with images",
                hint='too_long="error" or "drop", and another method',
            )
        return chosen

    def of(self, documents: Source, progress: Progress | None) -> dict[str, Any] | None:
        """The engine's SampleOptions by name; None if documents are packed unchanged."""
        given = self.arguments
        if not (self.images or given["mask"] or given["ignore_tokens"] or given["vocab_size"]):
            return None
        known = {field.name for field in documents.schema if field.is_picture and field.encoded}
        sizes = [  # others are checked by the engine
            header_sizes(documents, name, self.upright(documents), progress)
            if name in known
            else np.zeros((1, 2))
            for name in self.images
        ]
        fits = len({len(size) for size in sizes}) == 1
        flat = np.stack(sizes, 1).reshape(-1) if fits else np.empty(0)
        return {
            "mask": given["mask"] or "",
            "ignore_tokens": given["ignore_tokens"],
            "vocab_size": given["vocab_size"] or 0,
            "images": self.images,
            "sizes": np.ascontiguousarray(flat, np.int64),
            "placeholder": -1 if given["placeholder"] is None else given["placeholder"],
            "expand": given["expand"],
            "drop_bad": given["bad_images"] == "drop",
            "transforms": [step.spec() for step in self.transforms],
            "image_tokens": given["image_tokens"] or 0,
            "patches_per_token": given["patches_per_token"],
        }
