"""Today's plan beside the reviewed ones: the outcome of their comparison (`review`). Values only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from syncengine.document.comparison import ValueChange


class Excess(Struct, frozen=True):
    """One way in which today's plan is more than the reviewed ones.

    `address` None: it is about the plan as a whole. `cause`: who changed the resource last.
    """

    why: str
    address: str | None = None
    changes: tuple[ValueChange, ...] = ()
    cause: str | None = None

    @property
    def message(self) -> str:
        """The excess in a sentence: address, values that differ, cause."""
        parts = in_words(self.changes)
        subject = f"{self.address}: {self.why}" if self.address else self.why
        return "; ".join(part for part in (subject, parts and f"reviewed → today: {parts}", self.cause) if part)


class Since(Struct, frozen=True):
    """Today's plan compared with reviewed ones, by address. `excess` empty: it does no more than they."""

    plans: tuple[str, ...]
    new: tuple[str, ...]
    gone: tuple[str, ...]
    different: Mapping[str, tuple[ValueChange, ...]]
    same: int
    excess: tuple[Excess, ...]


def in_words(changes: Iterable[ValueChange]) -> str:
    """Values that differ, each by its path."""
    return "; ".join(f"{'.'.join(map(str, c.path))}: {_shown(c.before)} → {_shown(c.after)}" for c in changes)


def _shown(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict) and value.keys() == {"before", "after"}:
        return f"{_shown(value['before'])} ⇒ {_shown(value['after'])}"
    return ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
