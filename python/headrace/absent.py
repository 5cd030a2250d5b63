# SPDX-License-Identifier: Apache-2.0
"""Names of torchvision's transforms that no operator has, and what to write in their place.

>>> print(instead_of("ColorJitter"))
torchvision's own runs as a step in Python: put v2.ColorJitter(...) into the list
>>> instead_of("RandomHorizontalFlop") is None
True
"""

from __future__ import annotations

# What pictures are from the start, or what the list says itself.
_OTHERWISE = {
    "ToTensor": 'write ToDtype("float32", scale=True)',
    "ConvertImageDtype": "write ToDtype(dtype, scale=True)",
    "PILToTensor": "leave it out: pictures are (C, H, W) uint8 tensors from the start",
    "ToPureTensor": "leave it out: batches are plain arrays and tensors",
    "ToPILImage": "leave it out: a step in Python gets arrays, and may make what it wants of them",
    "Identity": "leave it out",
    "Lambda": "put the function itself into the list; its arguments are names of fields",
    "MixUp": "torchvision's own takes the batches that come out: v2.MixUp(...)(images, labels)",
    "CutMix": "torchvision's own takes the batches that come out: v2.CutMix(...)(images, labels)",
}
# fmt: off
_PICTURES = frozenset((  # of one picture: runs as it is
    "AugMix", "AutoAugment", "ColorJitter", "ElasticTransform", "GaussianBlur", "GaussianNoise",
    "Grayscale", "JPEG", "LinearTransformation", "RandAugment", "RandomAdjustSharpness",
    "RandomAffine", "RandomAutocontrast", "RandomChannelPermutation", "RandomChoice",
    "RandomEqualize", "RandomGrayscale", "RandomInvert", "RandomOrder", "RandomPerspective",
    "RandomPhotometricDistort", "RandomPosterize", "RandomResize", "RandomRotation",
    "RandomShortestSize", "RandomSolarize", "RandomZoomOut", "RGB", "ScaleJitter",
    "TrivialAugmentWide",
))
_MORE = frozenset((  # gives several pictures, or is about boxes and points
    "ClampBoundingBoxes", "ClampKeyPoints", "ConvertBoundingBoxFormat", "FiveCrop",
    "RandomIoUCrop", "SanitizeBoundingBoxes", "SanitizeKeyPoints", "SetClampingMode", "TenCrop",
    "UniformTemporalSubsample",
))
# fmt: on
NAMES = _PICTURES | _MORE | set(_OTHERWISE)


def instead_of(name: str) -> str | None:
    """What to write in place of torchvision's transform of this name; None where it has none."""
    if name in _PICTURES:
        return f"torchvision's own runs as a step in Python: put v2.{name}(...) into the list"
    if name in _MORE:
        return "a function may do it; its arguments are fields: def step(image, boxes): ..."
    return _OTHERWISE.get(name)
