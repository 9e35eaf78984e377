"""Looking at many changes at once finds what looking at each one finds."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from syncengine.plan.diff import Action, Change, appearance
from syncengine.render.change_aspects import AT_ONCE, created, created_tables
from syncengine.render.escape import cells
from syncengine.render.rarity import UnrankedGroup, rarest_first, without_numbers
from syncengine.render.section_entries import aspect_tables
from syncengine.resource import Body, Key, Kind

WORDS = st.sampled_from(["EP 12", "EP 1234", "matter", "Ä 7", "٣ 5", "\0", "", "1", "22/2026", "\u0435p"])


def new_tag(number: int, words: int = 1, **fields: str) -> Change:
    """A new tag with some keywords, and with the given fields."""
    keywords = (*(f"word {number} {n}" for n in range(words)), f"T-{number}")
    return appearance(Key(Kind.TAG, f"T-{number}"), Body({"url": f"u{number}", **fields}, keywords, {"a": "b"}), None)


def test_tables_of_many_new_tags_are_those_of_each() -> None:
    """A stretch of tags with the same labels is taken as one; one that is unlike in any way has a table of its own."""
    alike = [new_tag(number) for number in range(AT_ONCE)]
    formers = {"previously": "T-0", "merges": ("T-0", "T-1")}
    unlike = [
        new_tag(1, path="/"),
        new_tag(2, words=0),
        Change(key=Key(Kind.TAG, "T-3"), action=Action.CREATE, source=None, reason="why"),
        Change(key=Key(Kind.TAG, "T-4"), action=Action.CREATE, source=None, **formers),
        appearance(Key(Kind.TAG, "T-5"), Body({"url": "u"}, ("w", "T-5"), {"b": "c"}), None),
        appearance(Key(Kind.TAG, "T-6"), Body({"description": "", "url": "u"}, ("T-6",)), None),
    ]
    for odd in unlike:
        changes = [*alike, *alike[:7], odd, *alike[7:], odd, *alike]
        tables = [(labels, numbers, _rows(before, after)) for labels, numbers, before, after in created_tables(changes)]
        each = aspect_tables(map(created, changes))
        assert tables == [(labels, numbers, _rows(before, after)) for labels, numbers, before, after in each]


def _rows(*columns: object) -> list[list[object]]:
    return [list(map(list, each)) for each in columns]


@given(st.lists(WORDS, max_size=12))
@example(["EP 1", "EP 22", "EP 22"])
def test_numbers_are_masked_in_many_texts_as_in_each(texts: list[str]) -> None:
    """However many digits they have; a text that has the separator spoils no other."""
    assert list(without_numbers(texts)) == [re.sub(r"\d+", "\1", text) for text in texts]


@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=12))
def test_entries_are_ranked_in_one_group_as_in_groups_of_their_own(rows: list[tuple[str, str]]) -> None:
    """Whether all, some or none have the same outline."""
    numbers, columns = list(range(len(rows))), list(zip(*rows, strict=True))
    labels = ("a", "b")
    together = UnrankedGroup(
        numbers, labels, [(x, [None] * len(rows), c) for x, c in zip(labels, columns, strict=True)]
    )
    apart = [
        UnrankedGroup([number], labels, [(label, [None], [text]) for label, text in zip(labels, row, strict=True)])
        for number, row in enumerate(rows)
    ]
    assert rarest_first([together]) == rarest_first(apart)


def test_only_letters_beyond_ascii_are_measured_one_by_one() -> None:
    """A wide letter takes two columns, a combining one none."""
    assert [cells(text) for text in ("", "ab", "ab…", "漢字", "e\u0301", "a\u200bb")] == [0, 2, 3, 4, 1, 2]
