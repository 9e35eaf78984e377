"""Grouping of changes by edit: equal edits form a group; a change that differs in one letter is another edit."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from syncengine.render.escape import unusual_letters
from syncengine.render.fold import WAYS, Edit, arranged
from syncengine.render.values import ChangeValue, ValuePart, Values
from syncengine.resource import Value

WORDS = st.sampled_from(["GmbH", "AG", "of", "", " ", "(new)", "-", "T-1", "ä", "\u0435", "\u200b", "1", "12"])
TEXTS = st.lists(WORDS, max_size=5).map("".join)
ITEMS = st.lists(WORDS, max_size=4, unique=True).map(tuple)
VALUES = st.one_of(st.none(), TEXTS, ITEMS, st.booleans())
NAMES = st.sampled_from(["T-1", "T-2", "1", "AG"])

Change = tuple[str, Value | None, Value | None]


def own(before: Value | None, after: Value | None, label: str = "url") -> Values:
    return (ChangeValue(ValuePart.FIELD, label, before, after),)


def edits(changes: Iterable[Change]) -> list[Edit | None]:
    """Return the edit by which each change is grouped among the others, or None."""
    rows = list(changes)
    found = arranged([name for name, _, _ in rows], [own(before, after) for _, before, after in rows], folding=True)
    each = {n: group.values[0].edit for group in (*found.odd_groups, *found.groups) for n in group.members}
    return [each.get(n) for n in range(len(rows))]


@given(NAMES, VALUES, st.lists(VALUES, min_size=2, max_size=12))
@example("T-1", "GmbHAG GmbH", ["GmbHAG AG", "AGAG AG"])
@example("T-1", ("a", "b"), [("b", "a"), ("a", "b")])
def test_one_edit_makes_one_value_of_another(name: str, before: Value | None, afters: list[Value | None]) -> None:
    """An edit of a value has one result, so that a group's row describes each member; rough edits may have more."""
    made: dict[Edit, Value | None] = {}
    for after in afters:
        for ways in WAYS:
            for edit in ways(name, before, after):
                if not (edit.is_rough or edit.kind == "date"):
                    assert made.setdefault(edit, after) == after


@given(st.lists(st.tuples(NAMES, st.lists(st.tuples(st.sampled_from("abc"), TEXTS, TEXTS), max_size=3)), max_size=40))
def test_each_entry_has_one_place(rows: list[tuple[str, list[tuple[str, str, str]]]]) -> None:
    values = [tuple({label: own(old, new, label)[0] for label, old, new in changes}.values()) for _, changes in rows]
    for folding in (False, True):
        found = arranged([name for name, _ in rows], values, folding=folding)
        members = [number for group in (*found.odd_groups, *found.groups) for number in group.members]
        assert sorted([*found.odd, *found.singles, *members]) == list(range(len(rows)))
        assert folding or not members


SPELLINGS = (
    ("Trademark", "Trade mark"),
    ("Trade mark", "Trademark"),
    ("Trade mark", "Trade-mark"),
    ("Trade-mark", "Trade mark"),
    ("Trade mark", "Trade Mark"),
    ("TRADE MARK", "Trade mark"),
    ("Trade  mark", "Trade mark"),
    ("Trade mark", "Trade\u00a0mark"),
    ("mark", "trade mark"),
    ("trade mark", "mark"),
    ("Trade mark", "Trade mark, Union"),
)
CLIENTS = ("Acme", "Bolt & Co", "Elm-Tree", "Fox 7", "Hart of Elm", "Iris", "Jade", "Kite GmbH", "Lime", "Moss")
TEXTS_WITH = {"at the start": "{0} {1} {2}", "within": "{1} {0} {2}", "at the end": "{2} {1} {0}."}


@pytest.mark.parametrize("text", TEXTS_WITH.values(), ids=TEXTS_WITH)
@pytest.mark.parametrize(("old", "new"), SPELLINGS)
def test_another_spelling_is_one_edit_wherever_the_words_stand(old: str, new: str, text: str) -> None:
    spelt = [(f"T-{n}", text.format(old, each, n), text.format(new, each, n)) for n, each in enumerate(CLIENTS)]
    found = edits([*spelt, ("T-99", text.format(old, "Acme", 99), text.format(new, "Acme Inc.", 99))])
    assert None not in found[:-1]
    assert len(set(found[:-1])) == 1
    assert found[-1] is None


def test_replaced_by_something_else_is_no_edit() -> None:
    assert set(edits(("T", f"old{n}", f"new{n * 7}") for n in range(50))) == {None}


def test_text_of_one_script_has_no_unusual_letters() -> None:
    """Accented letters and whole words in another script are not unusual; mixed scripts and invisible letters are."""
    assert unusual_letters("Müller & Söhne, Łódź: Привет, 東京 (reviewed)") == ()
    assert unusual_letters("p\u0430y\u00adpal") == ("U+00AD SOFT HYPHEN", "U+0430 CYRILLIC SMALL LETTER A")


def test_a_value_from_elsewhere_than_the_others_is_odd() -> None:
    found = arranged(
        [f"T-{n}" for n in range(300)], [own("a" if n != 99 else "b", "c") for n in range(300)], folding=True
    )
    assert found.odd == [99]
    assert [len(group.members) for group in found.groups] == [299]
