"""The rows of a source, and the sources that a manifest asks for. Values only; pure."""

from __future__ import annotations

from collections.abc import Iterable
from types import NoneType
from typing import Any, NamedTuple

from msgspec import Struct

from syncengine.resource import Row
from syncengine.templating.values import Record

SOURCE_LEFT_OUT = "source-left-out"
UNKNOWN_EFFECT = "unknown-effect"
"""The code of a file whose sources are left out, and which is another than at the base."""
"""The code of a block, or a template, whose source is not asked."""


class SourceTrouble(Exception):
    """A source that cannot be read: `message` is the reason, `name` and `line` the place in the data, if known."""

    def __init__(self, message: str, name: str = "", line: int | None = None, column: int | None = None) -> None:
        super().__init__(message, name, line, column)
        self.message, self.line = message, line
        self._place = ":".join(str(part) for part in (name, line, column) if part)

    def __str__(self) -> str:
        return f"{self._place}: {self.message}" if self._place else self.message


class LeftOut(SourceTrouble):
    """A database or a service that is not asked: its resources are unknown, and neither new nor gone."""


class Records(NamedTuple):
    """All rows of a source, its name, and a digest of its content. `live`: it is queried in every run. `question`
    distinguishes queries of one source; empty for files, which are read whole."""

    name: str
    rows: list[Record]
    sha256: str
    live: bool = False
    question: str = ""

    @property
    def identity(self) -> str:
        """Return an id of the query that is the same in every run and on every machine."""
        return f"{self.name} {self.question}" if self.question else self.name

    def use(self, file: str, line: int, column: int, *, may_be_empty: bool) -> SourceUse:
        """A use of the source, at this place."""
        return SourceUse(self.name, self.identity, len(self.rows), may_be_empty, file, line, column)


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
        """Whether the source has no rows and `allowEmpty` does not permit that."""
        return not self.rows and not self.may_be_empty


_KINDS = {str: "text", list: "a list", bool: "true or false", NoneType: "null", dict: "an object"}


def kind_of(value: object) -> str:
    """The JSON type of a value, for a sentence."""
    return _KINDS.get(type(value), "a number")


def records(name: str, rows: Iterable[tuple[int, Any]]) -> list[Record]:
    """Numbered rows as records; SourceTrouble for one that has no names."""
    result = []
    for number, values in rows:
        if not isinstance(values, dict):
            raise SourceTrouble(f"a row must be an object with names, not {kind_of(values)}", name, number)
        result.append(Record(values, Row(name, number)))
    return result
