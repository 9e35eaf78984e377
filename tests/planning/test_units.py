"""docs/manifests.md: the units of removals, what the gate asks about after approvals, and its arithmetic."""

import os
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from syncengine.plan.gate import FIRST_SWEEP, SHOWN_ORDER, Approval, Gate, StateRecords, approved_of, records_of
from syncengine.project.model import Limit
from syncengine.resource import Key, Kind, Recorded, Removal, Row, Source
from syncengine.state.records import ApprovalRecord, Loss
from tests.support.profiles import tried

from .estate import FILE, planned, row

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
    (first, *others) = units(gate).values()
    assert with_approvals(gate, first).approved is None
    assert with_approvals(gate, first, *others).approved == Approval(first, "somebody")
    assert with_approvals(gate, *others, first, gate.whole).approved == Approval(gate.whole, "somebody")
    assert not with_approvals(gate, first, *others).is_closed
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
    whole = planned("{}", rows)
    assert still_open(whole.gate, reviewed) == [MATTERS]
    assert approved_of(whole).uses == {}


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


# --- a second implementation of "The arithmetic", over random plans


EXAMPLES = int(os.environ.get("SYNCENGINE_TEST_HISTORIES", "100"))
NOW = 1_000_000.0
MANIFESTS = ("manifests/a.yaml", "manifests/b.yaml")
SOURCES = (None, None, "x.csv", "y.csv")


class Tag(NamedTuple):
    """A recorded tag. `fate`: stays, goes, loses its keyword, or is removed by a line under `removed:`."""

    name: str
    file: str
    source: str | None
    category: str | None
    fate: str


class Estate(NamedTuple):
    """Tags, categories to delete, the limit in percent, and tags that runs of the last 24 hours removed."""

    tags: list[Tag]
    going: set[str]
    percent: int
    before: list[str]


@st.composite
def estates(draw: Any) -> Estate:
    tags = [
        Tag(
            f"T-{n}",
            draw(st.sampled_from(MANIFESTS)),
            draw(st.sampled_from(SOURCES)),
            draw(st.sampled_from([None, None, None, "one", "two"])),
            draw(st.sampled_from(["stays", "stays", "stays", "stays", "goes", "keyword", "line"])),
        )
        for n in range(draw(st.integers(1, 30)))
    ]
    names = [tag.name for tag in tags] + ["GONE-1", "GONE-2", "GONE-3"]
    return Estate(
        tags,
        set(draw(st.lists(st.sampled_from(["one", "two"]), unique=True))),
        draw(st.sampled_from([10, 25, 50, 100])),
        draw(st.lists(st.sampled_from(names), unique=True, max_size=6)),
    )


def recorded(estate: Estate) -> list[Recorded]:
    rows = [row(f"category/{name}", source=Source(MANIFESTS[0], 1)) for name in ("one", "two")]
    for tag in estate.tags:
        source = Source(tag.file, 3, Row(tag.source, 2) if tag.source else None)
        category = {"category": tag.category} if tag.category else {}
        rows.append(row(f"tag/{tag.name}", "k", source=source, **category))
    return rows


def manifest(estate: Estate) -> str:
    kept = "".join(f"  - externalId: {name}\n" for name in ("one", "two") if name not in estate.going)
    tags, lines = "", ""
    for tag in estate.tags:
        category = f", category: {tag.category}" if tag.category else ""
        if tag.fate == "line":
            lines += f"  - {{tag: {tag.name}, as: forget}}\n"
        elif tag.category not in estate.going and tag.fate != "goes":
            keywords = "" if tag.fate == "keyword" else ", keywords: [k]"
            tags += f"  - {{name: {tag.name}{keywords}{category}}}\n"
    parts = (("tagCategories", kept), ("tags", tags), ("removed", lines))
    return "".join(f"{name}:\n{text}" for name, text in parts if text) or "{}"


def is_too_much(now: int, there: int, earlier: int, percent: int) -> bool:
    """Step 4: more than the limit and at least two, or all that is left."""
    if not now:
        return False
    lost = now + earlier
    return now >= there or (lost >= 2 and Fraction(lost, there + earlier) > Fraction(percent, 100))


def open_by_hand(estate: Estate, approved: set[str]) -> set[str]:
    """Return the names of the units that ask, computed by the four steps of the page."""
    cascades = [tag for tag in estate.tags if tag.category in estate.going]
    others = [tag for tag in estate.tags if tag.category not in estate.going]
    unit = {tag.name: tag.source or tag.file for tag in others if tag.fate == "goes"}
    unit |= {tag.name: FILE for tag in others if tag.fate == "keyword"}  # declared in this file today
    goes = {tag.name for tag in others if tag.fate == "goes"}
    loses = {tag.name for tag in others if tag.fate == "keyword"}
    lines = {tag.name for tag in others if tag.fate == "line"}
    alone = {f"category/{name}" for name in estate.going}
    # Sources that lost over a quarter of their tags in one manifest, with cascades and without lines of `removed:`.
    short = set()
    for file in MANIFESTS:
        for source in set(SOURCES) - {None}:
            made = [tag for tag in estate.tags if (tag.file, tag.source) == (file, source)]
            gone = [tag for tag in made if tag.name in goes or tag in cascades]
            if len(gone) >= 2 and Fraction(len(gone), len(made)) > Fraction(1, 4):
                short.add(source)
    alone |= {source for source in short if source in unit.values()}
    if lines and (len(lines) == len(estate.tags) or (len(lines) > 1 and 4 * len(lines) > len(estate.tags))):
        alone.add("removed")
    out = alone | approved
    asking = set(alone)
    rest = {name for name in goes if unit[name] not in out}
    live = len(estate.tags) - len(cascades) - len(lines) - len(goes - rest)
    leaving = goes | lines | {tag.name for tag in cascades}
    earlier = len({*estate.before} - leaving)
    if is_too_much(len(rest), live, earlier, estate.percent):
        asking |= {unit[name] for name in rest}
    rest = {name for name in loses if unit[name] not in out}
    if is_too_much(len(rest), len(estate.tags) - len(loses - rest), 0, 50):
        asking |= {unit[name] for name in rest}
    return asking - approved


def judged(estate: Estate, *texts: str) -> Gate:
    records = StateRecords(recent=lambda: {Loss("tags", Key.parse(f"tag/{n}")): NOW for n in estate.before})
    limits = {"tags": Limit(percent=estate.percent)}
    gate = planned(manifest(estate), recorded(estate), limits=limits, records=records).gate
    return gate.with_approvals(Approval(text, "somebody") for text in texts)


@pytest.mark.slow
@settings(max_examples=tried(EXAMPLES), deadline=None, suppress_health_check=list(HealthCheck))
@given(estates(), st.data())
def test_the_gate_is_what_the_page_computes(estate: Estate, data: Any) -> None:
    """For random removals of each kind, with random earlier removals, and with any approvals given."""
    gate = judged(estate)
    texts = {unit.name: unit.approve for unit in gate.units if unit.kind != FIRST_SWEEP}
    approved = set(data.draw(st.lists(st.sampled_from(sorted(texts)), unique=True))) if texts else set()
    after = judged(estate, *(texts[name] for name in approved))
    if gate.whole not in {texts[name] for name in approved}:
        assert {unit.name for unit in after.units if unit.is_open} == open_by_hand(estate, approved)
    else:
        assert not after.is_closed
    assert gate.tripped == bool(open_by_hand(estate, set()))
