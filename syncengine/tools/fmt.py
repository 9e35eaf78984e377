"""Format a manifest in the canonical layout, and prove that its meaning and every comment are kept. Pure.

ruamel.yaml rewrites the text with canonical indentation; then each comment gets the column of the line that it stands
above, and the lines of each mapping are put in canonical order. The result is read again and compared: a file that
would lose anything is left as it is, and the reason is reported with its place.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError
from ruamel.yaml.resolver import VersionedResolver
from yaml import CSafeLoader, ScalarEvent, parse
from yaml import YAMLError as ParsingError

from syncengine.document import nodes
from syncengine.document.diagnostics import Collector
from syncengine.document.nodes import Node, Scalar, described, place, quoted
from syncengine.document.reader import read
from syncengine.document.text import decoded
from syncengine.document.validation import names_of
from syncengine.errors import Severity
from syncengine.manifest.schema import MODELS, SECTIONS, ForEach, Generate, RemovedTag

Path = tuple[str, ...]
"""The keys that lead to a value; `[]` stands for an item of a list."""

FIELDS: Mapping[Path, Sequence[str]] = {
    (section, "[]"): tuple(names_of(MODELS[kind])) for section, kind in SECTIONS.items()
}
ORDER: Mapping[Path, Sequence[str]] = {
    # Defaults come first, since they apply to everything that follows, and removals last.
    (): ("defaults", *SECTIONS, "generate", "removed"),
    ("defaults",): tuple(SECTIONS),
    ("removed", "[]"): tuple(names_of(RemovedTag)),
    ("generate", "[]"): tuple(names_of(Generate)),
    ("generate", "[]", "forEach"): tuple(names_of(ForEach)),
    **FIELDS,
    **{("generate", "[]", *path): names for path, names in FIELDS.items()},
    **{("defaults", path[0]): names for path, names in FIELDS.items()},
}
"""The canonical order of the keys of a mapping, by its path. Others keep their order, and so do unknown keys, last."""

MAPPING, SEQUENCE, OFFSET = 2, 4, 2
WIDTH = 120
"""The column beyond which a list or mapping in brackets is broken up into one item per line."""
ROUNDS = 4
"""The rounds after which a layout must be stable. Breaking up brackets, and moving a comment, can take one more."""
COMMENT = re.compile(r"(?:^|(?<=\s))#.*")
MARKERS = ("---", "...")
"""The starts of lines between documents. Within a scalar, YAML forbids them at the start of a line."""
FIRST_MARKER = re.compile(r"\A((?:[ \t]*(?:#.*)?\n)*)---[ \t]*\n")
"""The `---` before the first document. Without it, the comments above it belong to the document, and are kept."""


def laid_out(data: bytes, findings: Collector) -> str | None:
    """Return the text in its canonical layout, or `None` with the reason in `findings` when it cannot be formatted."""
    documents = read(data, findings)
    if any(d.severity is Severity.ERROR for d in findings.found):
        return None
    text = (decoded(data, findings) or "").replace("\r\n", "\n").replace("\r", "\n")
    if not documents.roots:
        return text
    for root in documents.roots:
        stranger: Node | None = None
        if not isinstance(root, nodes.Mapping):
            stranger, reason = root, f"a manifest must be a mapping of sections, not {described(root)}"
        elif unknown := [key for key in root.keys if key.text not in ORDER[()]]:
            stranger, reason = unknown[0], f"a manifest has no section {quoted(unknown[0].text)}"
        if stranger is not None:
            findings.at("not-a-manifest", *place(stranger), f"left unchanged: {reason}", severity=Severity.WARNING)
            return None
    line = 1
    try:
        written, before = _formatted(text if text.endswith("\n") else f"{text}\n"), ""
        rounds = 1
        while written != before and rounds < ROUNDS:
            written, before, rounds = _formatted(written), written, rounds + 1
        if lost := _lost(text, written):
            line, reason = lost
        elif written == before:
            return written
        else:
            reason = "formatting it twice gives different results"
    except NotImplementedError:  # ruamel.yaml cannot keep one comment before a value and another one behind it
        reason = "it cannot be formatted; move comments between a key and its value above the key"
    except (YAMLError, ParsingError, ValueError, AssertionError, RecursionError) as error:  # what libraries cannot do
        reason = "it cannot be formatted"
        if (mark := getattr(error, "problem_mark", None)) is not None:
            line, reason = mark.line + 1, f"{reason} because of this line; write its text in another way"
    findings.at("cannot-lay-out", line, 1, f"left unchanged: {reason}", severity=Severity.WARNING)
    return None


def _formatted(text: str) -> str:
    text = FIRST_MARKER.sub(r"\1", text)
    return _ordered(_aligned(_roundtrip(text), [comment.depth for comment in _comments(text)]))


# --- the proof


def _lost(before: str, after: str) -> tuple[int, str] | None:
    """Return the line and a description of what formatting would lose there, or `None` if nothing is lost."""
    kept = [comment.text for comment in _comments(after)]
    for comment in _comments(before):
        if comment.text not in kept:
            return comment.line + 1, "a comment would be lost here; move it above a section"
        kept.remove(comment.text)
    findings = Collector("")
    old, new = read(before.encode(), findings), read(after.encode(), findings)
    if findings.found or [_meaning(root) for root in old.roots] != [_meaning(root) for root in new.roots]:
        return 1, "formatting would change its meaning"
    return None


def _meaning(node: Node) -> Any:
    """Return the content of a node, independent of the order of its keys and its kind of quotes."""
    match node:
        case Scalar():
            return node.text, bool(node.style) or "\n" in node.text  # a scalar of several lines is text, quoted or not
        case nodes.Sequence():
            return [_meaning(item) for item in node.items]
        case nodes.Mapping():
            return {key.text: _meaning(value) for key, value in zip(node.keys, node.values, strict=True)}
        case _:
            return None


# --- comments


class _Comment(NamedTuple):
    """A comment and its place, counted from 0.

    `is_alone` is whether its line has nothing else, `below` the column of the content below it, or -1 at the end of its
    document, and `levels` are the columns of the content above it that has not ended, outermost first; a dash counts
    as half a column deeper, since a list may begin in the column of its key.
    """

    line: int
    column: int
    text: str
    is_alone: bool
    below: int
    levels: Sequence[float]

    @property
    def depth(self) -> int:
        """How many levels above it belongs to, or 0 if it belongs to what is below it, being no deeper than that."""
        is_deep = self.is_alone and self.column > max(self.below, 0)
        return sum(int(level) <= self.column for level in self.levels) if is_deep else 0


def _comments(text: str) -> list[_Comment]:
    """Return every comment, in the order of the text: what follows a `#` behind the last scalar of its line."""
    rows = text.split("\n")
    ends: dict[int, int] = {}
    for event in parse(text, CSafeLoader):  # as manifests are read; ruamel.yaml's own refuses `{at: 09:00:00Z}`
        if isinstance(event, ScalarEvent):
            start, end = event.start_mark, event.end_mark
            assert start and end  # as of every event that a parser makes
            ends |= {line: len(rows[line]) for line in range(start.line, end.line)}
            if event.style in ("|", ">"):
                ends[start.line] = start.column  # a comment may follow the indicator
            ends[end.line] = end.column
    matches = [COMMENT.search(row, ends.get(line, 0)) for line, row in enumerate(rows)]
    columns = [
        _column(row) if row[: match and match.start()].strip() else None
        for row, match in zip(rows, matches, strict=True)
    ]
    below, belows = -1, [-1] * len(rows)
    for line in reversed(range(len(rows))):
        belows[line] = below
        if (column := columns[line]) is not None:
            below = -1 if rows[line].startswith(MARKERS) else column
    found: list[_Comment] = []
    levels: list[float] = []
    for line, (row, match, column) in enumerate(zip(rows, matches, columns, strict=True)):
        if column is not None:
            if row.startswith("- ", column):  # then come the keys of its item, unless they are in brackets
                own = [column + 0.5, *([] if row.startswith(("{", "["), column + 2) else [column + 2])]
            else:
                own = [column]
            levels = [*(level for level in levels if level < own[0]), *own]
        if match:
            found.append(_Comment(line, match.start(), match[0].rstrip(), column is None, belows[line], levels))
    return found


def _aligned(text: str, depths: Sequence[int]) -> str:
    """Return the text with each comment in the column of the line below it, or of the level above that `depths` say."""
    rows = text.split("\n")
    for comment, depth in zip(_comments(text), depths, strict=False):  # where a comment is lost, the proof fails
        line = comment.line
        if not comment.is_alone:
            rows[line] = f"{rows[line][: comment.column].rstrip()}  {comment.text}"
            continue
        column = max(comment.levels[:depth], default=0) if depth else max(comment.below, 0)
        rows[line] = " " * int(column) + comment.text
    return "\n".join(rows)


# --- the order of keys


def _ordered(text: str) -> str:
    """Return the text with its keys in canonical order: a key moves with its value and the comments right above it."""
    rows = text.rstrip("\n").split("\n")
    result: list[str] = []
    at = 0
    for root in read(text.encode(), Collector("")).roots:
        if isinstance(root, nodes.Mapping) and root.keys:
            first = root.keys[0].mark.line
            end = next((n for n in range(first, len(rows)) if rows[n].startswith(MARKERS)), len(rows))
            result += [*rows[at:first], *_arranged(root, (), rows, first, end)]
            at = end
    return "\n".join([*result, *rows[at:]]) + "\n"


def _arranged(node: Node, path: Path, rows: Sequence[str], start: int, end: int) -> list[str]:
    """Return the lines of a value, from `start` to before `end`, with all mappings within it in canonical order."""
    match node:
        case nodes.Mapping():
            marks, values, names = [key.mark for key in node.keys], node.values, [key.text for key in node.keys]
        case nodes.Sequence():
            marks, values, names = [item.mark for item in node.items], node.items, ["[]"] * len(node.items)
        case _:
            marks = []
    lines = [mark.line for mark in marks]
    if len({*lines}) < max(len(lines), 1) or any(rows[m.line][: m.column].strip(" -") for m in marks):  # in brackets
        return list(rows[start:end])
    column = marks[0].column if isinstance(node, nodes.Mapping) else _column(rows[lines[0]])
    heads = lines[:]  # a key's first line, or that of the comments right above it, unless they are deeper
    for number, line in enumerate(lines[1:], 1):
        while _is_comment(rows[line - 1], column):
            line -= 1
        heads[number] = line
    last = end  # what is behind all keys, and not deeper than they are, belongs to the parent
    while last > lines[-1] + 1 and (not rows[last - 1].strip() or _is_comment(rows[last - 1], column)):
        last -= 1
    parts = [
        _arranged(value, (*path, name), rows, head, bound)
        for value, name, head, bound in zip(values, names, heads, [*heads[1:], last], strict=True)
    ]
    if isinstance(node, nodes.Mapping) and (order := [*ORDER.get(path, ())]):
        dash = rows[lines[0]][:column]
        parts[0][0] = " " * column + parts[0][0][column:]
        ranks = [order.index(name) if name in order else len(order) for name in names]
        parts = [part for _, part in sorted(zip(ranks, parts, strict=True), key=lambda pair: pair[0])]
        above = next(n for n, row in enumerate(parts[0]) if not _is_comment(row, column))
        parts[0][:above] = [" " * _column(dash.replace("-", "x")) + row.strip() for row in parts[0][:above]]
        parts[0][above] = dash + parts[0][above][column:]
        if not path:  # a blank line stands between sections
            parts = [["\n".join(part).rstrip("\n"), ""] for part in parts[:-1]] + parts[-1:]
    return [*rows[start : heads[0]], *(row for part in parts for row in part), *rows[last:end]]


def _is_comment(row: str, column: int) -> bool:
    return row.lstrip().startswith("#") and _column(row) <= column


def _column(row: str) -> int:
    return len(row) - len(row.lstrip())


# --- the round trip


class _AsWritten(VersionedResolver):
    """A resolver that reads every non-empty scalar as text, so that `0123`, `1.10` and `no` stay as written."""

    @property
    def versioned_resolver(self) -> Any:
        return {"": [("tag:yaml.org,2002:null", re.compile("^$"))]}


def _roundtrip(text: str) -> str:
    """Return the text in canonical indentation, as ruamel.yaml writes it. Raise `YAMLError` if it cannot read it."""
    yaml = YAML()
    yaml.Resolver = _AsWritten
    yaml.composer.warn_double_anchors = False  # a name that is given again is valid YAML, and no word to our users
    yaml.preserve_quotes = True
    yaml.width = 1_000_000  # lines are not folded: authors decide where to break a text
    yaml.indent(mapping=MAPPING, sequence=SEQUENCE, offset=OFFSET)
    documents = list(yaml.load_all(text))
    waiting: list[tuple[Path, Any, int]] = [((), document, 0) for document in documents]
    while waiting:
        path, node, column = waiting.pop()
        if isinstance(node, CommentedMap):
            order = [*ORDER.get(path, ())]
            if node.fa.flow_style():
                for key in [*(name for name in order if name in node), *(name for name in node if name not in order)]:
                    node.move_to_end(key)
            deeper = column + MAPPING if path and path[-1] != "[]" else column
            waiting += [((*path, str(key)), each, deeper + len(str(key)) + 2) for key, each in node.items()]
        elif isinstance(node, CommentedSeq):
            waiting += [((*path, "[]"), item, column + SEQUENCE) for item in node]
        else:
            continue
        if node.fa.flow_style() and column + len(_flow(node)) > WIDTH:
            node.fa.set_block_style()
    written = io.StringIO()
    yaml.dump_all(documents, written)
    return written.getvalue()


def _flow(node: Any) -> str:
    """Return approximately the node's text in flow style."""
    if isinstance(node, CommentedMap):
        return "{" + ", ".join(f"{key}: {_flow(value)}" for key, value in node.items()) + "}"
    if isinstance(node, CommentedSeq):
        return "[" + ", ".join(map(_flow, node)) + "]"
    return str(node)
