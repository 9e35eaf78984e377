"""Lints of manifests (docs/planning.md 2.9), each with a code whose level the project file can set. Pure.

Texts, tags and files are looked at while they are read; names, keywords and categories once all files have been read.
The cost of every check is linear in the number of tags.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from msgspec.structs import replace

from syncengine.document.diagnostics import Collector
from syncengine.document.nodes import Mapping as MappingNode
from syncengine.document.nodes import Node, Scalar, items, place, quoted
from syncengine.document.text import folded
from syncengine.errors import Diagnostic, Severity, with_row
from syncengine.project.types import SURROUNDING_BLANKS
from syncengine.resource import Body, Key, Kind, Resource, Row, Source

CONTAINED = "keyword-contained"
"""The code of a lint that is looked for only where a project asks for it, because it is slow and often right to do."""

UNREAD = "unread-file"
"""The code of a lint of files beside manifests."""

WHEN_NONE = "when-none"
"""The code of a lint of conditions that no row of data meets."""

LINTS: Mapping[str, str] = {
    "same-keyword": "two tags have the same keyword, so time that matches it gets both tags",
    "keyword-too-broad": "a keyword is so short or common that it matches unrelated time",
    "similar-name": "the names of two tags differ only by case or Unicode form",
    "comment-in-text": "unquoted text ends at ` #`, where a comment begins",
    "curly-quotes": "unquoted text has the quotation marks of a word processor around it, which become part of it",
    "comma-in-text": "unquoted text in braces ends at a comma, so the rest is a name without a value, an error",
    CONTAINED: "a keyword of one tag is part of another tag's keyword, so time that matches the longer one gets both",
    "public-by-silence": "a tag without a declared visibility is public, while other tags in its file are private",
    "private-in-shared-category": "a private tag is in a category that also has public tags",
    UNREAD: "a file in a folder of manifests is not read because of its name, and no manifest mentions it",
    WHEN_NONE: "a `when` leaves out every row, so its block makes nothing",
    "deprecated": "a tag has a field that the service has deprecated",
    "closed-with-keywords": "a matter with a `closedTimestamp`, past or future, has keywords that match time after it",
}
"""The codes of all lints of manifests, each with its meaning."""

PRIVATE = "PRIVATE"
COMMON = frozenset(
    "the and for you not are all any can has was one our out new old get use see day now who "  # noqa: SIM905 - words
    "mail email call meeting inbox outlook word excel teams chrome microsoft google http https www com "
    "document file draft home open untitled window project review report test client admin matter case".split()
)
"""Everyday words that occur in most people's window titles."""


def is_broad(word: str) -> bool:
    """Return whether a keyword is one or two letters, up to three digits, a year, or an everyday word."""
    if len(word) > 9:
        return False
    if len(word) == 4 and word.isdigit() and word[:2] in ("19", "20"):
        return True
    return (len(word) <= 2 and word.isascii()) or (len(word) <= 3 and word.isdigit()) or word.casefold() in COMMON


def broad(words: Iterable[str]) -> list[str]:
    return [word for word in words if len(word) < 10 and is_broad(word)]


def cut_texts(cut: Iterable[Scalar], findings: Collector) -> None:
    """Warn about plain text that a comment cuts short."""
    for node in cut:
        _warn(
            findings,
            "comment-in-text",
            node,
            f"the text ends after {quoted(node.text)}, where a comment begins; put it in quotes to keep the `#`",
        )


def curly_texts(curly: Iterable[Scalar], findings: Collector) -> None:
    """Warn about quotation marks that quote nothing."""
    for node in curly:
        message = f"the quotation marks of {quoted(node.text)} are part of the text: only \" and ' quote"
        _warn(findings, "curly-quotes", node, message)


def _warn(findings: Collector, code: str, node: Node, message: str, address: str | None = None) -> None:
    line, column = place(node)
    findings.at(code, line, column, message, severity=Severity.WARNING, address=address)


def report_tag(key: Key, body: Body, node: MappingNode, findings: Collector) -> None:
    """Warn about broad keywords of a tag, keywords beside a closing date, and a field that the service has deprecated.

    The date is not compared with today, since readings are cached and must stay true.
    """
    for word in broad(body.keywords):
        message = f"the keyword {quoted(word)} is so short or common that it will match unrelated time"
        listed = (item for item in items(node.get("keywords")) if item.text == word)
        at = next(listed, None) or node.get("name") or node
        _warn(findings, "keyword-too-broad", at, message, str(key))
    if body.keywords and "closedTimestamp" in body.fields:
        words = ", ".join(quoted(word) for word in body.keywords[:3])
        message = (
            f"time after `closedTimestamp` still matches {words}:"
            " if the matter is closed, set `keywords: []` and `excludeTagNameKeyword: true`"
        )
        _warn(findings, "closed-with-keywords", node.get("closedTimestamp") or node, message, str(key))
    if "path" in body.fields:
        message = "the service has deprecated `path`: remove the line"
        _warn(findings, "deprecated", node.get("path") or node, message, str(key))


def public_by_silence(resources: Iterable[Resource]) -> list[Resource]:
    """Return a file's tags without a declared visibility, if another of its tags is private."""
    tags = [resource for resource in resources if resource.sound and resource.key.kind is Kind.TAG]
    visibilities = [tag.body.fields.get("visibility") for tag in tags]
    if PRIVATE not in visibilities or None not in visibilities:
        return []
    return [tag for tag, visibility in zip(tags, visibilities, strict=True) if visibility is None]


def report_silence(resources: Iterable[Resource], findings: Collector) -> None:
    """Warn about a file's tags in `public_by_silence`, at the first of them."""
    silent = public_by_silence(resources)
    if not silent:
        return
    first = silent[0]
    rows = sum((tag.source.line, tag.column) == (first.source.line, first.column) for tag in silent)
    more = f", as are {len(silent) - rows:,} more," * (len(silent) > rows)
    findings.at(
        "public-by-silence",
        first.source.line,
        first.column,
        f"{first.key} declares no visibility, so it is PUBLIC{more or ','} while other tags in its file are PRIVATE:"
        " set `visibility`",
        severity=Severity.WARNING,
        address=str(first.key),
        data=first.source.data,
        more=rows - 1,
    )


class Shared(NamedTuple):
    """A warning about two tags that share a name, a keyword or a category, reported at `key`. `word` is the keyword."""

    code: str
    key: Key
    source: Source
    message: str
    word: str | None = None


def shared(tags: Iterable[Resource]) -> Iterator[Shared]:
    """Yield a warning for each name that differs from another only by case or form, and for each shared keyword."""
    names: dict[str, Resource] = {}
    firsts: dict[str, Key] = {}
    others: dict[str, list[tuple[Resource, str]]] = defaultdict(list)
    for tag in tags:
        key, own = tag.key, folded(tag.key.name)
        if (other := names.setdefault(own, tag)) is not tag:
            message = f"the name differs only by case or Unicode form from {other.key} ({other.source})"
            yield Shared("similar-name", key, tag.source, message)
        for word in tag.body.keywords:
            if (first := firsts.setdefault(same := folded(word), key)) is key:
                continue
            last = others[same][-1][0].key if same in others else first
            # Names that are alike have been reported above.
            if last != key and not folded(first.name) == same == own:
                others[same].append((tag, word))
    for same, first in firsts.items():
        if same in others:
            (second, word), count = others[same][0], len(others[same]) + 1
            more = f"; {count:,} tags have it" if count > 2 else ""
            message = f"{first} also has the keyword {quoted(word)}{more}"
            yield Shared("same-keyword", second.key, second.source, message, word)


def mixed_categories(tags: Iterable[Resource]) -> Iterator[Shared]:
    """Yield a warning at the first private tag of each category that also has public tags."""
    private: dict[object, Resource] = {}
    public: set[object] = set()
    category: object
    for tag in tags:
        category = tag.body.fields.get("category") or tag.body.fields.get("tagCategoryId")
        if category is not None and tag.body.fields.get("visibility") == PRIVATE:
            private.setdefault(category, tag)
        elif category is not None:
            public.add(category)
    for category, tag in private.items():
        if category in public:
            message = f"{tag.key} is PRIVATE, but its category {quoted(str(category))} also has PUBLIC tags"
            yield Shared("private-in-shared-category", tag.key, tag.source, message)


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
    for line in _OF_MANY_WORDS.findall(lines):  # the runs of two to `LONGEST_RUN` adjacent words
        spans = [word.span() for word in re.finditer(r"\w+", line)]
        for length in range(2, min(len(spans) - 2, LONGEST_RUN) + 1):
            ends = zip(spans, spans[length - 1 :], strict=False)
            parts.update(line[first[0] : last[1]] for first, last in ends)
    for line in _NUMBERED.findall(lines):
        parts.update(line[: at.start()] for at in islice(_NUMBER.finditer(line), MOST_DIGITS))
    return {part for part in parts if len(part) > 2}


def contained(tags: Sequence[Resource]) -> Iterator[Shared]:
    """Yield a warning for each keyword that is part of another tag's keyword, so that it matches that tag's time, too.

    A number without leading zeros begins many others, so only `TOLD_OF_A_SERIES` keywords of a series are reported.
    """
    holders: dict[str, tuple[Resource, str]] = {}
    for tag in tags:
        for word in tag.body.keywords:
            holders.setdefault(folded(word), (tag, word))
    wholes: dict[str, tuple[Resource, str]] = {}
    for tag in tags:
        own = {folded(word): word for word in tag.body.keywords}
        for same, word in own.items():
            for part in parts_of(same) & holders.keys() - own.keys():
                wholes.setdefault(part, (tag, word))
    series: dict[str, list[Shared]] = defaultdict(list)
    for same, (tag, word) in holders.items():
        if same in wholes:
            other, whole = wholes[same]
            message = f"the keyword {quoted(word)} is part of {quoted(whole)} of {other.key}"
            shared = Shared(CONTAINED, tag.key, tag.source, f"{message}, so it also matches that tag's time", word)
            end = folded(whole)
            is_cut = same[-1:].isdigit() and end.startswith(same) and end[len(same) : len(same) + 1].isdigit()
            series[same.rstrip("0123456789") + "\n" if is_cut else same].append(shared)
    for alike in series.values():
        *reported, last = alike[:TOLD_OF_A_SERIES]
        yield from reported
        if (more := len(alike) - TOLD_OF_A_SERIES) > 0:
            last = last._replace(message=f"{last.message}; the same applies to {more:,} more with other digits")
        yield last


FEW = 25
"""The maximum number of different messages at one place that are reported one by one."""
_Place = tuple[object, ...]


class Alike:
    """A collection of diagnostics of rows, which merges diagnostics with the same place and message."""

    def __init__(self) -> None:
        self._first: list[Diagnostic] = []
        self._last: list[Row | None] = []
        self._more: list[int] = []
        self._numbers: dict[_Place, dict[str, int]] = {}

    def add(self, diagnostic: Diagnostic, row: Row | None) -> None:
        """Add the diagnostic of a row. Beyond `FEW` messages at one place, count it as a repetition of the last one."""
        if diagnostic.code == SURROUNDING_BLANKS:
            message = f"{diagnostic.message}; `| trim` at the end of the template removes them"
            diagnostic = replace(diagnostic, message=message)
        place = (diagnostic.severity, diagnostic.code, diagnostic.file, diagnostic.line, diagnostic.column)
        numbers = self._numbers.setdefault(place, {})
        number = numbers.get(diagnostic.message)
        if number is None and len(numbers) >= FEW:
            number = next(reversed(numbers.values()))
        if number is None or row is None:
            numbers[diagnostic.message] = len(self._first)
            self._first.append(replace(diagnostic, data=row))
            self._last.append(row)
            self._more.append(0)
        elif row != self._last[number]:
            self._last[number] = row
            self._more[number] += 1

    def diagnostics(self) -> Iterator[Diagnostic]:
        """Yield each merged diagnostic, naming its first row and the number of further rows."""
        for diagnostic, more in zip(self._first, self._more, strict=True):
            yield replace(diagnostic, message=with_row(diagnostic.message, diagnostic.data, more))
