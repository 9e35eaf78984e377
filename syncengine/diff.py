"""recorded, desired → changes; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum

from syncengine.resource import Key, Source, Value


class Action(Enum):
    """What a plan does to one resource. The value is the symbol people see; `word` is the machines' name."""

    CREATE = "+"
    UPDATE = "~"
    DELETE = "-"
    RETIRE = "x"
    FORGET = "o"

    @property
    def word(self) -> str:
        return self.name.lower()


class Effect(StrEnum):
    """What the service makes of a field difference."""

    APPLIES = "applies"
    CREATE_ONLY = "create-only"
    IGNORED = "ignored"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field's difference. None: not declared. `after` None with effect APPLIES: sent as an explicit empty."""

    name: str
    before: Value | None
    after: Value | None
    effect: Effect = Effect.APPLIES


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What differs for one resource.

    `cascade` names the category whose deletion takes this tag along; `previously` the former name in a rename.
    `reason` explains and never decides.
    """

    key: Key
    action: Action
    source: Source | None
    fields: tuple[FieldChange, ...] = ()
    keywords_added: tuple[str, ...] = ()
    keywords_deleted: tuple[str, ...] = ()
    metadata_set: Mapping[str, str] = field(default_factory=dict)
    metadata_deleted: tuple[str, ...] = ()
    reason: str | None = None
    cascade: Key | None = None
    previously: str | None = None
