"""Undos, searched with the crash model (docs/repair.md).

Service and state return to what they were, as far as the interface allows. An undo does not sweep, and deletes no
category and no activity type. An undo that is killed and repeated ends in the same way. Among applies, refusals and
quarantine, any run is undone, the last or an earlier one or an undo, in whole or in part, with `--force` or without;
the next applies end at what the manifests say, and nothing is deleted that nobody asked to delete.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from syncengine.apply.report import RunStatus
from syncengine.errors import Problems
from syncengine.plan.diff import Action
from syncengine.plan.model import Plan
from syncengine.resource import Key, Kind, Recorded, Removal, Status
from syncengine.service.operations import DELETE_TAG, DELETE_TAG_CATEGORY
from tests.support.profiles import tried
from tests.support.world import World

from .crash_model import House, Manifest, Trouble, category, declaring, tag
from .test_crashes import (
    ACTS,
    CATEGORIES,
    HISTORY,
    RARELY,
    RENAMES,
    TAGS,
    TROUBLES,
    TYPES,
    Step,
    _end,
    _possible,
    house,
    manifests,
    nothing,
    renames,
)
from .truths import UNCLEARABLE, beyond_recorded, rows_not_as_held, shown, troubles_of

pytestmark = pytest.mark.slow

HISTORIES = int(os.environ.get("SYNCENGINE_TEST_HISTORIES", "40"))
OFTEN = settings(max_examples=tried(HISTORIES), deadline=None, suppress_health_check=list(HealthCheck))
ATTEMPTS = st.lists(TROUBLES, max_size=2)


class Moment(NamedTuple):
    """What service and state hold at one time."""

    world: World
    rows: Mapping[Key, Recorded]

    @classmethod
    def of(cls, home: House) -> Self:
        return cls(home.world, home.rows)


def differences(then: Moment, home: House, plans: list[Plan]) -> Iterator[str]:
    """Yield all that differs from `then` and that the interface could have restored.

    The interface cannot delete a tag (it is retired), clear a description, give a deleted category its old id, remove
    a category or activity type without deleting it (it is released), or restore what other people had put on a deleted
    resource.
    """
    now, left_out = Moment.of(home), {note.key for plan in plans for note in plan.notes if note.kind == "left-out"}
    yield from rows_not_as_held(home, now.rows)
    for key in {**then.rows, **now.rows}.keys() - left_out:
        was, status = (each.rows[key].status if key in each.rows else Status.DELETED for each in (then, now))
        made = Status.RETIRED if key.kind is Kind.TAG else Status.RELEASED
        if status not in ({Status.DELETED, made} if was is Status.DELETED else {was}):
            yield f"{key} was {was} and is {status}"
    after = shown(now.world, home.others.keywords)
    for key, before in shown(then.world, home.others.keywords).items():
        if key in left_out or (row := then.rows.get(key)) is None:
            continue
        if key not in after:
            yield f"{key} is not there"
            continue
        recorded = {**row.body.fields, "keywords": {*row.body.keywords}, "metadata": dict(row.body.metadata)}
        for name in {*before, *after[key]} - (UNCLEARABLE - {n for n, value in row.body.fields.items() if value}):
            value = after[key].get(name) or None
            is_as_recorded = row.doubtful and value == recorded.get(name)  # nobody knew its value
            if value != (before.get(name) or None) and not is_as_recorded:
                yield f"{key}: {name} is {value!r}, not {before.get(name)!r}"


def deletes(plan: Plan) -> Iterator[str]:
    """Yield the calls of the plan that no undo may send."""
    if plan.sweep is not None:
        yield "it sweeps"
    for call in plan.calls():
        if call.operation in (DELETE_TAG.id, DELETE_TAG_CATEGORY.id):
            yield f"it sends {call.operation}"


def settled(home: House, history: list[Step]) -> None:
    """Apply the history, and then its last manifest until nothing is left to do."""
    for step in history:
        home.apply(step.manifest, step.troubles, reassert=step.reasserts)
    _end(home, _possible(history[-1].manifest))
    home.land_all()


def undone(home: House, run: str, attempts: list[Any], *, resumes: bool = False) -> list[Plan]:
    """Undo a run, repeatedly if the undo dies, and return the first plan."""
    plans: list[Plan] = []
    for trouble in (*attempts, (), ()):
        ending = home.undo(run, trouble)
        assert ending.plan is not None
        plans.append(ending.plan)
        nothing(deletes(ending.plan))
        if ending.died and resumes and (resumed := home.resume(ending)) is not None:
            assert resumed.status is RunStatus.COMPLETE
    home.land_all()
    assert home.planned_undo(run).changes == (), "the undo still has changes"
    return plans[:1]


def asks_again(home: House, manifest: Manifest, made: Moment) -> None:
    """Check that the state recognizes undone changes that the manifest still asks for."""
    for each in home.state.undone():
        resource = manifest.resources.get(each.key)
        row = made.rows.get(each.key)
        if row is None or not row.doubtful:
            assert each.is_made_by(resource and resource.body, protect=False), f"{each.key} is not known as undone"


@OFTEN
@given(st.one_of(st.tuples(HISTORY, manifests()), st.tuples(RENAMES, renames())), TROUBLES, ATTEMPTS, st.booleans())
def test_undo_of_the_last_run_brings_everything_back(
    histories: tuple[list[Step], Manifest], troubles: Any, attempts: list[Any], resumes: bool
) -> None:
    """Also of a run that was killed, and by an undo that is killed again and again."""
    history, manifest = histories
    with house() as home:
        settled(home, history)
        then, before = Moment.of(home), home.state.writing_run()
        try:
            ending = home.apply(manifest, troubles)
        except Problems:
            return
        if home.state.writing_run() == before:
            return
        run, made = home.last_run, Moment.of(home)
        plans = undone(home, run, attempts, resumes=resumes)
        nothing(differences(then, home, plans))
        nothing(home.violations)
        if not ending.died:  # members of a renamed category may not be where the manifests want them
            asks_again(home, manifest, made)


@settings(OFTEN, max_examples=tried(max(1, HISTORIES // 2)))
@given(HISTORY, manifests())
def test_an_undo_of_an_undo_brings_everything_forward(history: list[Step], manifest: Manifest) -> None:
    """A third undo takes everything back again."""
    with house() as home:
        settled(home, history)
        before = home.state.writing_run()
        home.apply(_possible(manifest))
        if home.state.writing_run() == before:
            return
        there = Moment.of(home)
        first = undone(home, home.last_run, [])
        back = Moment.of(home)
        plans = [*first, *undone(home, home.last_run, [])]
        nothing(differences(there, home, plans))
        undone(home, home.last_run, [])
        nothing(differences(back, home, plans))


@pytest.mark.parametrize("instant", range(20))
def test_an_undo_does_not_manage_a_tag_that_it_releases(instant: int) -> None:
    """Otherwise, after an undo that dies, the next apply would remove the tag by the policy."""
    there = category("C3")
    one, other = tag("T1", category="C3"), tag("T2", category="C3")
    with house() as home:
        for step in ([there, other], [there, one], []):
            home.apply(declaring(*step))
        run = home.last_run
        home.undo(run, [Trouble(instant, "dies before")])
        assert Status.ACTIVE not in statuses(home, other.key)
        home.undo(run)
        assert statuses(home, one.key, other.key) == [Status.ACTIVE, Status.RELEASED]


def statuses(home: House, *keys: Key) -> list[Status]:
    return [row.status for row in home.state.rows() if row.key in keys]


@pytest.mark.parametrize("fields", [{}, {"description": "b"}])
@pytest.mark.parametrize("instant", range(10))
def test_an_undo_that_was_killed_while_it_retired_a_tag_again_is_resumed(instant: int, fields: dict[str, Any]) -> None:
    """A doubt that its own calls left is no reason to send the tag first, and a tag that was sent is still retired."""
    before = tag("T1", "more", description="a")
    after = tag("T1", "more", **{"description": "a", **fields})
    with house() as home:
        for declared in ([before], [], [after]):
            assert home.apply(declaring(*declared, policy=Removal.RETIRE)).status is RunStatus.COMPLETE
        run = home.last_run
        ending = home.undo(run, [Trouble(instant, "dies before")])
        if ending.died:
            resumed = home.resume(ending)
            assert resumed is not None and resumed.status is RunStatus.COMPLETE
        home.land_all()
        held = home.world.tags["T1"]
        assert statuses(home, before.key) == [Status.RETIRED]
        assert (held.fields["description"], held.keywords) == ("a", set())
        assert home.rests(declaring(policy=Removal.RETIRE))
        # The keyword deletes end no doubt about the rest: only an undo that is planned anew may send the tag.
        again = home.undo(run)
        assert again.plan is not None
        assert [change.action for change in again.plan.changes] in ([], [Action.UPDATE])
        assert home.planned_undo(run).changes == ()
        held = home.world.tags["T1"]
        assert (statuses(home, before.key), held.fields["description"], held.keywords) == ([Status.RETIRED], "a", set())


@dataclass(frozen=True)
class Undoing:
    """The undo of a run that changed something: the last one, or the one `back` runs before it."""

    back: int
    troubles: list[Trouble]
    forced: bool
    resumes: bool
    lands: bool
    targets: tuple[str, ...]
    sets_aside: int


SETS_ASIDE = st.sampled_from([0, 0, 1, 0xFF])
PARTS = st.sampled_from([(), (), (), ("tag/*",), ("category/*",), ("tag/T1",), ("category/C1",)])
UNDOINGS = st.builds(
    Undoing,
    st.sampled_from([0, 0, 0, 1, 2]),
    st.one_of(st.just([]), TROUBLES),
    st.booleans(),
    RARELY,
    RARELY,
    PARTS,
    SETS_ASIDE,
)
REFUSED = st.frozensets(st.sampled_from([*TAGS, *CATEGORIES, *TYPES]), max_size=2)


@st.composite
def histories(draw: Any, of: st.SearchStrategy[Manifest]) -> list[Step | Undoing]:
    """Few manifests, which come again and again between the undos."""
    few = st.sampled_from(draw(st.lists(of, min_size=1, max_size=3)))
    steps = st.builds(Step, few, TROUBLES, ACTS, RARELY, RARELY, RARELY, st.just(True), SETS_ASIDE, REFUSED)
    among = st.one_of(steps, UNDOINGS)
    return [
        draw(steps),
        *draw(st.lists(among, min_size=1, max_size=6)),
        draw(UNDOINGS),
        *draw(st.lists(among, max_size=2)),
    ]


def _undo(home: House, step: Undoing) -> None:
    """Undo a run; check that an undisturbed undo leaves nothing to undo."""
    runs = [run for run in home.state.runs(100) if run.plan is not None and home.state.has_changed(run.id)]
    if len(runs) <= step.back:
        return
    run, is_calm = runs[step.back].id, not (step.troubles or home.in_flight or step.targets)
    ending = home.undo(run, step.troubles, forced=step.forced, targets=step.targets)
    assert ending.plan is not None
    nothing(deletes(ending.plan))
    if ending.died and step.resumes and (resumed := home.resume(ending)) is not None:
        assert resumed.status is RunStatus.COMPLETE
    elif is_calm and ending.status is RunStatus.COMPLETE:
        again = home.planned_undo(run, forced=step.forced)
        nothing(f"{change.key} is planned again" for change in again.changes)


@OFTEN
@given(st.one_of(histories(manifests()), histories(renames())))
def test_undos_among_applies_end_at_what_the_manifests_say(history: list[Step | Undoing]) -> None:
    """With `--redo`, which lets the manifests ask again for what was undone."""
    with house() as home:
        manifest = Manifest()
        for step in history:
            if isinstance(step, Undoing):
                home.refused = frozenset()
                _undo(home, step)
            else:
                manifest, home.refused = step.manifest, step.refuses
                home.apply(manifest, step.troubles, reassert=step.reasserts)
                for act in step.others:
                    home.others_act(*act)
            if step.lands:
                home.land()
            if step.sets_aside:
                home.set_aside(step.sets_aside)
            nothing(home.violations)
            nothing(beyond_recorded(home))
        home.refused = frozenset()
        home.lift()
        last = _possible(manifest)
        _end(home, last)
        nothing(troubles_of(home, last))
