"""one change → the calls this service needs, and what each leaves; pure."""

from __future__ import annotations

from dataclasses import dataclass

from syncengine.leaves import Leave
from syncengine.resource import Key, Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One resource's part of a call, described by what it leaves; `service/wire.py` spells it for the service.

    `leaves[0]` is the resource itself; a deletion that takes others along names them behind it. `new`: the service
    is not known to hold it. `category` is the category whose server id the wire needs. `spell_name`: the tag's name
    must be listed as a keyword, since an upsert of an existing tag may not add it by itself. `needs` are keys whose
    own calls must be true before this is sent (engine.md 4.2).
    """

    leaves: tuple[Leave, ...]
    new: bool = False
    category: str | None = None
    spell_name: bool = False
    needs: tuple[Key, ...] = ()

    @property
    def key(self) -> Key:
        return self.leaves[0].key

    @property
    def source(self) -> Source | None:
        return self.leaves[0].source


@dataclass(frozen=True, slots=True)
class Call:
    """One planned request. `id` is unique in its plan; `operation` is an operation's id."""

    id: str
    operation: str
    items: tuple[Item, ...]
