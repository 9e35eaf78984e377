"""The gate agrees with a second implementation of "The arithmetic" in docs/manifests.md, over random plans."""

from __future__ import annotations

import os
from fractions import Fraction
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from syncengine.plan.gate import FIRST_SWEEP, Approval, Gate, Unit
from syncengine.plan.planner import records_in
from syncengine.project.model import Limit
from syncengine.resource import Key, Recorded, Row, Source, Status
from syncengine.state.codec import Detail, RemovalLine
from syncengine.state.records import GATE_SECONDS
from tests.support.profiles import tried

from .estate import FILE, planned, row

pytestmark = pytest.mark.slow

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
    """Tags, categories to delete, the limit in percent, and the age in seconds of earlier removals by tag name."""

    tags: list[Tag]
    going: set[str]
    percent: int
    before: dict[str, float]


class Journal:
    """A state that has only a journal of removals."""

    def __init__(self, before: dict[str, float]) -> None:
        self._before = before

    def removals(self, since: float) -> list[RemovalLine]:
        detail = Detail(status=(Status.ACTIVE, Status.RELEASED))
        at = {name: NOW - ago for name, ago in self._before.items()}
        return [RemovalLine(t, False, Key.parse(f"tag/{n}"), detail, False) for n, t in at.items() if t >= since]

    def approvals(self) -> list[Any]:
        return []


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
    ages = st.floats(0, 2 * GATE_SECONDS, allow_nan=False)
    return Estate(
        tags,
        set(draw(st.lists(st.sampled_from(["one", "two"]), unique=True))),
        draw(st.sampled_from([10, 25, 50, 100])),
        draw(st.dictionaries(st.sampled_from(names), ages, max_size=6)),
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
    earlier = sum(ago <= GATE_SECONDS and name not in leaving for name, ago in estate.before.items())
    if is_too_much(len(rest), live, earlier, estate.percent):
        asking |= {unit[name] for name in rest}
    rest = {name for name in loses if unit[name] not in out}
    if is_too_much(len(rest), len(estate.tags) - len(loses - rest), 0, 50):
        asking |= {unit[name] for name in rest}
    return asking - approved


def judged(estate: Estate, *texts: str) -> Gate:
    records = records_in(Journal(estate.before), NOW)  # type: ignore[arg-type] # as a test calls it
    limits = {"tags": Limit(percent=estate.percent)}
    gate = planned(manifest(estate), recorded(estate), limits=limits, records=records).gate
    return gate.with_approvals(Approval(text, "somebody") for text in texts)


def alone(estate: Estate, unit: Unit) -> Estate:
    """Return the estate from which nothing goes but what this unit has."""
    names = {loss.key.name for loss in unit.losses}
    tags = [tag if tag.name in names else tag._replace(fate="stays") for tag in estate.tags]
    return estate._replace(tags=tags, going=estate.going & {unit.name.removeprefix("category/")})


@settings(max_examples=tried(EXAMPLES), deadline=None, suppress_health_check=list(HealthCheck))
@given(estates(), st.data())
def test_the_gate_is_what_the_page_computes(estate: Estate, data: Any) -> None:
    """For random removals of each kind, with random earlier removals, and with any approvals given.

    A unit that is as it was keeps its approval, whatever else goes beside it.
    """
    gate = judged(estate)
    texts = {unit.name: unit.approve for unit in gate.units if unit.kind != FIRST_SWEEP}
    approved = set(data.draw(st.lists(st.sampled_from(sorted(texts)), unique=True))) if texts else set()
    after = judged(estate, *(texts[name] for name in approved))
    if gate.whole not in {texts[name] for name in approved}:
        assert {unit.name for unit in after.units if unit.is_open} == open_by_hand(estate, approved)
    else:
        assert not after.is_closed
    assert gate.tripped == bool(open_by_hand(estate, set()))
    for unit in gate.units:
        assert {each.name: each.approve for each in judged(alone(estate, unit)).units} == {unit.name: unit.approve}
