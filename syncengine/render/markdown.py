"""Plan, report or errors → Markdown for a comment, in which no text acts as markup or mentions people; pure.

The templates escape every text (`prose`); names and values are in code spans, where markup, HTML and mentions have no
effect. A host's limit is kept by showing fewer rows and names of each section.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from html import escape
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from syncengine.apply.report import Outcome
from syncengine.errors import Diagnostic, Severity
from syncengine.render.diagnostics import merged, message, tally, where
from syncengine.render.documents import diagnostics_of
from syncengine.render.escape import cut, visible
from syncengine.render.fold import SAME
from syncengine.render.formats import PlanFormat, ReportFormat, ResultItem
from syncengine.render.report import PLACES, TROUBLES, alike, headline, next_step, sent_as, session_sentence, words
from syncengine.render.sections import Fold, Member, Section, SectionRow
from syncengine.render.style import PLAIN, Look
from syncengine.render.view import ABRIDGED, first_sentence, view_of
from syncengine.render.words import FEW, count_of, number, place

LIMIT = 60_000
"""The largest number of characters of a comment; hosts reject longer ones (GitHub above 65,536)."""

OPEN_ROWS = 12  # about one screen
"""The number of rows of a section that are shown without a click."""

SHORTEST_ROW, SHORTEST_NAME = 40, 5
"""The least characters that a row and a name take, by which a limit bounds their numbers."""

_LONGEST_CODE = 500  # longer values would leave no room for other rows
_COPIED = re.compile(
    r"((?:--approve-deletes )?(?<![0-9A-Za-z@])(?:[0-9]+@[0-9A-Za-z]{6,}|COUNT@HASH)(?![0-9A-Za-z.@-]))"
)
"""An approval within a sentence."""
_REFERENCE = re.compile(r"(?:[!%$^]|\\~|&amp;|\bGH)(?=[\w\"-])")
_ADDRESS = re.compile(r"\bwww(?=\.)|:(?=//)", re.IGNORECASE)
"""The beginnings of texts that a host would turn into a link; an invisible space after them prevents that."""
_PUNCTUATION = re.compile(r"([\\`*_\[\]#|~])")

Size = Callable[[str], int]
"""A host's measure of a text, in which its limit is given."""


def plan_markdown(plan: PlanFormat, look: Look = PLAIN, limit: int = LIMIT, size: Size = len) -> str:
    """Return the plan as Markdown: summary table and gate, which are never cut, then sections and diagnostics."""
    look = replace(look, links=look.links.at(plan.commit, plan.base.commit if plan.base else ""))
    view = view_of(plan, look, Fold.NOTHING if look.verbose else Fold.LONG, limit // SHORTEST_ROW)
    # The texts of rows are made once for however many trials of their number.
    sections = [(section, [_row(row, look) for row in section.rows]) for section in view.sections]
    # The places of waiting changes are those of another commit than the pull request's.
    elsewhere = replace(look, links=look.links.at(None))
    others = view.waiting.sections if view.waiting else ()
    waiting = [(section, [_row(row, elsewhere) for row in section.rows]) for section in others]
    diagnostics = diagnostic_rows(view.diagnostics)

    def page(removals: int, most: int) -> str:
        shown = [_first(section, texts, removals if section.is_removal else most) for section, texts in sections]
        also = [_first(section, texts, most) for section, texts in waiting]
        is_short = any(each.is_short for each in (*shown, *also)) or len(diagnostics) > most
        return rendered(
            "plan.markdown.j2",
            view=view,
            sections=shown,
            waiting=also,
            diagnostics=diagnostics[:most],
            diagnostic_count=len(view.diagnostics),
            denials=list(map(_diagnostic, view.denials)),
            counts=[(count.word, number(count.number)) for count in view.counts],
            abridged=ABRIDGED if is_short or view.is_abridged else "",
            is_short=is_short,
            job=look.job,
        )

    whole = limit // SHORTEST_NAME
    # Removals are thinned out last, since nobody declares what goes.
    if size(page(whole, 0)) <= limit:
        return fitted(lambda most: page(whole, most), limit, size)
    return fitted(lambda most: page(most, 0), limit, size)


def report_markdown(report: ReportFormat, look: Look = PLAIN, limit: int = LIMIT, size: Size = len) -> str:
    """Return headline, counts, sync session, next step, changes by outcome, and diagnostics, in `limit` units."""
    diagnostics = diagnostics_of(report.diagnostics)
    counts = ("applied", "failed", "skipped", "unknown", "requests", "retries")
    about = {name: getattr(report, name) for name in ("team", "environment", "commit", "tree")}
    about |= {"by": report.actor} | {name: getattr(report, name) for name in ("job", "started", "ended")}
    groups = alike(report)
    applied = [each for each in report.results if each.outcome is Outcome.APPLIED]
    lists = [
        (
            f"Not applied: {count_of(sum(map(len, groups)), 'change')}",
            [r for group in groups for r in _troubles(group)],
        ),
        (
            f"Applied: {count_of(len(applied), 'change')}",
            [as_markdown(f"- {each.action} {_located(each)}") for each in applied],
        ),
        (f"Diagnostics ({number(len(diagnostics))})", diagnostic_rows(diagnostics)),
    ]
    return fitted(
        lambda most: rendered(
            "report.markdown.j2",
            headline=headline(report),
            counts=[(name, number(getattr(report.summary, name))) for name in counts],
            about=[
                *(as_markdown(f"{name} {code(value)}") for name, value in about.items() if value),
                *(as_markdown(f"approved {code(each.approve)} ({code(str(each))})") for each in report.approvals),
            ],
            sentences=(session_sentence(report.session), next_step(report)),
            lists=[(title, rows[:most]) for title, rows in lists],
            is_short=any(len(rows) > most for _, rows in lists),
            job=look.job,
        ),
        limit,
        size,
    )


def _troubles(group: Sequence[ResultItem]) -> Iterator[Markup]:
    """Yield one row for a single change, or several addresses below their common message."""
    first = group[0]
    trouble = f"{TROUBLES[first.outcome].code}: {code(words(first))}{prose(sent_as(first.error))}"
    if len(group) == 1:
        yield as_markdown(f"- {_located(first)}: {trouble}")
        return
    yield as_markdown(f"- **{count_of(len(group), 'change')}**: {trouble}")
    yield from (as_markdown(f"  - {_located(result)}") for result in group[:PLACES])
    if len(group) > PLACES:
        yield as_markdown(f"  - … and {number(len(group) - PLACES)} more")


def _located(result: ResultItem) -> str:
    where = f" — {code(place(result.source))}" if result.source else ""
    return f"{code(result.address)}{where}"


def trouble_markdown(
    diagnostics: Sequence[Diagnostic], look: Look = PLAIN, limit: int = LIMIT, size: Size = len
) -> str:
    """Return the errors that prevented a plan, as Markdown."""
    return errors_markdown(f"No plan: {tally(diagnostics)}.", diagnostics, look, limit, size)


def errors_markdown(
    heading: str, diagnostics: Sequence[Diagnostic], look: Look = PLAIN, limit: int = LIMIT, size: Size = len
) -> str:
    """Return a heading and the diagnostics below it, as Markdown."""
    rows = [as_markdown(f"- {_diagnostic(each)}") for each in merged(diagnostics)]
    return fitted(
        lambda most: rendered(
            "errors.markdown.j2", heading=heading, rows=rows[:most], is_short=len(rows) > most, job=look.job
        ),
        limit,
        size,
    )


def rendered(template: str, **values: object) -> str:
    """Return a template with these values, in which at most one line is empty between two others."""
    return re.sub(r"\n{3,}", "\n\n", _environment().get_template(template).render(values)).strip("\n") + "\n"


def fitted(page: Callable[[int], str], limit: int, size: Size) -> str:
    """Return the page with the largest number of rows and names that takes at most `limit` units of `size`.

    A page that is too long even without rows ends where the limit is.
    """
    fits, too_many = 0, limit // SHORTEST_NAME
    if size(whole := page(too_many)) <= limit:
        return whole
    best = page(fits)
    # To the nearest row or, of very many, to 2 %: each step lays the whole page out again.
    while too_many - fits > max(1, fits // 50):
        most = (fits + too_many) // 2
        if size(text := page(most)) <= limit:
            fits, best = most, text
        else:
            too_many = most
    if size(best) <= limit:
        return best
    note = "\n**Shortened.**\n"
    room, lines = limit - size(note), list[str]()
    for line in best.splitlines(keepends=True):
        room -= size(line)
        if room < 100:  # the note, and the end of what this line may have opened
            break
        lines.append(line)
    kept = "".join(lines)
    return kept + "\n</details>\n" * (kept.count("<details>") - kept.count("</details>")) + note


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("syncengine.render"),
        autoescape=True,  # so that what macros return, which is escaped, is told apart from texts
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) else as_markdown(prose(str(value))),
    )
    environment.filters |= {
        "code": lambda text: as_markdown(code(text)),
        "count_of": count_of,
        "first_sentence": first_sentence,
        "html": lambda text: as_markdown(escape(visible(text))),
        "linked": lambda text: as_markdown(prose(text, links=True)),
        "number": number,
        "prose": lambda text: as_markdown(prose(text)),
    }
    environment.globals["OPEN_ROWS"] = OPEN_ROWS
    return environment


# --- texts


def as_markdown(text: str) -> Markup:
    """Mark a text as Markdown, in which texts from outside are escaped, so that templates keep it as it is."""
    return Markup(text)  # noqa: S704 - every part of the text is escaped already


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
    parts = _COPIED.split(text)
    for n in range(0, len(parts), 2):  # between the approvals
        part = _PUNCTUATION.sub(r"\\\1", escape(visible(parts[n]), quote=False))
        part = part if links else _ADDRESS.sub(r"\g<0>&#8203;", part)
        parts[n] = _REFERENCE.sub(r"\g<0>&#8203;", part).replace("@", "@&#8203;").replace("\\#", "#&#8203;")
    return "".join(code(part) if n % 2 else part for n, part in enumerate(parts))


# --- diagnostics


def diagnostic_rows(diagnostics: Iterable[Diagnostic]) -> list[Markup]:
    """Return a row for each error, and for each warning or, of many similar ones, for all with an example."""
    found = list(diagnostics)
    rows = list(map(_diagnostic, merged(each for each in found if each.severity is Severity.ERROR)))
    groups = defaultdict[object, list[Diagnostic]](list)
    for each in found:
        if each.severity is not Severity.ERROR:
            groups[each.code, each.rule].append(each)
    for first, *others in groups.values():
        if len(others) + 1 < SAME:
            rows += map(_diagnostic, (first, *others))
        else:
            label = f"**{number(len(others) + 1)} ×** **{first.severity.value}** {code(first.code)}"
            rows.append(f"{label}, e.g. {_place_of(first)}{prose(message(first))}")
    return [as_markdown(f"- {row}") for row in rows]


def _diagnostic(diagnostic: Diagnostic) -> str:
    label = f"{_place_of(diagnostic)}**{diagnostic.severity.value}** {code(diagnostic.code)}"
    return as_markdown(f"{label}: {prose(message(diagnostic))}")


def _place_of(diagnostic: Diagnostic) -> str:
    return f"{code(where(diagnostic).removesuffix(': '))} " if diagnostic.file else ""


# --- sections and rows


class _ShownSection(NamedTuple):
    """A section with its first rows, of which those from `folds[0]` to `folds[1]` need a click.

    `hidden` is the number of resources in rows that are not shown; `is_short` also where only names are left out.
    """

    section: Section
    rows: Sequence[str]
    folds: tuple[int, int]
    hidden: int
    is_short: bool


def _first(section: Section, texts: Sequence[str], most: int) -> _ShownSection:
    """Return the section with at most `most` of its rows, whose texts are given, and as many names in each of them."""
    rows, hidden = section.rows[:most], section.rows[most:]
    shown = [
        as_markdown(text + _names(row.members, most, "  " * (row.depth + 1)) if row.label else text)
        for row, text in zip(rows, texts, strict=False)
    ]
    # Rows of single resources are folded, except for the first few.
    first = next((n for n, row in enumerate(rows) if not row.label and n >= OPEN_ROWS), len(rows))
    last = next((n for n, row in enumerate(rows) if row.label and n > first), len(rows))
    is_short = bool(hidden) or any(row.label and len(row.members) > max(most, FEW) for row in rows)
    return _ShownSection(section, shown, (first, last), sum(len(row.members) for row in hidden), is_short)


def _row(row: SectionRow, look: Look) -> str:
    subject = f"**{prose(row.subject) if row.label else _span(row.subject)}**"
    parts = [code(row.symbol), subject, *(_span(str(detail)) for detail in row.details)]
    parts += [_span(row.example)] if row.example else []
    if row.place:
        address = "" if row.label else row.members[0].link(look)
        parts.append(f"— [{code(row.place)}](<{address}>)" if address else f"— {code(row.place)}")
    return f"{'  ' * row.depth}- {' '.join(parts)}"


def _names(members: Sequence[Member], most: int, margin: str) -> str:
    """Return the names of a group, folded behind the first few; `most` of them, which says how many are left out."""
    names = [member.name for member in members[: max(most, FEW)]]
    first = ", ".join(f"<code>{escape(cut(visible(name), _LONGEST_CODE))}</code>" for name in names[:FEW])
    return (
        f"\n{margin}<details><summary>{first}{_and_more(len(members) - FEW)}</summary>\n\n"
        f"{margin}{', '.join(map(code, names))}{_and_more(len(members) - len(names))}\n\n{margin}</details>"
    )


def _and_more(count: int) -> str:
    return f" … and {number(count)} more" if count > 0 else ""
