"""The values that templates look up by name, with messages for missing names. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from syncengine.document.diagnostics import nearest, suggestion
from syncengine.document.nodes import quoted
from syncengine.resource import Row

MARKS = ("{{", "{%", "{#")


def is_template(text: str) -> bool:
    """Return whether a text contains anything that Jinja2 would act on."""
    return "{" in text and any(mark in text for mark in MARKS)


class Unknown(str):
    """The value of a column that is not read, as text that names it. A result that depends on it is as unknown.

    Only what would decide with it is an error.
    """

    def __neg__(self) -> Unknown:
        return Unknown(f"-{self}")

    def _decides(self, _: object) -> bool:
        raise NotKnown(f"it depends on {self}, and a preview reads no lookup")

    __lt__ = __le__ = __gt__ = __ge__ = _decides


class NotKnown(Exception):
    """Raised when a template would decide by a value that is not known."""


class Record(dict[str, Any]):
    """The values of a row by name. `row` is the place of the row in its source."""

    __slots__ = ("row",)

    def __init__(self, values: Any, row: Row) -> None:
        super().__init__(values)
        self.row = row

    def missing(self, name: str) -> str:
        whole = undivided(self)
        near = nearest(name, tuple(self))
        hint = f'; did you mean `["{near}"]`?' if near and not near.isidentifier() else suggestion(name, self)
        hint = f"; it has one column{whole}" if whole else hint
        return f"there is no `{name}` in {self.row.file}{hint}"


def undivided(names: Collection[str]) -> str:
    """Return a hint at the delimiter if a whole header was read as the name of one column, else an empty text."""
    only = next(iter(names)) if len(names) == 1 else ""
    mark = next((mark for mark in ";\t|," if mark in only), None)
    written = "tab" if mark == "\t" else quoted(mark or "")
    return f", {quoted(only)}: is the `delimiter` {written}?" if mark else ""


class Named(dict[str, Any]):
    """The value of `var` or `env` in templates. `why` returns the message for a missing name."""

    __slots__ = ("why",)

    def __init__(self, values: Any, why: Any) -> None:
        super().__init__(values)
        self.why = why

    def missing(self, name: str) -> str:
        return str(self.why(name))
