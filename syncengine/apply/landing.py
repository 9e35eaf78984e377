"""Wait, before the first call of a run, until calls of earlier runs can no longer be executed (docs/planning.md 1.8).

A call whose sender was killed, or got no conclusive answer, may be executed later than calls that are sent after it.
One that agrees with all that this run brings about does no harm, so that a plain repeat never waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from syncengine.apply.report import Event, Waiting
from syncengine.document.text import folded
from syncengine.effects import Effect, intended, settled
from syncengine.errors import Interrupted, MayLand
from syncengine.instants import machine_seconds
from syncengine.resource import ALTERNATIVES, Key, Kind, Recorded, Status, category_references
from syncengine.service.operations import COMPLETE_SYNC_SESSION, DELETE_TAG_CATEGORY
from syncengine.state.records import LANDING_SECONDS, Attempt
from syncengine.state.store import State

TICK = 0.01
"""Seconds added to a wait, because two different clocks measure it."""


async def pause(stop: asyncio.Event, seconds: float) -> None:
    """Wait for the given seconds, or until `stop` is set."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long calls may take to land, and how long this run waits for them, in seconds on this machine's own clock.

    `window` counts from when the sender of a call could send no more; `until` is the end of waiting.
    """

    window: float = LANDING_SECONDS
    until: float = math.inf
    seconds: Callable[[], float] = machine_seconds
    now: Callable[[], float] = time.time
    pause: Callable[[asyncio.Event, float], Awaitable[None]] = field(default=lambda *wait: pause(*wait))


async def wait(
    effects: Callable[[], Iterable[Effect]],
    state: State,
    patience: Patience,
    stop: asyncio.Event,
    tell: Callable[[Event], None],
) -> None:
    """Wait until no earlier call can be executed, if one of them disagrees with a plan that has these `effects`.

    Raise `MayLand` if that takes longer than this run waits, and `Interrupted` if it is stopped meanwhile.
    """
    late = state.outstanding(patience.window)
    disagreement = _disagreement([each.attempt for each in late], effects, state) if late else None
    if disagreement is None:
        return
    operation, key = disagreement
    why = f"an earlier {operation} of {key} may still be executed"
    seconds = max(each.remaining for each in late)
    if patience.seconds() + seconds > patience.until:
        at = datetime.fromtimestamp(math.ceil(patience.now() + seconds), UTC)
        raise MayLand(f"nothing was sent: {why}; repeat after {at:%H:%M:%S} UTC")
    tell(Waiting(seconds, why))
    await patience.pause(stop, seconds + TICK)
    if stop.is_set():
        raise Interrupted("interrupted: nothing was sent")


def _disagreement(
    attempts: Iterable[Attempt], effects: Callable[[], Iterable[Effect]], state: State
) -> tuple[str, Key] | None:
    """Return the operation and the resource of an attempt that would undo a part of a plan, or `None`."""
    planned: dict[Key, list[Effect]] = defaultdict(list)
    for effect in effects():
        planned[effect.key].append(effect)
    whole = {key: each for key, of_key in planned.items() for each in of_key if each.whole}
    # Completing a session of types takes all that was not uploaded in it; deleting a category takes any tag in it.
    tags = [each for key, each in whole.items() if key.kind is Kind.TAG]
    codes = [key for key in whole if key.kind is Kind.ACTIVITY_TYPE]
    named = [effect for attempt in attempts for effect in attempt.effects]
    rows = state.get({effect.key for effect in named})
    ids = {row.key.name: row.server_id for row in state.rows(Kind.CATEGORY) if row.confirmed and row.server_id}
    for attempt in attempts:
        effects_left = attempt.effects
        if attempt.operation == COMPLETE_SYNC_SESSION.id:
            if lost := next((key for key in codes if key.name not in attempt.survivors), None):
                return attempt.operation, lost
        elif attempt.operation == DELETE_TAG_CATEGORY.id:
            effects_left = attempt.effects[:1]  # its members are lost only if they are still in it, as judged here
            category = effects_left[0].key
            places = {str(category), f"id/{attempt.ids.get(category.name)}"}
            if any(_may_be_in(places, tag) for tag in tags):
                return attempt.operation, category
        for late in effects_left:
            if late.key in planned:
                aim = rows.get(late.key)  # then as it is once all calls of the plan are acknowledged
                for effect in planned[late.key]:
                    aim = settled(intended(aim, effect), effect)
                if disturbs(late, aim) or (aim is not None and _names_another_id(attempt, late, ids)):
                    return attempt.operation, late.key
    return None


def _may_be_in(places: Iterable[str], tag: Effect) -> bool:
    """Return whether a tag may be in a category after its upsert: in any, if that says nothing of one.

    People may have put such a tag into a category.
    """
    says = "category" in tag.cleared or not ALTERNATIVES.keys().isdisjoint(tag.fields)
    return not says or not set(places).isdisjoint(category_references(tag.fields))


def _names_another_id(attempt: Attempt, late: Effect, ids: Mapping[str, str]) -> bool:
    """Return whether a late upsert names a category by an id that the category no longer has."""
    if not late.whole:
        return False
    category = str(late.key.name if late.key.kind is Kind.CATEGORY else late.fields.get("category"))
    sent = attempt.ids.get(category)
    return sent is not None and ids.get(category, sent) != sent


def disturbs(late: Effect, aim: Recorded | None) -> bool:
    """Return whether executing `late` after everything else would leave the service with other content than `aim`."""
    if aim is None or aim.status is Status.DELETED:
        return late.whole  # an upsert would create the resource; other calls do nothing if it does not exist
    if late.status is Status.DELETED:
        return True
    fields, keywords, metadata = aim.body.fields, aim.body.keywords, aim.body.metadata
    # The service may take a keyword for another one that differs by case or Unicode form (docs/planning.md 2.3).
    dropped = set(map(folded, late.keywords_dropped))
    return (
        any((fields.get(name) or None) != (value or None) for name, value in late.fields.items())
        or any(fields.get(name) for name in late.cleared)
        or any(metadata.get(name) != value for name, value in late.metadata.items())
        or not metadata.keys().isdisjoint(late.metadata_dropped)
        or not set(late.keywords) <= set(keywords)
        or not dropped.isdisjoint(map(folded, keywords))
    )
