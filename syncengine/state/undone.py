"""Changes of undone runs, which nobody may apply again by accident (docs/undo.md). Values only; pure.

Content is kept as digests of its parts: that is enough to know it again, and tells nobody's data.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from syncengine.document.digest import sha256_of
from syncengine.resource import Body, Key, Recorded, Status
from syncengine.state.codec import KINDS, to_json

GONE, DECLARED = "gone", "declared"
"""Parts of a resource that no manifest declares, and of any other."""

COLUMNS = ("kind", "name", "made", "run", "undone_by")
ALL = f"SELECT {', '.join(COLUMNS)} FROM state_undone ORDER BY kind, name"  # noqa: S608 - names of columns


class UndoneChange(NamedTuple):
    """A change of a resource by `run`: digests of parts, `+` of those that it added and `-` of those that it removed.

    `undone_by` is the run that took the change back.
    """

    key: Key
    marks: str
    run: str
    undone_by: str

    def is_made_by(self, body: Body | None, *, protect: bool | None = None) -> bool:
        """Whether content, or none, has all that the undone run had made of it; nothing is made by no marks."""
        parts, marks = parts_of(body, protect), self.marks.split()
        return marks != [] and all((mark[1:] in parts) is (mark[0] == "+") for mark in marks)

    def is_made_by_row(self, row: Recorded | None) -> bool:
        """The same of a row that is recorded, or none."""
        return self.is_made_by(_body(row), protect=row.protect if row else None)


@dataclass(frozen=True, slots=True)
class UndoneRecord:
    """Changes to be written when a run begins: `lifted` changes are no longer undone, `changes` are from now on."""

    lifted: Collection[UndoneChange] = ()
    changes: Sequence[UndoneChange] = ()


def made_of(before: Recorded | None, after: Recorded | None) -> str:
    """The marks of the change that a run made of a row: its parts that differ from before, as manifests say them."""
    old, new = (parts_of(_body(row), row.protect if row else None) for row in (before, after))
    return " ".join([*(f"+{part}" for part in sorted(new - old)), *(f"-{part}" for part in sorted(old - new))])


def _body(row: Recorded | None) -> Body | None:
    return row.body if row is not None and row.status is Status.ACTIVE else None


def parts_of(body: Body | None, protect: bool | None) -> frozenset[str]:
    """The digests of all parts of a resource. `protect` None: unknown, so that it is like either."""
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


def undone_of(values: Sequence[Any]) -> list[UndoneChange]:
    """The changes of an address from the values of COLUMNS; LookupError or ValueError for damaged ones."""
    kind, name, *columns = values
    lines = zip(*(column.split("\n") for column in columns), strict=True)
    return [UndoneChange(Key(KINDS[kind], name), *line) for line in lines]


def rows_of(changes: Iterable[UndoneChange]) -> list[tuple[str, ...]]:
    """The values of COLUMNS for each address: a line for each of its changes, in their order."""
    by_key: dict[Key, list[UndoneChange]] = defaultdict(list)
    for change in changes:
        by_key[change.key].append(change)
    columns = ((key, zip(*(change[1:] for change in of_key), strict=True)) for key, of_key in by_key.items())
    return [(key.kind.value, key.name, *map("\n".join, each)) for key, each in columns]
