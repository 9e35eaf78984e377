"""Only what a person reviewed is applied, searched with the crash model (docs/reviews.md).

A reviewed plan can be applied again after any trouble, its units are never separated, and nothing beyond it is sent.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from syncengine.apply.report import RunStatus
from syncengine.errors import Problems
from syncengine.plan.aim import Rules
from syncengine.plan.diff import Action, Change
from syncengine.plan.model import Plan
from syncengine.plan.review import ReviewedPlan
from syncengine.project.model import Ownership
from syncengine.render.documents import plan_document, plan_json
from syncengine.render.plan_files import reviewed_in
from syncengine.resource import Body, Key, Kind, Recorded, Removal, Resource, Status
from syncengine.sandbox.store import CATEGORIES
from tests.support.profiles import tried

from .crash_model import PLACE, House, Manifest, Trouble, activity_type, category, declaring, tag
from .test_crashes import HISTORY, RENAMES, TROUBLES, Step, house, manifests, nothing, renames

pytestmark = pytest.mark.slow

HISTORIES = int(os.environ.get("SYNCENGINE_TEST_HISTORIES", "60"))
OFTEN = settings(max_examples=tried(HISTORIES), deadline=None, suppress_health_check=list(HealthCheck))
ATTEMPTS = st.lists(TROUBLES, min_size=1, max_size=3)


def reviewed(plan: Plan) -> ReviewedPlan:
    """Return the plan as it is read back from its JSON document."""
    return reviewed_in(plan_json(plan_document(plan)).encode(), "plan.json")


def before(home: House, history: list[Step]) -> None:
    """Apply the history that precedes the review."""
    for step in history:
        home.apply(step.manifest, step.troubles, reassert=step.reasserts)


def _possible_plan(home: House, manifest: Manifest) -> Plan | None:
    try:
        return home.planned(manifest)
    except Problems:
        return None


@OFTEN
@given(st.one_of(st.tuples(HISTORY, manifests()), st.tuples(RENAMES, renames())), ATTEMPTS)
def test_a_reviewed_plan_goes_through_again_after_any_trouble(
    histories: tuple[list[Step], Manifest], attempts: list[Any]
) -> None:
    """What an interrupted run of the plan left behind does not count as more than was reviewed."""
    go_through_again(*histories, attempts)


def test_a_category_whose_earlier_rename_has_no_known_end_is_renamed_as_reviewed() -> None:
    """The later plan also ends a name that the earlier rename may have given to the category."""
    history = [step(renamed("C2", "C1")), step(renamed("C1", "C2"), Trouble(3, "dies before"))]
    go_through_again(history, renamed("C3", "C2"), [()])


def test_a_category_that_was_not_renamed_is_let_go_by_all_its_names() -> None:
    """The service created a new category instead, and no plan deletes the old one by its first name."""
    with house() as home:
        before(home, [step(renamed("C3", "C1")), step(renamed("C1", "C3"), Trouble(5, "dies after"))])
        home.store.drop(CATEGORIES, "")
        assert home.apply(renamed("C2", "C1")).status is RunStatus.COMPLETE
        assert home.planned(renamed("C2", "C1")).changes == ()


def test_a_tag_that_was_retired_is_done_whatever_else_of_it_is_in_doubt() -> None:
    """The new name still has changes to apply, and their plan is no part of a rename."""
    both = of(tag("T1"), tag("T2"))
    history = [step(both), step(both, Trouble(2, "dies after"), reasserts=True)]
    go_through_again(history, of(nameless("T2", was="T1")), [[Trouble(7, "gateway page")]])


@pytest.mark.parametrize("instant", range(15, 25))
def test_a_tag_that_is_only_kept_out_of_a_deleted_category_is_no_missing_part(instant: int) -> None:
    """A run that died left its move in doubt. It is sent again as reviewed, outside any category."""
    there = of(category("C1"), activity_type("A1"), tag("T1", "k1", "K1"), tag("T2", "k1", category="C1"))
    after = of(activity_type("A1"), tag("T1"), tag("T2"))
    go_through_again([step(there, Trouble(10, "dies before"))], after, [[Trouble(instant, "dies before")]])


@pytest.mark.parametrize("what", ["dies before", "dies and lands late", "answer lost"])
@pytest.mark.parametrize("instant", range(3))
def test_a_tag_sent_before_another_category_goes_may_be_sent_again(instant: int, what: str) -> None:
    """Its own deletion was reviewed too, but is not asked for today. The doubt is left by its upsert."""
    member, one, other = tag("T1", category="C1"), category("C1"), category("C2")
    accept_parts((of(one, other, member), of(), of(one, member)), [Trouble(instant, what)])


@pytest.mark.parametrize("visibility", ["PRIVATE", "PUBLIC"])
@pytest.mark.parametrize("how", Removal)
@pytest.mark.parametrize("instant", range(4))
def test_a_rename_goes_on_when_its_former_name_was_let_go(instant: int, how: Removal, visibility: str) -> None:
    """A tag without keywords is retired, and any is forgotten, without a call: before the new name is sent."""
    history, dies = [step(of(nameless("T1", visibility=visibility)))], [Trouble(instant, "dies before")]
    manifest = of(nameless("T2", was="T1", visibility="PUBLIC", description="a"), T1=how)
    go_through_again(history, manifest, [dies])
    with house() as home:
        before(home, history)
        ending = home.apply(manifest, dies)
        assert not ending.died or home.resume(ending) is not None
        assert home.planned(manifest).changes == ()


def of(*resources: Resource, **removed: Removal) -> Manifest:
    rules = Rules(activity_types=Ownership.ADDITIVE, deletes_tags=True)
    return replace(declaring(*resources, **removed), rules=rules)


def nameless(name: str, was: str = "", **fields: Any) -> Resource:
    """Return a tag without any keyword."""
    bare = Body({"excludeTagNameKeyword": True, **fields})
    return Resource(Key(Kind.TAG, name), bare, PLACE, previously=(was,) if was else ())


def step(manifest: Manifest, *troubles: Trouble, reasserts: bool = False) -> Step:
    return Step(manifest, [*troubles], [], reasserts=reasserts, resumes=False)


def renamed(name: str, former: str) -> Manifest:
    return of(category(name, was=former))


def go_through_again(history: list[Step], manifest: Manifest, attempts: list[Any]) -> None:
    with house() as home:
        before(home, history)
        plan = _possible_plan(home, manifest)
        if plan is None:
            return
        for troubles in (*attempts, (), ()):
            ending = home.apply_reviewed(manifest, [reviewed(plan)], troubles)
            nothing(each.message for each in ending.excess)
        nothing(home.violations)


@st.composite
def mixtures(draw: Any, of_all: Any) -> tuple[Manifest, Manifest, Manifest]:
    """What is there, what was reviewed, and what is asked for today: each resource as in one of both."""
    there, wanted = draw(of_all), draw(of_all)
    keys = dict.fromkeys((*there.resources, *wanted.resources))
    chosen = {key: (wanted if draw(st.booleans()) else there).resources.get(key) for key in keys}
    today = {key: resource for key, resource in chosen.items() if resource is not None}
    return there, wanted, Manifest(today, wanted.rules)


@OFTEN
@given(st.one_of(mixtures(manifests()), mixtures(renames())), TROUBLES)
def test_nothing_is_separated_or_sent_beyond_what_was_reviewed(
    parts: tuple[Manifest, Manifest, Manifest], troubles: Any
) -> None:
    """Where today's plan is accepted, it is a part of the reviewed one, and its units come out whole."""
    accept_parts(parts, troubles)


def accept_parts(parts: tuple[Manifest, Manifest, Manifest], troubles: Any) -> None:
    there, wanted, today = parts
    if _is_contradiction(today):
        return
    with house() as home:
        home.apply(there)
        plan = _possible_plan(home, wanted)
        if plan is None:
            return
        review = reviewed(plan)
        first = home.apply_reviewed(today, [review], troubles)
        if first.excess or first.plan is None:
            return
        assert_within(first.plan, plan)
        last = first
        for _ in range(3):
            last = home.apply_reviewed(today, [review])
            nothing(each.message for each in last.excess)
        if last.status is RunStatus.COMPLETE and home.planned(today).changes == ():
            nothing(_torn(first.plan, plan, home.rows))


def _is_contradiction(manifest: Manifest) -> bool:
    """Return whether the reader of manifests would refuse this one, for its former names or missing references."""
    resources = manifest.resources
    formers = [Key(r.key.kind, name) for r in resources.values() for name in r.previously]
    categories = {r.body.fields.get("category") for r in resources.values()} - {None}
    types = {r.body.fields.get("defaultActivityTypeCode") for r in resources.values()} - {None}
    return (
        len({*formers}) < len(formers)
        or any(key in resources for key in formers)
        or not all(Key(Kind.CATEGORY, str(name)) in resources for name in categories)
        or not all(Key(Kind.ACTIVITY_TYPE, str(code)) in resources for code in types)
    )


def assert_within(today: Plan, plan: Plan) -> None:
    """Check, with plain sets, that all that today's plan sends or removes was reviewed."""
    seen = {change.key: change for change in plan.changes}
    for change in today.changes:
        assert change.key in seen, f"{change.key} was not reviewed"
        assert _parts(change) <= _parts(seen[change.key]), f"{change.key} does more than was reviewed"
        assert change.action is seen[change.key].action, f"{change.key} is another action"


def _parts(change: Change) -> set[object]:
    return {
        *(("field", f.name, str(f.before), str(f.after)) for f in change.fields),
        *(("add", word) for word in change.keywords_added),
        *(("delete", word) for word in change.keywords_deleted),
        *(("set", *pair) for pair in change.metadata_set.items()),
        *(("unset", name) for name in change.metadata_deleted),
        ("cascade", change.cascade),
    }


def _torn(today: Plan, plan: Plan, rows: Mapping[Key, Recorded]) -> Iterator[str]:
    """Yield units of the reviewed plan of which one part was applied and another was not."""
    touched = {change.key for change in today.changes}
    reviewed_keys = {change.key for change in plan.changes}
    for change in plan.changes:
        old = Key(Kind.TAG, change.previously or "")
        if change.key.kind is Kind.TAG and old in reviewed_keys:
            if old in touched and not _is_there(rows.get(change.key)):
                yield f"{old} left, and {change.key} did not come"
            if change.key in touched and _is_there(rows.get(old)):
                yield f"{change.key} came, and {old} did not leave"
        if change.key.kind is Kind.CATEGORY and change.action is Action.DELETE and change.key in touched:
            for member in plan.changes:
                moves = [f for f in member.fields if f.name == "category" and f.before == change.key.name]
                row = rows.get(member.key)
                if moves and (row is None or row.body.fields.get("category") != moves[0].after):
                    yield f"{change.key} is gone, and {member.key} was not moved"


def _is_there(row: Recorded | None) -> bool:
    return row is not None and row.status is Status.ACTIVE
