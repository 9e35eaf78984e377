"""Plan → Markdown for a pull-request comment: its texts cannot break out, mention people or grow too long. Pure.

Names, values and messages are in code spans, where markup, HTML and mentions have no effect.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import islice
from typing import NamedTuple

from syncengine.errors import Diagnostic
from syncengine.plan.gate import Gate
from syncengine.plan.model import Plan, Summary
from syncengine.render.denials import denials, others
from syncengine.render.denials import heading as heading_of_denials
from syncengine.render.diagnostics import message, tally, where
from syncengine.render.escape import cut, visible
from syncengine.render.gate import UnitLine, heading, more_units, to_approve, unit_lines
from syncengine.render.rows import Fold, Section, SectionRow
from syncengine.render.style import PLAIN, Look
from syncengine.render.two_sides import (
    first_sentence,
    own_part,
    said_first,
    tripped_by,
    waiting_line,
    waiting_part,
)
from syncengine.render.view import ABRIDGED, headline, is_abridged, scope, sections_of
from syncengine.render.words import FEW, TO_DO, number

LIMIT = 60_000
"""Characters of a comment; the hosts refuse longer ones (65,536 on GitHub)."""

OPEN_ROWS = 12
"""Rows of a section that are not folded; more are behind a summary."""

_LONGEST_CODE = 500
_RESERVE = 200
_COPIED = re.compile(
    r"((?:--approve-deletes )?(?<![0-9A-Za-z@])(?:[0-9]+@[0-9A-Za-z]{6,}|COUNT@HASH)(?![0-9A-Za-z.@-]))"
)
"""An approval in a sentence (project_file.APPROVAL)."""
_PUNCTUATION = re.compile(r"([\\`*_\[\]#|~])")


class MarkdownBlock(NamedTuple):
    """Lines that are printed as far as there is room, between an opening and an ending that belong together."""

    opening: str
    lines: Iterable[str]
    ending: str = ""


def plan_markdown(plan: Plan, look: Look = PLAIN) -> str:
    """Summary table and gate first, since they must never be cut; then the sections."""
    own, fold = own_part(plan), Fold.NOTHING if look.verbose else Fold.LONG
    sections, foremost = sections_of(own, fold), said_first(plan)
    blocks = (
        *(MarkdownBlock(f"> **{prose(first_sentence(d))}**", [""]) for d in foremost),
        MarkdownBlock(f"### {prose(headline(own))}\n", _opening(own, sections)),
        *_denials(denials(plan.diagnostics)),
        *_gate(plan.gate, tripped_by(plan.base)),
        *diagnostic_blocks(d for d in others(plan.diagnostics) if d not in foremost),
        *map(_section, sections),
        *_waiting(plan, fold),
    )
    return within(blocks, LIMIT)


def _waiting(plan: Plan, fold: Fold) -> Iterator[MarkdownBlock]:
    """The changes that are not the pull request's, folded behind one line."""
    if (waiting := waiting_part(plan)) is not None:
        title = f"<details><summary>{escape(waiting_line(waiting))}</summary>\n"
        lines = (line for section in sections_of(waiting, fold) for line in _flat(section))
        yield MarkdownBlock(title, lines, "</details>")


def _flat(section: Section) -> Iterator[str]:
    yield from (f"**{prose(section.title)}**", "", *map(_row, section.rows), "")


def trouble_markdown(diagnostics: Sequence[Diagnostic], look: Look = PLAIN) -> str:
    """The errors that prevented a plan, in its place."""
    lines = (f"- {_diagnostic(diagnostic)}" for diagnostic in diagnostics)
    return within((MarkdownBlock(f"### No plan: {tally(diagnostics)}.\n", lines),), LIMIT)


def within(blocks: Iterable[MarkdownBlock], limit: int) -> str:
    """The blocks in at most `limit` characters; the last line counts those that are left out."""
    room, dropped = limit - _RESERVE, 0
    pages: list[str] = []
    for block in blocks:
        room -= len(block.opening) + len(block.ending) + 4
        blocks_inside = []
        for line in block.lines:
            room -= len(line) + 1
            if room >= 0:
                blocks_inside.append(line)
            else:
                dropped += 1
        if blocks_inside:
            pages.append("\n".join((block.opening, *blocks_inside, *(("", block.ending) if block.ending else ()))))
    if dropped:
        pages.append(
            f"**Cut here: {number(dropped)} more lines are left out.** The plan as text or JSON has all of them."
        )
    return "\n\n".join(pages) + "\n"


def code(text: str) -> str:
    """A code span that holds any text: its fence is longer than any run of backticks inside."""
    text = cut(visible(text), _LONGEST_CODE)
    if not text.strip():
        return f"<code>{text}</code>"
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    pad = " " if "`" in (text[0], text[-1]) else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def prose(text: str) -> str:
    """A sentence without markup, HTML, mentions or references.

    Approvals in it are in code spans, since they are copied.
    """
    return "".join(code(part) if n % 2 else _plain(part) for n, part in enumerate(_COPIED.split(text)))


def _plain(text: str) -> str:
    escaped = _PUNCTUATION.sub(r"\\\1", escape(visible(text), quote=False))
    return escaped.replace("@", "@&#8203;").replace("\\#", "#&#8203;")


def _opening(plan: Plan, sections: Iterable[Section]) -> Iterator[str]:
    yield from (prose(scope(plan)), "", *_table(plan.summary))
    if is_abridged(sections):
        yield from ("", prose(ABRIDGED))


def _table(summary: Summary) -> Iterator[str]:
    """The counts of actions, side by side."""
    cells = [(word.removeprefix("to "), getattr(summary, action.word)) for action, word in TO_DO.items()]
    cells += [("tags by cascade", summary.cascaded_tags), ("unchanged", summary.unchanged)]
    cells += [("requests", summary.requests)]
    yield f"| {' | '.join(name for name, _ in cells)} |"
    yield "|" + " ---: |" * len(cells)
    yield f"| {' | '.join(number(count) for _, count in cells)} |"


def _denials(found: Sequence[Diagnostic]) -> Iterator[MarkdownBlock]:
    if found:
        yield MarkdownBlock(f"> **{prose(heading_of_denials(found))}**\n>", [f"> - {_diagnostic(d)}" for d in found])


def _gate(gate: Gate, whose: str | None = None) -> Iterator[MarkdownBlock]:
    if not gate.shown:
        return
    lines = [f"> {prose(whose)}", ">"] if whose else []
    lines += [f"> {_unit(line)}  " for line in unit_lines(gate)]
    lines += [f"> {prose(more)}" for more in [more_units(gate)] if more]
    lines += [">", *(f"> - {prose(reason)}" for reason in gate.reasons)] if gate.reasons else []
    if gate.is_closed:
        approve = visible(gate.approve or "")
        block = ("```yaml", "approvals:", *(f"  - {each}" for each in to_approve(gate)), "```")
        lines += [">", "> Approve each in the project file, so that it is reviewed with them:", ">"]
        lines += [*(f"> {line}" for line in block), ">"]
        everything = f"> or all that this plan removes, and nothing else, with {code(f'--approve-deletes {approve}')}."
        lines += [everything] if approve else []
    yield MarkdownBlock(f"> **{prose(heading(gate))}**\n>", lines)


def _unit(line: UnitLine) -> str:
    return f"{line.mark} {prose(line.what)}: {prose(line.how)}{code(line.approve) if line.approve else ''}"


def diagnostic_blocks(diagnostics: Iterable[Diagnostic]) -> Iterator[MarkdownBlock]:
    lines = [f"- {_diagnostic(diagnostic)}" for diagnostic in diagnostics]
    if lines:
        yield folding(f"Diagnostics ({number(len(lines))})", lines)


def _diagnostic(diagnostic: Diagnostic) -> str:
    place = f"{code(where(diagnostic).removesuffix(': '))} " if diagnostic.file else ""
    return f"{place}**{diagnostic.severity.value}** {code(diagnostic.code)}: {prose(message(diagnostic))}"


def folding(title: str, lines: list[str]) -> MarkdownBlock:
    """A section that is open if it is short, else folded behind its title."""
    if len(lines) <= OPEN_ROWS:
        return MarkdownBlock(f"#### {prose(title)}\n", lines)
    return MarkdownBlock(f"<details><summary><b>{escape(title)}</b></summary>\n", lines, "</details>")


def _section(section: Section) -> MarkdownBlock:
    return folding(section.title, [*(f"{prose(sentence)}\n" for sentence in section.says), *map(_row, section.rows)])


def _row(row: SectionRow) -> str:
    subject = f"**{prose(row.subject)}**" if row.label else f"**{code(row.subject)}**"
    parts = [code(row.symbol), subject, *(code(str(detail)) for detail in row.details)]
    if row.label:
        parts.append(_names(row.names))
    if row.place:
        parts.append(f"— {code(row.place)}")
    return f"{'  ' * row.depth}- {' '.join(parts)}"


def _names(names: list[str]) -> str:
    text = ", ".join(map(code, islice(names, FEW)))
    return f"({text} … and {number(len(names) - FEW)} more)" if len(names) > FEW else f"({text})"
