"""Plan → one self-contained HTML page with search and filters: nothing is loaded, everything is escaped; pure.

The page's security policy allows only its own script and style, by their digests. Without scripts the page shows the
same plan, but has no search and no filters.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from html import escape
from itertools import chain
from textwrap import dedent

from syncengine.errors import Diagnostic
from syncengine.plan.diff import Action
from syncengine.plan.gate import Gate
from syncengine.plan.model import ChangeOrigin, Plan, Summary
from syncengine.render.change_details import ChangeDetail, Span, SpanMark
from syncengine.render.denials import denials, others
from syncengine.render.denials import heading as heading_of_denials
from syncengine.render.diagnostics import merged, message, tally, where
from syncengine.render.escape import visible
from syncengine.render.gate import UnitLine, heading, more_units, to_approve, unit_lines
from syncengine.render.page_script import SCRIPT
from syncengine.render.repo_paths import link_to
from syncengine.render.rows import Fold, Member, Section, SectionRow
from syncengine.render.since import excess_lines, since_heading, verdict
from syncengine.render.style import PLAIN, Look, Tone
from syncengine.render.stylesheet import STYLESHEET
from syncengine.render.text import approval_lines
from syncengine.render.two_sides import (
    SHORT,
    first_sentence,
    own_part,
    said_first,
    tripped_by,
    waiting_line,
    waiting_part,
    warned_first,
)
from syncengine.render.view import NOTE_SYMBOL, head_lines, headline, sections_of
from syncengine.render.words import FEW, TO_DO, minute, number, plural

ELEMENTS = {SpanMark.OLD: "del", SpanMark.NEW: "ins"}

ACTIONS = {**{action.value: action.word for action in Action}, NOTE_SYMBOL: "note"}
"""The name of each symbol, for the filter by action."""

FILTERS = ("action", "kind", "file", "origin")

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}
</main>
{script}</body>
</html>
"""


def plan_html(plan: Plan, look: Look = PLAIN) -> str:
    look = replace(look, links=look.links.at(plan.basis.commit, plan.base.commit if plan.base else ""))
    own, foremost, first = own_part(plan), said_first(plan), warned_first(plan)
    sections = list(_sections(own, look, ChangeOrigin.PULL_REQUEST if plan.base else None))
    waiting = list(_waiting(plan, look))
    body = chain(
        (_foremost(diagnostic) for diagnostic in (*foremost, *first)),
        _opening(own),
        _denials(denials(plan.diagnostics)),
        _gate(plan.gate, look, tripped_by(plan), is_undo=bool(plan.undo)),
        _since(plan),
        [_FILTERS] if sections or waiting else [],
        sections,
        waiting,
        _diagnostics([d for d in others(plan.diagnostics) if d not in (*foremost, *first)]),
    )
    return _page(_text(headline(plan)), body, SCRIPT)


def _sections(plan: Plan, look: Look, origin: str | None) -> Iterator[str]:
    fold = Fold.NOTHING if look.verbose else Fold.BEHIND
    return chain.from_iterable(_section(section, look, origin) for section in sections_of(plan, fold))


def _since(plan: Plan) -> Iterator[str]:
    if plan.since:
        yield f"<section><h2>{_text(since_heading(plan.since))}</h2><p>{_text(verdict(plan.since))}</p>"
        yield f"<ul>{''.join(f'<li>{_text(line)}</li>' for line in excess_lines(plan.since))}</ul></section>"


def _waiting(plan: Plan, look: Look) -> Iterator[str]:
    """Yield the changes from outside the pull request, folded behind one line."""
    if (waiting := waiting_part(plan)) is not None:
        yield f'<details class="waiting"><summary>{_text(waiting_line(waiting))}</summary>'
        yield from _sections(waiting, replace(look, links=look.links.at(None)), ChangeOrigin.WAITING)
        yield "</details>"


def trouble_html(diagnostics: Sequence[Diagnostic], look: Look = PLAIN) -> str:
    """Return a page with the errors that prevented a plan."""
    body = chain(["<header><h1>No plan</h1></header>"], _diagnostics(diagnostics))
    return _page(f"No plan: {_text(tally(diagnostics))}", body)


def _page(title: str, body: Iterator[str], script: str = "") -> str:
    scripts = f"script-src {_digest(script)}; " if script else ""
    policy = f"default-src 'none'; {scripts}style-src {_digest(STYLESHEET)}; base-uri 'none'; form-action 'none'"
    element = f"<script>{script}</script>\n" if script else ""
    return _PAGE.format(title=title, policy=policy, style=STYLESHEET, body="\n".join(body), script=element)


def _digest(text: str) -> str:
    """Return the source of a content security policy that allows exactly this text."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


_FILTERS = (
    '<div id="filters" role="search" hidden><input id="search" type="search" placeholder="Search names and values" '
    'aria-label="Search names and values" autocomplete="off" spellcheck="false">'
    + "".join(f'<select id="{name}" aria-label="{name}" hidden></select>' for name in FILTERS)
    + '<button id="clear" type="button" hidden>Clear</button><output id="shown" aria-live="polite"></output></div>'
)


def _text(text: str) -> str:
    """Return any text escaped for an element or an attribute."""
    return escape(visible(text))


def _tagged(tag: str, css: str, inner: str) -> str:
    """Return an element around `inner`, which is HTML."""
    return f'<{tag} class="{css}">{inner}</{tag}>'


def _opening(plan: Plan) -> Iterator[str]:
    first, *lines = head_lines(plan)
    yield f"<header><h1>{_text(first)}</h1>"
    yield from (f'<p class="quiet">{_text(line)}</p>' for line in lines)
    made = f"made {_text(minute(plan.basis.created))}{_commit(plan.basis.commit)}"
    yield f'<p class="quiet">Plan {_text(plan.id)}, {made}.</p></header>'
    yield f'<ul class="counts">{"".join(_counts(plan.summary))}</ul>'


def _commit(commit: str | None) -> str:
    """Return a commit's first letters, with the whole id as a tooltip; empty without a commit."""
    return f', commit <span title="{_text(commit)}">{_text(commit[:SHORT])}</span>' if commit else ""


def _foremost(diagnostic: Diagnostic) -> str:
    return f'<section class="warning"><h2>{_text(first_sentence(diagnostic))}</h2></section>'


def _counts(summary: Summary) -> Iterator[str]:
    counts = [(word, getattr(summary, action.word)) for action, word in TO_DO.items()]
    requests = "request" if summary.requests == 1 else plural("request")
    for word, count in (*counts, ("unchanged", summary.unchanged), (requests, summary.requests)):
        if count:
            yield f"<li><b>{number(count)}</b>{word}</li>"


def _denials(found: Sequence[Diagnostic]) -> Iterator[str]:
    if found:
        yield f'<section class="{Tone.ERROR.value}"><h2>{_text(heading_of_denials(found))}</h2><ul class="rows">'
        yield from map(_diagnostic, found)
        yield "</ul></section>"


def _gate(gate: Gate, look: Look, whose: str | None = None, *, is_undo: bool = False) -> Iterator[str]:
    if not gate.shown:
        return
    tone = Tone.ERROR if gate.is_closed else Tone.NOTE
    yield f'<section class="{tone.value}"><h2>{_text(heading(gate))}</h2>'
    if whose:
        yield _tagged("p", "says", _text(whose))
    more = "".join(f"<li>{_text(text)}</li>" for text in [more_units(gate)] if text)
    yield f'<ul class="units">{"".join(map(_unit, unit_lines(gate)))}{more}</ul>'
    if gate.reasons:
        yield f"<ul>{''.join(f'<li>{_text(reason)}</li>' for reason in gate.reasons)}</ul>"
    if to_approve(gate):
        lines = "\n".join(map(_text, approval_lines(gate, look, is_undo=is_undo)))
        yield f"<pre>{dedent(lines)}</pre>"
    yield "</section>"


def _unit(line: UnitLine) -> str:
    approve = f"<code>{_text(line.approve)}</code>" if line.approve else ""
    return f"<li>{_text(f'{line.mark} {line.what}: {line.how}')}{approve}</li>"


def _section(section: Section, look: Look, origin: str | None) -> Iterator[str]:
    yield f'<section class="{section.tone.value} changes"><h2>{_text(section.title)}</h2>'
    yield from (_tagged("p", "says", _text(sentence)) for sentence in section.says)
    yield '<ul class="rows">'
    for row in section.rows:
        yield _group(row, look, origin) if row.label else _row(row, look, origin)
    yield "</ul></section>"


def _row(row: SectionRow, look: Look, origin: str | None) -> str:
    """Return the row of one resource, with attributes that the filters read."""
    member = row.members[0]
    deep = ' class="deep"' if row.depth else ""
    return (
        f'<li{deep} data-action="{ACTIONS[row.symbol]}"{_facets(member, origin)}>'
        f'<span class="symbol">{row.symbol}</span>'
        f'<div><span class="name">{_text(member.name)}</span>{"".join(map(_detail, row.details))}</div>'
        f"{_place(row, look)}</li>"
    )


def _facets(member: Member, origin: str | None) -> str:
    file = f' data-file="{_text(member.source.file)}"' if member.source else ""
    return f' data-kind="{member.kind}"{file}' + (f' data-origin="{origin}"' if origin else "")


def _place(row: SectionRow, look: Look) -> str:
    """Return the place of a row, linked to its line when the host of the repository is known."""
    if not row.place:
        return ""
    address = link_to(row.members[0], look) if not row.label else ""
    if not address:
        return _tagged("span", "place", _text(row.place))
    return f'<a class="place" href="{escape(address)}" rel="noreferrer">{_text(row.place)}</a>'


def _group(row: SectionRow, look: Look, origin: str | None) -> str:
    """Return the row of similar resources: their common change, an example, and each resource behind a click."""
    deep = " deep" if row.depth else ""
    details = "".join(map(_detail, row.details))
    example = _tagged("span", "detail remark", _text(row.example)) if row.example else ""
    names = ", ".join(_text(member.name) for member in row.members[:FEW])
    more = f" … and {number(len(row.members) - FEW)} more" if len(row.members) > FEW else ""
    rows = "\n".join(_row(each, look, origin) for each in row.rows)
    return (
        f'<li class="group{deep}"><span class="symbol">{row.symbol}</span><div><span class="name">{_text(row.label)}'
        f"</span>{details}{example}<details><summary>{names}{more}</summary>"
        f'<ul class="rows">{rows}</ul></details></div>{_place(row, look)}</li>'
    )


def _detail(detail: ChangeDetail) -> str:
    label = _tagged("span", "label", f"{_text(detail.label)}: ") if detail.label else ""
    return _tagged("span", "detail", label + "".join(map(_span, detail.spans)))


def _span(span: Span) -> str:
    if element := ELEMENTS.get(span.mark):
        return f"<{element}>{_text(span.text)}</{element}>"
    return _tagged("span", "remark", _text(span.text)) if span.mark is SpanMark.REMARK else _text(span.text)


def _diagnostics(diagnostics: Sequence[Diagnostic]) -> Iterator[str]:
    if diagnostics:
        yield f'<section class="warning"><h2>{_text(tally(diagnostics))}</h2><ul class="rows">'
        yield from map(_diagnostic, merged(diagnostics))
        yield "</ul></section>"


def _diagnostic(diagnostic: Diagnostic) -> str:
    name = _tagged("span", "name", _text(f"{diagnostic.severity.value}[{diagnostic.code}]"))
    text = f"<div>{name} {_text(message(diagnostic))}</div>"
    place = _tagged("span", "place", _text(where(diagnostic).removesuffix(": ")))
    return f"<li>{_tagged('span', 'symbol', '!')}{text}{place}</li>"
