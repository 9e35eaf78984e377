"""The template that made a row is known by its neighbours, since the line that is recorded is that of an older file."""

from __future__ import annotations

import pytest

from syncengine.errors import Row
from syncengine.plan.provenance import Template, origins, template_of
from syncengine.resource import Body, Key, Kind, Recorded, Resource, Source

FILE, DATA = "manifests/m.yaml", "data.csv"
TEXT = "manifests/m.yaml.j2"


@pytest.mark.parametrize(
    ("source", "template"),
    [
        (None, None),
        (Source(FILE, 3), None),
        (Source(FILE, 3, Row(DATA, 2)), Template(FILE, 3, DATA)),
        (Source(TEXT, 3), Template(TEXT, 0, TEXT)),
        (Source(TEXT.upper(), 3), Template(TEXT.upper(), 0, TEXT.upper())),
        (Source(TEXT, 3, Row(DATA, 2)), Template(TEXT, 3, DATA)),
    ],
)
def test_only_what_has_a_row_or_a_text_template_is_made(source: Source | None, template: Template | None) -> None:
    """A text template stands for its sources where the row is not known."""
    assert template_of(source) == template


def key(name: str) -> Key:
    return Key(Kind.TAG, name)


def made(line: int, row: int = 1) -> Source:
    return Source(FILE, line, Row(DATA, row))


def recorded(name: str, line: int, run: str | None = "run-1") -> Recorded:
    return Recorded(key(name), source=made(line), run=run)


def desired(**lines: int) -> dict[Key, Resource]:
    return {key(name): Resource(key(name), Body(), made(line)) for name, line in lines.items()}


CASES = {
    "wanted where it was": ([recorded("a", 5)], desired(a=5), {"a": {5}}, set()),
    "wanted at another line": ([recorded("a", 5)], desired(a=8), {"a": {8}}, set()),
    "by the neighbour that moved": (
        [recorded("a", 5), recorded("gone", 5)],
        desired(a=8),
        {"a": {8}, "gone": {8}},
        set(),
    ),
    "by none of today's": ([recorded("gone", 5)], desired(), {"gone": {5}}, {"gone"}),
    "the neighbour is of another template": (
        [recorded("a", 5), recorded("gone", 9)],
        desired(a=5),
        {"a": {5}, "gone": {9}},
        {"gone"},
    ),
    "by a neighbour of another run": (
        [recorded("a", 5, "run-2"), recorded("gone", 5, "run-1")],
        desired(a=8),
        {"a": {8}, "gone": {8}},
        set(),
    ),
    "a neighbour of its own run is nearer": (
        [recorded("a", 5, "run-1"), recorded("b", 5, "run-2"), recorded("gone", 5, "run-1")],
        desired(a=8, b=11),
        {"a": {8}, "b": {11}, "gone": {8}},
        set(),
    ),
    "not by what stood elsewhere in its run": (
        [recorded("a", 5, "run-2"), recorded("b", 9, "run-1"), recorded("gone", 5, "run-1")],
        desired(a=8, b=8),
        {"a": {8}, "b": {8}, "gone": {5}},
        {"gone"},
    ),
    "by one of two": (
        [recorded("a", 5), recorded("b", 5), recorded("gone", 5)],
        desired(a=8, b=11),
        {"a": {8}, "b": {11}, "gone": {8, 11}},
        set(),
    ),
}


@pytest.mark.parametrize(("rows", "wanted", "by", "lost"), CASES.values(), ids=CASES)
def test_rows_are_made_by_the_template_of_their_neighbours(
    rows: list[Recorded], wanted: dict[Key, Resource], by: dict[str, set[int]], lost: set[str]
) -> None:
    """Those of one line and one run that are still wanted say where their template is now."""
    found = origins(rows, wanted)
    assert {k.name: {template.line for template in templates} for k, templates in found.by.items()} == by
    assert {k.name for k in found.orphans} == lost


def test_what_was_written_by_hand_was_made_by_nothing() -> None:
    """Neither a row of a written tag, nor one that is written out by now tells of templates."""
    written = Recorded(key("w"), source=Source(FILE, 5))
    by_hand = {key("a"): Resource(key("a"), Body(), Source(FILE, 5))}
    found = origins([written, recorded("a", 5)], by_hand)
    assert found.by == {key("a"): {Template(FILE, 5, DATA)}}
    assert found.orphans == {key("a")}
