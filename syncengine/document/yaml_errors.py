"""libyaml's complaints as sentences for people who do not know its inside, and the place that helps them. Pure."""

from __future__ import annotations

from typing import NamedTuple

from yaml import MarkedYAMLError

from syncengine.document.diagnostics import Collector
from syncengine.document.nodes import Mark
from syncengine.document.text import lines_of


class Sentence(NamedTuple):
    """The sentence for libyaml's errors that say `problem`; `at_start`: it points at the start of the construct.

    `unclosed`: an error at a `:` or at the end of the file means that a bracket was left open.
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
    Sentence("expected ',' or ']'", "`,` or `]` is missing before this", unclosed=True),
    Sentence("expected ',' or '}'", "`,` or `}` is missing before this", unclosed=True),
    Sentence("could not find expected ':'", "this line has no `:` after its key", at_start=True),
    Sentence(
        "did not find expected key", "this line is not valid here: check its indentation, and quotes that end too early"
    ),
    Sentence("expected '-' indicator", "this is a list: start this line with `- `, or check its indentation"),
    Sentence("block sequence entries are not allowed", "a list item cannot start here; begin it on a line of its own"),
    Sentence("block mapping entries are not allowed", "a key cannot start here; begin it on a line of its own"),
    Sentence("mapping keys are not allowed", "a key cannot start here; begin it on a line of its own"),
    Sentence("did not find expected node content", "a value is missing before this character"),
    Sentence(
        "did not find expected <document start>",
        "text after the end of the document; check the indentation, or separate documents with ---",
    ),
    Sentence(
        "invalid Unicode character escape code",
        "the escape is not a character: half of a surrogate pair, or beyond U+10FFFF",
    ),
    Sentence(
        "unknown escape character",
        'an unknown escape in double quotes; write "\\\\" for a backslash, or use single quotes',
    ),
    Sentence("did not find expected hexdecimal number", "the escape has too few hexadecimal digits"),
    Sentence(
        "incompatible YAML document",
        "the %YAML directive names a version that cannot be read; write %YAML 1.2 or remove it",
    ),
    Sentence("undefined tag handle", "tags (`!…`) are not supported; put the text in quotes if it starts with `!`"),
    Sentence("alphabetic or numeric character", "`*` and `&` start an alias or an anchor; put the text in quotes"),
    Sentence("could not determine a simple key", "the key is too long or runs over several lines"),
)
_STARTERS = {
    "\t": "a tab is used as indentation; YAML is indented with spaces only",
    "@": "text cannot start with `@`; put it in quotes",
    "`": "text cannot start with a backquote; put it in quotes",
    "%": "text cannot start with `%`; put it in quotes",
}


def report(error: MarkedYAMLError, text: str, innermost: Mark | None, findings: Collector) -> None:
    """One diagnostic for a syntax error; `innermost` is the place of the innermost open `[` or `{`."""
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
        return start, UNCLOSED
    if innermost and not there and "node content" in problem:
        return innermost, UNCLOSED
    return (start if sentence.at_start and start else end or start), sentence.message


def _character_at(text: str, line: int, column: int) -> str:
    lines = lines_of(text)
    return lines[line][column : column + 1] if line < len(lines) else ""
