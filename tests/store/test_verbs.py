"""What each write of a state records, and what is left when a run dies between them."""

from __future__ import annotations

import pytest

from syncengine.effects import Effect
from syncengine.resource import Kind, Recorded, Status
from syncengine.state.database import LockLost
from syncengine.state.records import Attempt, CallFailure, Settlement
from syncengine.state.store import open_state

from .estate import HERE, applied, applying, category, run, tag, whole

A, B = tag("a"), tag("b")


def test_a_settled_call_leaves_a_certain_row_with_its_run_and_plan(url: str) -> None:
    """An acknowledgement ends the doubt."""
    with applying(url) as state:
        applied(state, "c", whole(A, description="x"), a="17")
        row = state.get([A])[A]
    assert (row.doubtful, row.confirmed, row.server_id) == (False, True, "17")
    assert (row.run, row.plan, row.body.fields) == ("run-1", "plan-1", {"description": "x", "visibility": "PUBLIC"})


@pytest.mark.parametrize("orderly", [True, False])
def test_rows_of_open_calls_stay_in_doubt_after_their_run(url: str, orderly: bool) -> None:
    """Whether the run died or was interrupted, until the row is sent again."""
    with applying(url) as state:
        state.intend({"c": Attempt("upsertTags", (whole(A),))})
        if orderly:
            state.end_run("interrupted", {})
    with applying(url, run(2)) as state:
        assert state.get([A])[A].doubtful
        assert [r.outcome for r in state.runs(5)] == [None, "interrupted" if orderly else "died"]
        applied(state, "d", whole(A))
        assert not state.get([A])[A].doubtful


def test_put_replaces_whole_rows_and_forget_removes_and_counts_them(url: str) -> None:
    """An import sets the run and plan of each row."""
    with applying(url) as state:
        applied(state, "c", whole(A, description="x"))
        state.put([Recorded(A, doubtful=True, server_id="9"), Recorded(B)])
        assert state.get([A, B]) == {
            A: Recorded(A, doubtful=True, server_id="9", run="run-1", plan="plan-1"),
            B: Recorded(B, run="run-1", plan="plan-1"),
        }
        assert state.forget([A, tag("none")]) == 1
        assert [row.key for row in state.rows()] == [B]


def test_rows_are_sorted_by_kind_and_by_code_points_of_names(url: str) -> None:
    """Whatever the locale of the database is."""
    names = ["a", "B", "ä", "Z", "-", "_b"]
    with applying(url) as state:
        applied(state, "c", *(whole(tag(name)) for name in names), whole(category("z")))
        assert [row.key for row in state.rows()] == [category("z"), *map(tag, sorted(names))]
        assert [row.key for row in state.rows(Kind.CATEGORY)] == [category("z")]


def test_members_are_all_tags_that_a_category_may_hold(url: str) -> None:
    """Also released ones, those that refer by id, those whose move or deletion is open; not those known to be gone."""
    with applying(url) as state:

        def members() -> list[str]:
            return [row.key.name for row in state.members(["x", "nobody's"])]

        applied(state, "c", whole(category("x")), x="17")
        names = ("in", "gone", "moving", "deleting")
        tags = whole(tag("id"), tagCategoryId="17"), whole(tag("out"), category="y")
        applied(state, "d", *tags, *(whole(tag(name), category="x") for name in names))
        state.record([Effect(key=tag("in"), status=Status.RELEASED)])
        applied(state, "e", Effect(key=tag("gone"), status=Status.DELETED))
        moved = (whole(tag("moving"), category="y"),)
        deletion = (Effect(key=tag("deleting"), status=Status.DELETED),)
        state.intend({"f": Attempt("upsertTags", moved), "g": Attempt("deleteTag", deletion)})
        assert members() == ["deleting", "id", "in", "moving"]
        state.settle([Settlement("f", moved)])
        state.end_run("interrupted", {})
        assert members() == ["deleting", "id", "in"]


def test_doubt_all_does_not_affect_deleted_rows(url: str) -> None:
    """`--reassert` does not delete them again."""
    with applying(url) as state:
        applied(state, "c", whole(A), whole(B))
        applied(state, "d", Effect(key=B, status=Status.DELETED))
        assert state.doubt_all() == 1
        assert {key: row.doubtful for key, row in state.get([A, B]).items()} == {A: True, B: False}


def test_facts_keep_values_that_are_not_set_again(url: str) -> None:
    """The commit is that of the last run that sent something, even if it died, or had nothing to send."""
    with applying(url) as state:
        lineage = state.facts().lineage
        state.set_facts(base_url="https://x", team="Patents")
        state.set_facts(owns_activity_types=True)
        assert state.facts().commit is None
        state.end_run("complete", {})
        state.begin_run(run(2))
        state.end_run("refused", {})
        facts = state.facts()
        assert (facts.base_url, facts.team, facts.owns_activity_types) == ("https://x", "Patents", True)
        assert (facts.lineage, facts.commit) == (lineage, "commit-1")
        state.begin_run(run(3))
        state.intend({"c": Attempt("upsertTags", (whole(A),))})
    with open_state(url, write=False) as reader:
        assert reader.facts().commit == "commit-3"


def test_sessions_stay_open_until_they_are_closed(url: str) -> None:
    """Also those of a run that died."""
    with applying(url) as state:
        state.session_opened("s1")
        state.session_opened("s2")
        state.session_closed("s1")
    with applying(url, run(2)) as state:
        assert state.open_sessions() == ["s2"]


@pytest.mark.parametrize(("outcome", "used"), [("complete", True), ("incomplete", True), ("interrupted", False)])
def test_a_plan_is_used_up_by_a_run_that_ends(url: str, outcome: str, used: bool) -> None:
    """An interrupted plan can be applied again."""
    with applying(url) as state:
        assert not state.plan_ended("plan-1")
        state.end_run(outcome, {})
        assert state.plan_ended("plan-1") is used


def test_a_call_that_failed_and_then_settled_is_settled(url: str) -> None:
    """Also by another run of the same plan: the last outcome of each key counts."""
    effects = whole(A), whole(B)
    with applying(url) as state:
        state.intend({"c": Attempt("upsertTags", effects), "d": Attempt("upsertTags", effects)})
        state.settle([Settlement("c", effects)])
        state.fail([CallFailure("d", (A, B), "no")])
        assert [row.doubtful for row in state.get([A, B]).values()] == [True, True]
    with applying(url, run(2, plan="plan-1")) as state:
        applied(state, "d", *effects)
        assert [row.doubtful for row in state.get([A, B]).values()] == [False, False]


def test_a_write_without_the_lock_is_refused(url: str) -> None:
    """Both before it is taken and after it is released."""
    with open_state(url, write=True) as state:
        with pytest.raises(LockLost):
            state.begin_run(run())
        lease = state.lock(HERE, wait=0, request_timeout=0)
        state.begin_run(run())
        lease.release()
        with pytest.raises(LockLost):
            state.intend({"c": Attempt("upsertTags", (whole(A),))})
        assert list(state.rows()) == []
