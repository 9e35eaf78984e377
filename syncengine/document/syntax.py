"""libyaml's complaints as sentences for people who do not know its inside, and the place that helps them. Pure."""

from __future__ import annotations

from typing import NamedTuple

from yaml import MarkedYAMLError

from syncengine.document.findings import Findings
from syncengine.document.nodes import Mark
from syncengine.document.text import lines_of


class Sentence(NamedTuple):
    """`problem` is part of libyaml's words; `at_start`: the construct's start is the place to look, not its end."""

    problem: str
    message: str
    at_start: bool = False


SENTENCES = (
    Sentence(
        "mapping values are not allowed",
        "a `:` where no value can start; put the text in quotes, or check the indentation of this line",
    ),
    Sentence("tab character", "a tab is used as indentation; YAML is indented with spaces only"),
    Sentence("unexpected end of stream", "the quote that opens here is never closed", at_start=True),
    Sentence("unexpected document indicator", "the quote that opens here is never closed", at_start=True),
    Sentence("expected ',' or ']'", "the list that opens here is not closed: `,` or `]` is missing", at_start=True),
    Sentence("expected ',' or '}'", "the mapping that opens here is not closed: `,` or `}` is missing", at_start=True),
    Sentence("could not find expected ':'", "this line has no `:` after its key", at_start=True),
    Sentence(
        "did not find expected key", "this line does not fit: check its indentation, and quotes that end too early"
    ),
    Sentence("expected '-' indicator", "a list stands here: start this line with `- `, or check its indentation"),
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


def report(error: MarkedYAMLError, text: str, opened: Mark | None, findings: Findings) -> None:
    """One diagnostic for a syntax error; `opened` is where the innermost open `[` or `{` stands."""
    problem = str(error.problem or error.context or error)
    known = next((s for s in SENTENCES if s.problem in problem), None)
    mark = (error.context_mark if known and known.at_start else None) or error.problem_mark or error.context_mark
    message = known.message if known else problem
    if opened and mark and "node content" in problem and mark.line >= len(lines_of(text)) - 1:
        findings.at("yaml-syntax", opened.line + 1, opened.column + 1, "the bracket that opens here is never closed")
        return
    if mark is None:
        findings.at("yaml-syntax", 1, 1, message)
        return
    if "cannot start any token" in problem:
        message = _STARTERS.get(_character_at(text, mark.line, mark.column), "text cannot start here; put it in quotes")
    findings.at("yaml-syntax", mark.line + 1, mark.column + 1, message)


def _character_at(text: str, line: int, column: int) -> str:
    lines = lines_of(text)
    return lines[line][column : column + 1] if line < len(lines) else ""
