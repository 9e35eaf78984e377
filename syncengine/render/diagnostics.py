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


def warnings_first(diagnostics: Iterable[Diagnostic], look: Look) -> list[Diagnostic]:
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
    """Yield `file:line:column: error[code]: message` for each, and its source line with a caret, if it can be read.

    The first line is never wrapped, because editors and `grep` parse it.
    """
    for each in diagnostics:
        label = painted(f"{each.severity.value}[{visible(each.code)}]:", TONES[each.severity], look)
        yield f"{lettered(where(each), look)}{label} {lettered(visible(message(each)), look)}"
        lines = look.lines(each.file) if look.lines and each.file is not None and each.line is not None else None
        if not lines or each.line is None or each.column is None or each.line > len(lines):
            continue
        text, room = lines[each.line - 1].rstrip("\r\n"), look.width - len(_INDENT)
        before, at = (lettered(visible(part), look) for part in (text[: each.column - 1], text[each.column - 1 :]))
        if cells(before) > room * 2 // 3:  # cut on the left, so that the caret stays visible
            before = cut(before[::-1], room * 2 // 3)[::-1]
        yield _INDENT + cut(before + at, room)
        yield _INDENT + " " * cells(before) + painted("^", Tone.ERROR, look)


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
