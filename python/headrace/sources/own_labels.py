# SPDX-License-Identifier: Apache-2.0
"""Labels that a Python dataset lists separately, if they match its records' labels. A list named
``targets`` matches the records only if neither ``target_transform`` nor a user-defined
``__getitem__`` changes the labels. This is known only for torchvision's own classes; the records of
other objects are read.

>>> own_labels([("a", 0), ("b", 1)]) is None
True
"""

from __future__ import annotations

from typing import Any

from headrace.plain_array import plain_array


def own_labels(records: Any) -> list[int] | None:
    """The label of each record from the dataset's own list; None if it may differ."""
    method = getattr(type(records), "__getitem__", None)
    if not str(getattr(method, "__module__", "")).startswith("torchvision."):
        return None
    if changes_labels(records):
        return None
    listed = getattr(records, "samples", None)  # ImageFolder's, which reads no other list
    if listed is not None:
        listed = [sample[-1] for sample in listed]
    else:
        listed = getattr(records, "targets", None)
    if listed is None or len(listed) != len(records):
        return None
    labels = plain_array(listed)
    return labels.tolist() if labels.ndim == 1 and labels.dtype.kind in "iu" else None


def changes_labels(records: Any) -> bool:
    """Whether one of torchvision's datasets transforms its labels."""
    if getattr(records, "target_transform", None) is not None:
        return True
    bases = {base.__module__.partition(".")[0] for base in type(records).__mro__}
    joint = getattr(records, "transforms", None) if "torchvision" in bases else None
    return (
        joint is not None and type(joint).__name__ != "StandardTransform"
    )  # gets image and target
