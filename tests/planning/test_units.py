"""docs/manifests.md: the units of removals, and what the gate still asks about after some are approved."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from syncengine.plan.gate import SHOWN_ORDER, Approval, Gate, StateRecords, approved_of, records_of
from syncengine.resource import Key, Kind, Recorded, Removal, Row, Source
from syncengine.state.records import ApprovalRecord, Loss

from .estate import planned, row

FILES = ("manifests/a.yaml", "manifests/b.yaml", "manifests/c.yaml")


def held(name: str, file: str, category: str | None = None, data: str | None = None, **more: Any) -> Recorded:
    source = Source(file, 3, Row(data, 2) if data else None)
    return row(f"tag/{name}", source=source, **({"category": category} if category else {}), **more)


def wanting(names: Iterable[str]) -> str:
    return "\n".join(["tags:", *(f"  - name: {name}" for name in names)])


def units(gate: Gate) -> dict[str, str]:
    """Return the approval of each unit, including units that do not ask."""
    return {unit.name: unit.approve for unit in gate.units}


def with_approvals(gate: Gate, *texts: str) -> Gate:
    return gate.with_approvals(Approval(text, "somebody") for text in texts)


def still_open(gate: Gate, *texts: str) -> list[str]:
    return [unit.name for unit in with_approvals(gate, *texts).units if unit.is_open]


# --- what is a unit

MATTERS = "data/matters.csv"
MANY = [held(f"M-{n}", FILES[0]) for n in range(20)]
ROWS = [held(f"D-{n}", FILES[0], None, MATTERS) for n in range(4)]


def test_every_kind_of_unit_is_named() -> None:
    rows = [
        *MANY,
        row("category/jacobi"),
        held("IN", FILES[0], "jacobi"),
        *(held(f"D-{n}", "manifests/data.yaml", data=MATTERS) for n in range(4)),
        *(row(f"activity-type/{n}", label="L") for n in range(2)),
        held("SECRET", FILES[1], visibility="PRIVATE"),
    ]
    wanted = wanting(f"M-{n}" for n in range(9)) + "\n  - {name: SECRET, visibility: PUBLIC}"
    gate = planned(wanted, rows, swept_before=False).gate
    assert {unit.name: (unit.kind, unit.count) for unit in gate.units} == {
        "category/jacobi": ("category", 2),
        MATTERS: ("source", 4),
        FILES[0]: ("manifest", 11),
        "activity-types": ("activity-types", 2),
        "tag/SECRET": ("opened", 1),
        "first-sweep": ("first-sweep", 1),
    }
    assert {unit.kind for unit in gate.units} | {"removed"} == {*SHOWN_ORDER}
    assert not with_approvals(gate, *units(gate).values()).is_closed
    assert not with_approvals(gate, gate.whole).is_closed
    for left_out in units(gate):
        assert left_out in still_open(gate, *(text for name, text in units(gate).items() if name != left_out))


def test_a_removal_is_in_one_unit() -> None:
    """A tag that goes with its category is in the category's unit, which also gives the source's reason."""
    rows = [row("category/jacobi"), *(held(f"D-{n}", FILES[0], "jacobi", MATTERS) for n in range(4)), *MANY]
    gate = planned(wanting(f"M-{n}" for n in range(20)), rows).gate
    assert [(unit.name, unit.count) for unit in gate.units] == [("category/jacobi", 5)]
    assert any(reason.startswith(f"{MATTERS}: 4 of 4 resources") for reason in gate.units[0].reasons)
    assert still_open(gate, *units(gate).values()) == []


def test_a_source_that_lost_little_asks_for_nothing_beside_its_category() -> None:
    rows = [row("category/jacobi"), held("D-9", FILES[0], "jacobi", MATTERS)]
    gate = planned(wanting(each.key.name for each in (*MANY, *ROWS)), [*rows, *MANY, *ROWS]).gate
    assert still_open(gate, units(gate)["category/jacobi"]) == []


def test_an_approval_is_for_removals_of_one_state_wherever_they_stand() -> None:
    """A state without a team has approvals of its own."""
    states = ({}, {"team": "Other"}, {"team": None}, {"lineage": "other"})
    texts = [planned("{}", ROWS, **more).gate.units[0].approve for more in states]
    elsewhere = [planned("{}", [held(f"D-{n}", file) for n in range(4)]).gate.units[0].approve for file in FILES]
    assert (all(texts), len({*texts}), {*elsewhere}) == (True, 4, {texts[0]})


def test_an_approval_holds_when_another_merge_moves_a_part_elsewhere() -> None:
    """Two of four approved removals of a source are later written under `removed:`."""
    (reviewed,) = units(planned("{}", ROWS).gate).values()
    gate = planned("removed: [{tag: D-0, as: forget}, {tag: D-1, as: forget}]", ROWS).gate
    assert {unit.name: unit.count for unit in gate.units} == {MATTERS: 2, "removed": 2}
    assert still_open(gate, reviewed) == []
    draft = replace(planned("{}", ROWS), gate=with_approvals(gate, reviewed))
    assert {loss.key.name for loss in approved_of(draft).uses[reviewed]} == {f"D-{n}" for n in range(4)}


def test_an_approval_of_one_manifests_part_of_a_source_does_not_cover_the_rest() -> None:
    rows = [held(f"D-{n}", FILES[n // 3], None, MATTERS) for n in range(4)]
    (reviewed,) = units(planned(wanting(["D-3"]), rows).gate).values()
    assert still_open(planned("{}", rows).gate, reviewed) == [MATTERS]


def test_an_approval_of_removals_opens_nothing_and_deletes_no_category() -> None:
    """The approval of a tag's deletion does not cover the deletion of its category."""
    rows = [row("category/jacobi"), *(held(f"D-{n}", FILES[0], "jacobi") for n in range(4))]
    how = {"tag_removal": Removal.DELETE, "deletes_tags": True}
    (reviewed,) = units(planned("tagCategories: [{externalId: jacobi}]", rows, **how).gate).values()
    assert still_open(planned("{}", rows, **how).gate, reviewed) == ["category/jacobi"]


def again_planned(manifest: str, rows: list[Recorded], *records: ApprovalRecord, **more: Any) -> Gate:
    """Return the gate of a plan after runs that used these approvals."""
    return planned(manifest, rows, records=StateRecords(approvals=lambda: records_of(records)), **more).gate


def test_an_approval_under_way_covers_no_stronger_action() -> None:
    losses = tuple(loss for unit in planned("{}", MANY[:4]).gate.units for loss in unit.losses)
    record = ApprovalRecord("4@ab", "r", None, 1.0, losses, losses)
    assert not again_planned("{}", MANY[:4], record).is_closed
    assert again_planned("{}", MANY[:4], record, tag_removal=Removal.RETIRE).is_closed


def test_an_approval_that_has_settled_in_part_covers_the_rest_and_nothing_new() -> None:
    """A removal that settled and is wanted again needs another approval."""
    (unit,) = planned("{}", MANY[:4]).gate.units
    record = ApprovalRecord(unit.approve, "r", None, 1.0, unit.losses, unit.losses[1:])
    rest = again_planned("{}", MANY[1:4], record)
    assert ([each.count for each in rest.begun], rest.is_closed) == ([3], False)
    again = again_planned("{}", MANY[:4], record)
    assert ([each.count for each in again.units], [each.count for each in again.begun]) == ([1], [3])
    once = again_planned("{}", MANY[:4], record._replace(remaining=(), used=2.0))
    assert [each.approve == unit.approve for each in once.units] == [False]
    assert still_open(once, unit.approve) == [FILES[0]]


def test_tags_of_a_category_whose_delete_was_begun_have_a_reason() -> None:
    rows = [row("category/c"), held("T-1", FILES[0], "c")]
    begun = Loss("categories", Key(Kind.CATEGORY, "c"), "delete")
    gate = again_planned("{}", rows, ApprovalRecord("1@ab", "r", None, 1.0, (begun,), (begun,)))
    assert gate.reasons == ("tags deleted with category/c, whose deletion has already begun: 1",)


def test_the_gate_names_an_approval_only_once_nothing_is_open() -> None:
    rows = [
        *MANY,
        *(held(f"D-{n}", FILES[1], None, MATTERS) for n in range(4)),
        held("S", FILES[2], visibility="PRIVATE"),
    ]
    gate = planned("tags: [{name: S, visibility: PUBLIC}]", rows).gate
    (first, *others) = units(gate).values()
    assert with_approvals(gate, first).approved is None
    assert with_approvals(gate, first, *others).approved == Approval(first, "somebody")
    assert with_approvals(gate, *others, first, gate.whole).approved == Approval(gate.whole, "somebody")
    harmless = planned(wanting(f"M-{n}" for n in range(19)), [*MANY, held("D", FILES[1])]).gate
    assert with_approvals(harmless, *units(harmless).values()).approved is None
