"""Report → Markdown for a job summary or a pull-request comment; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from syncengine.apply.report import Circumstances, Outcome, Report, Result
from syncengine.render.markdown import LIMIT, MarkdownBlock, code, diagnostic_blocks, folding, prose, within
from syncengine.render.outcomes import PLACES, TROUBLES, alike, headline, next_step, sent_as, session_sentence, words
from syncengine.render.style import PLAIN, Look
from syncengine.render.words import count_of, number, place, when


def report_markdown(report: Report, look: Look = PLAIN, limit: int = LIMIT) -> str:
    """Return headline, counts, sync session, next step, changes by outcome, and diagnostics, in `limit` characters."""
    return within(
        (
            MarkdownBlock(f"### {prose(headline(report))}\n", _opening(report)),
            *_troubles(report),
            *_achievements(report),
            *diagnostic_blocks(report.diagnostics),
        ),
        limit,
    )


def _opening(report: Report) -> Iterator[str]:
    """Yield the counts, the circumstances, the sync session and the next step."""
    totals = report.totals
    yield "| applied | failed | skipped | unknown | requests | retries |"
    yield "|" + " ---: |" * 6
    counts = (totals.applied, totals.failed, totals.skipped, totals.unknown, totals.requests, totals.retries)
    yield f"| {' | '.join(map(number, counts))} |"
    if about := list(_about(report.circumstances)):
        yield f"\n{' · '.join(about)}"
    for sentence in filter(None, (session_sentence(report.session), next_step(report))):
        yield f"\n{prose(sentence)}"


def _about(run: Circumstances) -> Iterator[str]:
    """Yield team, environment, commit, person, job, times and approvals, as far as they are known."""
    named = {
        "team": run.team,
        "environment": run.environment,
        "commit": run.commit,
        "tree": run.tree,
        "by": run.actor,
        "job": run.job,
        "started": when(run.started),
        "ended": when(run.ended),
    }
    yield from (f"{name} {code(value)}" for name, value in named.items() if value)
    yield from (f"approved {code(each.text)} ({code(str(each))})" for each in run.approvals)


def _troubles(report: Report) -> Iterator[MarkdownBlock]:
    groups = alike(report)
    if groups:
        lines = [line for group in groups for line in _group(group)]
        yield folding(f"Not applied: {count_of(sum(map(len, groups)), 'change')}", lines)


def _achievements(report: Report) -> Iterator[MarkdownBlock]:
    """Yield the block of applied changes, one address a line."""
    lines = [
        f"- {result.action.word} {_located(result)}" for result in report.results if result.outcome is Outcome.APPLIED
    ]
    if lines:
        yield folding(f"Applied: {count_of(len(lines), 'change')}", lines)


def _group(group: Sequence[Result]) -> Iterator[str]:
    """Yield one line for a single change, or several addresses below their common message."""
    if len(group) == 1:
        yield f"- {_located(group[0])}: {_trouble(group[0])}"
        return
    yield f"- **{count_of(len(group), 'change')}**: {_trouble(group[0])}"
    yield from (f"  - {_located(result)}" for result in islice(group, PLACES))
    if len(group) > PLACES:
        yield f"  - … and {number(len(group) - PLACES)} more"


def _trouble(result: Result) -> str:
    return f"{TROUBLES[result.outcome].code}: {code(words(result))}{prose(sent_as(result.error))}"


def _located(result: Result) -> str:
    where = f" — {code(place(result.source))}" if result.source else ""
    return f"{code(str(result.key))}{where}"
