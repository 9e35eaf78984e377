"""The lint for keywords that are part of another tag's keyword."""

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
def test_parts_are_runs_of_words_and_beginnings_of_numbers(lines: str, parts: set[str]) -> None:
    """A part has three letters at least, does not cross the end of a line, and is not the whole keyword."""
    assert parts_of(lines) == parts


def test_a_long_number_has_a_limited_number_of_parts() -> None:
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
def test_a_keyword_that_is_part_of_another_tags_is_reported(
    tags: list[Resource], told: list[tuple[str, str, str]]
) -> None:
    """It is reported once, with the first keyword of another tag that contains it."""
    found = [(each.key.name, each.word, each.message) for each in contained(tags)]
    assert found == [
        (name, word, f'the keyword "{word}" is part of {whole}, so it also matches that tag\'s time')
        for name, word, whole in told
    ]


def test_keywords_of_a_numbered_series_are_reported_three_times() -> None:
    """`M-1` to `M-5` are beginnings of `M-10` to `M-50`. The third message counts the others."""
    tags = [tag(f"M-{n}", f"m-{n}") for n in (1, 2, 3, 4, 5, 10, 20, 30, 40, 50)]
    messages = [each.message for each in contained(tags)]
    assert [("more with other digits" in message) for message in messages] == [False, False, True]
    assert messages[-1].endswith("; the same applies to 2 more with other digits")
