"""A call of a dead run may still be executed after the next run, and must then change nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest

from syncengine.apply.report import RunStatus
from syncengine.effects import Effect
from syncengine.plan.request import Scope
from syncengine.resource import Key, Kind, Resource, Status
from syncengine.service.operations import (
    COMPLETE_SYNC_SESSION,
    DELETE_TAG_CATEGORY,
    UPSERT_TAGS,
    Operation,
    tag_body,
)
from syncengine.state.history import Run
from syncengine.state.records import Attempt

from .crash_model import House, Manifest, Trouble, activity_type, category, declaring, tag
from .test_crashes import Snapshot, house
from .test_instants import AFTER, BEFORE, beginning, left_behind
from .truths import beyond_recorded, troubles_of

pytestmark = pytest.mark.slow

BACK = declaring(
    *(r for key, r in BEFORE.resources.items() if key.name != "renamed-before"),
    category("renamed-before", was="renamed"),
)
"""The manifests of before, with the rename taken back as one."""


@cache
def troubled(how: str) -> tuple[Snapshot, ...]:
    return tuple(left for left, _ in left_behind(beginning(), AFTER, how))


def interrupted(how: str) -> Iterator[tuple[int, House]]:
    """Yield the change from ONE to AFTER, with trouble at each instant of it in turn."""
    for instant, trouble in enumerate(troubled(how)):
        with house(trouble) as home:
            yield instant, home


def in_flight(how: str) -> Iterator[tuple[int, House]]:
    """Yield those of the interrupted houses in which a call is in flight."""
    return ((instant, home) for instant, home in interrupted(how) if home.in_flight)


def ended(home: House, last: Manifest, instant: int) -> None:
    """Check that nothing is in flight, and that service, state and plan agree."""
    home.land_all()
    assert home.rests(last), f"trouble at instant {instant}"
    assert troubles_of(home, last) == [], f"trouble at instant {instant}"


@pytest.mark.parametrize("how", ["dies and lands late", "unavailable and lands late", "answered twice"])
@pytest.mark.parametrize("last", [BACK, AFTER], ids=["taken back", "repeated"])
def test_a_call_that_lands_after_the_next_run_changes_nothing(how: str, last: Manifest) -> None:
    """Whether the manifests were put back or the run is repeated; a run waits once, before its own first call."""
    for instant, home in in_flight(how):
        assert home.apply(last).status is RunStatus.COMPLETE, f"trouble at instant {instant}"
        assert home.waits == 0 or (home.waits, home.in_flight) == (1, []), f"trouble at instant {instant}"
        assert list(beyond_recorded(home)) == []
        ended(home, last, instant)


@pytest.mark.parametrize("how", ["dies before", "unavailable", "refused"])
def test_wherever_a_run_ends_the_files_may_be_put_back_and_others_put_in_place(how: str) -> None:
    """The manifests are put back with or without the rename; without it, the renamed category is deleted as planned."""
    for last in (BACK, BEFORE):
        for instant, home in interrupted(how):
            for _ in range(3):
                home.apply(last)
            assert home.violations == [], f"trouble at instant {instant}"
            ended(home, last, instant)


@pytest.mark.parametrize("how", ["dies and lands late", "unavailable and lands late"])
def test_a_call_may_land_at_any_instant_of_the_next_run(how: str) -> None:
    """The late call is executed between any two calls of the next run."""
    for instant, home in in_flight(how):
        home.apply(BACK, [Trouble(2 * instant, "lands")])
        ended(home, BACK, instant)


def test_a_repeated_call_does_not_wait_for_the_late_one() -> None:
    """A run that repeats a call unchanged does not wait for the late call.

    It waits if a deleted keyword differs from a wanted one only by case, since the service may confuse the two.
    """
    for instant, home in in_flight("dies and lands late"):
        (late, *_) = home.in_flight
        home.apply(AFTER)
        assert home.waits == (late.body.get("keyword") == "Words"), f"trouble at instant {instant}"


@contextmanager
def two_late_calls_that_differ() -> Iterator[House]:
    """Yield a house with two calls of dead runs in flight, which set one description and another."""
    with house() as home:
        home.apply(declaring(tag("edited", description="before"), tag("other")))
        for words in ("one", "two"):
            effect = upsert(tag("edited", description=words))
            leave_behind(home, words, UPSERT_TAGS, effect)
            home.send_off(UPSERT_TAGS, {"tags": [tag_body(effect, None, spell_name=True)]})
        yield home


def upsert(resource: Resource) -> Effect:
    body = resource.body
    return Effect(key=resource.key, fields=body.fields, keywords=body.keywords, whole=True)


def leave_behind(home: House, name: str, operation: Operation, *effects: Effect, **more: Any) -> None:
    """Record a call of a run that died, which may still be executed."""
    home.state.begin_run(Run(f"run of {name}", 0.0, "apply", None, "h", "u", None, None, None))
    home.state.intend({name: Attempt(operation.id, effects, **more)})


@pytest.mark.parametrize("last", ["before", "one", "two"])
def test_of_two_late_calls_that_differ_each_run_that_asks_of_their_resource_waits(last: str) -> None:
    """Also one that repeats either of them: the service may execute the other one afterwards."""
    with two_late_calls_that_differ() as home:
        wanted = declaring(tag("edited", description=last), tag("other", description="new"))
        assert home.apply(wanted).status is RunStatus.COMPLETE
        assert (home.waits, home.in_flight) == (1, [])
        ended(home, wanted, 0)


def test_a_run_that_asks_nothing_of_their_resource_goes_on() -> None:
    """The resource stays in doubt, so that the run after it asks again, and waits."""
    with two_late_calls_that_differ() as home:
        wanted = declaring(tag("edited", description="two"), tag("other", description="new"))
        assert home.apply(wanted, scope=Scope(targets=("tag/other",))).status is RunStatus.COMPLETE
        assert (home.waits, len(home.in_flight)) == (0, 2)
        assert [row.key.name for row in home.state.rows() if row.doubtful] == ["edited"]
        assert home.apply(wanted).status is RunStatus.COMPLETE
        assert home.waits == 1
        ended(home, wanted, 0)


# --- what a late call may take that no row names


@contextmanager
def with_a_late_call(operation: Operation, *effects: Effect, **more: Any) -> Iterator[House]:
    """Yield a house with two categories, a type and tags, and a call of a dead run that may still be executed."""
    with house() as home:
        assert home.apply(AT_REST).status is RunStatus.COMPLETE
        ids = {row.key.name: row.server_id for row in home.state.rows(Kind.CATEGORY) if row.server_id}
        leave_behind(home, "late", operation, *effects, **{"ids": ids, **more})
        yield home


AT_REST = declaring(
    category("one"), category("two"), activity_type("A1"), tag("in-one", category="one"), tag("nowhere")
)


def waits_for(home: House, *changes: Resource) -> bool:
    """Return whether a run that changes these resources alone waits first."""
    wanted = declaring(*({**AT_REST.resources, **{each.key: each for each in changes}}.values()))
    home.apply(wanted, scope=Scope(targets=tuple(str(each.key) for each in changes)))
    return home.waits > 0


@pytest.mark.parametrize(("uploaded", "waits"), [((), True), (("A1",), True), (("A1", "A2"), False)])
def test_a_session_may_still_take_each_type_that_was_not_uploaded_in_it(uploaded: tuple[str, ...], waits: bool) -> None:
    with with_a_late_call(COMPLETE_SYNC_SESSION, survivors=uploaded) as home:
        assert waits_for(home, activity_type("A2")) is waits


IN_OR_OUT = {
    "in it by name": (tag("new", category="one"), True),
    "in it by id": (tag("new", tagCategoryId="id-1"), True),
    "in another": (tag("new", category="two"), False),
    "in none": (tag("new", tagCategoryId=""), False),
    "taken out of it": (tag("in-one"), False),
    "moved out of it": (tag("in-one", category="two"), False),
    "anywhere, as people may have moved it": (tag("nowhere", description="d"), True),
    "no tag at all": (activity_type("A2"), False),
}


@pytest.mark.parametrize(("changed", "waits"), IN_OR_OUT.values(), ids=IN_OR_OUT)
def test_a_category_may_still_be_deleted_with_each_tag_that_may_be_in_it(changed: Resource, waits: bool) -> None:
    takes = (Effect(key=key, status=Status.DELETED) for key in (Key(Kind.CATEGORY, "one"), Key(Kind.TAG, "in-one")))
    with with_a_late_call(DELETE_TAG_CATEGORY, *takes) as home:
        assert {row.server_id for row in home.state.rows(Kind.CATEGORY)} == {"id-1", "id-2"}
        assert waits_for(home, changed) is waits


@pytest.mark.parametrize(("sent_id", "waits"), [("id-1", False), ("id-before", True)])
def test_a_tag_may_still_be_put_into_a_category_by_an_id_that_is_no_longer_its_own(sent_id: str, waits: bool) -> None:
    """Even if this run sends the tag with the same content."""
    changed = tag("in-one", description="d", category="one")
    with with_a_late_call(UPSERT_TAGS, upsert(changed), ids={"one": sent_id}) as home:
        assert waits_for(home, changed) is waits
