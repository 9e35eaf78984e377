"""The calls of a run that a state in Git knows of before the first is sent. Values; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from syncengine.effects import Effect
from syncengine.resource import Key
from syncengine.state.journal import Intent


@dataclass(frozen=True, slots=True)
class PublishedCalls:
    """Intents that are published together, and effects to record with them, which their own intents bring along."""

    intents: Sequence[Intent] = ()
    records: Sequence[Effect] = ()
    _by_key: Mapping[Key, list[Effect]] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        by_key: dict[Key, list[Effect]] = {}
        for intent in self.intents:
            for effect in intent.effects:
                by_key.setdefault(effect.key, []).append(effect)
        object.__setattr__(self, "_by_key", by_key)

    def covers(self, entries: Iterable[Intent]) -> bool:
        """Whether a reader of the published state would expect everything that these calls may do."""
        effects = (effect for entry in entries for effect in entry.effects)
        return all(
            any(effect is each or effect == each for each in self._by_key.get(effect.key, ())) for effect in effects
        )
