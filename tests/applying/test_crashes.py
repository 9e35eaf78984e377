"""The crash model: after any trouble, the next applies end at what the manifests say."""

import dataclasses
import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from syncengine.apply.report import RunStatus
from syncengine.errors import Problems
from syncengine.plan.aim import Rules
from syncengine.plan.gate import approved_of
from syncengine.plan.request import Scope
from syncengine.project.model import Ownership
from syncengine.project.runner import Holder
from syncengine.resource import Body, Key, Kind, Removal, Removed, Resource, Value
from syncengine.sandbox import store
from syncengine.state.history import Run
from syncengine.state.store import open_state
from tests.support.once import MEMORY
from tests.support.profiles import tried

from .crash_model import (
    ANSWERS,
    LANDS,
    LATE,
    OF_CALLS,
    PLACE,
    Ending,
    House,
    Manifest,
    Time,
    Trouble,
    activity_type,
    category,
    declaring,
    tag,
)
from .truths import beyond_recorded, troubles_of

pytestmark = pytest.mark.slow

HISTORIES = int(os.environ.get("SYNCENGINE_TEST_HISTORIES", "100"))
APPLIES_TO_THE_END = 4

TAGS, CATEGORIES, TYPES = ("T1", "T2", "T3"), ("C1", "C2", "C3"), ("A1", "A2", "A3")

SOMETIMES = st.sampled_from([None, None, "a", "b", ""])
TEXTS = st.lists(st.sampled_from(["k1", "K1", "k2"]), unique=True, max_size=2).map(tuple)
RULES = st.builds(Rules, st.sampled_from(list(Removal)), st.sampled_from([Ownership.OWNED, *Ownership]), st.just(True))


def fields(**given: Any) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


@st.composite
def tags(draw: Any, name: str, others: list[str], categories: list[str], types: list[str]) -> Resource:
    excluded, keywords = draw(st.booleans()), draw(TEXTS)
    declared = fields(
        description=draw(st.sampled_from([None, "a", "b"])),
        url=draw(SOMETIMES),
        category=draw(st.sampled_from([None, *categories])),
        defaultActivityTypeCode=draw(st.sampled_from([None, *types])),
        visibility=draw(st.sampled_from([None, None, None, "PRIVATE", "PUBLIC"])),
        excludeTagNameKeyword=excluded,
    )
    effective = keywords if excluded else (*keywords, name)
    metadata = draw(st.dictionaries(st.sampled_from(["m1", "m2"]), st.sampled_from(["x", "y"]), max_size=2))
    former = tuple(draw(st.lists(st.sampled_from(others), max_size=1))) if others else ()
    return Resource(Key(Kind.TAG, name), Body(declared, effective, metadata), PLACE, previously=former)


@st.composite
def categories(draw: Any, name: str, others: list[str]) -> Resource:
    declared = fields(
        label=draw(st.sampled_from(["a", "b"])), description=draw(SOMETIMES), keywords=draw(TEXTS) or None
    )
    former = tuple(draw(st.lists(st.sampled_from(others), max_size=1))) if others else ()
    return Resource(Key(Kind.CATEGORY, name), Body(declared), PLACE, previously=former)


@st.composite
def types(draw: Any, code: str) -> Resource:
    revived = draw(st.sampled_from([True, True, True, None]))
    declared = fields(label="L", description=draw(SOMETIMES), enableIfNew=True, reenableIfArchived=revived)
    return Resource(Key(Kind.ACTIVITY_TYPE, code), Body(declared), PLACE)


@st.composite
def manifests(draw: Any) -> Manifest:
    chosen = [draw(st.lists(st.sampled_from(names), unique=True)) for names in (TAGS, CATEGORIES, TYPES)]
    listed, grouped, coded = chosen
    resources = [
        *(draw(categories(name, [n for n in CATEGORIES if n not in grouped])) for name in grouped),
        *(draw(types(code)) for code in coded),
        *(draw(tags(name, [n for n in TAGS if n not in listed], grouped, coded)) for name in listed),
    ]
    lines = draw(st.lists(st.sampled_from(TAGS), unique=True, max_size=2))
    gone = [Key(Kind.TAG, name) for name in lines if name not in listed]
    removed = {key: Removed(key, draw(st.sampled_from(list(Removal))), PLACE) for key in gone}
    return Manifest({resource.key: resource for resource in _claimed_once(resources)}, draw(RULES), removed)


def _claimed_once(resources: list[Resource]) -> Iterator[Resource]:
    """Let only one resource claim a former name, as the reader of manifests demands."""
    claimed: set[Key] = set()
    for resource in resources:
        former = tuple(n for n in resource.previously if Key(resource.key.kind, n) not in claimed)
        claimed |= {Key(resource.key.kind, n) for n in former}
        yield replace(resource, previously=former)


@st.composite
def renames(draw: Any) -> Manifest:
    """Two tags and categories alone, nearly all of them renamed: what a sample of everything seldom meets."""
    names = draw(st.sampled_from([[], *([name] for name in CATEGORIES), list(CATEGORIES[:2])]))
    formers = [name for name in CATEGORIES if name not in names]
    grouped = [category(name, was=draw(st.sampled_from(formers))) for name in names]
    listed = draw(st.lists(st.sampled_from(TAGS[:2]), unique=True)) if names else []
    tagged = [tag(name, category=draw(st.sampled_from(names))) for name in listed]
    rules = Rules(
        draw(st.sampled_from([Removal.FORGET, Removal.FORGET, *Removal])), Ownership.ADDITIVE, deletes_tags=True
    )
    return Manifest({resource.key: resource for resource in _claimed_once([*grouped, *tagged])}, rules)


IN_CALLS = ("dies and lands late", *ANSWERS, *LATE, *LATE)


def troubles(most: int, *, instants: int, calls: int, in_calls: Iterable[str] = IN_CALLS) -> st.SearchStrategy[Any]:
    """Return at most so many troubles in so many instants and calls, three quarters of them in calls."""
    anywhere = st.builds(
        Trouble, st.integers(0, instants), st.sampled_from(["dies before", "dies before", "dies after", LANDS])
    )
    of_call = st.builds(Trouble, st.integers(0, calls), st.sampled_from([*in_calls]))
    return st.lists(
        st.one_of(anywhere, of_call, of_call, of_call),
        max_size=most,
        unique_by=lambda trouble: (trouble.instant, trouble.what in OF_CALLS),
    )


TROUBLES = troubles(4, instants=24, calls=9)
ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("keyword"), st.sampled_from(TAGS)),
        st.tuples(st.just("tag"), st.sampled_from(CATEGORIES)),
        st.tuples(st.just("type"), st.just("")),
    ),
    max_size=1,
)


@dataclass(frozen=True)
class Step:
    manifest: Manifest
    troubles: list[Trouble]
    others: list[tuple[str, str]]
    reasserts: bool
    resumes: bool
    lands: bool = False
    approves: bool = True
    sets_aside: int = 0
    refuses: frozenset[str] = frozenset()


RARELY = st.sampled_from([False, False, False, True])
OFTEN_APPROVED = st.sampled_from([True, True, False])
HISTORY = st.lists(
    st.builds(Step, manifests(), TROUBLES, ACTS, RARELY, st.booleans(), RARELY, OFTEN_APPROVED), min_size=1, max_size=5
)
REFUSALS = troubles(
    5, instants=16, calls=6, in_calls=["item refused", "items refused", "refused", "item refused", *IN_CALLS]
)


@st.composite
def refused_histories(draw: Any) -> list[Step]:
    """Few manifests that are applied again and again, with refusals, and some of what was refused set aside."""
    wanted = draw(st.lists(manifests(), min_size=1, max_size=3))
    step = st.builds(
        Step,
        st.sampled_from(wanted),
        REFUSALS,
        ACTS,
        RARELY,
        RARELY,
        RARELY,
        OFTEN_APPROVED,
        st.sampled_from([0xFF, 0xFF, 1, 2, 0]),
        st.frozensets(st.sampled_from([*TAGS, *CATEGORIES, *TYPES]), max_size=4),
    )
    steps: list[Step] = draw(st.lists(step, min_size=2, max_size=6))
    return steps


FEW_TROUBLES = troubles(1, instants=7, calls=3)
RENAMES = st.lists(
    st.builds(Step, renames(), FEW_TROUBLES, st.just([]), st.just(False), RARELY, RARELY), min_size=3, max_size=4
)


@lru_cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """A folder with an empty state, in memory if possible, since thousands of histories need no disk."""
    folder = tempfile.TemporaryDirectory(dir=MEMORY, prefix="syncengine-")
    open_state(f"{folder.name}/empty.db", write=True).close()
    return folder


def _path() -> Path:
    return Path(_folder().name, "history.db")


@dataclass(frozen=True)
class Snapshot:
    """A house at one time, with the database of its state."""

    house: House
    database: bytes


@contextmanager
def house(begin: Snapshot | None = None) -> Iterator[House]:
    """Yield a house with an empty service and an empty, locked state, or a copy of the house in `begin`."""
    path = _path()
    path.write_bytes(begin.database if begin else path.with_name("empty.db").read_bytes())
    time = Time(begin.house.at) if begin else Time()
    with (
        open_state(str(path), write=True, seconds=time.seconds) as state,
        state.lock(Holder.here("test", {}), wait=5, request_timeout=0),
    ):
        yield begin.house.twin(state, time) if begin else House(state, time)


def snapshot(home: House) -> Snapshot:
    """Take a snapshot of a house, which is not to be used any more."""
    assert home.state.lease is not None
    home.state.lease.release()
    with closing(sqlite3.connect(_path())) as database:
        return Snapshot(home, database.serialize())


OFTEN = settings(
    max_examples=tried(HISTORIES),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
)


@pytest.mark.parametrize("histories", [HISTORY, RENAMES], ids=["of anything", "of renames of categories with tags"])
@OFTEN
@given(data=st.data())
def test_after_any_trouble_the_next_undisturbed_applies_end_at_what_the_manifests_say(
    histories: st.SearchStrategy[list[Step]], data: st.DataObject
) -> None:
    """Service = desired + what was let go + others' things; recorded = service; the next plan is empty."""
    walk(data.draw(histories))


@settings(OFTEN, max_examples=tried(max(1, HISTORIES // 3)))
@given(refused_histories())
def test_with_resources_in_quarantine_nothing_is_lost(history: list[Step]) -> None:
    """Nothing is sent or deleted of what is set aside; once that is lifted, the end is what the manifests say."""
    walk(history)


def walk(history: list[Step], house_of: Callable[[], AbstractContextManager[House]] = house) -> None:
    with house_of() as home:
        for step in history:
            home.refused = step.refuses
            ending = home.apply(
                step.manifest, step.troubles, reassert=step.reasserts, approves=step.approves, plans_again=True
            )
            # A state in Git does not know a run that died before it was pushed.
            if ending.died and ending.plan is not None and home.state.plan_began(ending.plan.id):
                nothing(asked_again(home, ending, step))
                if step.resumes:
                    _resume(home, ending, step)
            nothing(home.violations)
            nothing(beyond_recorded(home))
            if step.lands:
                home.land()
                nothing(beyond_recorded(home))
            for act in step.others:
                home.others_act(*act)
            if step.sets_aside:
                home.set_aside(step.sets_aside)
        home.refused = frozenset()
        home.lift()
        last = _possible(history[-1].manifest)
        _end(home, last)
        nothing(troubles_of(home, last))


def asked_again(home: House, ending: Ending, step: Step) -> Iterator[str]:
    """Yield approved removals of a dead run that the next plan of the same manifest asks about again."""
    assert ending.plan is not None
    approved = [loss for losses in approved_of(ending.plan).uses.values() for loss in losses]
    approved += [loss for unit in ending.plan.gate.begun for loss in unit.losses]
    try:
        planned = home.planned(step.manifest, reassert=step.reasserts)
    except Problems:
        return
    for unit in planned.gate.units:
        if unit.is_open:
            yield from (f"{loss} asks again" for loss in unit.losses if any(each.covers(loss) for each in approved))


def _resume(home: House, ending: Ending, step: Step) -> None:
    """Check that the saved plan of a dead run can be applied again and completes (docs/planning.md 6)."""
    home.refused = frozenset()
    resumed = home.resume(ending)
    if resumed is not None:
        assert resumed.status is RunStatus.COMPLETE, "the resumed plan did not complete"
        nothing(str(change.key) for change in home.planned(step.manifest).changes)


def nothing(found: Iterable[str]) -> None:
    wrong = list(found)
    assert not wrong, "; ".join(wrong)


def _possible(manifest: Manifest) -> Manifest:
    """Return the manifest with the declarations that a plan may require: a revived type, a tag's visibility."""
    said: dict[Kind, dict[str, Value]] = {
        Kind.ACTIVITY_TYPE: {"reenableIfArchived": True},
        Kind.TAG: {"visibility": "PRIVATE"},
        Kind.CATEGORY: {},
    }
    resources = {
        key: replace(resource, body=replace(resource.body, fields={**resource.body.fields, **said[key.kind]}))
        for key, resource in manifest.resources.items()
    }
    return dataclasses.replace(manifest, resources=resources)


def _end(home: House, manifest: Manifest) -> None:
    """Check that a few applies leave nothing to do, and then execute the calls in flight."""
    for _ in range(APPLIES_TO_THE_END):
        planned = home.planned(manifest)
        if not planned.changes_something and not planned.stages:
            home.apply(manifest)
            home.land_all()
            return
        home.apply(manifest)
    assert home.rests(manifest), "there is still something to do"


MORE, LESS = (tag("T1", "k1", metadata=dict.fromkeys(names, "x"), description="a") for names in (("m1", "m2"), ("m1",)))
WORDLESS = tag("T1", metadata=MORE.body.metadata, description="a")


@pytest.mark.parametrize("instant", range(20))
@pytest.mark.parametrize(
    ("had", "wanted"),
    [((category("C1"), MORE), (LESS,)), ((category("C1"), activity_type("A1")), ())],
    ids=["metadata", "the whole first sweep"],
)
def test_a_killed_saved_plan_goes_on_without_a_new_approval(
    instant: int, had: Iterable[Resource], wanted: Iterable[Resource]
) -> None:
    """A run may end between two deletes, or between a sweep and the record of what it deleted."""
    with house() as home:
        home.apply(declaring(*had))
        ending = home.apply(declaring(*wanted), [Trouble(instant, "dies before")])
        if ending.died and (resumed := home.resume(ending)) is not None:
            assert resumed.status is RunStatus.COMPLETE


@pytest.mark.parametrize("instant", range(3, 9))
@pytest.mark.parametrize("less", [WORDLESS, LESS], ids=["keyword", "metadata"])
def test_an_upsert_leaves_the_doubt_about_what_it_does_not_carry(less: Resource, instant: int) -> None:
    """The end of a delete is unknown; the next run dies between its upsert and the repeated delete."""
    with house() as home:
        home.apply(declaring(MORE))
        home.apply(declaring(less), [Trouble(0, "answer lost")])
        home.apply(declaring(less), [Trouble(instant, "dies before")])
        home.apply(declaring(MORE))
        held = home.world.tags["T1"]
        assert ("k1" in held.keywords, {*held.metadata}) == (True, {"m1", "m2"})


@pytest.mark.parametrize("trouble", ["unavailable", "answer lost", "dies and lands late"])
def test_a_tag_counts_as_private_until_its_opening_is_acknowledged(trouble: str) -> None:
    """Recorded as public, a tag that stayed private would never be opened, and its content be shown unasked."""
    silent = tag("T1", "k1")
    private, public = (declaring(tag("T1", "k1", visibility=said)) for said in ("PRIVATE", "PUBLIC"))
    with house() as home:
        home.apply(private)
        home.apply(public, [Trouble(0, trouble)])
        assert home.apply(declaring(silent)).plan is None
        home.apply(public)
        assert home.world.tags["T1"].fields["visibility"] == "PUBLIC"


@pytest.mark.parametrize(
    "past", ["lost", "lost, and a reassertion dies", "lost, before a rename", "a backup is imported"]
)
def test_a_run_for_a_category_hides_no_tag_that_may_be_open(past: str) -> None:
    """A person deleted the category, so its members are sent again: but not as a doubtful row says."""
    private, public = (tag("T1", category="C1", visibility=said) for said in ("PRIVATE", "PUBLIC"))
    wanted, target = declaring(category("C1", label="b"), public), "category/C1"
    with house() as home:
        home.apply(declaring(category("C1"), private))
        backup = [replace(row, doubtful=True) for row in home.rows.values()]
        home.apply(declaring(category("C1"), public), [Trouble(0, "answer lost")] * ("lost" in past))
        if "dies" in past:
            assert home.apply(declaring(category("C1"), public), [Trouble(2, "dies before")], reassert=True).died
        elif "rename" in past:
            moved = tag("T1", category="C2", visibility="PUBLIC")
            wanted, target = declaring(category("C2", "C1"), moved), "category/C2"
        elif "backup" in past:
            home.state.begin_run(Run("run-i", 9.0, "state import", None, "h", "u", None, None, None))
            home.state.put(backup)
            home.state.end_run("complete", {})
        home.store.drop(store.CATEGORIES, "")
        home.apply(wanted, scope=Scope(targets=(target,)))
        assert home.world.tags["T1"].fields["visibility"] == "PUBLIC"
        home.apply(wanted)
        assert home.world.tags["T1"].fields["tagCategoryId"] == home.world.category_ids[target.partition("/")[2]]
        assert home.planned(wanted).changes == ()


@pytest.mark.parametrize("lost", ["answer lost", "unavailable"])
@pytest.mark.parametrize("protected", ["C1", "C2"])
def test_a_category_stays_while_either_of_its_names_is_protected(protected: str, lost: str) -> None:
    """A rename of unknown end leaves both. The next apply without `protect` settles it, and then it may go."""
    was, now = (replace(one, protect=one.key.name == protected) for one in (category("C1"), category("C2", "C1")))
    with house() as home:
        home.apply(declaring(was, tag("T1", category="C1")))
        home.apply(declaring(now, tag("T1", category="C2")), [Trouble(0, lost)])
        for _ in range(2):
            home.apply(declaring())
            assert (len(home.world.category_ids), {*home.world.tags}) == (1, {"T1"})
        assert home.planned(declaring()).changes == ()
        home.apply(declaring(category("C2", "C1")))
        home.apply(declaring())
        assert home.world.category_ids == {}


@pytest.mark.parametrize("instant", range(5, 7))
@pytest.mark.parametrize("visibility", ["PRIVATE", "PUBLIC"])
def test_a_saved_plan_that_goes_on_sends_the_members_of_a_new_category(instant: int, visibility: str) -> None:
    """Their doubt is that of the run that died before it sent them: no call for them has an unknown end."""
    before, after = (category("C1", label=label) for label in ("a", "b"))
    member = tag("T1", category="C1", visibility=visibility)
    with house() as home:
        home.apply(declaring(before, member))
        home.store.drop(store.CATEGORIES, "")
        ending = home.apply(declaring(after, member), [Trouble(instant, "dies before")])
        assert ending.died
        assert home.resume(ending) is not None
        assert home.world.tags["T1"].fields["tagCategoryId"] == home.world.category_ids["C1"]
        assert home.planned(declaring(after, member)).changes == ()
