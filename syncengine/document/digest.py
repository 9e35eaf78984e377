"""Compute digests, which are equal for equal content on every machine. Pure.

Digests are stored (cache, state, inbox, lines of sinks) and shown (approvals, fingerprints), so the digest of a content
must never change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from io import BytesIO, FileIO
from pathlib import Path
from typing import Any

import msgspec


def sha256_of(content: bytes | str) -> str:
    """Return the SHA-256 of bytes, or of text as UTF-8, in hexadecimal."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def sha256_of_parts(parts: Iterable[bytes]) -> str:
    """Return the SHA-256 of all parts joined, in hexadecimal. Only one part at a time is in memory."""
    total = hashlib.sha256()
    for part in parts:
        total.update(part)
    return total.hexdigest()


class GrowingSha256:
    """The SHA-256 of parts that are added one by one."""

    def __init__(self) -> None:
        self._total = hashlib.sha256()

    def add(self, part: bytes) -> None:
        self._total.update(part)

    def text(self) -> str:
        """Return the SHA-256 of all parts so far, in hexadecimal."""
        return self._total.hexdigest()


def sha256_of_file(file: FileIO | BytesIO) -> str:
    """Return the SHA-256 of a file from its current position on, in hexadecimal."""
    return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_at(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal. One that is missing or cannot be read counts as empty."""
    try:
        with path.open("rb", buffering=0) as file:
            return sha256_of_file(file)
    except OSError:
        return sha256_of(b"")


def sha256_of_values(values: Any) -> str:
    """Return the SHA-256 of plain values in hexadecimal, whatever the order of their keys."""
    return sha256_of(msgspec.json.encode(values, order="deterministic"))
