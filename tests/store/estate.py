"""Short helpers that make effects and runs, and a state in which to record them."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from syncengine.effects import Effect
from syncengine.project.runner import Holder
from syncengine.resource import Key, Kind, Source
from syncengine.state.history import Run
from syncengine.state.records import Approved, Attempt, Settlement
from syncengine.state.store import State, open_state

PLACE = Source("manifests/acme.yaml", 12)
HERE = Holder.here("apply", {})


def tag(name: str) -> Key:
    return Key(Kind.TAG, name)


def category(name: str) -> Key:
    return Key(Kind.CATEGORY, name)


def whole(key: Key, **fields: Any) -> Effect:
    """The effect of an upsert of the whole resource."""
    return Effect(key=key, fields=fields, whole=True, source=PLACE)


def run(number: int = 1, **given: Any) -> Run:
    usual = Run(f"run-{number}", 1000.0 * number, "apply", f"plan-{number}", "ci", "jo", None, f"commit-{number}", True)
    return replace(usual, **given)


@contextmanager
def applying(
    url: str, given: Run | None = None, now: Callable[[], float] = time.time, approved: Approved | None = None
) -> Iterator[State]:
    """A state that is open, locked, and in a run."""
    with open_state(url, write=True, now=now) as state:
        state.lock(HERE, wait=5, request_timeout=0)
        state.begin_run(given or run(), approved=approved)
        yield state


def applied(state: State, call: str, *effects: Effect, **server_ids: str) -> None:
    """Record a call that is sent and acknowledged."""
    state.intend({call: Attempt("upsertTags", effects)})
    state.settle(
        [Settlement(call, effects, {effect.key: server_ids[effect.key.name] for effect in effects if server_ids})]
    )
    state.end_attempts([call], {})
