"""Plan → Markdown for a pull-request comment, in which no text acts as markup or mentions people; pure.

Names, values and messages are in code spans, where markup, HTML and mentions have no effect. Its length is limited.
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
from syncengine.render.diagnostics import merged, message, tally, where
from syncengine.render.escape import cut, visible
from syncengine.render.fold import SAME
from syncengine.render.sections import Fold, Rank, Section, SectionRow
from syncengine.render.style import PLAIN, Look
from syncengine.render.view import (
    ABRIDGED,
    PlanView,
    ReviewedComparison,
    UnitLine,
    WaitingPart,
    everything,
    first_sentence,
    for_everything,
    gate_heading,
    more_units,
    to_approve,
    unit_lines,
    view_of,
)
from syncengine.render.words import FEW, TO_DO, count_of, number

LIMIT = 60_000
"""The largest number of characters of a comment; hosts reject longer ones (GitHub above 65,536)."""

OPEN_ROWS = 12
"""The number of rows of a section that are shown without a click."""

NAMES = 4
"""The names of folded groups, except for removals, get the limit divided by this number where not all names fit."""

SHARES = (0.85, 0.7, 0.5, 0.35, 0.2, 0.1, 0.05, 0.02, 0.0)
"""The shares of the limit that are tried for the names of a group of removals, until the row of each group fits."""

LEAST_NAMES = 200
"""The smallest number of characters for the names of one group."""

LEAST_ROW = 40
"""The smallest length of a row in characters; it bounds the number of rows that are made."""

_LONGEST_CODE = 500
_RESERVE = 200
_COPIED = re.compile(
    r"((?:--approve-deletes )?(?<![0-9A-Za-z@])(?:[0-9]+@[0-9A-Za-z]{6,}|COUNT@HASH)(?![0-9A-Za-z.@-]))"
)
"""An approval within a sentence."""
_REFERENCE = re.compile(r"(?:[!%$^]|\\~|&amp;|\bGH)(?=[\w\"-])")
_ADDRESS = re.compile(r"\bwww(?=\.)|:(?=//)", re.IGNORECASE)
"""The beginnings of texts that a host would turn into a link; an invisible space after them prevents that."""
_PUNCTUATION = re.compile(r"([\\`*_\[\]#|~])")


class Ranked(NamedTuple):
    """A line, or several lines that belong together. When there is not room for all, the lowest ranks stay.

    `resources` is the number of resources in the line, and `unnamed` the number of those that it does not name.
    """

    text: str
    rank: Rank
    resources: int = 0
    unnamed: int = 0


class MarkdownBlock(NamedTuple):
    """Lines that are printed as far as there is room, between an opening and an ending.

    `more` are the words after the number of resources that were cut since the last block with `more`.
    """

    opening: str
    lines: Iterable[str | Ranked]
    ending: str = ""
    more: str = ""


def plan_markdown(plan: Plan, look: Look = PLAIN, limit: int = LIMIT) -> str:
    """Return the plan as Markdown: summary table and gate, which are never cut, then sections and diagnostics."""
    look = replace(look, links=look.links.at(plan.basis.commit, plan.base.commit if plan.base else ""))
    view = view_of(plan, Fold.NOTHING if look.verbose else Fold.LONG, limit // LEAST_ROW)

    groups = sum(1 for each in view.sections for row in each.rows if row.label and row.rank is not Rank.REMOVAL)
    least = limit // NAMES // max(groups, 1)
    # All names, or as many as fit. Those of removals are thinned last, since nobody declares what goes.
    for removals, others in ((limit, limit), *((int(limit * share), least) for share in SHARES)):
        is_whole = others == limit
        page = _page(view, look, limit, removals, others, is_abridged=view.is_abridged or not is_whole)
        if not page.is_cut or (page.has_removals and not is_whole):
            break
    return page.text


def _page(view: PlanView, look: Look, limit: int, removals: int, others: int, *, is_abridged: bool) -> _Page:
    """Return the view on a page on which each group of `removals` or `others` has room for so many letters of names."""

    def line(row: SectionRow) -> Ranked:
        text, unnamed = _row(row, look, max(LEAST_NAMES, removals if row.rank is Rank.REMOVAL else others))
        return Ranked(text, row.rank, len(row.members), unnamed)

    return _fitted(
        (
            *(MarkdownBlock(f"> **{prose(first_sentence(d))}**", [""]) for d in view.foremost),
            *(MarkdownBlock(f"> {prose(first_sentence(d))}", [""]) for d in view.doubts),
            MarkdownBlock(f"### {prose(view.head[0])}\n", [*_opening(view, is_abridged=is_abridged)]),
            *_denials(view),
            *_gate(view.plan.gate, view.whose),
            *(_since(view.since) if view.since else ()),
            *(block for section in view.sections for block in _section(section, list(map(line, section.rows)))),
            *(_waiting(view.waiting, look) if view.waiting is not None else ()),
            *diagnostic_blocks(view.diagnostics),
        ),
        limit,
    )


def _since(since: ReviewedComparison) -> Iterator[MarkdownBlock]:
    lines = (prose(since.verdict), "", *(f"- {code(line)}" for line in since.excess))
    yield MarkdownBlock(f"**{prose(since.heading)}**\n", lines)


def _waiting(waiting: WaitingPart, look: Look) -> Iterator[MarkdownBlock]:
    """Yield the changes from outside the pull request, folded behind one line."""
    title = f"<details><summary>{escape(waiting.line)}</summary>\n"
    look = replace(look, links=look.links.at(None))
    yield MarkdownBlock(title, [line for section in waiting.sections for line in _flat(section, look)], "</details>")


def _flat(section: Section, look: Look) -> Iterator[Ranked]:
    yield from (Ranked(f"**{prose(section.title)}**", Rank.UNLIKE), Ranked("", Rank.UNLIKE))
    for row in section.rows:
        text, unnamed = _row(row, look, LEAST_NAMES)
        yield Ranked(text, Rank.UNLIKE, unnamed=unnamed)
    yield Ranked("", Rank.UNLIKE)


def trouble_markdown(diagnostics: Sequence[Diagnostic], look: Look = PLAIN, limit: int = LIMIT) -> str:
    """Return the errors that prevented a plan, as Markdown."""
    lines = (f"- {_diagnostic(diagnostic)}" for diagnostic in merged(diagnostics))
    return within((MarkdownBlock(f"### No plan: {tally(diagnostics)}.\n", lines),), limit)


class _Page(NamedTuple):
    """Blocks as one text, whether lines or names are cut from it, and whether each group of removals has its row."""

    text: str
    is_cut: bool
    has_removals: bool


def within(blocks: Iterable[MarkdownBlock], limit: int) -> str:
    """Return the blocks in at most `limit` characters; the last line counts the lines and names that are cut."""
    return _fitted(blocks, limit).text


def _fitted(blocks: Iterable[MarkdownBlock], limit: int) -> _Page:
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
    left_out = [
        line
        for (_, lines), numbers in zip(fitting, printed, strict=True)
        for n, line in enumerate(lines)
        if n not in numbers
    ]
    unnamed = sum(lines[n].unnamed for (_, lines), numbers in zip(fitting, printed, strict=True) for n in numbers)
    text = "\n\n".join((*pages, *_cut(len(left_out), unnamed))) + "\n"
    return _Page(
        text, bool(left_out or unnamed), all(line.rank is not Rank.REMOVAL or line.resources == 1 for line in left_out)
    )


def _more(resources: int, block: MarkdownBlock) -> str:
    return f"… and {number(resources)} {block.more}" if resources and block.more else ""


def _cut(lines: int, names: int) -> Iterator[str]:
    """Yield a sentence on the number of lines and names that are cut, if any."""
    missing = ((lines, "more line"), (names, "more name"))
    parts = [count_of(count, noun) for count, noun in missing if count]
    if parts:
        verb = "is" if lines + names == 1 else "are"
        missing_parts = f"{' and '.join(parts)} {verb} left out"
        yield f"**Shortened: {missing_parts}.** The JSON format and the HTML page show everything."


def _ranked(line: str | Ranked) -> Ranked:
    return line if isinstance(line, Ranked) else Ranked(line, Rank.FIRST)


def _printed(fitting: Sequence[tuple[MarkdownBlock, Sequence[Ranked]]], room: int) -> list[dict[int, None]]:
    """Return for each block the numbers of the lines that fit into `room`, chosen rank by rank."""
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
    """Return the text as a code span whose fence is longer than any run of backticks inside."""
    return _span(cut(visible(text), _LONGEST_CODE))


def _span(text: str) -> str:
    if not text.strip():
        return f"<code>{text}</code>"
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    pad = " " if "`" in (text[0], text[-1]) else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def prose(text: str, *, links: bool = False) -> str:
    """Return a sentence without markup, HTML, mentions and references; URLs become links only with `links`.

    Approvals in the sentence are put into code spans, so that they can be copied.
    """
    return "".join(code(part) if n % 2 else _plain(part, links=links) for n, part in enumerate(_COPIED.split(text)))


def _plain(text: str, *, links: bool) -> str:
    escaped = _PUNCTUATION.sub(r"\\\1", escape(visible(text), quote=False))
    unlinked = escaped if links else _ADDRESS.sub(r"\g<0>&#8203;", escaped)
    return _REFERENCE.sub(r"\g<0>&#8203;", unlinked).replace("@", "@&#8203;").replace("\\#", "#&#8203;")


def _opening(view: PlanView, *, is_abridged: bool) -> Iterator[str]:
    _, *lines, last = view.head
    yield from (*(f"{prose(line, links=True)}  " for line in lines), prose(last, links=True), "")
    yield from _table(view.own.summary)
    if is_abridged:
        yield from ("", prose(ABRIDGED))


def _table(summary: Summary) -> Iterator[str]:
    """Yield a table of the counts of a plan, side by side."""
    cells = [(word.removeprefix("to "), getattr(summary, action.word)) for action, word in TO_DO.items()]
    cells += [("tags deleted with a category", summary.cascaded_tags), ("unchanged", summary.unchanged)]
    cells += [("requests", summary.requests)]
    yield f"| {' | '.join(name for name, _ in cells)} |"
    yield "|" + " ---: |" * len(cells)
    yield f"| {' | '.join(number(count) for _, count in cells)} |"


def _denials(view: PlanView) -> Iterator[MarkdownBlock]:
    if view.denials:
        yield MarkdownBlock(f"> **{prose(view.denied)}**\n>", [f"> - {_diagnostic(d)}" for d in view.denials])


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
        lines += [">", "> To approve, add these lines to the project file and have them reviewed:", ">"]
        lines += [*(f"> {line}" for line in block), ">"]
        whole = f"> Or approve {everything(gate)}, once: {code(f'--approve-deletes {approve}')}."
        lines += [whole] if approve else []
    yield MarkdownBlock(f"> **{prose(gate_heading(gate))}**\n>", lines)


def _unit(line: UnitLine) -> str:
    return f"{line.mark} {prose(line.what)}: {prose(line.how)}{code(line.approve) if line.approve else ''}"


def diagnostic_blocks(diagnostics: Iterable[Diagnostic]) -> Iterator[MarkdownBlock]:
    """Yield a block of diagnostics: errors one by one, and many similar warnings as one line with an example."""
    found = list(diagnostics)
    errors = [f"- {_diagnostic(each)}" for each in merged(d for d in found if d.severity is Severity.ERROR)]
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
    """Return a section that is open when it is short, and otherwise folded behind its title."""
    if len(lines) <= OPEN_ROWS:
        return MarkdownBlock(f"#### {prose(title)}\n", lines)
    return MarkdownBlock(f"<details><summary><b>{escape(title)}</b></summary>\n", lines, "</details>")


def _section(section: Section, lines: Sequence[Ranked]) -> Iterator[MarkdownBlock]:
    """Yield a section with its first rows and its groups open, and other rows folded between them."""
    heading = [f"#### {prose(section.title)}\n", *(f"{prose(sentence)}\n" for sentence in section.says)]
    first, last = _open_rows(section.rows)
    blocks = [MarkdownBlock("", [*heading, *lines[:first]])]
    if first < last:
        summary = f"<details><summary>{count_of(last - first, 'more row')}</summary>\n"
        blocks.append(MarkdownBlock(summary, lines[first:last], "</details>"))
    if lines[last:]:
        blocks.append(MarkdownBlock("", lines[last:]))
    yield from (*blocks[:-1], blocks[-1]._replace(more=section.more))


def _open_rows(rows: Sequence[SectionRow]) -> tuple[int, int]:
    """Return the range of rows to fold: those of single resources, except for the first few."""
    if len(rows) <= OPEN_ROWS:
        return len(rows), len(rows)
    first = next((n for n, row in enumerate(rows) if not row.label and n >= OPEN_ROWS), len(rows))
    last = next((n for n, row in enumerate(rows) if row.label and n > first), len(rows))
    return first, last


def _row(row: SectionRow, look: Look, names: int) -> tuple[str, int]:
    """Return the text of a row, and the number of its group's names that are left out."""
    subject = f"**{prose(row.subject)}**" if row.label else f"**{_span(row.subject)}**"
    parts = [code(row.symbol), subject, *(_span(str(detail)) for detail in row.details)]
    parts += [_span(row.example)] if row.example else []
    parts += [f"— {_place(row, look)}"] if row.place else []
    margin = "  " * row.depth
    listed, unnamed = _names(row.names, names, f"{margin}  ") if row.label else ("", 0)
    return f"{margin}- {' '.join(parts)}{listed}", unnamed


def _place(row: SectionRow, look: Look) -> str:
    """Return the place of a row, linked to its line when the host of the repository is known."""
    address = "" if row.label else row.members[0].link(look)
    return f"[{code(row.place)}](<{address}>)" if address else code(row.place)


def _names(names: Sequence[str], room: int, margin: str) -> tuple[str, int]:
    """Return the names of a group that fit into `room`, folded behind the first few, and the number left out."""
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
