"""The calls of a run that a state in Git announces before the first call is sent. Values; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from syncengine.effects import Effect
from syncengine.resource import Key
from syncengine.state.landing import Attempt


@dataclass(frozen=True, slots=True)
class PublishedCalls:
    """The announced calls of a run, by name, and effects without calls that are recorded together with them."""

    attempts: Mapping[str, Attempt] = field(default_factory=dict)
    records: Sequence[Effect] = ()
    _by_key: Mapping[Key, list[Effect]] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        by_key: dict[Key, list[Effect]] = {}
        for attempt in self.attempts.values():
            for effect in attempt.effects:
                by_key.setdefault(effect.key, []).append(effect)
        object.__setattr__(self, "_by_key", by_key)

    def covers(self, attempts: Iterable[Attempt]) -> bool:
        """Return whether the published calls include every effect of `attempts`."""
        effects = (effect for attempt in attempts for effect in attempt.effects)
        return all(
            any(effect is each or effect == each for each in self._by_key.get(effect.key, ())) for effect in effects
        )
