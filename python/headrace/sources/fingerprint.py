# SPDX-License-Identifier: Apache-2.0
"""Fingerprints of sources whose records Python reads: 64 bits of a text that says what they are."""

from __future__ import annotations

import hashlib


def fingerprint_of(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
