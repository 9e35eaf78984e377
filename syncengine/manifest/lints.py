"""Lints of manifests (docs/planning.md 2.9), each with a code whose level the project file can set. Pure.

The cost of every check is linear in the number of tags.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from syncengine.document.diagnostics import Collector
from syncengine.document.nodes import Mapping as MappingNode
from syncengine.document.nodes import Node, Scalar, Sequence, place, quoted
from syncengine.document.text import folded
from syncengine.errors import Severity
from syncengine.resource import Body, Key, Resource, Source

CONTAINED = "keyword-contained"
"""The code of a lint that, by default, checks small manifests only, because comparing parts of keywords is slow."""

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


def report_broad(key: Key, keywords: Iterable[str], node: MappingNode, findings: Collector) -> None:
    """Warn about keywords that would match nearly everyone's time."""
    for word in broad(keywords):
        message = f"the keyword {quoted(word)} is so short or common that it will match unrelated time"
        _warn(findings, "keyword-too-broad", place_of(word, node), message, str(key))


def is_closed_with_keywords(body: Body) -> bool:
    """Return whether a tag has both a closing date and keywords.

    The date is not compared with today, since readings are cached and must stay true.
    """
    return bool(body.keywords) and "closedTimestamp" in body.fields


def report_closed(key: Key, body: Body, node: MappingNode, findings: Collector) -> None:
    """Warn about keywords of a tag that has a closing date."""
    if is_closed_with_keywords(body):
        words = ", ".join(quoted(word) for word in body.keywords[:3])
        message = (
            f"time after `closedTimestamp` still matches {words}:"
            " if the matter is closed, set `keywords: []` and `excludeTagNameKeyword: true`"
        )
        _warn(findings, "closed-with-keywords", node.get("closedTimestamp") or node, message, str(key))


def is_deprecated(body: Body) -> bool:
    """Return whether a tag has a field that the service has deprecated."""
    return "path" in body.fields


def report_deprecated(key: Key, body: Body, node: MappingNode, findings: Collector) -> None:
    """Warn about a field that the service has deprecated."""
    if is_deprecated(body):
        message = "the service has deprecated `path`: remove the line"
        _warn(findings, "deprecated", node.get("path") or node, message, str(key))


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
    holders: dict[str, _Holders] = {}
    for tag in tags:
        key, own = tag.key, folded(tag.key.name)
        if (other := names.setdefault(own, tag)) is not tag:
            message = f"the name differs only by case or Unicode form from {other.key} ({other.source})"
            yield Shared("similar-name", key, tag.source, message)
        for word in tag.body.keywords:
            holder = holders.get(same := folded(word))
            if holder is None:
                holders[same] = _Holders(key)
            # Names that are alike have been reported above.
            elif holder.last != key and not folded(holder.first.name) == same == own:
                holder.take(tag, word)
    for holder in holders.values():
        if holder.second is not None:
            yield holder.report(holder.second)


class _Holders:
    """The tags that have one keyword: the first, the second with its spelling, the last, and their number."""

    __slots__ = ("count", "first", "last", "second", "word")

    def __init__(self, first: Key) -> None:
        self.first = self.last = first
        self.second: Resource | None = None
        self.word, self.count = "", 1

    def take(self, tag: Resource, word: str) -> None:
        if self.second is None:
            self.second, self.word = tag, word
        self.last, self.count = tag.key, self.count + 1

    def report(self, second: Resource) -> Shared:
        others = f"; {self.count:,} tags have it" if self.count > 2 else ""
        message = f"{self.first} also has the keyword {quoted(self.word)}{others}"
        return Shared("same-keyword", second.key, second.source, message, self.word)


def place_of(word: str | None, node: MappingNode) -> Node:
    """Return the node of a tag's keyword, or of its name when the keyword is `None` or not listed."""
    keywords = node.get("keywords") if word is not None else None
    items = keywords.items if isinstance(keywords, Sequence) else []
    return next((item for item in items if item.text == word), None) or node.get("name") or node
