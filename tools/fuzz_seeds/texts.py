# SPDX-License-Identifier: Apache-2.0
"""Texts: annotations, tables, lists."""

from __future__ import annotations

import json
from collections.abc import Iterator


def coco() -> Iterator[bytes]:
    images = [
        {"id": 1, "file_name": "a.jpg", "width": 8, "height": 6},
        {"id": 2, "file_name": "b.jpg", "width": 4, "height": 4},
    ]
    categories = [{"id": 1, "name": "cat", "keypoints": ["nose"]}, {"id": 7, "name": "dog"}]
    box = {
        "id": 1,
        "image_id": 1,
        "category_id": 7,
        "bbox": [1, 2, 3, 2.5],
        "area": 7.5,
        "iscrowd": 0,
    }
    polygon = {**box, "id": 2, "segmentation": [[1, 1, 5, 1, 5.5, 4, 1, 4]]}
    counts = {**box, "id": 3, "iscrowd": 1, "segmentation": {"size": [6, 8], "counts": [6, 3, 39]}}
    packed = {**box, "id": 4, "segmentation": {"size": [6, 8], "counts": "63W1"}}
    points = {**box, "id": 5, "category_id": 1, "keypoints": [2, 3, 2], "num_keypoints": 1}
    orphan = {**box, "id": 6, "image_id": 9}
    for some in ([box], [polygon, counts], [packed], [points], [orphan, box], []):
        whole = {"info": {}, "images": images, "annotations": some, "categories": categories}
        yield json.dumps(whole).encode()
        yield json.dumps(dict(reversed(whole.items())), indent=1).encode()


def manifest() -> Iterator[bytes]:
    yield b"path,label\na.jpg,1\nb.jpg,2\n"
    yield b'file_name,label,x,box,text\r\na.jpg,cat,1.5,"[1, 2]","a ""b"", c"\r\nb.jpg,dog,,,\r\n'
    yield b"image\ttarget\na.jpg\t-1\nb.jpg\t9223372036854775807\n"
    yield "\ufeffpath;label\nä.jpg;1\n".encode()
    yield b'{"file_name": "a.jpg", "label": 1, "x": [1, 2.5], "o": {"n": "t"}}\n{"file_name": ""}\n'
    yield b'{"image": "a.jpg", "caption": "\\u00e9\\ud83d\\ude00", "ok": true, "no": null}\n\n'


def list_file() -> Iterator[bytes]:
    yield b"a.jpg 1\nb.jpg 2\n"
    yield b"# pictures\n\nc d.jpg\tcat\ne.jpg\tdog\n"
    yield b'path,label\n"a, b.jpg","cat"\nc.jpg,dog\n'
    yield b"\xef\xbb\xbfa.jpg\r\nb c.png\r\n"
    yield b"a.jpg,7\n"


def json_reader() -> Iterator[bytes]:
    yield b'{"a": [1, -2.5e3, "t\\u00e9\\ud83d\\ude00\\n"], "b": {"c": null}, "d": [true, []]}'
    yield (
        b'[18446744073709551615, 0.1, 1e-400, 123456789012345678901234567890, -0, "'
        + b"x" * 40
        + b'"]'
    )
    yield b' "\xc3\xa9" '


def object_list() -> Iterator[bytes]:
    yield (
        b'<?xml version="1.0"?>\n<ListBucketResult xmlns="http://s3"><EncodingType>url</EncodingType>'
        b"<IsTruncated>true</IsTruncated><Contents><Key>train/a%2Bb+c</Key><ETag>&quot;e&quot;</ETag>"
        b"<Size>7</Size></Contents><CommonPrefixes><Prefix>train/d/</Prefix></CommonPrefixes>"
        b"<NextContinuationToken>x&#47;&lt;</NextContinuationToken></ListBucketResult>"
    )
    yield b"<ListBucketResult><!-- none --><Contents/><Name a='b'>n</Name></ListBucketResult>"
    yield b"<Error><Code>AccessDenied</Code></Error>"


SEEDS = {
    "object_list": object_list,
    "coco": coco,
    "json_reader": json_reader,
    "list_file": list_file,
    "manifest": manifest,
}
