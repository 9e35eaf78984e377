"""Diagnostics → text for people, with the source line and a caret where the source can be read; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from syncengine.errors import Diagnostic, Severity
from syncengine.render.escape import cells, cut, file_name, visible
from syncengine.render.style import PLAIN, Look, Tone, lettered, painted
from syncengine.render.words import count_of

TONES = {Severity.ERROR: Tone.ERROR, Severity.WARNING: Tone.WARNING}

ALONE = 3
"""The number of times that one mistake is shown each time, since each has a place of its own."""
FEW = 25
"""The number of different messages of one code that are shown, since their cause is probably one."""

_INDENT = "    "


def diagnostics_text(diagnostics: Sequence[Diagnostic], look: Look = PLAIN) -> str:
    """Return warnings and then errors, the last of which stay on the screen, and their counts if there are several."""
    if not diagnostics:
        return "No problems found.\n"
    shown = warnings_first(diagnostics, look)
    hint = " -v lists each." * (len(shown) < len(diagnostics))
    counts = ("", f"{tally(diagnostics)}.{hint}") if len(diagnostics) > 1 else ()
    return "\n".join((*diagnostic_lines(shown, look), *counts)) + "\n"


def warnings_first(diagnostics: Iterable[Diagnostic], look: Look = PLAIN) -> list[Diagnostic]:
    """Return warnings and then errors, `merged` unless the look is verbose."""
    ordered = sorted(diagnostics, key=lambda d: d.severity is Severity.ERROR)
    return ordered if look.verbose else merged(ordered)


def merged(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return one diagnostic for a mistake made more than `ALONE` times, and `FEW` mistakes of each code.

    The messages say how many more there are.
    """
    mistakes: dict[object, dict[str, list[Diagnostic]]] = {}
    for each in diagnostics:
        of_code = mistakes.setdefault((each.severity, each.code, each.rule), {})
        text = message(each) if message(each) in of_code or len(of_code) < FEW else next(reversed(of_code))
        of_code.setdefault(text, []).append(each)
    shown: list[Diagnostic] = []
    for of_code in mistakes.values():
        for found in of_code.values():
            few = len(found) <= ALONE and len({message(each) for each in found}) == 1
            more = f"{found[0].message} (and {len(found) - 1:,} more)"
            shown += found if few else [replace(found[0], message=more)]
    return shown


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
