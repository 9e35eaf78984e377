"""Plan → one self-contained HTML page: no script, nothing loaded from elsewhere, everything escaped; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import chain
from textwrap import dedent

from syncengine.errors import Diagnostic
from syncengine.plan.gate import Gate
from syncengine.plan.model import Plan, Summary
from syncengine.render.change_details import ChangeDetail, Span, SpanMark
from syncengine.render.denials import denials, others
from syncengine.render.denials import heading as heading_of_denials
from syncengine.render.diagnostics import message, tally, where
from syncengine.render.escape import visible
from syncengine.render.gate import UnitLine, heading, more_units, unit_lines
from syncengine.render.rows import Fold, Member, Section, SectionRow
from syncengine.render.style import PLAIN, Look, Tone
from syncengine.render.stylesheet import STYLESHEET
from syncengine.render.text import approval_lines
from syncengine.render.two_sides import (
    first_sentence,
    own_part,
    said_first,
    tripped_by,
    waiting_line,
    waiting_part,
)
from syncengine.render.view import ABRIDGED, headline, is_abridged, scope, sections_of
from syncengine.render.words import FEW, TO_DO, among, number
from syncengine.render.words import place as placed

WHOLE = 2_000
"""Changes up to which a page shows each by itself; a browser chokes on many more."""

MEMBERS = 1_000
"""The most names behind one folded row."""

ELEMENTS = {SpanMark.OLD: "del", SpanMark.NEW: "ins"}

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def plan_html(plan: Plan, look: Look = PLAIN) -> str:
    own, foremost = own_part(plan), said_first(plan)
    sections = sections_of(own, _fold(plan, look))
    body = chain(
        (_tagged("p", "says", _said(first_sentence(diagnostic))) for diagnostic in foremost),
        _opening(own),
        _denials(denials(plan.diagnostics)),
        _gate(plan.gate, tripped_by(plan.base)),
        chain.from_iterable(map(_section, sections)),
        _waiting(plan, look),
        _diagnostics([d for d in others(plan.diagnostics) if d not in foremost]),
        [f'<p class="quiet">{ABRIDGED}</p>'] if is_abridged(sections) else [],
    )
    return _PAGE.format(title=_said(headline(plan)), style=STYLESHEET, body="\n".join(body))


def _waiting(plan: Plan, look: Look) -> Iterator[str]:
    """The changes that are not the pull request's, folded behind one line."""
    if (waiting := waiting_part(plan)) is not None:
        yield f'<details class="waiting"><summary>{_said(waiting_line(waiting))}</summary>'
        yield from chain.from_iterable(map(_section, sections_of(waiting, _fold(plan, look))))
        yield "</details>"


def trouble_html(diagnostics: Sequence[Diagnostic], look: Look = PLAIN) -> str:
    """The errors that prevented a plan, in its place."""
    body = chain(["<header><h1>No plan</h1></header>"], _diagnostics(diagnostics))
    return _PAGE.format(title=f"No plan: {_said(tally(diagnostics))}", style=STYLESHEET, body="\n".join(body))


def _fold(plan: Plan, look: Look) -> Fold:
    if look.verbose:
        return Fold.NOTHING
    return Fold.SAME if len(plan.changes) <= WHOLE else Fold.LONG


def _said(text: str) -> str:
    """Any text as the text of an element or an attribute."""
    return escape(visible(text))


def _tagged(tag: str, css: str, inner: str) -> str:
    """An element around HTML."""
    return f'<{tag} class="{css}">{inner}</{tag}>'


def _opening(plan: Plan) -> Iterator[str]:
    yield f"<header><h1>{'Plan' if plan.changes_something else _said(headline(plan))}</h1>"
    yield f'<p class="quiet">{_said(" ".join(filter(None, (scope(plan), among(plan.summary)))))}</p>'
    commit = f", commit {plan.basis.commit}" if plan.basis.commit else ""
    yield f'<p class="quiet">Plan {_said(plan.id)}, made {_said(plan.basis.created)}{_said(commit)}.</p></header>'
    yield f'<ul class="counts">{"".join(_counts(plan.summary))}</ul>'


def _counts(summary: Summary) -> Iterator[str]:
    counts = [(word, getattr(summary, action.word)) for action, word in TO_DO.items()]
    for word, count in (*counts, ("unchanged", summary.unchanged), ("requests", summary.requests)):
        if count:
            yield f"<li><b>{number(count)}</b>{word}</li>"


def _denials(found: Sequence[Diagnostic]) -> Iterator[str]:
    if found:
        yield f'<section class="{Tone.ERROR.value}"><h2>{_said(heading_of_denials(found))}</h2><ul class="rows">'
        yield from map(_diagnostic, found)
        yield "</ul></section>"


def _gate(gate: Gate, whose: str | None = None) -> Iterator[str]:
    if not gate.shown:
        return
    tone = Tone.ERROR if gate.is_closed else Tone.NOTE
    yield f'<section class="{tone.value}"><h2>{_said(heading(gate))}</h2>'
    if whose:
        yield _tagged("p", "says", _said(whose))
    more = "".join(f"<li>{_said(text)}</li>" for text in [more_units(gate)] if text)
    yield f'<ul class="units">{"".join(map(_unit, unit_lines(gate)))}{more}</ul>'
    if gate.reasons:
        yield f"<ul>{''.join(f'<li>{_said(reason)}</li>' for reason in gate.reasons)}</ul>"
    if gate.is_closed:
        lines = "\n".join(map(_said, approval_lines(gate)))
        yield f"<pre>{dedent(lines)}</pre>"
    yield "</section>"


def _unit(line: UnitLine) -> str:
    approve = f"<code>{_said(line.approve)}</code>" if line.approve else ""
    return f"<li>{_said(f'{line.mark} {line.what}: {line.how}')}{approve}</li>"


def _section(section: Section) -> Iterator[str]:
    yield f'<section class="{section.tone.value}"><h2>{_said(section.title)}</h2>'
    yield from (_tagged("p", "says", _said(sentence)) for sentence in section.says)
    yield '<ul class="rows">'
    yield from map(_row, section.rows)
    yield "</ul></section>"


def _row(row: SectionRow) -> str:
    details = "".join(map(_detail, row.details))
    middle = _tagged("span", "name", _said(row.subject)) + details + (_members(row.members) if row.label else "")
    parts = (_tagged("span", "symbol", _said(row.symbol)), f"<div>{middle}</div>")
    where = _tagged("span", "place", _said(row.place)) if row.place else ""
    deep = ' class="deep"' if row.depth else ""
    return f"<li{deep}>{''.join(parts)}{where}</li>"


def _detail(detail: ChangeDetail) -> str:
    label = _tagged("span", "label", f"{_said(detail.label)}: ") if detail.label else ""
    return _tagged("span", "detail", label + "".join(map(_span, detail.spans)))


def _span(span: Span) -> str:
    if element := ELEMENTS.get(span.mark):
        return f"<{element}>{_said(span.text)}</{element}>"
    return _tagged("span", "remark", _said(span.text)) if span.mark is SpanMark.REMARK else _said(span.text)


def _members(members: Sequence[Member]) -> str:
    """The first few names, and all of them behind a click."""
    first = ", ".join(_said(member.name) for member in members[:FEW])
    items = "".join(f"<li><code>{_member(member)}</code></li>" for member in members[:MEMBERS])
    rest = len(members) - MEMBERS
    more = f"<p>… and {number(rest)} more; the JSON plan lists all.</p>" if rest > 0 else ""
    return f'<details><summary>{first} …</summary><ul class="members">{items}</ul>{more}</details>'


def _member(member: Member) -> str:
    where = f' <span class="place">{_said(placed(member.source))}</span>' if member.source else ""
    return f"{_said(member.name)}{where}"


def _diagnostics(diagnostics: Sequence[Diagnostic]) -> Iterator[str]:
    if diagnostics:
        yield f'<section class="warning"><h2>{_said(tally(diagnostics))}</h2><ul class="rows">'
        yield from map(_diagnostic, diagnostics)
        yield "</ul></section>"


def _diagnostic(diagnostic: Diagnostic) -> str:
    name = _tagged("span", "name", _said(f"{diagnostic.severity.value}[{diagnostic.code}]"))
    text = f"<div>{name} {_said(message(diagnostic))}</div>"
    place = _tagged("span", "place", _said(where(diagnostic).removesuffix(": ")))
    return f"<li>{_tagged('span', 'symbol', '!')}{text}{place}</li>"
