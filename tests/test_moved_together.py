# SPDX-License-Identifier: Apache-2.0
"""A step that moves an image moves its boxes, masks and points, or is rejected with the field's
name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import headrace as hr
from headrace import transforms as T

LIST: dict[str, Any] = {"batch_size": 2, "ragged": "list"}
GEOMETRY = [
    T.RandomHorizontalFlip(),
    T.RandomVerticalFlip(),
    T.RandomCrop(4),
    T.CenterCrop(4),
    T.RandomResizedCrop(4),
    T.Resize(8),
    T.Pad(2),
]


@pytest.fixture
def coco(tmp_path: Path) -> Path:
    images, annotations = [], []
    for number in (1, 2):
        Image.new("RGB", (20, 10)).save(tmp_path / f"{number}.png")
        images.append({"id": number, "file_name": f"{number}.png", "width": 20, "height": 10})
        row = {"id": number, "image_id": number, "category_id": 1, "bbox": [1, 2, 3, 4]}
        annotations.append(row | {"segmentation": [[1, 2, 4, 2, 4, 6, 1, 6]], "area": 12})
    categories = [{"id": 1, "name": "cat"}]
    path = tmp_path / "instances.json"
    path.write_text(
        json.dumps({"images": images, "annotations": annotations, "categories": categories})
    )
    return path


def unsaid() -> list[dict[str, Any]]:
    """Images with boxes without a declared format, which therefore cannot follow."""
    boxes = np.float32([[1, 2, 4, 6]])
    return [{"image": np.zeros((3, 10, 20), np.uint8), "boxes": boxes, "id": i} for i in range(2)]


@pytest.mark.parametrize("step", GEOMETRY, ids=lambda step: step.name)
def test_boxes_that_cannot_follow_are_refused(step: Any) -> None:
    with pytest.raises(hr.ConfigError, match=r"would leave .boxes") as caught:
        hr.Loader(unsaid(), [step], **LIST)
    assert caught.value.code == "HR0180" and "fields=" in str(caught.value)
    hr.Loader(unsaid(), [step], fields=("image",), **LIST).close()
    hr.Loader(unsaid(), {"boxes": None}, **LIST).close()


@pytest.mark.parametrize("step", GEOMETRY, ids=lambda step: step.name)
@pytest.mark.parametrize("masks", [False, True])
def test_boxes_and_masks_of_coco_follow_the_image(coco: Path, step: Any, masks: bool) -> None:
    source = hr.coco(str(coco), masks=masks)
    kinds = {field.name: field.kind for field in source.schema}
    assert kinds["boxes"] == "boxes" and kinds.get("masks", "masks") == "masks"
    for batch in hr.Loader(source, [step], **LIST):
        for row, image in enumerate(batch.image):
            assert batch.boxes[row].shape == (1, 4)
            assert not masks or batch.masks[row].shape == (1, *image.shape[1:])


def test_the_fixes_suggested_by_the_message_work(coco: Path) -> None:
    with pytest.raises(hr.ConfigError, match='fields="image" of the transform'):
        hr.Loader(unsaid(), [T.RandomHorizontalFlip(1)], **LIST)
    alone = hr.Loader(str(coco), [T.RandomHorizontalFlip(1, fields="image")], **LIST)
    boxes = next(iter(alone)).boxes[0]
    np.testing.assert_array_equal(boxes, [[1, 2, 4, 6]])

    def mirrored(image: Any, boxes: Any) -> dict[str, Any]:
        left, right = 20 - boxes[:, 2], 20 - boxes[:, 0]
        return {
            "image": image[:, :, ::-1],
            "boxes": np.stack([left, boxes[:, 1], right, boxes[:, 3]], 1),
        }

    together = next(iter(hr.Loader(str(coco), [mirrored], **LIST)))
    np.testing.assert_array_equal(together.boxes[0], [[16, 2, 19, 6]])
    plain = hr.open(str(coco)).with_kinds({"boxes": "tensor"})
    hr.Loader(plain, [T.RandomHorizontalFlip()], **LIST).close()


@pytest.mark.parametrize("resident", [True, "auto"])
def test_resident_data_follows_the_same_rule(coco: Path, resident: Any) -> None:
    with pytest.raises(hr.ConfigError, match=r"HR0180"):
        hr.Loader(unsaid(), [T.Resize((8, 8))], resident=resident, **LIST)
    loader = hr.Loader(
        str(coco),
        [T.Resize((8, 8)), T.RandomHorizontalFlip()],
        batch_size=2,
        resident=resident,
        fields=("image", "image_id"),
    )
    assert next(iter(loader)).image.shape == (2, 3, 8, 8)


def test_presets_follow_the_same_rule() -> None:
    with pytest.raises(hr.ConfigError, match=r"RandomResizedCrop.* would leave .boxes"):
        hr.Loader(unsaid(), hr.presets.imagenet_train(8), **LIST)


def test_steps_on_the_only_delivered_field_can_be_inspected(coco: Path) -> None:
    loader = hr.Loader(str(coco), [T.Resize((8, 8))], batch_size=2, fields="image")
    assert loader.trace(0)[1].values["image"].shape == (3, 8, 8)
    assert "Resize" in loader.plan()


def records(mask: Any = np.uint8) -> list[dict[str, Any]]:
    ramp = np.arange(6 * 8).reshape(6, 8)
    return [
        {"image": np.stack([ramp.astype(np.uint8)] * 3), "mask": ramp.astype(mask)}
        for _ in range(4)
    ]


def test_a_function_that_returns_another_size_is_detected() -> None:
    shrink = lambda image: image[:, :, ::2]  # noqa: E731
    with pytest.raises(hr.ConfigError, match=r"HR0601|HR0180"):
        list(hr.Loader(records(), [shrink], **LIST))
    declared = T.Python(shrink, returns={"image": ("uint8", (3, 6, 4))})
    with pytest.raises(hr.ConfigError, match=r"would leave .mask"):
        hr.Loader(records(), [declared], **LIST)
    said = T.Python(shrink, returns={"image": ("uint8", (3, 6, 4))}, fields="image")
    assert next(iter(hr.Loader(records(), [said], **LIST))).image.shape == (2, 3, 6, 4)


def test_a_function_of_images_of_any_size_is_detected_per_record(pictures: Path) -> None:
    open_sizes = [
        {"image": np.zeros((3, n, 8), np.uint8), "boxes": np.zeros((1, 4))} for n in (4, 5, 6)
    ]
    loader = hr.Loader(open_sizes, [lambda image: image[:, :2]], on_error="skip", **LIST)
    with pytest.raises(hr.ConfigError, match=r"moves .image. but would leave .boxes"):
        list(loader)


def library_steps() -> list[tuple[Any, bool]]:
    """Transforms of libraries that mirror an image, and whether that library is installed."""
    out = []
    try:
        from torchvision.transforms import v2

        out.append(v2.RandomHorizontalFlip(p=1))
        out.append(v2.Compose([v2.RandomApply([v2.RandomHorizontalFlip(p=1)], p=1)]))
    except Exception:
        pass
    try:
        import albumentations

        out.append(albumentations.Compose([albumentations.HorizontalFlip(p=1)]))
    except Exception:
        pass
    return out


@pytest.mark.filterwarnings("ignore::headrace.Warning")
def test_transforms_of_libraries_move_the_mask_with_the_image() -> None:
    steps = library_steps()
    if not steps:
        pytest.skip("neither torchvision nor albumentations can be imported")
    for step in steps:
        for each in (step, T.Python(step, fields=("image", "mask"))):
            batch = next(iter(hr.Loader(records(), [each], **LIST)))
            np.testing.assert_array_equal(batch.image[0, 0], np.arange(48).reshape(6, 8)[:, ::-1])
            np.testing.assert_array_equal(batch.mask[0], batch.image[0, :1])


@pytest.mark.filterwarnings("ignore::headrace.Warning")
def test_library_transforms_that_do_not_move_the_mask_are_refused() -> None:
    first = pytest.importorskip("torchvision.transforms", exc_type=Exception)
    step = first.RandomHorizontalFlip(p=1)  # of version 1, which does not support masks
    with pytest.raises(hr.ConfigError, match=r"HR0180.* moves .image. but would leave .mask"):
        hr.Loader(records(), [step], **LIST)
    hr.Loader(records(), [step], fields="image", **LIST).close()


def test_draws_of_a_library_are_shared_by_image_and_mask() -> None:
    v2 = pytest.importorskip("torchvision.transforms.v2", exc_type=Exception)
    step = T.Python(
        v2.RandomResizedCrop((4, 4), interpolation=0),
        fields=("image", "mask"),
        returns={n: ("uint8", (c, 4, 4), n) for n, c in (("image", 3), ("mask", 1))},
    )
    for batch in hr.Loader(records(), [step], batch_size=4, python_workers=0):
        np.testing.assert_array_equal(batch.image[:, :1], batch.mask)
        assert len({image.tobytes() for image in batch.image}) > 1


def test_unsupported_fields_for_a_library_are_refused_and_named() -> None:
    v2 = pytest.importorskip("torchvision.transforms.v2", exc_type=Exception)
    data = [record | {"boxes": np.zeros((1, 4), np.float32)} for record in records()]
    step = T.Python(v2.RandomHorizontalFlip(), fields=("image", "mask", "boxes"))
    with pytest.raises(hr.ConfigError, match=r"the format of \"boxes\" is unknown"):
        list(hr.Loader(data, [step], on_error="skip", **LIST))


def test_a_native_transform_passed_as_torchvisions_is_named() -> None:
    v2 = pytest.importorskip("torchvision.transforms.v2", exc_type=Exception)
    with pytest.warns(hr.Warning, match=r"headrace.transforms has RandomHorizontalFlip natively"):
        hr.Loader(records(), [v2.RandomHorizontalFlip()], fields="image", **LIST)


def test_two_resident_image_arrays_stay_aligned() -> None:
    images, ids = np.zeros((6, 3, 8, 8), np.uint8), np.zeros((6, 1, 8, 8), np.uint8)
    steps = [T.RandomHorizontalFlip()]
    with pytest.raises(hr.ConfigError, match=r"would leave .image2"):
        hr.resident((images, ids), 2, transforms=steps)
    hr.resident({"image": images, "mask": ids}, 2, transforms=steps).close()
    hr.resident((images, ids), 2).close()


def test_a_bench_of_coco_measures_its_images(coco: Path) -> None:
    from headrace.cli.preset import loader_of

    for preset in ("imagenet-train", "imagenet-eval"):
        loader = loader_of(hr.open(str(coco)), preset, 8, batch_size=2)
        assert next(iter(loader))._fields == ("image", "image_id")
    assert "boxes" in next(iter(loader_of(hr.open(str(coco)), "decode", 8, batch_size=2)))._fields


def test_images_that_move_alone_on_request_are_the_same_when_resident() -> None:
    rng = np.random.default_rng(0)
    data = [
        {
            "image": rng.integers(0, 256, (3, 8, 8), np.uint8),
            "boxes": np.full((2, 4), i, np.float32),
        }
        for i in range(6)
    ]
    steps = [T.Resize((6, 6), fields="image"), T.RandomHorizontalFlip(fields="image")]
    runs = [list(hr.Loader(data, steps, batch_size=3, resident=on)) for on in (False, True)]
    for streamed, kept in zip(*runs, strict=True):
        np.testing.assert_array_equal(streamed.image, kept.image)
        np.testing.assert_array_equal(streamed.boxes, kept.boxes)


def test_results_without_a_kind_keep_the_fields_kind() -> None:
    """Its name does not tell its kind: if it became a plain tensor, later steps would no longer
    move it.
    """
    planes = np.zeros((2, 10, 20), bool)
    planes[:, :, :5] = True
    record = {
        "picture": np.tile(np.arange(20, dtype=np.uint8), (3, 10, 1)),
        "seg": np.tile(np.arange(20, dtype=np.uint8), (1, 10, 1)),
        "objects": np.float32([[0, 0, 5, 10]] * 2),
        "joints": np.float32([[[0, 3, 1]]] * 2),
        "masks": planes,
    }
    kinds = {"picture": "image", "seg": "mask", "objects": "boxes:xyxy", "joints": "keypoints"}
    source = hr.open([record], kinds=kinds | {"masks": "masks"})
    returns = {name: (str(value.dtype), value.shape) for name, value in record.items()}

    def same(picture: Any, seg: Any, objects: Any, joints: Any, masks: Any) -> Any:
        values = (picture, seg, objects, joints, masks)
        return dict(zip(record, values, strict=True))

    flip = T.RandomHorizontalFlip(1)
    steps: list[list[Any]] = [[flip], [same, flip], [T.Python(same, returns), flip]]
    expected, *others = [next(iter(hr.Loader(source, each, batch_size=1))) for each in steps]
    assert expected.objects[0].tolist() == [[15, 0, 20, 10]] * 2
    for batch in others:
        for name in record:
            np.testing.assert_array_equal(batch[name], expected[name], name)
    # If declared otherwise, or of an impossible shape, it is a tensor, which is not moved.
    for form in (("bool", (2, 10, 20), "tensor"), ("bool", (2,))):
        shape = (2, 10, 20) if len(form[1]) == 3 else (2,)
        made = T.Python(lambda masks, s=shape: np.ones(s, bool), {"masks": form}, fields="masks")
        batch = next(iter(hr.Loader(source, [made, flip], batch_size=1)))
        assert batch.masks.shape == (1, *shape) and batch.masks.all()
