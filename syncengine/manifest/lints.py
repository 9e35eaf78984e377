"""Suspicions about what manifests declare (engine.md 2.9), each with a code that the project file can set. Pure.

Every check costs the same for the millionth tag as for the first.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from syncengine.document.findings import Findings
from syncengine.document.nodes import Mapping as MappingNode
from syncengine.document.nodes import Node, Scalar, Sequence, place, quoted
from syncengine.errors import Diagnostic, Severity
from syncengine.project_file import Level
from syncengine.resource import Key, Source

LINTS: Mapping[str, str] = {
    "same-keyword": "two tags have the same keyword, so that time that matches it is given both",
    "keyword-too-broad": "a keyword so short or common that it matches nearly everything",
    "similar-name": "the names of two tags differ only by case or Unicode form",
    "comment-in-text": "text ends at an unquoted ` #`, and the rest is a comment",
}
"""The codes that are decided here, and what they mean."""

COMMON = frozenset(
    "the and for you not are all any can has was one our out new old get use see day now who "  # noqa: SIM905 - words
    "mail email call meeting inbox outlook word excel teams chrome microsoft google http https www com "
    "document file draft home open untitled window".split()
)
"""Words that stand in the titles of everyone's windows all day."""


def folded(text: str) -> str:
    """The same for all texts that differ by case or Unicode form only."""
    if text.isascii():
        return text.casefold()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def is_broad(word: str) -> bool:
    """One or two letters, up to three digits, or a word of everyone's day."""
    if len(word) > 9:
        return False
    return (len(word) <= 2 and word.isascii()) or (len(word) <= 3 and word.isdigit()) or word.casefold() in COMMON


def cut_texts(cut: Iterable[Scalar], findings: Findings) -> None:
    """Report plain text that a comment cuts short."""
    for node in cut:
        _warn(
            findings, "comment-in-text", node, f"the text ends at {quoted(node.text)}; put it in quotes to keep the `#`"
        )


def _warn(findings: Findings, code: str, node: Node, message: str, address: str | None = None) -> None:
    line, column = place(node)
    findings.at(code, line, column, message, severity=Severity.WARNING, address=address)


@dataclass(slots=True)
class Words:
    """Names and keywords of all tags met so far."""

    names: dict[str, tuple[Key, Source]] = field(default_factory=dict)
    keywords: dict[str, Key | None] = field(default_factory=dict)

    def tag(self, key: Key, source: Source, keywords: tuple[str, ...], node: MappingNode, findings: Findings) -> None:
        """Compare one more tag with all before it. A keyword that was reported is None from then on."""
        self._name(key, source, node, findings)
        seen = self.keywords
        for word in keywords:
            if len(word) < 10 and is_broad(word):
                message = f"the keyword {quoted(word)} is so short or common that it will match unrelated time"
                _warn(findings, "keyword-too-broad", _place_of(word, node), message, str(key))
            first = seen.setdefault(same := folded(word), key)
            if first is not key and first is not None and not self._is_both_names(same, first, key):
                seen[same] = None
                message = f"the keyword {quoted(word)} is one of {first} too"
                _warn(findings, "same-keyword", _place_of(word, node), message, str(key))

    def _name(self, key: Key, source: Source, node: MappingNode, findings: Findings) -> None:
        other, there = self.names.setdefault(folded(key.name), (key, source))
        if other is not key:
            message = f"the name differs only by case or Unicode form from {other} ({there})"
            _warn(findings, "similar-name", node.get("name") or node, message, str(key))

    @staticmethod
    def _is_both_names(same: str, first: Key, key: Key) -> bool:
        """That is `similar-name`, which has been said."""
        return folded(first.name) == same == folded(key.name)


def _place_of(word: str, node: MappingNode) -> Node:
    listed = node.get("keywords")
    items = listed.items if isinstance(listed, Sequence) else []
    return next((item for item in items if item.text == word), None) or node.get("name") or node


def levelled(found: Iterable[Diagnostic], levels: Mapping[str, Level]) -> list[Diagnostic]:
    """Diagnostics as the project wants them: warnings left out or made errors. Errors stay errors."""
    result = []
    for diagnostic in found:
        level = levels.get(diagnostic.code, Level.WARNING)
        if diagnostic.severity is Severity.ERROR or level is Level.WARNING:
            result.append(diagnostic)
        elif level is Level.ERROR:
            result.append(replace(diagnostic, severity=Severity.ERROR))
    return result
