"""One row of a source, and names that templates look up, each with what it is called when something is missing."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from types import NoneType
from typing import Any, NamedTuple

from msgspec import Struct

from syncengine.document.findings import suggestion
from syncengine.document.nodes import quoted
from syncengine.resource import Row


class SourceTrouble(Exception):
    """A source that cannot be read; the message says what is wrong and where in the data."""


class Record(dict[str, Any]):
    """The values of a row by their names; `row` is where they stand."""

    __slots__ = ("row",)

    def __init__(self, values: Any, row: Row) -> None:
        super().__init__(values)
        self.row = row

    def missing(self, name: str) -> str:
        whole = undivided(self)
        hint = suggestion(name, self) or (f"; it has one column{whole}" if whole else "")
        return f"there is no `{name}` in {self.row.file}{hint}"


def undivided(names: Collection[str]) -> str:
    """What is behind "one column", where the whole first line was taken for its name."""
    only = next(iter(names)) if len(names) == 1 else ""
    mark = next((mark for mark in ";\t|," if mark in only), None)
    return f", {quoted(only)}: is its `delimiter` {quoted(mark)}?" if mark else ""


class Named(dict[str, Any]):
    """`var` and `env`."""

    __slots__ = ("why",)

    def __init__(self, values: Any, why: Any) -> None:
        super().__init__(values)
        self.why = why

    def missing(self, name: str) -> str:
        return str(self.why(name))


class Records(NamedTuple):
    """All rows of a source, what it is called, and a digest of what it said. `live`: it is asked every time.

    `question` tells what one source is asked from what else it is asked; empty for files, which are read whole.
    """

    name: str
    rows: list[Record]
    sha256: str
    live: bool = False
    question: str = ""

    @property
    def identity(self) -> str:
        """The same in every run and on every machine, as long as the same is asked."""
        return f"{self.name} {self.question}" if self.question else self.name


class SourceUse(Struct, frozen=True, gc=False, array_like=True):
    """A source that a manifest asks for: its name, `Records.identity` and number of rows, and where it is asked for."""

    name: str
    identity: str
    rows: int
    may_be_empty: bool
    file: str
    line: int
    column: int

    @property
    def is_empty(self) -> bool:
        """Whether it has no rows and nobody said that this is right."""
        return not self.rows and not self.may_be_empty


_KINDS = {str: "text", list: "a list", bool: "true or false", NoneType: "null", dict: "an object"}


def kind_of(value: object) -> str:
    """What something of JSON is, for a sentence."""
    return _KINDS.get(type(value), "a number")


def records(name: str, rows: Iterable[tuple[int, Any]]) -> list[Record]:
    """Numbered rows as records; SourceTrouble for one that has no names."""
    found = []
    for number, values in rows:
        if not isinstance(values, dict):
            raise SourceTrouble(f"{name}:{number}: a row must be an object with names, not {kind_of(values)}")
        found.append(Record(values, Row(name, number)))
    return found
