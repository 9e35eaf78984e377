"""Plan → Markdown for a pull-request comment: its texts cannot break out, mention people or grow too long. Pure.

Names, values and messages are in code spans, where markup, HTML and mentions have no effect.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from html import escape
from typing import NamedTuple

from syncengine.errors import Diagnostic, Severity
from syncengine.plan.gate import Gate
from syncengine.plan.model import Plan, Summary
from syncengine.render.arrangement import SAME
from syncengine.render.denials import denials, others
from syncengine.render.denials import heading as heading_of_denials
from syncengine.render.diagnostics import message, tally, where
from syncengine.render.escape import cut, visible
from syncengine.render.gate import UnitLine, everything, for_everything, heading, more_units, to_approve, unit_lines
from syncengine.render.repo_paths import link_to
from syncengine.render.rows import Fold, Rank, Section, SectionRow
from syncengine.render.since import excess_lines, since_heading, verdict
from syncengine.render.style import PLAIN, Look
from syncengine.render.two_sides import (
    first_sentence,
    own_part,
    said_first,
    tripped_by,
    waiting_line,
    waiting_part,
    warned_first,
)
from syncengine.render.view import ABRIDGED, headline, is_abridged, scope, sections_of
from syncengine.render.words import FEW, TO_DO, count_of, number

LIMIT = 60_000
"""Characters of a comment; the hosts refuse longer ones (65,536 on GitHub)."""

OPEN_ROWS = 12
"""Rows of a section that are not folded; more are behind a summary."""

NAMES = 4
"""The part of a comment that names of folded groups take, in all, but for removals: a fourth."""

LEAST_NAMES = 200
"""Characters for those of one group, at least."""

LEAST_ROW = 40
"""Characters that a row has at least: more rows than there is room for are not made."""

_LONGEST_CODE = 500
_RESERVE = 200
_FRAME = 300
"""Characters of a section's heading and sentences, roughly."""
_COPIED = re.compile(
    r"((?:--approve-deletes )?(?<![0-9A-Za-z@])(?:[0-9]+@[0-9A-Za-z]{6,}|COUNT@HASH)(?![0-9A-Za-z.@-]))"
)
"""An approval in a sentence (project_file.APPROVAL)."""
_REFERENCE = re.compile(r"(?:[!%$^]|\\~|&amp;|\bGH)(?=[\w\"-])")
_ADDRESS = re.compile(r"\bwww(?=\.)|:(?=//)", re.IGNORECASE)
"""Beginnings of a host's references, and of what it makes a link of; after these they are broken."""
_PUNCTUATION = re.compile(r"([\\`*_\[\]#|~])")


class Ranked(NamedTuple):
    """A line, or several that belong together; where there is not room for all, those of the first rank stay.

    `resources`: how many it speaks of; `unnamed`: how many of these it leaves out.
    """

    text: str
    rank: Rank
    resources: int = 0
    unnamed: int = 0


class MarkdownBlock(NamedTuple):
    """Lines that are printed as far as there is room, between an opening and an ending that belong together.

    `more`: what is said after the number of resources that there was no room for, since the last block that says it.
    """

    opening: str
    lines: Iterable[str | Ranked]
    ending: str = ""
    more: str = ""


def plan_markdown(plan: Plan, look: Look = PLAIN, limit: int = LIMIT) -> str:
    """Summary table and gate first, since they must never be cut; then the sections, and diagnostics last."""
    look = replace(look, links=look.links.at(plan.basis.commit, plan.base.commit if plan.base else ""))
    own, fold = own_part(plan), Fold.NOTHING if look.verbose else Fold.LONG
    sections, foremost, first = sections_of(own, fold, limit // LEAST_ROW), said_first(plan), warned_first(plan)
    frame = (
        *(MarkdownBlock(f"> **{prose(first_sentence(d))}**", [""]) for d in foremost),
        *(MarkdownBlock(f"> {prose(first_sentence(d))}", [""]) for d in first),
        MarkdownBlock(f"### {prose(headline(own))}\n", [*_opening(own, sections)]),
        *_denials(denials(plan.diagnostics)),
        *_gate(plan.gate, tripped_by(plan)),
        *_since(plan),
    )
    rows = _Rows(look, sections, limit - len(within(frame, limit)), limit // NAMES)
    blocks = (
        *frame,
        *(block for section in sections for block in _section(section, rows)),
        *_waiting(plan, fold, look),
        *diagnostic_blocks(d for d in others(plan.diagnostics) if d not in (*foremost, *first)),
    )
    return within(blocks, limit)


def _since(plan: Plan) -> Iterator[MarkdownBlock]:
    if plan.since:
        lines = (prose(verdict(plan.since)), "", *(f"- {code(line)}" for line in excess_lines(plan.since)))
        yield MarkdownBlock(f"**{prose(since_heading(plan.since))}**\n", lines)


def _waiting(plan: Plan, fold: Fold, look: Look) -> Iterator[MarkdownBlock]:
    """The changes that are not the pull request's, folded behind one line."""
    if (waiting := waiting_part(plan)) is not None:
        title = f"<details><summary>{escape(waiting_line(waiting))}</summary>\n"
        look = replace(look, links=look.links.at(None))
        lines = [line for section in sections_of(waiting, fold) for line in _flat(section, look)]
        yield MarkdownBlock(title, [Ranked(line, Rank.UNLIKE) for line in lines], "</details>")


def _flat(section: Section, look: Look) -> Iterator[str]:
    yield from (f"**{prose(section.title)}**", "", *(_row(row, look, LEAST_NAMES)[0] for row in section.rows), "")


def trouble_markdown(diagnostics: Sequence[Diagnostic], look: Look = PLAIN) -> str:
    """The errors that prevented a plan, in its place."""
    lines = (f"- {_diagnostic(diagnostic)}" for diagnostic in diagnostics)
    return within((MarkdownBlock(f"### No plan: {tally(diagnostics)}.\n", lines),), LIMIT)


def within(blocks: Iterable[MarkdownBlock], limit: int) -> str:
    """The blocks in at most `limit` characters; the last line counts those that are left out."""
    fitting = [(block, [_ranked(line) for line in block.lines]) for block in blocks]
    counted = sum(len(_more(sum(line.resources for line in lines), block)) + 2 for block, lines in fitting)
    printed = _printed(fitting, limit - _RESERVE - counted)
    pages, missing = list[str](), 0
    for (block, lines), numbers in zip(fitting, printed, strict=True):
        if numbers:
            ending = ("", block.ending) if block.ending else ()
            opening = (block.opening,) if block.opening else ()
            pages.append("\n".join((*opening, *(lines[n].text for n in sorted(numbers)), *ending)))
        missing += sum(line.resources for n, line in enumerate(lines) if n not in numbers)
        if block.more:
            pages += filter(None, (_more(missing, block),))
            missing = 0
    cut = sum(len(lines) - len(numbers) for (_, lines), numbers in zip(fitting, printed, strict=True))
    unnamed = sum(lines[n].unnamed for (_, lines), numbers in zip(fitting, printed, strict=True) for n in numbers)
    return "\n\n".join((*pages, *_cut(cut, unnamed))) + "\n"


def _more(resources: int, block: MarkdownBlock) -> str:
    return f"… and {number(resources)} {block.more}" if resources and block.more else ""


def _cut(lines: int, names: int) -> Iterator[str]:
    """Say how much is left out, if anything is."""
    missing = ((lines, "more line"), (names, "more name"))
    parts = [count_of(count, noun) for count, noun in missing if count]
    if parts:
        verb = "is" if lines + names == 1 else "are"
        yield f"**Cut here: {' and '.join(parts)} {verb} left out.** The plan as JSON or HTML has all of them."


def _ranked(line: str | Ranked) -> Ranked:
    return line if isinstance(line, Ranked) else Ranked(line, Rank.FIRST)


def _printed(fitting: Sequence[tuple[MarkdownBlock, Sequence[Ranked]]], room: int) -> list[dict[int, None]]:
    """The numbers of the lines of each block that there is room for, rank by rank."""
    printed: list[dict[int, None]] = [{} for _ in fitting]
    for rank in Rank:
        for place, (block, lines) in enumerate(fitting):
            for n, line in enumerate(lines):
                if line.rank is not rank:
                    continue
                frame = 0 if printed[place] else len(block.opening) + len(block.ending) + 4
                if room >= len(line.text) + 1 + frame:
                    room -= len(line.text) + 1 + frame
                    printed[place][n] = None
    return printed


def code(text: str) -> str:
    """A code span that holds any text: its fence is longer than any run of backticks inside."""
    text = cut(visible(text), _LONGEST_CODE)
    if not text.strip():
        return f"<code>{text}</code>"
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    pad = " " if "`" in (text[0], text[-1]) else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def prose(text: str, *, links: bool = False) -> str:
    """A sentence without markup, HTML, mentions, references or links; an address of our own may be one (`links`).

    Approvals in it are in code spans, since they are copied.
    """
    return "".join(code(part) if n % 2 else _plain(part, links=links) for n, part in enumerate(_COPIED.split(text)))


def _plain(text: str, *, links: bool) -> str:
    escaped = _PUNCTUATION.sub(r"\\\1", escape(visible(text), quote=False))
    unlinked = escaped if links else _ADDRESS.sub(r"\g<0>&#8203;", escaped)
    return _REFERENCE.sub(r"\g<0>&#8203;", unlinked).replace("@", "@&#8203;").replace("\\#", "#&#8203;")


def _opening(plan: Plan, sections: Iterable[Section]) -> Iterator[str]:
    yield from (prose(scope(plan), links=True), "", *_table(plan.summary))
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
    if to_approve(gate):
        approve = for_everything(gate)
        block = ("```yaml", "approvals:", *(f"  - {each}" for each in to_approve(gate)), "```")
        lines += [">", "> Approve each in the project file, so that it is reviewed with them:", ">"]
        lines += [*(f"> {line}" for line in block), ">"]
        whole = f"> or approve {everything(gate)}, once: {code(f'--approve-deletes {approve}')}."
        lines += [whole] if approve else []
    yield MarkdownBlock(f"> **{prose(heading(gate))}**\n>", lines)


def _unit(line: UnitLine) -> str:
    return f"{line.mark} {prose(line.what)}: {prose(line.how)}{code(line.approve) if line.approve else ''}"


def diagnostic_blocks(diagnostics: Iterable[Diagnostic]) -> Iterator[MarkdownBlock]:
    """Errors line by line; warnings that are alike in one line with an example, so that they crowd nothing out."""
    found = list(diagnostics)
    errors = [f"- {_diagnostic(each)}" for each in found if each.severity is Severity.ERROR]
    warnings = list(_warnings(each for each in found if each.severity is not Severity.ERROR))
    if found:
        yield folding(f"Diagnostics ({number(len(found))})", [*errors, *warnings])


def _warnings(found: Iterable[Diagnostic]) -> Iterator[Ranked]:
    groups = defaultdict[object, list[Diagnostic]](list)
    for each in found:
        groups[each.code, each.rule].append(each)
    for group in groups.values():
        texts = [_together(group)] if len(group) >= SAME else map(_diagnostic, group)
        yield from (Ranked(f"- {text}", Rank.WARNING) for text in texts)


def _together(group: Sequence[Diagnostic]) -> str:
    first = group[0]
    place = f"{code(where(first).removesuffix(': '))} " if first.file else ""
    label = f"**{number(len(group))} ×** **{first.severity.value}** {code(first.code)}"
    return f"{label}, e.g. {place}{prose(message(first))}"


def _diagnostic(diagnostic: Diagnostic) -> str:
    place = f"{code(where(diagnostic).removesuffix(': '))} " if diagnostic.file else ""
    return f"{place}**{diagnostic.severity.value}** {code(diagnostic.code)}: {prose(message(diagnostic))}"


def folding(title: str, lines: Sequence[str | Ranked]) -> MarkdownBlock:
    """A section that is open if it is short, else folded behind its title."""
    if len(lines) <= OPEN_ROWS:
        return MarkdownBlock(f"#### {prose(title)}\n", lines)
    return MarkdownBlock(f"<details><summary><b>{escape(title)}</b></summary>\n", lines, "</details>")


class _Rows:
    """Rows as lines, with the names of their groups: as many of removals as `room` allows, then as many of others.

    Those of others have `names` characters in any case.
    """

    def __init__(self, look: Look, sections: Sequence[Section], room: int, names: int) -> None:
        self._look = look
        rows = [row for section in sections for row in section.rows]
        self._bare = {id(row): _row(row, look, 0)[0] for row in rows}
        removals = [row for row in rows if row.rank is Rank.REMOVAL]
        others = [row for row in rows if row.rank is not Rank.REMOVAL]
        room -= self._size(removals) + _FRAME * len(sections)
        self._removals, needed = _share(removals, max(room, names))
        self._others, _ = _share(others, max(room - needed - self._size(others), names))

    def _size(self, rows: Iterable[SectionRow]) -> int:
        return sum(len(self._bare[id(row)]) + 1 for row in rows)

    def line(self, row: SectionRow) -> Ranked:
        if not row.label:
            return Ranked(self._bare[id(row)], row.rank, len(row.members))
        share = self._removals if row.rank is Rank.REMOVAL else self._others
        text, unnamed = _row(row, self._look, max(LEAST_NAMES, int(_length(row.names) * share)))
        return Ranked(text, row.rank, len(row.members), unnamed)


def _share(rows: Iterable[SectionRow], room: int) -> tuple[float, int]:
    """The part of the names of groups that there is room for, and the characters of all."""
    needed = sum(_length(row.names) for row in rows if row.label)
    return min(1.0, room / max(needed, 1)), needed


def _length(names: Sequence[str]) -> int:
    return sum(len(code(name)) + 2 for name in names)


def _section(section: Section, rows: _Rows) -> Iterator[MarkdownBlock]:
    """The first rows and all groups open, other rows behind a summary between them."""
    heading = [f"#### {prose(section.title)}\n", *(f"{prose(sentence)}\n" for sentence in section.says)]
    lines = list(map(rows.line, section.rows))
    first, last = _open_rows(section.rows)
    blocks = [MarkdownBlock("", [*heading, *lines[:first]])]
    if first < last:
        summary = f"<details><summary>{number(last - first)} more rows</summary>\n"
        blocks.append(MarkdownBlock(summary, lines[first:last], "</details>"))
    if lines[last:]:
        blocks.append(MarkdownBlock("", lines[last:]))
    yield from (*blocks[:-1], blocks[-1]._replace(more=section.more))


def _open_rows(rows: Sequence[SectionRow]) -> tuple[int, int]:
    """The rows between which all are behind a summary: those of single resources, but for the first few."""
    if len(rows) <= OPEN_ROWS:
        return len(rows), len(rows)
    first = next((n for n, row in enumerate(rows) if not row.label and n >= OPEN_ROWS), len(rows))
    last = next((n for n, row in enumerate(rows) if row.label and n > first), len(rows))
    return first, last


def _row(row: SectionRow, look: Look, names: int) -> tuple[str, int]:
    """The row, and how many names of its group are left out."""
    subject = f"**{prose(row.subject)}**" if row.label else f"**{code(row.subject)}**"
    parts = [code(row.symbol), subject, *(code(str(detail)) for detail in row.details)]
    parts += [code(row.example)] if row.example else []
    parts += [f"— {_place(row, look)}"] if row.place else []
    margin = "  " * row.depth
    listed, unnamed = _names(row.names, names, f"{margin}  ") if row.label else ("", 0)
    return f"{margin}- {' '.join(parts)}{listed}", unnamed


def _place(row: SectionRow, look: Look) -> str:
    """The place of a row, which leads to its line if the host of the repository is known."""
    address = "" if row.label else link_to(row.members[0], look)
    return f"[{code(row.place)}](<{address}>)" if address else code(row.place)


def _names(names: Sequence[str], room: int, margin: str) -> tuple[str, int]:
    """The names of a group behind a summary of the first few, as many as there is room for."""
    spans: list[str] = []
    for name in names:
        spans.append(code(name))
        room -= len(spans[-1]) + 2
        if room < 0 and len(spans) >= FEW:
            break
    unnamed = len(names) - len(spans)
    more = f" … and {number(unnamed)} more" if unnamed else ""
    first = ", ".join(f"<code>{escape(name)}</code>" for name in map(_brief, names[:FEW]))
    summary = f"{first} … and {number(len(names) - FEW)} more" if len(names) > FEW else first
    listed = f"{margin}{', '.join(spans)}{more}"
    return f"\n{margin}<details><summary>{summary}</summary>\n\n{listed}\n\n{margin}</details>", unnamed


def _brief(name: str) -> str:
    return cut(visible(name), _LONGEST_CODE)
