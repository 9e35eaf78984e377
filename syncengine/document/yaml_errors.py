"""Report libyaml's syntax errors in plain sentences, at the place that helps most. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

from yaml import MarkedYAMLError

from syncengine.document.diagnostics import Collector
from syncengine.document.nodes import Mark
from syncengine.document.text import lines_of


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
