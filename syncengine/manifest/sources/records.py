"""The rows of a source, and a manifest's uses of sources. Values only; pure."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from types import NoneType
from typing import Any, NamedTuple

from msgspec import Struct

from syncengine.content import sha256_of
from syncengine.document.json_text import Steps
from syncengine.project.delivery_schema import Paging
from syncengine.resource import Row
from syncengine.templating.values import Record

MAX_MEMORY = 700_000_000
"""The most bytes of memory for the rows of a live source: enough for a million rows with five columns of text."""
OF_A_ROW = 104
"""The bytes that a record takes besides its mapping and values, for its place and number."""
DEEPEST, WIDEST = 4, 100
"""The number of levels, and of names at each, in which a list is looked for."""
SOURCE_LEFT_OUT = "source-left-out"
"""The code of a diagnostic about a block or template whose source is not queried."""
BAD_SOURCE = "bad-source"
SOURCE_PARTIAL = "source-partial"
"""The code of an error about a list of which not all pages can be read."""
UNKNOWN_EFFECT = "unknown-effect"
"""The code of a diagnostic about a file that differs from the base and whose sources are not queried."""


class SourceTrouble(Exception):
    """A source that cannot be read. `message` is the reason; `name`, `line` and `column` are the place in the data.

    `code` is the code of its diagnostic.
    """

    def __init__(
        self,
        message: str,
        name: str = "",
        line: int | None = None,
        column: int | None = None,
        code: str = BAD_SOURCE,
    ) -> None:
        super().__init__(message, name, line, column, code)
        self.message, self.line, self.column, self.code = message, line, column, code
        self._place = ":".join(str(part) for part in (name, line, column) if part)

    def __str__(self) -> str:
        return f"{self._place}: {self.message}" if self._place else self.message


class LeftOut(SourceTrouble):
    """A database or service that is not queried, so that its resources count neither as new nor as removed."""


class SqlQuery(NamedTuple):
    """A query of a source of the project file, or of a SQLite `file` relative to the manifest's folder."""

    source: str | None
    file: str | None
    text: str
    params: Mapping[str, Any] | None = None

    @property
    def question(self) -> str:
        """A digest that tells the queries of one source apart, and does not depend on the place in a manifest."""
        return _digest(self.text, _sorted(self.params))

    @property
    def key(self) -> object:
        """What makes two queries of a run one."""
        return "sql", self.source, self.question


class HttpQuery(NamedTuple):
    """A query to a service. `items` is the path of the list in an answer.

    `may_be_partial`: pages may be missing. `may_repeat`: equal rows are expected.
    """

    path: str | None = None
    params: Mapping[str, Any] | None = None
    items: Steps = ()
    paging: Paging = Paging.model_construct()
    may_be_partial: bool = False
    may_repeat: bool = False
    source: str = ""

    @property
    def question(self) -> str:
        """A digest as that of a `SqlQuery`."""
        return _digest(self.path, _sorted(self.params), ".".join(self.items) or None)

    @property
    def key(self) -> object:
        """What makes two queries of a run one."""
        return "http", self.source, self.question, repr(self.paging), self.may_be_partial, self.may_repeat


def _digest(*parts: object) -> str:
    return sha256_of(repr([*parts]))[:16]


def _sorted(params: Mapping[str, Any] | None) -> list[tuple[str, Any]] | None:
    return None if params is None else sorted(params.items(), key=lambda pair: pair[0])


class Records(NamedTuple):
    """All rows of a source, its name, and a digest of its content. `live` is true if every run queries the source.

    `question` distinguishes the queries of one source, and is empty for data files, which are read as a whole.
    """

    name: str
    rows: list[Record]
    sha256: str
    live: bool = False
    question: str = ""

    @property
    def identity(self) -> str:
        """The id of the query, which is the same in every run and on every machine."""
        return f"{self.name} {self.question}" if self.question else self.name

    def use(self, file: str, line: int, column: int, *, may_be_empty: bool, left_out: int = 0) -> SourceUse:
        """Return a use of the source at a place in a manifest."""
        return SourceUse(self.name, self.identity, len(self.rows), may_be_empty, file, line, column, left_out)


class SourceUse(Struct, frozen=True, gc=False, array_like=True):
    """The use of a source in a manifest: its name, `Records.identity`, number of rows, and the place of the use.

    `left_out` is the number of rows that `when` leaves out.
    """

    name: str
    identity: str
    rows: int
    may_be_empty: bool
    file: str
    line: int
    column: int
    left_out: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether the source has no rows and `allowEmpty` does not permit that."""
        return not self.rows and not self.may_be_empty


def where_lists_are(value: Any) -> str:
    """Return a hint at the lists of objects inside an object, as `items` names them, or an empty text."""
    found: list[str] = []
    waiting: list[tuple[Steps, Any]] = [((), value)]
    for steps, inner in waiting:
        if isinstance(inner, dict) and len(steps) < DEEPEST:
            waiting += [((*steps, name), each) for name, each in list(inner.items())[:WIDEST]]
        elif isinstance(inner, list) and inner and isinstance(inner[0], dict):
            found.append(f"`items: {'.'.join(steps)}`")
    return f"; for the list in it, write {' or '.join(found[:3])}" if found else ""


_KINDS = {str: "text", list: "a list", bool: "true or false", NoneType: "null", dict: "an object"}


def kind_of(value: object) -> str:
    """Return the JSON type of a value in words, for a message."""
    return _KINDS.get(type(value), "a number")


def records(name: str, rows: Iterable[tuple[int, Any]]) -> list[Record]:
    """Return numbered rows as records. Raise `SourceTrouble` for a row that is not an object."""
    result = []
    for number, values in rows:
        if not isinstance(values, dict):
            raise SourceTrouble(f"a row must be an object, not {kind_of(values)}", name, number)
        result.append(Record(values, Row(name, number)))
    return result


def memory_of(row: Any) -> int:
    """Return the bytes of memory that a row takes as a record, with all its values."""
    size, waiting = OF_A_ROW, [row]
    while waiting:
        part = waiting.pop()
        size += sys.getsizeof(part)
        if isinstance(part, dict):
            waiting += part.values()
        elif isinstance(part, list | tuple):
            waiting += part
    return size
