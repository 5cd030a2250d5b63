# SPDX-License-Identifier: Apache-2.0
"""A COCO file restricted to the pictures of a job, which may be a subset."""

import json
import os


def annotations_for(job):
    """The file, written to the peer's own folder, and the folder that its names are relative to."""
    folder = os.path.dirname(job.originals[0][0])
    path = os.path.join(job.prepared, "annotations.json")
    with open(job.annotations) as file:
        rows = json.load(file)
    there = {os.path.basename(picture) for picture, _ in job.originals}
    rows["images"] = [image for image in rows["images"] if image["file_name"] in there]
    ids = {image["id"] for image in rows["images"]}
    rows["annotations"] = [row for row in rows["annotations"] if row["image_id"] in ids]
    if len(rows["images"]) != len(there):
        raise SystemExit(f"{job.annotations} does not list all pictures of {folder}")
    with open(path, "w") as file:
        json.dump(rows, file)
    return path, folder


def records_for(job):
    """(path, (height, width), boxes as left, top, width, height, labels from 1) of each picture."""
    path, folder = annotations_for(job)
    with open(path) as file:
        rows = json.load(file)
    of = {image["id"]: [] for image in rows["images"]}
    for row in rows["annotations"]:
        of[row["image_id"]].append(row)
    return [
        (
            os.path.join(folder, image["file_name"]),
            (image["height"], image["width"]),
            [row["bbox"] for row in of[image["id"]]],
            [row["category_id"] for row in of[image["id"]]],
        )
        for image in rows["images"]
    ]
