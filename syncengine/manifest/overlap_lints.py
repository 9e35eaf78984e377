"""keywords → their parts, and the keywords of one tag that are parts of another's; pure.

A tag applies where one of its keywords occurs in a text, so a keyword that is a part of another tag's matches that
tag's time too. Parts are whole words, runs of words, and the beginnings of numbers: `ACME-4` of `ACME-42`. They are
computed file by file and kept (`reading.ReadFile`), so that files are compared as sets.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from syncengine.document.nodes import quoted
from syncengine.document.text import folded
from syncengine.manifest.lints import CONTAINED, Shared
from syncengine.resource import Resource

_WORD = re.compile(r"(?<=[^\n\w])\w{3,}+|(?<!\w)\w{3,}+(?=[^\n\w])")
"""A word of a line with other words. It is matched from beginnings of words only, not from each letter."""
_ALL_BUT_LAST = re.compile(r"^(.*\w)[^\w\n]+\w+[^\w\n]*$", re.MULTILINE)
_ALL_BUT_FIRST = re.compile(r"^[^\w\n]*\w+[^\w\n]+(\w.*)$", re.MULTILINE)
_OF_MANY_WORDS = re.compile(r"^(?:[^\w\n]*\w++){4}.*$", re.MULTILINE)
_NUMBERED = re.compile(r"^.*?[^\W_]\d.*$", re.MULTILINE)
_NUMBER = re.compile(r"(?<=[^\W_])\d")
LONGEST_WHOLE = 1_000
"""Characters of a keyword that is taken apart: a longer one is found in no text."""
_TOO_LONG = re.compile(rf"^[^\n]{{{LONGEST_WHOLE + 1}}}[^\n]*+\n?", re.MULTILINE)
LONGEST_RUN = 5
"""Words of a part that is neither one word nor all but one."""
MOST_DIGITS = 12
"""Places at which numbers in one keyword are thought to end early."""
TOLD_OF_A_SERIES = 3
"""The most keywords with similar numbers that are reported one by one; the others are counted."""


def parts_of(lines: str) -> set[str]:
    """The parts of keywords, one a line; shorter ones than three letters are suspected anyway."""
    lines = _TOO_LONG.sub("", lines)
    parts = {*_WORD.findall(lines), *_ALL_BUT_LAST.findall(lines), *_ALL_BUT_FIRST.findall(lines)}
    for line in _OF_MANY_WORDS.findall(lines):
        parts.update(_runs(line))
    for line in _NUMBERED.findall(lines):
        parts.update(line[: at.start()] for at in islice(_NUMBER.finditer(line), MOST_DIGITS))
    return {part for part in parts if len(part) > 2}


def _runs(line: str) -> Iterator[str]:
    """Two words that follow each other, or more."""
    words = [word.span() for word in re.finditer(r"\w+", line)]
    for length in range(2, min(len(words) - 2, LONGEST_RUN) + 1):
        for n in range(len(words) - length + 1):
            yield line[words[n][0] : words[n + length - 1][1]]


def compared_parts(tags: Sequence[Resource], words: str) -> str:
    """The parts of a file's keywords as lines, without keywords of the same tag. `words` are the folded keywords of the
    tags, one a line."""
    parts = parts_of(words)
    if not parts.isdisjoint(words.split("\n")):
        parts = {part for tag in tags for part in _parts_of_tag(tag)}
    return "\n".join(sorted(parts))


def _parts_of_tag(tag: Resource) -> set[str]:
    own = [folded(word) for word in tag.body.keywords]
    return parts_of("\n".join(own)).difference(own)


def contained_in_others(tags: Iterable[Resource], suspected: set[str]) -> Iterator[Shared]:
    """Each keyword among `suspected` that is a part of another tag's keyword, once, at its place.

    Numbers without leading zeros begin many others: a few of each series are reported.
    """
    holders: dict[str, tuple[Resource, str]] = {}
    wholes: dict[str, tuple[Resource, str]] = {}
    for tag in tags:
        for word in tag.body.keywords:
            if (same := folded(word)) in suspected:
                holders.setdefault(same, (tag, word))
        if parts := _parts_of_tag(tag) & suspected:
            for part, whole in _wholes(tag, parts):
                wholes.setdefault(part, (tag, whole))
    series: dict[str, list[Shared]] = defaultdict(list)
    for same, (tag, word) in holders.items():
        other, whole = wholes.get(same, (tag, ""))
        if other is not tag:
            message = f"the keyword {quoted(word)} is part of {quoted(whole)} of {other.key}, and matches that time too"
            series[_series(same, folded(whole))].append(Shared(CONTAINED, tag.key, tag.source, message, word))
    for alike in series.values():
        *reported, last = alike[:TOLD_OF_A_SERIES]
        yield from reported
        if (more := len(alike) - TOLD_OF_A_SERIES) > 0:
            rest = f"{more:,} more keywords that differ only in their numbers do too"
            last = last._replace(message=f"{last.message}; {rest}")
        yield last


def _series(word: str, whole: str) -> str:
    """The word without its number; the word itself where it is not the beginning of a longer number."""
    is_cut = word[-1:].isdigit() and whole.startswith(word) and whole[len(word) : len(word) + 1].isdigit()
    return word.rstrip("0123456789") + "\n" if is_cut else word


def _wholes(tag: Resource, parts: set[str]) -> Iterator[tuple[str, str]]:
    """Each of the parts with a keyword that it is a part of."""
    for word in tag.body.keywords:
        for part in parts & parts_of(folded(word)):
            yield part, word
