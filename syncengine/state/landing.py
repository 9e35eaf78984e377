"""Define calls that the service may still execute after their sender has given up (docs/planning.md 1.8). Values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct, field

from syncengine.effects import Effect

DEFAULT_SECONDS = 60.0
"""The seconds that a call may take to land if the project file does not set a bound."""


class Attempt(Struct, frozen=True, gc=False):
    """A call as sent, with its effects. `ids` maps each category that the call names to the server's id.

    `survivors` are the codes uploaded in a sync session, if the call completes that session.
    """

    operation: str
    effects: tuple[Effect, ...] = field(name="leaves")
    ids: Mapping[str, str] = field(default_factory=dict)
    survivors: tuple[str, ...] = ()


class Outstanding(NamedTuple):
    """An attempt that may be executed for `remaining` more seconds."""

    run: str
    call: str
    attempt: Attempt
    remaining: float
