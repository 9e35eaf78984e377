"""Parse a file into documents, which are light node trees, and report every structural problem. Pure.

This module decides the meaning of YAML: YAML 1.2 from libyaml's events, without merge keys and with few tags. The type
of a field decides whether a scalar is a number or a boolean (`types`). Nothing recurses, and depth and
expanded aliases are bounded, so that hostile input costs no more than friendly input.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from yaml import MarkedYAMLError, events
from yaml.cyaml import CParser  # type: ignore[attr-defined] # public; the stubs do not re-export it
from yaml.reader import ReaderError

from syncengine.document.diagnostics import Collector
from syncengine.document.nodes import Mapping, Mark, Node, RefusedNode, Scalar, Sequence, quoted, scalars
from syncengine.document.text import Repaired, decoded, lines_of, repaired


class Sentence(NamedTuple):
    """The message for libyaml's errors that contain `problem`, placed at the start of the construct if `at_start`.

    If `unclosed`, an error at a `:` or at the end of the file means that a bracket was left open.
    """

    problem: str
    message: str
    at_start: bool = False
    unclosed: bool = False


UNCLOSED = "the bracket that opens here is never closed"
SENTENCES = (
    Sentence(
        "mapping values are not allowed",
        "a `:` where no value can start; put the text in quotes, or check the indentation of this line",
    ),
    Sentence("tab character", "a tab is used as indentation; YAML is indented with spaces only"),
    Sentence("unexpected end of stream", "the quote that opens here is never closed", at_start=True),
    Sentence("unexpected document indicator", "the quote that opens here is never closed", at_start=True),
    Sentence("expected ',' or ']'", "`,` or `]` is missing before this character", unclosed=True),
    Sentence("expected ',' or '}'", "`,` or `}` is missing before this character", unclosed=True),
    Sentence("could not find expected ':'", "this line has no `:` after its key", at_start=True),
    Sentence(
        "did not find expected key", "this line is not valid here; check its indentation, and for quotes that end early"
    ),
    Sentence("expected '-' indicator", "this is a list: start this line with `- `, or check its indentation"),
    Sentence("block sequence entries are not allowed", "a list item cannot start here; begin it on a line of its own"),
    Sentence("block mapping entries are not allowed", "a key cannot start here; begin it on a line of its own"),
    Sentence("mapping keys are not allowed", "a key cannot start here; begin it on a line of its own"),
    Sentence("did not find expected node content", "a value is missing before this character"),
    Sentence(
        "did not find expected <document start>",
        "there is text after the end of the document; check the indentation, or separate documents with ---",
    ),
    Sentence(
        "invalid Unicode character escape code",
        "the escape is not a character: it is half of a surrogate pair, or beyond U+10FFFF",
    ),
    Sentence(
        "unknown escape character",
        'an unknown escape in double quotes; write "\\\\" for a backslash, or use single quotes',
    ),
    Sentence("did not find expected hexdecimal number", "the escape has too few hexadecimal digits"),
    Sentence(
        "incompatible YAML document",
        "the %YAML directive names an unsupported version; write %YAML 1.2 or remove the directive",
    ),
    Sentence("undefined tag handle", "tags (`!…`) are not supported; put the text in quotes if it starts with `!`"),
    Sentence("alphabetic or numeric character", "`*` and `&` start an alias or an anchor; put the text in quotes"),
    Sentence("could not determine a simple key", "the key is too long or spans several lines"),
)
_COMMENT = re.compile(r"\S #")
_STARTERS = {
    "\t": "a tab is used as indentation; YAML is indented with spaces only",
    "@": "text cannot start with `@`; put it in quotes",
    "`": "text cannot start with a backquote; put it in quotes",
    "%": "text cannot start with `%`; put it in quotes",
}


def report(error: MarkedYAMLError, text: str, innermost: Mark | None, findings: Collector) -> None:
    """Report a syntax error as one diagnostic. `innermost` is the place of the innermost open `[` or `{`."""
    mark, message = _judged(error, text, innermost)
    findings.at("yaml-syntax", mark.line + 1 if mark else 1, mark.column + 1 if mark else 1, message)


def _judged(error: MarkedYAMLError, text: str, innermost: Mark | None) -> tuple[Mark | None, str]:
    problem = str(error.problem or error.context or error)
    sentence = next((s for s in SENTENCES if s.problem in problem), None) or Sentence(problem, problem)
    end, start = error.problem_mark, error.context_mark
    there = _character_at(text, end.line, end.column) if end else ""
    if "cannot start any token" in problem:
        return end, _STARTERS.get(there, "text cannot start here; put it in quotes")
    if sentence.unclosed and there in ("", ":"):
        return start, _unclosed(text, start)
    if innermost and not there and "node content" in problem:
        return innermost, _unclosed(text, innermost)
    return (start if sentence.at_start and start else end or start), sentence.message


def _unclosed(text: str, start: Mark | None) -> str:
    """Return that a bracket is not closed, and why, if a comment begins behind it."""
    line = lines_of(text)[start.line] if start else ""
    comment = _COMMENT.search(line, start.column) if start else None
    return f"{UNCLOSED}, since ` #` begins a comment: put the text in quotes" if comment else UNCLOSED


def _character_at(text: str, line: int, column: int) -> str:
    lines = lines_of(text)
    return lines[line][column : column + 1] if line < len(lines) else ""


MAX_BYTES = 64 * 1024 * 1024
MAX_DEPTH = 100
MAX_EXPANDED = 200_000
"""The maximum number of nodes that all aliases of a file may expand to."""

Event = Any
"""An event of `yaml.events`. The stubs allow for missing marks, which libyaml never leaves out."""

_TAGS = {
    "tag:yaml.org,2002:str": (Scalar, '"'),
    "tag:yaml.org,2002:int": (Scalar, ""),
    "tag:yaml.org,2002:bool": (Scalar, ""),
    "tag:yaml.org,2002:seq": (Sequence, ""),
    "tag:yaml.org,2002:map": (Mapping, ""),
}
_UNUSUAL_KEYS = frozenset({None, "", "<<"})
_CUT = re.compile(r"[^\s#]( #| +#\w)")
_CUT_AFTER = re.compile(r" #| +#\w")
"""One blank before `#`, or a word behind it; a comment that is meant usually has two blanks before and one behind."""
_ANCHOR = re.compile(r"(?:&\S+ +)?")
_NOT_TEXT = re.compile(r"|true|false|null|~|public|private|forget|retire|delete|[-+.\d][-+:.\dtz]*", re.IGNORECASE)
"""Flags, choices, numbers and instants, which a comment cannot cut short."""
_OPENING, _CLOSING = "\u201c-\u201f\xab\u2018-\u201b", "\u201c\u201d\xbb\u2018\u2019"
_CURLY = re.compile(rf"[:\-,\[{{] *[{_OPENING}]")
_WRAPPED = re.compile(rf"[{_OPENING}][^{_CLOSING}]*[{_CLOSING}]?")
"""Text in quotation marks of a word processor, which YAML takes for text, or behind the first of them."""


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents of a file that could be read. `whole` is false when a part was lost, such as to a syntax error.

    `cut` has the plain scalars that end at a ` #` that looks like text, not like a comment (docs/planning.md 2.9), and
    `curly` those in quotation marks of a word processor.
    """

    roots: tuple[Node, ...] = ()
    cut: tuple[Scalar, ...] = ()
    whole: bool = True
    curly: tuple[Scalar, ...] = ()


def read(data: bytes, findings: Collector) -> Documents:
    """Return the documents of a file, and report its problems to `findings`."""
    if len(data) > MAX_BYTES:
        findings.at("file-too-large", 1, 1, f"the file is larger than {MAX_BYTES // 1024 // 1024} MB; split it")
        return Documents(whole=False)
    text = decoded(data, findings)
    if text is None:
        return Documents(whole=False)
    building = _Building(repaired(text), findings)
    whole = building.run()
    roots = tuple(building.roots)
    return Documents(roots, tuple(_cut(text, roots)), whole, tuple(_curly(text, roots)))


def may_be_curly(text: str) -> bool:
    """Return whether a quotation mark of a word processor stands where a value could begin."""
    return not text.isascii() and _CURLY.search(text) is not None


def _curly(text: str, roots: tuple[Node, ...]) -> list[Scalar]:
    if not may_be_curly(text):
        return []
    return [node for root in roots for node in scalars(root) if not node.style and _WRAPPED.fullmatch(node.text)]


def _cut(text: str, roots: tuple[Node, ...]) -> list[Scalar]:
    if " #" not in text or not _CUT.search(text):
        return []
    lines = lines_of(text)
    return [
        node
        for root in roots
        for node in scalars(root)
        if not node.style and not _NOT_TEXT.fullmatch(node.text) and _is_cut(lines, node)
    ]


def _is_cut(lines: list[str], node: Scalar) -> bool:
    """Return whether what looks like text follows a plain scalar, which may have an anchor and several lines."""
    line, column = node.mark.line, node.mark.column
    column += len(_ANCHOR.match(lines[line], column)[0])  # type: ignore[index] # it may be empty
    for word in node.text.split():
        while not lines[line].startswith(word, column):
            column += 1
            if column > len(lines[line]):
                line, column = line + 1, 0
                if line == len(lines):
                    return False
        column += len(word)
    return _CUT_AFTER.match(lines[line], column) is not None


class _Hopeless(Exception):
    """The end of a file that is not worth reading on, for a reason that has been reported."""


_Open = tuple[list[Node], Event, int]
"""An unfinished list or mapping: the items of its parent, its event, the number of nodes before it."""


@dataclass(slots=True)
class _Anchored:
    """The node of an anchor and its number of nodes. `node` is `None` while a list or mapping is still open."""

    node: Node | None
    size: int = 1


class _Building:
    """The tree under construction from events. `items` belong to the innermost open list or mapping."""

    __slots__ = ("anchors", "expanded", "findings", "items", "nodes", "parser", "roots", "source", "stack")

    def __init__(self, source: Repaired, findings: Collector) -> None:
        self.source, self.findings = source, findings
        self.parser = CParser(source.text)
        self.roots: list[Node] = []
        self.items: list[Node] = []
        self.stack: list[_Open] = []
        self.anchors: dict[str, _Anchored] = {}
        self.nodes = 0
        self.expanded = 0

    def run(self) -> bool:
        """Read all events. Return `False` when a syntax error or hostile input ended the file early."""
        try:
            self._events()
        except _Hopeless:
            return False
        except MarkedYAMLError as error:
            report(error, self.source.text, self._opened(), self.findings)
            return False
        except ReaderError as error:
            self.findings.at("yaml-syntax", 1, 1, f"the file cannot be read as YAML: {error.reason}")
            return False
        return True

    def _opened(self) -> Mark | None:
        event = self.stack[-1][1] if self.stack else None
        return event.start_mark if event is not None and event.flow_style else None

    def _events(self) -> None:
        """Read the events: simple scalars, which are most, directly, and the others by `_HANDLERS`."""
        next_event: Callable[[], Event] = self.parser.get_event
        scalar_event: Any = events.ScalarEvent
        simple = not self.source.originals
        append = self.items.append
        while True:
            event = next_event()
            if type(event) is scalar_event and event.anchor is None and event.tag is None and simple:
                append(Scalar(event.value, event.start_mark, event.style))
            elif event is None:
                return
            else:
                _HANDLERS[type(event)](self, event)
                append = self.items.append

    def _ignored(self, event: Event) -> None:
        pass

    def _document_starts(self, event: Event) -> None:
        self.items, self.anchors = [], {}

    def _document_ends(self, event: Event) -> None:
        self.roots.extend(root for root in self.items if not (isinstance(root, Scalar) and root.is_null))

    def _scalar(self, event: Event) -> None:
        text = event.value if event.style == '"' else self.source.undone(event.value)
        scalar = Scalar(text, event.start_mark, event.style or "")
        node = self._tagged(scalar, event.tag, event.start_mark)
        if event.anchor is not None:
            self.anchors[event.anchor] = _Anchored(node)
        self.items.append(node)

    def _opens(self, event: Event) -> None:
        if len(self.stack) >= MAX_DEPTH:
            self._hopeless("too-deep", event.start_mark, f"lists and mappings are nested over {MAX_DEPTH} levels deep")
        if event.anchor is not None:
            self.anchors[event.anchor] = _Anchored(None)
        self.stack.append((self.items, event, self.nodes))
        self.items = []

    def _list_ends(self, event: Event) -> None:
        self._closes(Sequence(self.items, self.stack[-1][1].start_mark))

    def _mapping_ends(self, event: Event) -> None:
        keys, values, mark = self.items[::2], self.items[1::2], self.stack[-1][1].start_mark
        names = {key.text for key in keys}
        if len(names) < len(keys) or not _UNUSUAL_KEYS.isdisjoint(names):
            keys, values = self._checked(keys, values)
        # An unquoted {{ … }} is one mistake, so its remains are not reported again.
        is_lost = names == {None} and not keys
        self._closes(RefusedNode(mark) if is_lost else Mapping(cast("list[Scalar]", keys), values, mark))

    def _closes(self, node: Sequence | Mapping | RefusedNode) -> None:
        outer, event, nodes_before = self.stack.pop()
        self.nodes += len(self.items)
        result = node if event.tag is None else self._tagged(node, event.tag, event.start_mark)
        if event.anchor is not None:
            self.anchors[event.anchor] = _Anchored(result, self.nodes - nodes_before + 1)
        outer.append(result)
        self.items = outer

    def _alias(self, event: Event) -> None:
        name, mark = str(event.anchor), event.start_mark
        anchored = self.anchors.get(name)
        if anchored is None:
            self._refuse(
                "unknown-alias", mark, f"there is no anchor &{name} before this alias; quote text that starts with `*`"
            )
        elif anchored.node is None:
            self._hopeless("recursive-alias", mark, f"the alias *{name} refers to itself")
        else:
            self.expanded += anchored.size
            self.nodes += anchored.size
            if self.expanded > MAX_EXPANDED:
                self._hopeless(
                    "too-many-aliases", mark, f"the aliases of this file expand to more than {MAX_EXPANDED:,} values"
                )
            self.items.append(anchored.node)  # fmt: skip

    def _tagged(self, node: Node, tag: str | None, mark: Mark) -> Node:
        if tag is None:
            return node
        kind, style = _TAGS.get(tag, (None, ""))
        if kind is not type(node):
            self._error(
                "unsupported-tag",
                mark,
                f"the tag {quoted(tag)} is not supported here; remove it, or quote text that starts with `!`",
            )
            return RefusedNode(mark)
        if isinstance(node, Scalar):
            node.style = style
        return node  # fmt: skip

    def _checked(self, keys: list[Node], values: list[Node]) -> tuple[list[Node], list[Node]]:
        """Return the valid keys and their values. Report merge, empty, structured and repeated keys."""
        first: dict[str, Scalar] = {}
        nodes: list[Node] = []
        for key, value in zip(keys, values, strict=True):
            if isinstance(key, Sequence | Mapping):
                cure = (
                    'a template in quotes: "{{ … }}"'
                    if isinstance(key, Mapping)
                    else "text that starts with `[` in quotes"
                )
                self._error("complex-key", key.mark, f"a key must be text; put {cure}")
            elif isinstance(key, Scalar) and self._key_is_good(key, first):
                first[key.text] = key
                nodes.append(value)
        return list(first.values()), nodes

    def _key_is_good(self, key: Scalar, first: dict[str, Scalar]) -> bool:
        if key.text == "<<" and not key.style:
            self._error(
                "merge-key",
                key.mark,
                "merge keys (`<<`) are not part of YAML 1.2; use the manifest's `defaults:` section",
            )
        elif not key.text and not key.style:
            self._error("empty-key", key.mark, "a key is missing before the `:`")
        elif key.text in first:
            line = self.findings.line_of(first[key.text].mark.line + 1)
            self._error("duplicate-key", key.mark, f"the key {quoted(key.text)} is already on line {line}")
        else:
            return True
        return False  # fmt: skip

    def _error(self, code: str, mark: Mark, message: str) -> None:
        self.findings.at(code, mark.line + 1, mark.column + 1, message)

    def _refuse(self, code: str, mark: Mark, message: str) -> None:
        self._error(code, mark, message)
        self.items.append(RefusedNode(mark))

    def _hopeless(self, code: str, mark: Mark, message: str) -> None:
        self._error(code, mark, message)
        raise _Hopeless


_HANDLERS: dict[type[Event], Callable[[_Building, Event], None]] = {
    events.StreamStartEvent: _Building._ignored,
    events.StreamEndEvent: _Building._ignored,
    events.DocumentStartEvent: _Building._document_starts,
    events.DocumentEndEvent: _Building._document_ends,
    events.ScalarEvent: _Building._scalar,
    events.AliasEvent: _Building._alias,
    events.SequenceStartEvent: _Building._opens,
    events.SequenceEndEvent: _Building._list_ends,
    events.MappingStartEvent: _Building._opens,
    events.MappingEndEvent: _Building._mapping_ends,
}
