"""Parse a file into documents, which are light node trees, and report every structural problem. Pure.

This module decides the meaning of YAML: YAML 1.2 from libyaml's events, without merge keys and with few tags. The type
of a field (`project/types.py`) decides whether a scalar is a number or a boolean. Nothing recurses, and depth and
expanded aliases are bounded, so that hostile input costs no more than friendly input.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from yaml import MarkedYAMLError, events
from yaml.cyaml import CParser  # type: ignore[attr-defined] # public; the stubs do not re-export it

from syncengine.document.diagnostics import Aliased, Collector
from syncengine.document.nodes import Mapping, Mark, Node, Position, RefusedNode, Scalar, Sequence, quoted, scalars
from syncengine.document.text import Repaired, decoded, lines_of, repaired


class Sentence(NamedTuple):
    """The message for libyaml's errors whose text contains `problem`, placed at the construct's start if `at_start`.

    If `unclosed`, an error at a `:` or at the end of the file means that a bracket was left open.
    """

    problem: str
    message: str
    at_start: bool = False
    unclosed: bool = False


UNCLOSED = "the bracket that opens here is never closed"
SENTENCES = (  # the first that fits: an error's text names what was read, such as a tag, and then the problem
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
    Sentence("mapping keys are not allowed", "a key cannot start here; begin it on a line of its own"),
    Sentence("did not find expected node content", "a value is missing before this character"),
    Sentence(
        "did not find expected <document start>",
        "there is text after the end of the document; check the indentation, or separate documents with ---",
    ),
    Sentence("unexpected ':'", "in brackets, no `:` can stand before a comma or a bracket; put the text in quotes"),
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
    Sentence("alphabetic or numeric character", "`*` and `&` start an alias or an anchor; put the text in quotes"),
    Sentence(
        "scanning a block scalar",
        "text behind `|` or `>` begins on the next line; put text in quotes if it starts with one of them",
    ),
    Sentence("directive", "a line that starts with `%` can only be `%YAML 1.2`; remove it, or put the text in quotes"),
    Sentence("tag", "tags (`!…`) are not supported; put the text in quotes if it starts with `!`"),
    Sentence("", "this is not valid YAML; check quotes, brackets and indentation before this character"),
)
_COMMENT = re.compile(r"\S #")
_STARTERS = {
    "\t": "a tab is used as indentation; YAML is indented with spaces only",
    "@": "text cannot start with `@`; put it in quotes",
    "`": "text cannot start with a backquote; put it in quotes",
    "%": "text cannot start with `%`; put it in quotes",
}


LONGEST_KEY = 1024
"""The most characters of a key in YAML, unless `? ` stands before it."""
LONG_KEY = f"a key has more than {LONGEST_KEY:,} characters: shorten it"
_BEFORE_KEY = re.compile(r"[\[{,]|(?:^|(?<= ))[-?] ")


def _long_key(before: str) -> int:
    """Return the number of characters of the key at the end of the text `before` a colon, if it is too long, or 0."""
    key = _BEFORE_KEY.split(before)[-1].lstrip()
    return len(key) if len(key) > LONGEST_KEY and ": " not in key else 0


def report(error: MarkedYAMLError, text: str, innermost: Mark | None, findings: Collector) -> None:
    """Report a syntax error as one diagnostic. `innermost` is the place of the innermost open `[` or `{`."""
    problem, lines = f"{error.context}: {error.problem}", lines_of(text)
    sentence = next(s for s in SENTENCES if s.problem in problem)
    end, start, there = error.problem_mark, error.context_mark, ""
    if end and end.line < len(lines):
        there = lines[end.line][end.column : end.column + 1]
    mark: Mark | None = start if sentence.at_start and start else end or start
    message = sentence.message
    if "cannot start any token" in problem:
        mark, message = end, _STARTERS.get(there, "text cannot start here; put it in quotes")
    elif end and there == ":" and (key := _long_key(lines[end.line][: end.column])):
        mark, message = Position(end.line, end.column - key), LONG_KEY
    elif (sentence.unclosed and there in ("", ":")) or (innermost and not there and "node content" in problem):
        mark = start if sentence.unclosed and there in ("", ":") else innermost
        comment = _COMMENT.search(lines[mark.line], mark.column) if mark else None
        message = f"{UNCLOSED}, since ` #` begins a comment: put the text in quotes" if comment else UNCLOSED
    findings.at("yaml-syntax", mark.line + 1 if mark else 1, mark.column + 1 if mark else 1, message)


MAX_BYTES = 64 * 1024 * 1024
# Manifests have some six levels; much of what reads the nodes recurses, and must end far from Python's own limit.
MAX_DEPTH = 100
MAX_EXPANDED = 200_000
"""The maximum number of nodes that all aliases of a file may expand to."""

Event = Any
"""An event of `yaml.events`. The stubs allow for missing marks, which libyaml never leaves out."""

_TAGS = {
    "!!str": (Scalar, '"'),
    "!!int": (Scalar, ""),
    "!!bool": (Scalar, ""),
    "!!seq": (Sequence, ""),
    "!!map": (Mapping, ""),
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
    whole, roots = building.run(), tuple(building.roots)
    cut, curly = list[Scalar](), list[Scalar]()
    may_cut, may_curl = " #" in text and _CUT.search(text), not text.isascii() and _CURLY.search(text)
    lines = lines_of(text) if may_cut else []
    for root in roots if may_cut or may_curl else ():
        for node in scalars(root):
            if may_curl and not node.style and _WRAPPED.fullmatch(node.text):
                curly.append(node)
            if may_cut and not node.style and not _NOT_TEXT.fullmatch(node.text) and _is_cut(lines, node):
                cut.append(node)
    return Documents(roots, tuple(cut), whole, tuple(curly))


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
    """The node of an anchor, its place and number of nodes. `node` is `None` while a list or mapping is still open."""

    node: Node | None
    place: Aliased
    size: int = 1


def _extent(start: Mark, end: Mark) -> Aliased:
    return Aliased((start.line + 1, start.column + 1), (end.line + 1, end.column + 1), [])


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
            self._read()
        except _Hopeless:
            return False
        except MarkedYAMLError as error:
            event = self.stack[-1][1] if self.stack else None
            opened = event.start_mark if event is not None and event.flow_style else None
            report(error, self.source.text, opened, self.findings)
            return False
        return True

    def _read(self) -> None:
        next_event: Callable[[], Event] = self.parser.get_event
        scalar_event: Any = events.ScalarEvent
        simple = not self.source.originals
        append = self.items.append
        while True:
            event = next_event()
            # Nine of ten events are simple scalars, which a call each would make a third slower.
            if type(event) is scalar_event and event.anchor is None and event.tag is None and simple:
                append(Scalar(event.value, event.start_mark, event.style))
                continue
            if event is None:
                return
            mark: Mark = event.start_mark
            match event:
                case events.ScalarEvent():
                    text = event.value if event.style == '"' else self.source.undone(event.value)
                    node = self._tagged(Scalar(text, mark, event.style or ""), event.tag, mark)
                    if event.anchor is not None:
                        self.anchors[event.anchor] = _Anchored(node, _extent(mark, cast("Mark", event.end_mark)))
                    self.items.append(node)
                case events.MappingStartEvent() | events.SequenceStartEvent():
                    if len(self.stack) >= MAX_DEPTH:
                        message = f"lists and mappings are nested over {MAX_DEPTH} levels deep"
                        self._hopeless("too-deep", mark, message)
                    if event.anchor is not None:
                        self.anchors[event.anchor] = _Anchored(None, _extent(mark, mark))
                    self.stack.append((self.items, event, self.nodes))
                    self.items = []
                case events.MappingEndEvent():
                    self._close(self._mapping(self.stack[-1][1].start_mark), event)
                case events.SequenceEndEvent():
                    self._close(Sequence(self.items, self.stack[-1][1].start_mark), event)
                case events.AliasEvent():
                    self._alias(str(event.anchor), mark)
                case events.DocumentStartEvent():
                    self.items, self.anchors = [], {}
                case events.DocumentEndEvent():
                    self.roots += [root for root in self.items if not (isinstance(root, Scalar) and root.is_null)]
            append = self.items.append

    def _mapping(self, mark: Mark) -> Mapping | RefusedNode:
        """Return the mapping of the items. Report merge, empty, structured and repeated keys, and leave them out."""
        keys, values = self.items[::2], self.items[1::2]
        names = {key.text for key in keys}
        if len(names) == len(keys) and _UNUSUAL_KEYS.isdisjoint(names):
            return Mapping(cast("list[Scalar]", keys), values, mark)
        first: dict[str, Scalar] = {}
        kept: list[Node] = []
        for key, value in zip(keys, values, strict=True):
            if isinstance(key, Sequence | Mapping):
                is_template = isinstance(key, Mapping)
                cure = 'a template in quotes: "{{ … }}"' if is_template else "text that starts with `[` in quotes"
                self._error("complex-key", key.mark, f"a key must be text; put {cure}")
            elif isinstance(key, RefusedNode):
                continue
            elif key.text == "<<" and not key.style:
                cure = "use the manifest's `defaults:` section"
                self._error("merge-key", key.mark, f"merge keys (`<<`) are not part of YAML 1.2; {cure}")
            elif not key.text and not key.style:
                self._error("empty-key", key.mark, "a key is missing before the `:`")
            elif key.text in first:
                line = self.findings.line_of(first[key.text].mark.line + 1)
                self._error("duplicate-key", key.mark, f"the key {quoted(key.text)} is already on line {line}")
            else:
                first[key.text] = key
                kept.append(value)
        # An unquoted {{ … }} is one mistake, so its remains are not reported again.
        return Mapping(list(first.values()), kept, mark) if first or names != {None} else RefusedNode(mark)

    def _close(self, node: Sequence | Mapping | RefusedNode, closing: Event) -> None:
        outer, event, nodes_before = self.stack.pop()
        self.nodes += len(self.items)
        result = node if event.tag is None else self._tagged(node, event.tag, event.start_mark)
        if event.anchor is not None:
            size = self.nodes - nodes_before + 1
            self.anchors[event.anchor] = _Anchored(result, _extent(event.start_mark, closing.end_mark), size)
        outer.append(result)
        self.items = outer

    def _alias(self, name: str, mark: Mark) -> None:
        anchored = self.anchors.get(name)
        if anchored is None:
            cure = "quote text that starts with `*`"
            self._error("unknown-alias", mark, f"there is no anchor &{name} before this alias; {cure}")
            self.items.append(RefusedNode(mark))
        elif anchored.node is None:
            self._hopeless("recursive-alias", mark, f"the alias *{name} refers to itself")
        else:
            self.expanded += anchored.size
            self.nodes += anchored.size
            if self.expanded > MAX_EXPANDED:
                message = f"the aliases of this file expand to more than {MAX_EXPANDED:,} values"
                self._hopeless("too-many-aliases", mark, message)
            if not anchored.place.lines:
                self.findings.aliased.append(anchored.place)
            anchored.place.lines.append(mark.line + 1)
            self.items.append(anchored.node)

    def _tagged(self, node: Node, tag: str | None, mark: Mark) -> Node:
        if tag is None:
            return node
        written = tag.replace("tag:yaml.org,2002:", "!!")
        kind, style = _TAGS.get(written, (None, ""))
        if kind is not type(node):
            cure = "remove it, or quote text that starts with `!`"
            self._error("unsupported-tag", mark, f"the tag {quoted(written)} is not supported here; {cure}")
            return RefusedNode(mark)
        if isinstance(node, Scalar):
            node.style = style
        return node

    def _error(self, code: str, mark: Mark, message: str) -> None:
        self.findings.at(code, mark.line + 1, mark.column + 1, message)

    def _hopeless(self, code: str, mark: Mark, message: str) -> None:
        self._error(code, mark, message)
        raise _Hopeless
