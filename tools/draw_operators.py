# SPDX-License-Identifier: Apache-2.0
"""Draws what each operator does to the example pictures, with boxes and labels, and the page of it.

Used by make_reference.py. A row of pictures is what a loader's ``show()`` gives, so it is what
training would get.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).resolve().parent.parent / "examples" / "pictures"
HEIGHT, WIDTH = 150, 200

# By section: the steps that show an operator, as they would be written.
PICTURED: dict[str, dict[str, str]] = {
    "Size and place": {
        "Resize": "T.Resize((90, 180))",
        "CenterCrop": "T.CenterCrop((120, 120))",
        "RandomCrop": "T.RandomCrop((120, 150))",
        "RandomResizedCrop": "T.RandomResizedCrop((150, 150))",
        "Pad": 'T.Pad(24, padding_mode="constant", fill=90)',
        "RandomHorizontalFlip": "T.RandomHorizontalFlip(1.0)",
        "RandomVerticalFlip": "T.RandomVerticalFlip(1.0)",
    },
    "Detection": {
        "RandomIoUCrop": "T.RandomIoUCrop(sampler_options=[0.1, 0.3, 0.5])",
        "RandomBBoxCrop": "T.RandomBBoxCrop([0.1, 0.3], aspect_ratio=(0.5, 2), scaling=(0.3, 1), "
        "num_attempts=20, all_boxes_above_threshold=False, allow_no_crop=False)",
        "RandomSizedBBoxSafeCrop": "T.RandomSizedBBoxSafeCrop((120, 160))",
        "RandomZoomOut": "T.RandomZoomOut(114, side_range=(1.5, 2.5), p=1.0)",
        "RandomShortestSize": "T.RandomShortestSize([60, 90, 120, 150])",
        "RandomResize": "T.RandomResize(60, 180)",
        "ScaleJitter": "T.ScaleJitter((200, 200), (0.4, 1.2))",
        "Letterbox": "T.Letterbox((150, 150))",
        "Mosaic": "T.Mosaic((100, 130))",
    },
    "Warps": {
        "RandomRotation": "T.RandomRotation((20, 30))",
        "RandomAffine": 'T.RandomAffine(15, scale=(0.7, 1.1), shear=15, interpolation="bilinear")',
        "RandomPerspective": "T.RandomPerspective(0.5, p=1.0)",
        "ElasticTransform": "T.ElasticTransform(120.0, 6.0)",
        "GridDistortion": "T.GridDistortion(4, 0.6)",
    },
    "Colours": {
        "ColorJitter": "T.ColorJitter(0.4, 0.4, 0.4, 0.1)",
        "RandomPhotometricDistort": "T.RandomPhotometricDistort(p=0.9)",
        "AdjustBrightness": "T.AdjustBrightness(1.5)",
        "AdjustContrast": "T.AdjustContrast(1.8)",
        "AdjustSaturation": "T.AdjustSaturation(2.0)",
        "AdjustHue": "T.AdjustHue(0.2)",
        "AdjustGamma": "T.AdjustGamma(0.5)",
        "Grayscale": "T.Grayscale(3)",
        "RandomGrayscale": "T.RandomGrayscale(1.0)",
        "RandomInvert": "T.RandomInvert(1.0)",
        "RandomSolarize": "T.RandomSolarize(128, p=1.0)",
        "RandomPosterize": "T.RandomPosterize(2, p=1.0)",
        "RandomAutocontrast": "T.RandomAutocontrast(1.0)",
        "RandomEqualize": "T.RandomEqualize(1.0)",
        "RandomChannelPermutation": "T.RandomChannelPermutation()",
        "HueSaturationValue": "T.HueSaturationValue(40, 60, 40, p=1.0)",
        "RandomHSV": "T.RandomHSV(0.1, 0.7, 0.4)",
        "PCALighting": "T.PCALighting(0.5)",
        "CLAHE": "T.CLAHE(4.0, p=1.0)",
    },
    "Sharpness, blur and noise": {
        "RandomAdjustSharpness": "T.RandomAdjustSharpness(5.0, p=1.0)",
        "GaussianBlur": "T.GaussianBlur(15, 3.0)",
        "PillowGaussianBlur": "T.PillowGaussianBlur(3.0)",
        "MotionBlur": "T.MotionBlur((9, 15), p=1.0)",
        "MedianBlur": "T.MedianBlur((7, 9), p=1.0)",
        "GaussianNoise": "T.GaussianNoise(0.0, 0.2)",
        "SaltAndPepper": "T.SaltAndPepper(0.1, p=1.0)",
        "JPEG": "T.JPEG((3, 10))",
    },
    "Holes": {
        "RandomErasing": "T.RandomErasing(p=1.0, value=90)",
        "CoarseDropout": "T.CoarseDropout((4, 8), (12, 30), (12, 30), fill=90, p=1.0)",
        "GridDropout": "T.GridDropout(unit_size_range=(24, 32), fill=90, p=1.0)",
    },
    "Policies": {
        "AutoAugment": "T.AutoAugment()",
        "RandAugment": "T.RandAugment(2, 15)",
        "TrivialAugmentWide": "T.TrivialAugmentWide()",
        "AugMix": "T.AugMix(5)",
        "TimmAugment": 'T.TimmAugment("rand-m9-mstd0.5-inc1")',
    },
    "Choices": {
        "RandomChoice": "T.RandomChoice([T.RandomInvert(1.0), T.RandomVerticalFlip(1.0)])",
        "OneOf": "T.OneOf([T.RandomInvert(1.0), T.RandomVerticalFlip(1.0)], p=0.8)",
        "SomeOf": "T.SomeOf([T.RandomInvert(1.0), T.RandomVerticalFlip(1.0), "
        "T.RandomHorizontalFlip(1.0)], n=2, p=1.0)",
        "RandomOrder": "T.RandomOrder([T.RandomPosterize(2, p=1.0), T.RandomInvert(1.0)])",
    },
    "Of a batch": {
        "MixUp": "T.MixUp(num_classes=4, group=4, uint8=True)",
        "CutMix": "T.CutMix(num_classes=4, group=4, uint8=True)",
    },
}

# Those that a picture does not show, and why.
UNSEEN = {
    "Compose": "a list",
    "CornerCrop": "one of those of FiveCrop, into a field",
    "FiveCrop": "more fields of one: [kinds of outputs](steps.md)",
    "TenCrop": "more fields of one: [kinds of outputs](steps.md)",
    "Fork": "more fields of one: [kinds of outputs](steps.md)",
    "RandomApply": "a list that some records take",
    "ToImage": "it changes nothing",
    "OneHot": "labels alone: [policies](policies.md)",
    "SanitizeBoundingBoxes": "rows that go: [detection](detection.md)",
    "SanitizeKeyPoints": "rows that go: [detection](detection.md)",
    "ClampBoundingBoxes": "boxes alone: [detection](detection.md)",
    "ClampKeyPoints": "points alone: [detection](detection.md)",
    "SetClampingMode": "boxes alone: [detection](detection.md)",
    "ConvertBoundingBoxFormat": "boxes alone: [detection](detection.md)",
    "CopyPaste": "it wants masks of instances: [detection](detection.md)",
    "EncodeBoxes": "boxes as a network's targets: [detection](detection.md)",
    "PadIfSmaller": "nothing, where a picture is large enough",
    "ToDevice": "it changes nothing: [on the GPU](cuda.md)",
    "ToDtype": "numbers of another type",
    "Normalize": "show() undoes it for the eye",
    **dict.fromkeys(
        (
            "AddNoise",
            "AmplitudeToDB",
            "FrequencyMasking",
            "KaldiFbank",
            "LFCC",
            "MFCC",
            "MelScale",
            "MelSpectrogram",
            "Resample",
            "Spectrogram",
            "Speed",
            "SpeedPerturbation",
            "TimeMasking",
            "WhisperLogMel",
        ),
        "sounds: [features](audio-features.md)",
    ),
}
SOUNDS = (
    "CenterClip",
    "Fade",
    "Mono",
    "PadOrTrim",
    "Preemphasis",
    "RandomClip",
    "TrimSilence",
    "Vol",
)
UNSEEN |= dict.fromkeys(SOUNDS, "sounds alone: [audio](audio.md)")
UNSEEN |= dict.fromkeys(
    ("RandomVideoClips", "UniformVideoClips", "CenterVideoClip", "VideoClipAt"),
    "frames of videos: [video](video.md)",
)


# Pictures that are mixed with others, or with themselves elsewhere: boxes could not follow.
MIXED = ("MixUp", "CutMix", "AugMix")


def records(mixed: bool) -> Any:
    """The example pictures as a source, with boxes and labels; or a label each, to be mixed."""
    import headrace as hr

    if mixed:
        paths = [str(EXAMPLES / f"{name}.jpg") for name in ("cat", "astronaut", "coffee", "rocket")]
        return hr.records(image=paths, label=list(range(len(paths))))
    shown = range(4)  # the last one has none
    return hr.subset(hr.coco(EXAMPLES.parent / "objects.json", images=EXAMPLES), shown)


def pictures_of(step: str | None) -> Any:
    """What ``show()`` gives of the example pictures after the step: a grid."""
    import headrace as hr
    from headrace import transforms as T

    mixed = step is not None and step.partition("(")[0].removeprefix("T.") in MIXED
    source = records(mixed)
    steps = [T.Resize((HEIGHT, WIDTH))]
    if step:
        steps.append(eval(step, {"T": T}))
    fields = ("image", "label") if mixed else ("image", "boxes", "labels")
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
    for section, steps in PICTURED.items():
        parts.append(f"## {section}")
        for name, step in steps.items():
            pictures_of(step).save(drawn / f"{name}.png")
            first = operators[name]["doc"].partition("\n")[0]
            picture = f"![{name}](images/transforms/{name}.png)"
            parts += [f"### [{name}](operators.md#{name.lower()})", f"{first} `{step}`", picture]
    parts.append("## Not shown")
    parts += [f"- `{name}`: {why}." for name, why in sorted(UNSEEN.items())]
    return "\n\n".join(parts) + "\n"
