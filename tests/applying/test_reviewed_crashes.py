"""Only what a person reviewed is applied, searched with the crash model (docs/reviews.md).

A reviewed plan can be applied again after any trouble, its units are never separated, and nothing beyond it is sent.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from syncengine.apply.report import RunStatus
from syncengine.plan.aim import Rules
from syncengine.plan.diff import Action, Change
from syncengine.plan.model import Plan
from syncengine.plan.review import ReviewedPlan
from syncengine.project.model import Ownership
from syncengine.render.documents import plan_document, plan_json
from syncengine.render.plan_files import reviewed_in
from syncengine.resource import Body, Key, Kind, Recorded, Removal, Removed, Resource, Status
from syncengine.sandbox.store import CATEGORIES
from tests.support.profiles import tried

from .crash_model import House, Manifest, Trouble
from .test_crashes import HISTORY, PLACE, RENAMES, TROUBLES, Step, house, manifests, renames

pytestmark = pytest.mark.slow

HISTORIES = int(os.environ.get("SYNCENGINE_TEST_HISTORIES", "30"))
OFTEN = settings(max_examples=tried(HISTORIES), deadline=None, suppress_health_check=list(HealthCheck))
ATTEMPTS = st.lists(TROUBLES, min_size=1, max_size=3)
STATISTICS: Counter[str] = Counter()


def reviewed(plan: Plan) -> ReviewedPlan:
    """Return the plan as it is read back from its JSON document."""
    return reviewed_in(plan_json(plan_document(plan)).encode(), "plan.json")


def before(home: House, history: list[Step]) -> None:
    """Apply the history that precedes the review."""
    for step in history:
        home.apply(step.manifest, step.troubles, reassert=step.reasserts)


def _possible_plan(home: House, manifest: Manifest) -> Plan | None:
    from syncengine.errors import Problems

    try:
        return home.planned(manifest)
    except Problems:
        return None


@OFTEN
@given(HISTORY, manifests(), ATTEMPTS)
def test_a_reviewed_plan_goes_through_again_after_any_trouble(
    history: list[Step], manifest: Manifest, attempts: list[Any]
) -> None:
    """What an interrupted run of the plan left behind does not count as more than was reviewed."""
    go_through_again(history, manifest, attempts)


@OFTEN
@given(RENAMES, renames(), ATTEMPTS)
def test_a_reviewed_rename_goes_through_again_after_any_trouble(
    history: list[Step], manifest: Manifest, attempts: list[Any]
) -> None:
    go_through_again(history, manifest, attempts)


def test_a_category_whose_earlier_rename_has_no_known_end_is_renamed_as_reviewed() -> None:
    """The later plan also ends a name that the earlier rename may have given to the category."""
    go_through_again(
        [step(renamed("C2", "C1")), step(renamed("C1", "C2"), Trouble(3, "dies before"))], renamed("C3", "C2"), [()]
    )


def test_a_category_that_was_not_renamed_is_let_go_by_all_its_names() -> None:
    """The service created a new category instead, and no plan deletes the old one by its first name."""
    history = [step(renamed("C3", "C1")), step(renamed("C1", "C3"), Trouble(5, "dies after"))]
    with house() as home:
        before(home, history)
        home.store.drop(CATEGORIES, "")
        assert home.apply(renamed("C2", "C1")).status is RunStatus.COMPLETE
        assert home.planned(renamed("C2", "C1")).changes == ()


def test_a_tag_that_was_retired_is_done_whatever_else_of_it_is_in_doubt() -> None:
    """The new name still has changes to apply, and their plan is no part of a rename."""
    key, old = Key(Kind.TAG, "T2"), Key(Kind.TAG, "T1")
    both = Manifest({each: Resource(each, Body({}, (each.name,)), PLACE) for each in (old, key)}, RULE)
    one = Manifest({key: Resource(key, Body(NO_NAME, ()), PLACE, previously=("T1",))}, RULE)
    go_through_again(
        [step(both), step(both, Trouble(2, "dies after"), reasserts=True)], one, [[Trouble(7, "gateway page")]]
    )


@pytest.mark.parametrize("instant", range(15, 25))
def test_a_tag_that_is_only_kept_out_of_a_deleted_category_is_no_missing_part(instant: int) -> None:
    """A run that died left its move in doubt. It is sent again as reviewed, outside any category."""
    one, other = (Key(Kind.TAG, name) for name in ("T1", "T2"))
    category, code = Key(Kind.CATEGORY, "C1"), Key(Kind.ACTIVITY_TYPE, "A1")
    after = {
        code: Resource(code, Body({"label": "L"}), PLACE),
        one: Resource(one, Body({}, ("T1",)), PLACE),
        other: Resource(other, Body({}, ("T2",)), PLACE),
    }
    there = {
        category: Resource(category, Body({"label": "a"}), PLACE),
        **after,
        one: Resource(one, Body({}, ("k1", "K1", "T1")), PLACE),
        other: Resource(other, Body({"category": "C1"}, ("k1", "T2")), PLACE),
    }
    history = [step(Manifest(there, RULE), Trouble(10, "dies before"))]
    go_through_again(history, Manifest(after, RULE), [[Trouble(instant, "dies before")]])


@pytest.mark.parametrize("what", ["dies before", "dies and lands late", "answer lost"])
@pytest.mark.parametrize("instant", range(3))
def test_a_tag_sent_before_another_category_goes_may_be_sent_again(instant: int, what: str) -> None:
    """Its own deletion was reviewed too, but is not asked for today. The doubt is left by its upsert."""
    categories = {
        Key(Kind.CATEGORY, name): Resource(Key(Kind.CATEGORY, name), Body({}), PLACE) for name in ("C1", "C2")
    }
    tag = Resource(Key(Kind.TAG, "T1"), Body({"category": "C1"}, ("T1",)), PLACE)
    there, today = {**categories, tag.key: tag}, {**categories, tag.key: tag}
    del today[Key(Kind.CATEGORY, "C2")]
    accept_parts((Manifest(there, RULE), Manifest({}, RULE), Manifest(today, RULE)), [Trouble(instant, what)])


@pytest.mark.parametrize("visibility", ["PRIVATE", "PUBLIC"])
@pytest.mark.parametrize("how", Removal)
@pytest.mark.parametrize("instant", range(4))
def test_a_rename_goes_on_when_its_former_name_was_let_go(instant: int, how: Removal, visibility: str) -> None:
    """A tag without keywords is retired, and any is forgotten, without a call: before the new name is sent."""
    old, new = Key(Kind.TAG, "T1"), Key(Kind.TAG, "T2")
    there = Manifest({old: Resource(old, Body({**NO_NAME, "visibility": visibility}), PLACE)}, RULE)
    fields = {**NO_NAME, "visibility": "PUBLIC", "description": "a"}
    renamed = {new: Resource(new, Body(fields), PLACE, previously=("T1",))}
    manifest, dies = Manifest(renamed, RULE, {old: Removed(old, how, PLACE)}), [Trouble(instant, "dies before")]
    go_through_again([step(there)], manifest, [dies])
    with house() as home:
        before(home, [step(there)])
        ending = home.apply(manifest, dies)
        assert not ending.died or home.resume(ending) is not None
        assert home.planned(manifest).changes == ()


RULE = Rules(activity_types=Ownership.ADDITIVE, deletes_tags=True)
NO_NAME = {"excludeTagNameKeyword": True}


def step(manifest: Manifest, *troubles: Trouble, reasserts: bool = False) -> Step:
    return Step(manifest, [*troubles], [], reasserts=reasserts, resumes=False)


def renamed(name: str, former: str) -> Manifest:
    key = Key(Kind.CATEGORY, name)
    return Manifest({key: Resource(key, Body({"label": "a"}), PLACE, previously=(former,))}, RULE)


def go_through_again(history: list[Step], manifest: Manifest, attempts: list[Any]) -> None:
    with house() as home:
        before(home, history)
        plan = _possible_plan(home, manifest)
        if plan is None:
            return
        for troubles in (*attempts, (), ()):
            ending = home.apply_reviewed(manifest, [reviewed(plan)], troubles)
            STATISTICS["died"] += ending.died
            assert not ending.excess, "; ".join(each.message for each in ending.excess)
        assert not home.violations, home.violations


@st.composite
def mixtures(draw: Any, of: Any) -> tuple[Manifest, Manifest, Manifest]:
    """What is there, what was reviewed, and what is asked for today: each resource as in one of both."""
    there, wanted = draw(of), draw(of)
    keys = dict.fromkeys((*there.resources, *wanted.resources))
    chosen = {key: (wanted if draw(st.booleans()) else there).resources.get(key) for key in keys}
    today = {key: resource for key, resource in chosen.items() if resource is not None}
    return there, wanted, Manifest(today, wanted.rules)


@OFTEN
@given(mixtures(manifests()), TROUBLES)
def test_nothing_is_separated_or_sent_beyond_what_was_reviewed(
    of: tuple[Manifest, Manifest, Manifest], troubles: Any
) -> None:
    """Where today's plan is accepted, it is a part of the reviewed one, and its units come out whole."""
    accept_parts(of, troubles)


@OFTEN
@given(mixtures(renames()), TROUBLES)
def test_no_part_of_a_reviewed_rename_is_separated(of: tuple[Manifest, Manifest, Manifest], troubles: Any) -> None:
    accept_parts(of, troubles)


def accept_parts(of: tuple[Manifest, Manifest, Manifest], troubles: Any) -> None:
    there, wanted, today = of
    if _is_contradiction(today):
        return
    with house() as home:
        home.apply(there)
        plan = _possible_plan(home, wanted)
        if plan is None:
            return
        review = reviewed(plan)
        first = home.apply_reviewed(today, [review], troubles)
        STATISTICS["refused" if first.excess else "accepted"] += 1
        if first.excess or first.plan is None:
            return
        assert_within(first.plan, plan)
        last = first
        for _ in range(3):
            last = home.apply_reviewed(today, [review])
            assert not last.excess, "; ".join(each.message for each in last.excess)
        if last.status is RunStatus.COMPLETE and home.planned(today).changes == ():
            rows = {row.key: row for row in home.state.rows()}
            wrong = list(_torn(first.plan, plan, rows))
            assert not wrong, "; ".join(wrong)


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
    of = {change.key: change for change in plan.changes}
    for change in today.changes:
        assert change.key in of, f"{change.key} was not reviewed"
        assert _parts(change) <= _parts(of[change.key]), f"{change.key} does more than was reviewed"
        assert change.action is of[change.key].action, f"{change.key} is another action"


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
    of = {change.key: change for change in plan.changes}
    for change in plan.changes:
        if change.previously and change.key.kind is Kind.TAG and (old := Key(Kind.TAG, change.previously)) in of:
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
