"""Today's plan beside the reviewed ones: the outcome of their comparison (`review`). Values only."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from syncengine.document.comparison import ValueChange


class Excess(Struct, frozen=True):
    """One way in which today's plan is more than the reviewed ones. `address` None: it is about the plan as a whole."""

    why: str
    address: str | None = None
    changes: tuple[ValueChange, ...] = ()


class Since(Struct, frozen=True):
    """Today's plan compared with reviewed ones, by address. `excess` empty: it does no more than they."""

    plans: tuple[str, ...]
    new: tuple[str, ...]
    gone: tuple[str, ...]
    different: Mapping[str, tuple[ValueChange, ...]]
    same: int
    excess: tuple[Excess, ...]
