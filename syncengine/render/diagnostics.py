"""Diagnostics → text for people, with the source line and a caret where the source can be read; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from syncengine.errors import Diagnostic, Severity
from syncengine.render.escape import cells, cut, file_name, visible
from syncengine.render.style import PLAIN, Look, Tone, lettered, painted
from syncengine.render.words import count_of

TONES = {Severity.ERROR: Tone.ERROR, Severity.WARNING: Tone.WARNING}

_INDENT = "    "


def diagnostics_text(diagnostics: Sequence[Diagnostic], look: Look = PLAIN) -> str:
    """Return all diagnostics in the given order, followed by their counts when there is more than one."""
    if not diagnostics:
        return "No problems found.\n"
    counts = ("", f"{tally(diagnostics)}.") if len(diagnostics) > 1 else ()
    return "\n".join((*diagnostic_lines(diagnostics, look), *counts)) + "\n"


def tally(diagnostics: Sequence[Diagnostic]) -> str:
    """Return the counts of diagnostics by severity: `2 errors, 1 warning`."""
    counts = [(sum(d.severity is severity for d in diagnostics), severity.value) for severity in Severity]
    return ", ".join(count_of(count, noun) for count, noun in counts if count)


def diagnostic_lines(diagnostics: Sequence[Diagnostic], look: Look) -> Iterator[str]:
    for diagnostic in diagnostics:
        yield _heading(diagnostic, look)
        yield from _snippet(diagnostic, look)


def _heading(diagnostic: Diagnostic, look: Look) -> str:
    """Return `file:line:column: error[code]: message`, never wrapped, because editors and `grep` parse the line."""
    label = painted(f"{diagnostic.severity.value}[{visible(diagnostic.code)}]:", TONES[diagnostic.severity], look)
    return f"{lettered(where(diagnostic), look)}{label} {lettered(visible(message(diagnostic)), look)}"


def where(diagnostic: Diagnostic) -> str:
    """Return the place as `file:line:column: `, as far as it is known; an empty text without a file."""
    if diagnostic.file is None:
        return ""
    parts = (file_name(diagnostic.file), diagnostic.line, diagnostic.column if diagnostic.line else None)
    return ":".join(str(part) for part in parts if part is not None) + ": "


def message(diagnostic: Diagnostic) -> str:
    """Return the message, prefixed with the address when neither the message nor a place names the resource."""
    if diagnostic.file or not diagnostic.address or diagnostic.address in diagnostic.message:
        return diagnostic.message
    return f"{diagnostic.address}: {diagnostic.message}"


def _snippet(diagnostic: Diagnostic, look: Look) -> Iterator[str]:
    text = _source_line(diagnostic, look)
    if text is None or diagnostic.column is None:
        return
    before, at = text[: diagnostic.column - 1], text[diagnostic.column - 1 :]
    before, at = (lettered(visible(part), look) for part in (before, at))
    room = look.width - len(_INDENT)
    before = _nearest(before, room * 2 // 3)
    yield _INDENT + cut(before + at, room)
    yield _INDENT + " " * cells(before) + painted("^", Tone.ERROR, look)


def _source_line(diagnostic: Diagnostic, look: Look) -> str | None:
    if look.lines is None or diagnostic.file is None or diagnostic.line is None:
        return None
    lines = look.lines(diagnostic.file)
    return lines[diagnostic.line - 1].rstrip("\r\n") if lines and diagnostic.line <= len(lines) else None


def _nearest(before: str, room: int) -> str:
    """Return the text before the caret, cut on the left so that the caret stays visible."""
    return before if cells(before) <= room else cut(before[::-1], room)[::-1]
