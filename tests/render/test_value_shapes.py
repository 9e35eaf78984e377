"""Shapes of values: from one, the value after follows; what differs in a letter has another."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from syncengine.render.arrangement import arranged
from syncengine.render.section_entries import ListedEntries
from syncengine.render.unusual_letters import unusual_letters
from syncengine.render.value_shapes import ALIKE, RULES, Aspect, ValueColumn, shapes_of
from syncengine.resource import Value

WORDS = st.sampled_from(["GmbH", "AG", "of", "", " ", "(new)", "-", "T-1", "ä", "\u0435", "\u200b", "1", "12"])
TEXTS = st.lists(WORDS, max_size=5).map("".join)
ITEMS = st.lists(WORDS, max_size=4, unique=True).map(tuple)
VALUES = st.one_of(st.none(), TEXTS, ITEMS, st.booleans(), st.integers(0, 10**13))
NAMES = st.sampled_from(["T-1", "T-2", "1", "AG"])


@given(NAMES, VALUES, VALUES)
@example("T-1", "GmbHAG GmbH", "GmbHAG AG")
@example("T-1", ("a", "b"), ("b", "a"))
def test_a_shape_makes_the_value_after(name: str, before: Value | None, after: Value | None) -> None:
    """So a group's row says all of each member. Equal values and ranges of dates show their values instead."""
    for rule, (find, make, _) in RULES.items():
        for parameters in find(name, before, after) if make is not None else ():
            assert (rule, make(parameters, name, before)) == (rule, after)


def column(values: Iterable[tuple[str, Value | None, Value | None]]) -> ValueColumn:
    """Names, with values before and after."""
    rows = list(values)
    return ValueColumn([row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows])


@given(st.lists(st.tuples(NAMES, VALUES, VALUES), max_size=30))
def test_whoever_shares_a_shape_had_the_same_done_to_it(values: list[tuple[str, Value | None, Value | None]]) -> None:
    """In whatever company: shapes that others vote for never take in a value that they do not make."""
    shapes = shapes_of(column(values))
    for (name, before, after), shape in zip(values, shapes, strict=True):
        if shape is not None:
            make = RULES[shape.rule].make
            if make is not None:
                assert make(shape.parameters, name, before) == after
            elif shape.rule == "same":
                assert shape.parameters == (before, after)


@given(st.lists(st.tuples(NAMES, st.lists(st.tuples(st.sampled_from("abc"), TEXTS, TEXTS), max_size=3)), max_size=40))
def test_each_entry_has_one_place(rows: list[tuple[str, list[tuple[str, str, str]]]]) -> None:
    """None is lost and none is there twice, folded or not."""
    entries = ListedEntries(
        [name for name, _ in rows],
        [tuple({label: Aspect(label, old, new) for label, old, new in aspects}.values()) for _, aspects in rows],
    )
    for folding in (False, True):
        odd, singles, odd_groups, groups = arranged(entries, folding=folding)
        members = [number for group in (*odd_groups, *groups) for number in group.members]
        assert sorted([*odd, *singles, *members]) == list(range(len(rows)))
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
TEXTS_WITH = {
    "at the start": "{0} {1} {2}",
    "within": "{1} {0} {2}",
    "at the end": "{2} {1} {0}.",
    "twice": "{1} {0} of {2} and {0} {1}",
}


@pytest.mark.parametrize("text", TEXTS_WITH.values(), ids=TEXTS_WITH)
@pytest.mark.parametrize(("old", "new"), SPELLINGS)
def test_another_spelling_is_one_shape_wherever_the_words_stand(old: str, new: str, text: str) -> None:
    """Also where the sign that differs occurs elsewhere in the text; one that differs in more is another shape."""
    own = [(f"T-{n}", text.format(old, each, n), text.format(new, each, n)) for n, each in enumerate(CLIENTS)]
    shapes = shapes_of(column([*own, ("T-99", text.format(old, "Acme", 99), text.format(new, "Acme Inc.", 99))]))
    assert None not in shapes[:-1]
    assert len(set(shapes[:-1])) == 1
    assert shapes[-1] not in shapes[:-1]


def test_a_text_that_is_the_word_alone_has_the_shape_of_the_word() -> None:
    alone, within = ("T", "Trade mark", "Trademark"), [("T", f"Trade mark {n}", f"Trademark {n}") for n in range(5)]
    assert len(set(shapes_of(column([alone, *within, alone])))) == 1


def test_replaced_by_something_else_is_no_shape() -> None:
    """However often it is done."""
    assert set(shapes_of(column([("T", f"old{n}", f"new{n * 7}") for n in range(50)]))) == {None}


def test_too_few_make_no_shape() -> None:
    assert set(shapes_of(column([("T", f"old {n}", f"old {n} (new)") for n in range(ALIKE - 1)]))) == {None}


def test_text_of_one_script_has_no_unusual_letters() -> None:
    """Nor do letters with accents in a Latin word."""
    assert unusual_letters("Müller & Söhne, Łódź: Привет, 東京 (reviewed)") == ()
    assert unusual_letters("p\u0430y\u00adpal") == ("U+00AD SOFT HYPHEN", "U+0430 CYRILLIC SMALL LETTER A")
