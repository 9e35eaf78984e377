"""What a plan is as a whole: golden cases, stages, sums and digests; what differs in two (docs/planning.md 4.1)."""

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict

from syncengine.content import ValueChange, compare, value_changes
from syncengine.plan.calls import Step
from syncengine.plan.model import Plan
from syncengine.plan.request import Scope
from syncengine.render import PLAN_FORMATS
from syncengine.render.documents import plan_document
from syncengine.render.style import PLAIN
from syncengine.resource import Kind, Recorded, Removal, Source, Status
from syncengine.service.operations import BATCH_LIMIT
from tests.render.samples import without_files

from .applying import walked
from .estate import FILE, actions, calls, items, planned, row, says_nothing, steps

GOLDEN = Path(__file__).parent / "golden"
CASES = sorted(folder.name for folder in GOLDEN.iterdir())
MANIFEST = "manifests/acme.yaml"


def recorded(address: str, said: Mapping[str, Any]) -> Recorded:
    """Return a row of a case, which is confirmed, active and declared in line 1 unless the case says otherwise."""
    said = dict(said)
    fields = {name: tuple(v) if isinstance(v, list) else v for name, v in said.pop("fields", {}).items()}
    status, source = Status(said.pop("status", "active")), Source(MANIFEST, said.pop("line", 1))
    said["former_categories"] = tuple(said.pop("former_categories", ()))
    return row(address, *said.pop("keywords", ()), status=status, source=source, **fields, **said)


def how(said: Mapping[str, Any]) -> dict[str, Any]:
    scope = Scope(no_delete=said.get("no_delete", False))
    policy = {"tag_removal": Removal(said.get("tag_removal", "forget")), "scope": scope}
    return policy | {name: said[name] for name in ("swept_before", "deletes_tags") if name in said}


@cache
def plan_of(case: str) -> Plan:
    folder = GOLDEN / case
    state = yaml.safe_load((folder / "recorded.yaml").read_text(encoding="utf-8"))
    rows = [recorded(address, said) for address, said in state["rows"].items()]
    text = (folder / "manifest.yaml").read_text(encoding="utf-8")
    return planned({MANIFEST: text}, rows, **how(state.get("how", {})))


@pytest.mark.parametrize("case", CASES)
def test_the_text_of_a_plan_is_unchanged(case: str) -> None:
    file = GOLDEN / case / "plan.txt"
    rendered = without_files(PLAN_FORMATS["text"](plan_document(plan_of(case)), PLAIN))
    if os.environ.get("SYNCENGINE_GOLDEN") == "write":
        file.write_text(rendered, encoding="utf-8", newline="")
    assert file.read_bytes().decode() == rendered


# --- stages, sums and digests


EVERYTHING = """
tagCategories: [{externalId: new-category}]
activityTypes: [{code: A101, label: Plan, enableIfNew: true}]
tags:
  - {name: NEW-1, category: new-category}
  - {name: SAME-1, keywords: [added]}
  - {name: SAME-2, keywords: [CASE]}
  - {name: SAME-3}
removed: [{tag: GONE-1, as: delete}]
"""
RECORDED = [
    row("category/old-category"),
    row("activity-type/A999"),
    row("tag/SAME-1"),
    row("tag/SAME-2", "case"),
    row("tag/SAME-3", "lost", metadata={"Lost": "x"}),
    row("tag/GONE-1"),
    row("tag/GONE-2", category="old-category"),
]


def everything(recorded: list[Recorded] = RECORDED) -> Plan:
    return planned(EVERYTHING, recorded, deletes_tags=True)


def test_stages_stand_in_their_order_and_calls_are_numbered_through_them() -> None:
    plan = everything()
    assert steps(plan) == [step.value for step in Step]
    ids = [call.id for call in plan.calls()]
    assert ids == [f"c{number}" for number in range(1, len(ids) + 1)]


def test_the_summary_counts_changes_and_requests() -> None:
    """Requests are all calls, and the session of the sweep around its own."""
    plan = everything()
    assert plan.sweep is not None
    assert sum(len(stage.calls) for stage in plan.stages) + plan.sweep.requests == 9 + 3
    assert {name: count for name, count in asdict(plan.summary).items() if count} == {
        "create": 3,
        "update": 3,
        "delete": 4,
        "keyword_adds": 2,
        "keyword_deletes": 2,
        "metadata_deletes": 1,
        "cascaded_tags": 1,
        "requests": 12,
    }


def test_batches_are_as_full_as_possible() -> None:
    plan = planned("tags:\n" + "".join(f"  - name: N-{n}\n" for n in range(2 * BATCH_LIMIT + 1)))
    assert [len(call.items) for call in calls(plan, Step.TAGS)] == [BATCH_LIMIT, BATCH_LIMIT, 1]
    assert plan.summary.requests == 3


def test_items_keep_the_order_of_the_manifests_and_know_their_lines() -> None:
    found = items(planned("tags:\n  - name: ZULU\n  - name: ALFA\n  - name: MIKE\n"), Step.TAGS)
    assert [item.key.name for item in found] == ["ZULU", "ALFA", "MIKE"]
    assert [str(item.source) for item in found] == [f"{FILE}:2", f"{FILE}:3", f"{FILE}:4"]


def test_a_plan_does_not_depend_on_the_order_of_rows() -> None:
    plan, other = everything(), everything(RECORDED[::-1])
    assert (sorted(actions(plan)), plan.gate) == (sorted(actions(other)), other.gate)


def test_moved_lines_are_recorded_without_a_change() -> None:
    moved = "\n\ntags: [{name: ALFA}]"
    rows = walked("tags: [{name: ALFA}]")
    plan = planned(moved, rows)
    assert (plan.changes, plan.changes_something, plan.sends_something, len(plan.records)) == ((), False, False, 1)
    assert says_nothing(planned(moved, walked(moved, recorded=rows)))


def test_a_plan_has_digests_of_the_rows_that_it_touches() -> None:
    """Also of the members of a category that it deletes."""
    rows = walked("tags: [{name: SAME}, {name: OLD-1}, {name: LESS, description: d}]")
    members = [row("category/acme"), row("tag/GONE", category="acme"), row("tag/MOVED", category="acme")]
    manifest = "tags: [{name: SAME}, {name: NEW-1, previously: [OLD-1]}, {name: LESS}, {name: MOVED}]"
    without = "tags: [{name: SAME}, {name: NEW-1, previously: [OLD-1]}, {name: LESS}]"
    assert {str(key) for key in planned(without, rows).prior} == {"tag/NEW-1", "tag/OLD-1", "tag/LESS"}
    assert {each.key for each in members} <= planned(manifest, [*rows.values(), *members]).prior.keys()


def test_a_plan_with_a_sweep_has_digests_of_every_activity_type() -> None:
    recorded = [row("activity-type/A101", label="L"), row("activity-type/A102"), row("tag/OTHER")]
    plan = planned("activityTypes: [{code: A101, label: L}]\ntags: [{name: OTHER}]", recorded, sweep=True)
    assert {key for key in plan.prior if key.kind is Kind.ACTIVITY_TYPE} == {before.key for before in recorded[:2]}


# --- what differs between two mappings


SCALARS = st.one_of(st.none(), st.integers(), st.text(max_size=3), st.booleans())
VALUES = st.dictionaries(st.sampled_from("abc"), SCALARS | st.dictionaries(st.sampled_from("xyz"), SCALARS), max_size=3)


def test_each_name_is_new_or_gone_or_different() -> None:
    compared = compare({"a": 1, "b": {"x": 1, "y": 2}, "c": 3}, {"b": {"x": 1, "y": 3}, "c": 3, "d": 4})
    assert (compared.new, compared.gone) == (("d",), ("a",))
    assert compared.different == {"b": (ValueChange(("y",), 2, 3),)}
    parts = value_changes({"words": frozenset("ab"), "gone": 1}, {"words": frozenset("bc")})
    assert [(*change.path, change.before, change.after) for change in parts] == [
        ("gone", 1, None),
        ("words", "a", None),
        ("words", None, "c"),
    ]


@given(VALUES, VALUES)
def test_there_are_changes_where_values_differ(before: dict[str, object], after: dict[str, object]) -> None:
    """And each path leads to two different values."""
    changes = value_changes(before, after)
    assert bool(changes) == (before != after)
    for change in changes:
        assert _at(before, change.path) == change.before
        assert _at(after, change.path) == change.after


def _at(value: object, path: tuple[str | int, ...]) -> object:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value
