"""What undone runs had made of resources, and nobody may apply again by accident (docs/undo.md). Values only; pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from syncengine.resource import Body, Key
from syncengine.state.codec import KINDS
from syncengine.state.losses import content_digest

GONE = "gone"
"""Made of a resource that was let go or removed."""

COLUMNS = ("kind", "name", "made", "run", "undone_by")
ALL = f"SELECT {', '.join(COLUMNS)} FROM state_undone ORDER BY kind, name"  # noqa: S608 - names of columns


class UndoneChange(NamedTuple):
    """A resource, the digest of the content that `run` had made of it or GONE, and the run that took that back."""

    key: Key
    made: str
    run: str
    undone_by: str

    def is_made_by(self, body: Body | None) -> bool:
        """Whether content, or none, is what the undone run had made."""
        return self.made == made_of(body)


@dataclass(frozen=True, slots=True)
class UndoneRecord:
    """To be written when a run begins: `lifted` changes are no longer undone, `added` ones are from now on.

    `run` is the one that it takes back.
    """

    lifted: Collection[Key] = ()
    added: Sequence[UndoneChange] = ()
    run: str | None = None


def made_of(body: Body | None) -> str:
    """The digest of the content of a resource."""
    return GONE if body is None else content_digest(body)


def undone_of(values: Sequence[Any]) -> UndoneChange:
    """From the values of COLUMNS; LookupError for a damaged one."""
    kind, name, made, run, by = values
    return UndoneChange(Key(KINDS[kind], name), made, run, by)
