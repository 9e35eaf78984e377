"""Content → its digest: equal for equal bytes, on every machine. Pure.

Digests are stored (cache, state, inbox, lines of sinks) and shown (approvals, fingerprints): none may ever change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from io import BytesIO, FileIO
from typing import Any

import msgspec


def sha256_of(content: bytes | str) -> str:
    """Return SHA-256 in hexadecimal; text counts as its UTF-8."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def sha256_of_parts(parts: Iterable[bytes]) -> str:
    """Return the digest of all parts in a row, which are never in memory together."""
    total = hashlib.sha256()
    for part in parts:
        total.update(part)
    return total.hexdigest()


class GrowingSha256:
    """SHA-256 of all parts so far."""

    def __init__(self) -> None:
        self._total = hashlib.sha256()

    def add(self, part: bytes) -> None:
        self._total.update(part)

    def text(self) -> str:
        """Return it in hexadecimal."""
        return self._total.hexdigest()


def sha256_of_file(file: FileIO | BytesIO) -> str:
    """Return the digest of what is left to read."""
    return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of_values(values: Any) -> str:
    """Return the digest of plain values, whatever the order of their keys."""
    return sha256_of(msgspec.json.encode(values, order="deterministic"))


def short_digest(content: str, size: int) -> bytes:
    """Return `size` bytes, for what is kept by the million."""
    return hashlib.blake2b(content.encode(), digest_size=size).digest()
