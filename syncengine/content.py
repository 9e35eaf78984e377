"""Compute digests, which are equal for equal content on every machine, and compare sets of values by name. Pure.

Digests are stored (cache, state, inbox, lines of sinks) and shown (approvals, fingerprints), so the digest of a content
must never change. Equal values, and equal parts of mappings, are found with `==`. deepdiff only gets the values that
differ, one at a time, because it takes a hundred times as long for whole sets. It is imported late, because loading it
is slow.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

Name = TypeVar("Name", bound=Hashable)


def sha256_of(content: bytes | memoryview | str) -> str:
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


def sha256_at(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal, or an empty text if it is missing or cannot be read."""
    try:
        with path.open("rb", buffering=0) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError):  # a path from a plan or a manifest may be anything
        return ""


def sha256_or_empty(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal, or that of an empty file if it is missing or cannot be read."""
    return sha256_at(path) or sha256_of(b"")


def sha256_of_values(values: Any) -> str:
    """Return the SHA-256 of plain values in hexadecimal, whatever the order of their keys."""
    return sha256_of(msgspec.json.encode(values, order="deterministic"))


class ValueChange(NamedTuple):
    """A part in which two values differ. `before` or `after` is `None` when that value lacks the part."""

    path: tuple[str | int, ...]
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Comparison(Generic[Name]):
    """The differences between two sets. `different` has the second set's order."""

    new: tuple[Name, ...]
    gone: tuple[Name, ...]
    different: Mapping[Name, tuple[ValueChange, ...]]


def compare(before: Mapping[Name, object], after: Mapping[Name, object]) -> Comparison[Name]:
    """Return the differences between two sets of named values."""
    different = [name for name in after if name in before and before[name] != after[name]]
    return Comparison(
        new=tuple(name for name in after if name not in before),
        gone=tuple(name for name in before if name not in after),
        different={name: value_changes(before[name], after[name]) for name in different},
    )


def value_changes(before: object, after: object, **more: Any) -> tuple[ValueChange, ...]:
    """Return the parts in which two values differ, sorted by path. `more` has further options for deepdiff."""
    from deepdiff.diff import DeepDiff  # loads pydantic, so only when there is something to compare

    found = DeepDiff(*_unlike(before, after), view="tree", threshold_to_diff_deeper=0, **more)
    changes = (_change(level) for levels in found.values() for level in levels)
    return tuple(
        sorted(changes, key=lambda change: ([*map(str, change.path)], repr(change.before), repr(change.after)))
    )


def _unlike(before: Any, after: Any) -> tuple[Any, Any]:
    """Return both values without the equal parts of mappings."""
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return before, after
    differing = {
        name: _unlike(before[name], after[name]) for name in before if name in after and before[name] != after[name]
    }
    mine = {
        name: differing[name][0] if name in differing else before[name]
        for name in before
        if name not in after or name in differing
    }
    theirs = {
        name: differing[name][1] if name in differing else after[name]
        for name in after
        if name not in before or name in differing
    }
    return mine, theirs


def _change(level: Any) -> ValueChange:
    """Return a difference that deepdiff found. An item that is repeated more or less often counts as one difference."""
    from deepdiff.helper import notpresent

    before, after = (None if value is notpresent else value for value in (level.t1, level.t2))
    times = level.additional.get("repetition")
    if times:
        before, after = (None, after) if times["new_repeat"] > times["old_repeat"] else (before, None)
    return ValueChange(tuple(part for part in level.path(output_format="list") if part is not None), before, after)
