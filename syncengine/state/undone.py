"""The changes of undone runs, which must not be applied again by accident (docs/repair.md). Values only; pure.

Content is stored as digests of its parts, which suffice to recognize it and reveal no data.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from syncengine.document.digest import sha256_of
from syncengine.resource import Body, Key, Recorded, Status
from syncengine.state.codec import to_json

GONE, DECLARED = "gone", "declared"
"""The single part of an undeclared resource, and a part that every declared resource has."""

PUBLIC = sha256_of(to_json(["field", "visibility", "PUBLIC"]))[:16]
"""The digest of a part that tells nothing: a row says that its tag is public where its manifest is silent."""


class UndoneChange(NamedTuple):
    """A change of a resource by `run`, which was undone by the run `undone_by`.

    `marks` are the digests of parts, separated by spaces, with `+` before added parts and `-` before removed ones.
    """

    key: Key
    marks: str
    run: str
    undone_by: str

    def is_made_by(self, body: Body | None, *, protect: bool | None = None) -> bool:
        """Return whether content (`None` if absent) agrees with every mark. A change without marks makes nothing."""
        parts, marks = parts_of(body, protect), [mark for mark in self.marks.split() if mark[1:] != PUBLIC]
        return marks != [] and all((mark[1:] in parts) is (mark[0] == "+") for mark in marks)

    def is_made_by_row(self, row: Recorded | None) -> bool:
        """Return whether a recorded row, or its absence, agrees with every mark of the change."""
        return self.is_made_by(_body(row), protect=row.protect if row else None)


@dataclass(frozen=True, slots=True)
class UndoneRecord:
    """The undone changes to write when a run begins: `lifted` ones are no longer undone, `changes` are newly undone."""

    lifted: Collection[UndoneChange] = ()
    changes: Sequence[UndoneChange] = ()


def made_of(before: Recorded | None, after: Recorded | None) -> str:
    """Return the marks of a change: digests of the parts that a run added to a row (`+`) or removed (`-`)."""
    old, new = (parts_of(_body(row), row.protect if row else None) for row in (before, after))
    return " ".join([*(f"+{part}" for part in sorted(new - old)), *(f"-{part}" for part in sorted(old - new))])


def _body(row: Recorded | None) -> Body | None:
    return row.body if row is not None and row.status is Status.ACTIVE else None


def parts_of(body: Body | None, protect: bool | None) -> frozenset[str]:
    """Return the digests of all parts of a resource. `protect` is left out if it is `None` (unknown)."""
    if body is None:
        return frozenset([GONE])
    return frozenset([DECLARED, *(sha256_of(part)[:16] for part in _parts(body, protect))])


def _parts(body: Body, protect: bool | None) -> Iterator[str]:
    values: Mapping[str, Mapping[str, Any]] = {
        "field": {name: value for name, value in body.fields.items() if value not in ("", ())},
        "metadata": body.metadata,
    }
    for of, by_name in values.items():
        for name, value in by_name.items():
            yield to_json([of, name, value])
    yield from (to_json(["keyword", keyword]) for keyword in body.keywords)
    if protect is not None:
        yield to_json(["protect", protect])
