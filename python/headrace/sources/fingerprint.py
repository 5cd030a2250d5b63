# SPDX-License-Identifier: Apache-2.0
"""Fingerprints of sources whose records are read by Python: a 64-bit hash of a text that describes
them.
"""

from __future__ import annotations


def fingerprint_of(text: str) -> int:
    import hashlib

    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
