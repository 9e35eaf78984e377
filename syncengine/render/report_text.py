"""Report → text for people at a terminal; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from syncengine.apply.report import Report, Result, RunStatus
from syncengine.render.diagnostics import diagnostic_lines, warnings_first
from syncengine.render.escape import cells, visible
from syncengine.render.outcomes import PLACES, alike, finding, headline, next_step, session_sentence, shared
from syncengine.render.style import PLAIN, Look, Tone, lettered
from syncengine.render.text import join_blocks, paragraph
from syncengine.render.words import count_of, number, place

ALONE = 3
"""The largest number of changes with the same error that are listed one by one."""

GROUPS = 100
"""The largest number of different errors that are listed without `--verbose`."""

_TONES = {
    RunStatus.COMPLETE: Tone.CREATE,
    RunStatus.INCOMPLETE: Tone.WARNING,
    RunStatus.FAILED: Tone.ERROR,
    RunStatus.REFUSED: Tone.ERROR,
}


def report_text(report: Report, look: Look = PLAIN) -> str:
    """Return the summary, all changes that were not applied, the sync session, diagnostics and the next step."""
    return join_blocks(
        (
            paragraph(headline(report), look, _TONES[report.status]),
            _troubles(report, look),
            paragraph(session_sentence(report.session), look),
            diagnostic_lines(warnings_first(report.diagnostics, look), look),
            paragraph(next_step(report), look, Tone.HEADING),
        )
    )


def _troubles(report: Report, look: Look) -> Iterator[str]:
    groups = alike(report)
    visible_groups = groups if look.verbose else groups[:GROUPS]
    for group in visible_groups:
        yield from _group(group, look)
    if rest := sum(map(len, groups[len(visible_groups) :])):
        yield from paragraph(
            f"… and {count_of(rest, 'more change')} not applied; the JSON report lists them all.", look
        )


def _group(group: Sequence[Result], look: Look) -> Iterator[str]:
    if len(group) <= ALONE or look.verbose:
        yield from diagnostic_lines([finding(result) for result in group], look)
        return
    yield from diagnostic_lines([shared(group)], look)
    located = [(place(result.source), visible(str(result.key))) for result in group[:PLACES]]
    column = max(cells(where) for where, _ in located)
    for where, address in located:
        yield lettered(f"    {where}{' ' * (column - cells(where))}  {address}", look)
    if len(group) > PLACES:
        yield lettered(f"    … and {number(len(group) - PLACES)} more", look)
