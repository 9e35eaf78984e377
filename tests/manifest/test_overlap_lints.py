"""Keywords are taken apart into what would be found in a text beside them, and compared between tags."""

from __future__ import annotations

import pytest

from syncengine.manifest.lints import LONGEST_WHOLE, MOST_DIGITS, contained, parts_of
from syncengine.resource import Body, Key, Kind, Resource, Source

PARTS = {
    "": set(),
    "acme": set(),
    "of": set(),
    "john smith": {"john", "smith"},
    "smith & co": {"smith"},
    "the acme group": {"the", "acme", "group", "the acme", "acme group"},
    "one two three four": {"one", "two", "three", "four", "one two", "two three", "three four"}
    | {"one two three", "two three four"},
    "acme-42": {"acme", "acme-4"},
    "ep1234567": {"ep1", "ep12", "ep123", "ep1234", "ep12345", "ep123456"},
    "ab1": set(),
    "john\nsmith": set(),
    "x" * LONGEST_WHOLE + " acme": set(),
}


@pytest.mark.parametrize(("lines", "parts"), PARTS.items(), ids=[repr(lines[:20]) for lines in PARTS])
def test_parts_are_words_runs_of_them_and_numbers_that_end_early(lines: str, parts: set[str]) -> None:
    """Of three letters at least; a keyword is no part of itself, and none reaches over the end of a line."""
    assert parts_of(lines) == parts


def test_a_number_ends_early_at_few_places() -> None:
    """A keyword of very many digits costs no more than one of some."""
    assert len(parts_of("num" + "1" * 200)) == MOST_DIGITS


def tag(name: str, *keywords: str) -> Resource:
    return Resource(Key(Kind.TAG, name), Body({}, keywords), Source("all.yaml", 1))


CONTAINED = {
    "in another's": ([tag("A", "smith"), tag("B", "smith & co")], [("A", "smith", '"smith & co" of tag/B')]),
    "whichever comes first": (
        [tag("B", "smith & co"), tag("A", "smith")],
        [("A", "smith", '"smith & co" of tag/B')],
    ),
    "in its own only": ([tag("A", "smith", "smith & co")], []),
    "of whatever case": (
        [tag("A", "SMITH"), tag("B", "Smith & Co")],
        [("A", "SMITH", '"Smith & Co" of tag/B')],
    ),
    "with its first holder": (
        [tag("A", "smith"), tag("C", "Smith"), tag("B", "smith & co")],
        [("A", "smith", '"smith & co" of tag/B')],
    ),
    "held by nobody": ([tag("B", "smith & co")], []),
    "short and long of one": ([tag("A", "Smith", "Smith & Co"), tag("B", "John Smithers")], []),
    "told once": (
        [tag("A", "smith"), tag("B", "smith & co"), tag("C", "john smith")],
        [("A", "smith", '"smith & co" of tag/B')],
    ),
}


@pytest.mark.parametrize(("tags", "told"), CONTAINED.values(), ids=CONTAINED)
def test_a_keyword_in_another_tags_is_told_where_it_stands(
    tags: list[Resource], told: list[tuple[str, str, str]]
) -> None:
    """Once, with the first keyword of another tag that it is a part of."""
    found = [(each.key.name, each.word, each.message) for each in contained(tags)]
    assert found == [
        (name, word, f'the keyword "{word}" is part of {whole}, so it also matches that tag\'s time')
        for name, word, whole in told
    ]


def test_of_keywords_that_are_numbered_alike_a_few_are_told() -> None:
    """`M-1` to `M-5` begin `M-10` to `M-50`, which is one habit of numbering and not five mistakes."""
    tags = [tag(f"M-{n}", f"m-{n}") for n in (1, 2, 3, 4, 5, 10, 20, 30, 40, 50)]
    messages = [each.message for each in contained(tags)]
    assert [("more with other digits" in message) for message in messages] == [False, False, True]
    assert messages[-1].endswith("; the same applies to 2 more with other digits")
