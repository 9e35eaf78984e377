"""The result of comparing today's plan with reviewed plans (`review`), as values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from syncengine.document.comparison import ValueChange


class Excess(Struct, frozen=True):
    """One thing that today's plan does beyond the reviewed plans.

    `address` is `None` when the excess concerns the plan as a whole. `cause` says who changed the resource last.
    """

    why: str
    address: str | None = None
    changes: tuple[ValueChange, ...] = ()
    cause: str | None = None

    @property
    def message(self) -> str:
        """The excess in a sentence, with the address, the values that differ and the cause."""
        parts = in_words(self.changes)
        subject = f"{self.address}: {self.why}" if self.address else self.why
        return "; ".join(part for part in (subject, parts and f"reviewed → today: {parts}", self.cause) if part)


class Since(Struct, frozen=True):
    """The differences of today's plan from reviewed plans, by address. `excess` is empty when it does no more."""

    plans: tuple[str, ...]
    new: tuple[str, ...]
    gone: tuple[str, ...]
    different: Mapping[str, tuple[ValueChange, ...]]
    same: int
    excess: tuple[Excess, ...]


def in_words(changes: Iterable[ValueChange]) -> str:
    """Return the differing values as text, each with its path."""
    return "; ".join(f"{'.'.join(map(str, c.path))}: {_shown(c.before)} → {_shown(c.after)}" for c in changes)


def _shown(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict) and value.keys() == {"before", "after"}:
        return f"{_shown(value['before'])} ⇒ {_shown(value['after'])}"
    return ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
