"""Keywords → their parts, and the keywords of one tag that are part of another tag's keywords; pure.

A tag applies where one of its keywords occurs in a text, so a keyword that is part of another tag's keyword also
matches that tag's time. Parts are words, runs of words, and beginnings of numbers (`ACME-4` of `ACME-42`). They are
computed file by file and stored in `reading.ReadFile`, so that files are compared as sets.
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
"""A word of three characters or more that is not all of its line. Matches start only at the beginning of a word."""
_ALL_BUT_LAST = re.compile(r"^(.*\w)[^\w\n]+\w+[^\w\n]*$", re.MULTILINE)
_ALL_BUT_FIRST = re.compile(r"^[^\w\n]*\w+[^\w\n]+(\w.*)$", re.MULTILINE)
_OF_MANY_WORDS = re.compile(r"^(?:[^\w\n]*\w++){4}.*$", re.MULTILINE)
_NUMBERED = re.compile(r"^.*?[^\W_]\d.*$", re.MULTILINE)
_NUMBER = re.compile(r"(?<=[^\W_])\d")
LONGEST_WHOLE = 1_000
"""The maximum number of characters of a keyword that is split into parts: longer keywords occur in no text."""
_TOO_LONG = re.compile(rf"^[^\n]{{{LONGEST_WHOLE + 1}}}[^\n]*+\n?", re.MULTILINE)
LONGEST_RUN = 5
"""The maximum number of words of a part that is neither a single word nor all words but one."""
MOST_DIGITS = 12
"""The maximum number of places in one keyword at which a number is cut short to make a part."""
TOLD_OF_A_SERIES = 3
"""The maximum number of keywords with similar numbers that are reported one by one; the others are counted."""


def parts_of(lines: str) -> set[str]:
    """Return the parts of the keywords in `lines`, one keyword per line.

    Parts shorter than three letters are left out: `keyword-too-broad` covers keywords that short.
    """
    lines = _TOO_LONG.sub("", lines)
    parts = {*_WORD.findall(lines), *_ALL_BUT_LAST.findall(lines), *_ALL_BUT_FIRST.findall(lines)}
    for line in _OF_MANY_WORDS.findall(lines):
        parts.update(_runs(line))
    for line in _NUMBERED.findall(lines):
        parts.update(line[: at.start()] for at in islice(_NUMBER.finditer(line), MOST_DIGITS))
    return {part for part in parts if len(part) > 2}


def _runs(line: str) -> Iterator[str]:
    """Yield the runs of two to `LONGEST_RUN` adjacent words."""
    words = [word.span() for word in re.finditer(r"\w+", line)]
    for length in range(2, min(len(words) - 2, LONGEST_RUN) + 1):
        for n in range(len(words) - length + 1):
            yield line[words[n][0] : words[n + length - 1][1]]


def compared_parts(tags: Sequence[Resource], words: str) -> str:
    """Return the parts of a file's keywords, one per line, without parts that are keywords of the same tag.

    `words` are the folded keywords of the tags, one per line.
    """
    parts = parts_of(words)
    if not parts.isdisjoint(words.split("\n")):
        parts = {part for tag in tags for part in _parts_of_tag(tag)}
    return "\n".join(sorted(parts))


def _parts_of_tag(tag: Resource) -> set[str]:
    own = [folded(word) for word in tag.body.keywords]
    return parts_of("\n".join(own)).difference(own)


def contained_in_others(tags: Iterable[Resource], suspected: set[str]) -> Iterator[Shared]:
    """Yield a warning for each keyword in `suspected` that is part of another tag's keyword.

    A number without leading zeros begins many others, so only `TOLD_OF_A_SERIES` keywords of a series are reported.
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
            message = (
                f"the keyword {quoted(word)} is part of {quoted(whole)} of {other.key},"
                " so it also matches that tag's time"
            )
            series[_series(same, folded(whole))].append(Shared(CONTAINED, tag.key, tag.source, message, word))
    for alike in series.values():
        *reported, last = alike[:TOLD_OF_A_SERIES]
        yield from reported
        if (more := len(alike) - TOLD_OF_A_SERIES) > 0:
            last = last._replace(message=f"{last.message}; the same applies to {more:,} more with other digits")
        yield last


def _series(word: str, whole: str) -> str:
    """Return the word without its last number if `whole` continues that number, else the word itself."""
    is_cut = word[-1:].isdigit() and whole.startswith(word) and whole[len(word) : len(word) + 1].isdigit()
    return word.rstrip("0123456789") + "\n" if is_cut else word


def _wholes(tag: Resource, parts: set[str]) -> Iterator[tuple[str, str]]:
    """Yield each of `parts` with a keyword of the tag that contains it."""
    for word in tag.body.keywords:
        for part in parts & parts_of(folded(word)):
            yield part, word
