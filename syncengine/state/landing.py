"""Find the resources that a late execution of earlier calls would disturb; pure.

If a call's sender was killed, or got no conclusive answer, the call may be executed later than calls sent after it
(docs/planning.md 1.8). A late call that agrees with the aim does no harm.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct, field

from syncengine.document.text import folded
from syncengine.effects import Effect, intended, settled
from syncengine.resource import ALTERNATIVES, Key, Kind, Recorded, Status, category_references
from syncengine.service.operations import COMPLETE_SYNC_SESSION, DELETE_TAG_CATEGORY

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


def aims_of(keys: Iterable[Key], rows: Mapping[Key, Recorded], effects: Iterable[Effect]) -> dict[Key, Recorded | None]:
    """Return the rows that `keys` will have once all `effects` are acknowledged."""
    aims: dict[Key, Recorded | None] = {key: rows.get(key) for key in keys}
    for effect in effects:
        if effect.key in aims:
            aims[effect.key] = settled(intended(aims[effect.key], effect), effect)
    return aims


def disturbs(late: Effect, aim: Recorded | None) -> bool:
    """Return whether executing `late` after everything else would leave the service with other content than `aim`."""
    if aim is None or aim.status is Status.DELETED:
        return late.whole  # an upsert would create the resource; other calls do nothing if it does not exist
    if late.status is Status.DELETED:
        return True
    return _overwrites(late, aim) or _takes_or_adds(late, aim)


def _overwrites(late: Effect, aim: Recorded) -> bool:
    body = aim.body
    return (
        any((body.fields.get(name) or None) != (value or None) for name, value in late.fields.items())
        or any(body.fields.get(name) for name in late.cleared)
        or any(body.metadata.get(name) != value for name, value in late.metadata.items())
    )


def _takes_or_adds(late: Effect, aim: Recorded) -> bool:
    body = aim.body
    if not set(late.keywords) <= set(body.keywords) or not body.metadata.keys().isdisjoint(late.metadata_dropped):
        return True
    # The service may take a keyword for another one that differs by case or Unicode form (docs/planning.md 2.3).
    dropped = set(map(folded, late.keywords_dropped))
    return bool(dropped) and not dropped.isdisjoint(map(folded, body.keywords))


class _Late(NamedTuple):
    """One effect of an attempt that may be executed up to the time `until`, on this run's clock."""

    until: float
    effect: Effect
    attempt: Attempt


class Question(NamedTuple):
    """A resource that a late call may still change, up to the time `until` on this run's clock."""

    key: Key
    operation: str
    until: float


class Questions:
    """The index of late calls by the resources that they would disturb.

    `aim_of` returns the aim of a key, `id_of` the current server id of a category.
    """

    def __init__(self, aim_of: Callable[[Key], Recorded | None], id_of: Callable[[str], str | None]) -> None:
        self._aim_of = aim_of
        self._id_of = id_of
        self._by_key: dict[Key, list[_Late]] = defaultdict(list)
        self._categories: dict[str, list[_Late]] = defaultdict(list)
        self._completions: list[_Late] = []

    def __bool__(self) -> bool:
        return bool(self._by_key or self._completions)

    def add(self, attempt: Attempt, until: float) -> None:
        """Add an attempt that may be executed up to the time `until`."""
        if attempt.operation == COMPLETE_SYNC_SESSION.id:
            self._completions.append(_Late(until, _ANY_CODE, attempt))
        # The members deleted together with a category are disturbed only if they are still in that category.
        own = attempt.effects[:1] if attempt.operation == DELETE_TAG_CATEGORY.id else attempt.effects
        for effect in own:
            late = _Late(until, effect, attempt)
            self._by_key[effect.key].append(late)
            if attempt.operation == DELETE_TAG_CATEGORY.id:
                self._categories[str(effect.key)].append(late)
                if server_id := attempt.ids.get(effect.key.name):
                    self._categories[f"id/{server_id}"].append(late)

    def of(self, effects: Iterable[Effect], now: float) -> Question | None:
        """Return the question raised by `effects` that stays open longest, or `None` if they raise none."""
        questions = [question for effect in effects for question in self._about(effect) if question.until > now]
        return max(questions, key=lambda question: question.until, default=None)

    def _about(self, effect: Effect) -> Iterable[Question]:
        for late in self._by_key.get(effect.key, ()):
            if self._disturbs(late):
                yield Question(effect.key, late.attempt.operation, late.until)
        if not effect.whole:
            return
        for reference in self._places_of(effect) if effect.key.kind is Kind.TAG else ():
            for late in self._categories.get(reference, ()):
                yield Question(late.effect.key, late.attempt.operation, late.until)
        if effect.key.kind is Kind.ACTIVITY_TYPE:
            for late in self._completions:
                if effect.key.name not in late.attempt.survivors:
                    yield Question(effect.key, late.attempt.operation, late.until)

    def _places_of(self, effect: Effect) -> Iterable[str]:
        """Return references to the categories that a tag may be in after its upsert: any, if that says nothing of one.

        People may have put such a tag into a category.
        """
        says = "category" in effect.cleared or not ALTERNATIVES.keys().isdisjoint(effect.fields)
        return category_references(effect.fields) if says else self._categories

    def _disturbs(self, late: _Late) -> bool:
        aim = self._aim_of(late.effect.key)
        return disturbs(late.effect, aim) or (aim is not None and self._has_another_id(late))

    def _has_another_id(self, late: _Late) -> bool:
        """Return whether a late upsert names a category by an id that the category no longer has."""
        if not late.effect.whole:
            return False
        category = late.effect.key.name if late.effect.key.kind is Kind.CATEGORY else late.effect.fields.get("category")
        sent_id = late.attempt.ids.get(str(category))
        return sent_id is not None and self._id_of(str(category)) not in (None, sent_id)


_ANY_CODE = Effect(key=Key(Kind.ACTIVITY_TYPE, ""))
"""The stand-in for every activity type that completing a sync session may remove."""
