"""The calls of a run, as values: announced, sent, ended, and still outstanding (docs/planning.md 1.8). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
from msgspec import Struct

from syncengine.effects import Effect
from syncengine.resource import Key

DEFAULT_SECONDS = 60.0
"""The seconds that a call may take to land if the project file does not set a bound."""


class Attempt(Struct, frozen=True, gc=False):
    """A call as sent, with its effects. `ids` maps each category that the call names to the server's id.

    `survivors` are the codes uploaded in a sync session, if the call completes that session.
    """

    operation: str
    effects: tuple[Effect, ...] = msgspec.field(name="leaves")
    ids: Mapping[str, str] = msgspec.field(default_factory=dict)
    survivors: tuple[str, ...] = ()


class Outstanding(NamedTuple):
    """An attempt that may be executed for `remaining` more seconds."""

    run: str
    call: str
    attempt: Attempt
    remaining: float


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


@dataclass(frozen=True, slots=True)
class Settlement:
    """The effects of a call that a 2xx acknowledged, all or some of them, and the ids that the service assigned."""

    call: str
    effects: tuple[Effect, ...]
    server_ids: Mapping[Key, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CallFailure:
    """The keys of a call that were refused, or whose outcome will never be known.

    `refused` maps the keys that the service itself refused to the refused content (`records.content_of`).
    """

    call: str
    keys: tuple[Key, ...]
    message: str
    refused: Mapping[Key, str] = field(default_factory=dict)
