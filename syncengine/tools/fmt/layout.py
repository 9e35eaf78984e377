"""Format a manifest in the canonical layout, and prove that its meaning and every comment are kept. Pure.

The output of the round trip is read again and compared. If anything would be lost, the file is left unchanged and the
reason is reported with its place.
"""

from __future__ import annotations

from typing import Any

from yaml import YAMLError as NotScanned

from syncengine.document.diagnostics import Collector
from syncengine.document.nodes import Mapping, Node, Scalar, Sequence, described, place, quoted
from syncengine.document.reader import read
from syncengine.document.text import decoded
from syncengine.errors import Severity
from syncengine.tools.fmt.key_order import SECTION_ORDER
from syncengine.tools.fmt.lines import Is, comments_of, lines_of
from syncengine.tools.fmt.reorder import permuted
from syncengine.tools.fmt.roundtrip import YAMLError, roundtrip
from syncengine.tools.fmt.tidy import comment_depths, tidied

ROUNDS = 4
"""The number of rounds after which a layout must be stable."""


def laid_out(data: bytes, findings: Collector) -> str | None:
    """Return the text in its canonical layout, or `None` with the reason in `findings` when it cannot be formatted."""
    documents = read(data, findings)
    if any(d.severity is Severity.ERROR for d in findings.found):
        return None
    text = (decoded(data, findings) or "").replace("\r\n", "\n").replace("\r", "\n")
    if not documents.roots:
        return text
    if (stranger := next(filter(None, map(_stranger, documents.roots)), None)) is not None:
        node, reason = stranger
        findings.at("not-a-manifest", *place(node), f"left unchanged: {reason}", severity=Severity.WARNING)
        return None
    written, reason = _settled(text if text.endswith("\n") else f"{text}\n")
    if written is None:
        findings.at("cannot-lay-out", 1, 1, f"left unchanged: {reason}", severity=Severity.WARNING)
        return None
    lost = _lost(text, written)
    if lost is not None:
        findings.at("cannot-lay-out", lost[0], 1, f"left unchanged: {lost[1]}", severity=Severity.WARNING)
        return None
    return written


def _stranger(root: Node) -> tuple[Node, str] | None:
    """Return the part of a document that no manifest can contain and the reason, or `None` for a manifest."""
    if not isinstance(root, Mapping):
        return root, f"a manifest must be a mapping of sections, not {described(root)}"
    unknown = (key for key in root.keys if key.text not in SECTION_ORDER)
    return next(((key, f"a manifest has no section {quoted(key.text)}") for key in unknown), None)


def _settled(text: str) -> tuple[str | None, str]:
    """Format the text until another round changes nothing; return `None` and the reason if that fails."""
    try:
        for _ in range(ROUNDS):
            before, text = text, _once(text)
            if text == before:
                return text, ""
    except (YAMLError, NotScanned, ValueError, AssertionError, RecursionError) as error:
        return None, f"it cannot be formatted ({type(error).__name__})"
    return None, "formatting it twice gives different results"


def _once(text: str) -> str:
    text = _unmarked(text)
    sorted_ = text if _has_anchors(text) else permuted(text)
    return tidied(roundtrip(sorted_), comment_depths(sorted_))


def _unmarked(text: str) -> str:
    """Return the text without the `---` before the first document, so that comments above it belong to the document."""
    lines = lines_of(text)
    first = next((n for n, line in enumerate(lines) if line.kind not in (Is.COMMENT, Is.BLANK)), None)
    if first is None or lines[first].text.rstrip() != "---":
        return text
    return "".join(f"{line.text}\n" for number, line in enumerate(lines) if number != first)


def _has_anchors(text: str) -> bool:
    """Return whether the text has an anchor; keys must then keep their order, as an alias must follow its anchor."""
    import yaml

    return any(isinstance(token, yaml.AnchorToken) for token in yaml.scan(text, Loader=yaml.CLoader))


def _lost(before: str, after: str) -> tuple[int, str] | None:
    """Return the line and a description of what formatting would lose there, or `None` if nothing is lost."""
    findings = Collector("")
    old, new = read(before.encode(), findings), read(after.encode(), findings)
    kept = comments_of(after)
    for line, comment in _comments(before):
        if comment not in kept:
            place = "outside any document" if _is_outside(before, line) else "inside brackets or a multi-line text"
            return line, f"a comment {place} would be lost; move it above a section"
        kept.remove(comment)
    if findings.found or [_meaning(root) for root in old.roots] != [_meaning(root) for root in new.roots]:
        return 1, "formatting would change its meaning"
    return None


def _is_outside(text: str, comment: int) -> bool:
    """Return whether a comment is in a document without content."""
    kinds = [line.kind for line in lines_of(text)]
    sides = (reversed(kinds[: comment - 1]), iter(kinds[comment:]))
    nearest = (next((kind for kind in side if kind not in (Is.COMMENT, Is.BLANK)), Is.MARKER) for side in sides)
    return all(kind is Is.MARKER for kind in nearest)


def _comments(text: str) -> list[tuple[int, str]]:
    lines = [line for line in enumerate(lines_of(text), 1) if line[1].kind is Is.COMMENT or line[1].remark is not None]
    return list(zip((number for number, _ in lines), comments_of(text), strict=True))


def _meaning(node: Node) -> Any:
    """Return the content of a node, independent of the order of its keys and its kind of quotes."""
    match node:
        case Scalar():
            return node.text, bool(node.style) or "\n" in node.text  # a scalar of several lines is text, quoted or not
        case Sequence():
            return [_meaning(item) for item in node.items]
        case Mapping():
            return {key.text: _meaning(value) for key, value in zip(node.keys, node.values, strict=True)}
        case _:
            return None
