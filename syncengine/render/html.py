"""Plan → one self-contained HTML page with search and filters: nothing is loaded, everything is escaped; pure.

The page's security policy allows only its own script and style, by their digests. Without scripts the page shows the
same plan, but has no search and no filters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape
from itertools import chain
from urllib.parse import urlsplit

from syncengine.errors import Diagnostic, Severity
from syncengine.plan.diff import Action
from syncengine.plan.gate import Gate
from syncengine.plan.model import Basis, ChangeOrigin, Plan
from syncengine.render.denials import denials, others
from syncengine.render.denials import heading as heading_of_denials
from syncengine.render.diagnostics import merged, message, tally, where
from syncengine.render.escape import visible
from syncengine.render.gate import UnitLine, heading, more_units, unit_lines, ways_to_approve
from syncengine.render.page_files import digest, page_file
from syncengine.render.rows import Fold, Member, Section, SectionRow
from syncengine.render.since import excess_lines, since_heading, verdict
from syncengine.render.style import PLAIN, Look, Tone
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
from syncengine.render.values import ChangeDetail, Span, SpanMark
from syncengine.render.view import NOTE_SYMBOL, head_lines, headline, made_public, sections_of
from syncengine.render.words import FEW, TO_DO, minute, number, plural

ELEMENTS = {SpanMark.OLD: "del", SpanMark.NEW: "ins"}

ACTIONS = {**{action.value: action.word for action in Action}, NOTE_SYMBOL: "note"}
"""The name of each symbol, for the filter by action."""

TONES = {Action.CREATE: Tone.CREATE, Action.UPDATE: Tone.UPDATE}
"""The tone of each action; the others remove."""

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
    subject = subject_of(plan.basis, look)
    body = chain(
        _title(subject),
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
    return _page(f"{subject} · {headline(plan)}", body, page_file("plan.js"))


def subject_of(basis: Basis, look: Look) -> str:
    """Return the team, or else the service, with the project and the environment that a plan is for."""
    service = "Embedded sandbox" if basis.base_url == "sandbox" else urlsplit(basis.base_url).netloc
    return " · ".join(filter(None, (basis.team or service, look.project, basis.environment or "")))


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
    subject = " · ".join(filter(None, (look.project, "no plan")))
    return _page(f"{subject} · {tally(diagnostics)}", chain(_title(subject), _diagnostics(diagnostics)))


def _page(title: str, body: Iterator[str], script: str = "") -> str:
    style = page_file("pages.css")
    scripts = f"script-src {digest(script)}; " if script else ""
    policy = f"default-src 'none'; {scripts}style-src {digest(style)}; base-uri 'none'; form-action 'none'"
    element = f"<script>{script}</script>\n" if script else ""
    return _PAGE.format(title=_text(title), policy=policy, style=style, body="\n".join(body), script=element)


_FILTERS = (
    '<div id="filters" role="search" hidden><input id="search" type="search" placeholder="Search names and values" '
    'aria-label="Search names and values" autocomplete="off" spellcheck="false">'
    + "".join(f'<select id="{name}" aria-label="{name}" hidden></select>' for name in FILTERS)
    + '<button id="clear" type="button" hidden>Clear</button><output id="shown" aria-live="polite"></output></div>'
)


def _text(text: str) -> str:
    """Return any text escaped for an element or an attribute."""
    return escape(visible(text))


def _sentence(text: str) -> str:
    """Return a sentence, escaped, with code where it has backticks in pairs."""
    first, *rest = map(_text, text.split("`"))
    if len(rest) % 2:
        return _text(text)
    return first + "".join(f"<code>{code}</code>{more}" for code, more in zip(rest[::2], rest[1::2], strict=True))


def _tagged(tag: str, css: str, inner: str) -> str:
    """Return an element around `inner`, which is HTML."""
    return f'<{tag} class="{css}">{inner}</{tag}>'


def _title(subject: str) -> Iterator[str]:
    yield f'<header><p class="product"><b>syncengine</b> plan</p><h1>{_text(subject)}</h1></header>'


def _opening(plan: Plan) -> Iterator[str]:
    first, *lines = head_lines(plan)
    yield _tagged("p", "lead", _text(first))
    yield from (f'<p class="quiet">{_text(line)}</p>' for line in lines)
    made = f"made {_text(minute(plan.basis.created))}{_commit(plan.basis.commit)}"
    yield f'<p class="quiet">Plan {_text(plan.id)}, {made}.</p>'
    yield f'<ul class="counts">{"".join(_counts(plan))}</ul>'


def _commit(commit: str | None) -> str:
    """Return a commit's first letters, with the whole id as a tooltip; empty without a commit."""
    return f', commit <span title="{_text(commit)}">{_text(commit[:SHORT])}</span>' if commit else ""


def _foremost(diagnostic: Diagnostic) -> str:
    return f'<section class="warning"><h2>{_sentence(first_sentence(diagnostic))}</h2></section>'


def _counts(plan: Plan) -> Iterator[str]:
    """Yield the counters that are not zero, each in the colour of its action; a tag made public is a warning."""
    summary = plan.summary
    counts = [(getattr(summary, action.word), word, TONES.get(action, Tone.REMOVE)) for action, word in TO_DO.items()]
    requests = "request" if summary.requests == 1 else plural("request")
    others = ((summary.unchanged, "unchanged", "quiet"), (summary.requests, requests, "quiet"))
    for count, word, css in (*counts, (made_public(plan).total(), "made public", "public"), *others):
        if count:
            yield f'<li class="{css}"><b>{number(count)}</b> {word}</li>'


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
    more = "".join(f"<li><span></span><span>{_text(text)}</span></li>" for text in [more_units(gate)] if text)
    yield f'<ul class="units">{"".join(map(_unit, unit_lines(gate)))}{more}</ul>'
    if gate.reasons:
        yield f'<ul class="reasons">{"".join(f"<li>{_text(reason)}</li>" for reason in gate.reasons)}</ul>'
    for way in ways_to_approve(gate, look, is_undo=is_undo):
        lines = "\n".join(map(_text, way.lines))
        yield f'<p>{_text(way.says)}</p><div class="copy"><pre>{lines}</pre>{_copy("these lines")}</div>'
        if way.then:
            yield f"<p>{_text(way.then)}</p>"
    yield "</section>"


def _unit(line: UnitLine) -> str:
    approve = _approval(line) if line.approve else ""
    css = ' class="open"' if line.is_open else ""
    text = _sentence(f"{line.what}: {line.how}")
    return f"<li{css}>{_tagged('span', 'mark', line.mark)}<span>{text}{approve}</span></li>"


def _approval(line: UnitLine) -> str:
    return _tagged("span", "copy", f"<code>{_text(line.approve)}</code>{_copy(f'the approval of {line.what}')}")


def _copy(what: str) -> str:
    """Return a button that copies the element before it. The script shows it."""
    return f'<button type="button" aria-label="{_text(f"Copy {what}")}" hidden>Copy</button>'


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
        f"{_symbol(row)}"
        f'<div><span class="name">{_text(member.name)}</span>{_details(row)}</div>'
        f"{_place(row, look)}</li>"
    )


def _symbol(row: SectionRow) -> str:
    word = ACTIONS[row.symbol]
    return f'<span class="symbol" role="img" aria-label="{word}" title="{word}">{row.symbol}</span>'


def _facets(member: Member, origin: str | None) -> str:
    file = f' data-file="{_text(member.source.file)}"' if member.source else ""
    return f' data-kind="{member.kind}"{file}' + (f' data-origin="{origin}"' if origin else "")


def _place(row: SectionRow, look: Look) -> str:
    """Return the place of a row, linked to its line when the host of the repository is known."""
    if not row.place:
        return ""
    address = row.members[0].link(look) if not row.label else ""
    if not address:
        return _tagged("span", "place", _text(row.place))
    return f'<a class="place" href="{escape(address)}" rel="noreferrer">{_text(row.place)}</a>'


def _group(row: SectionRow, look: Look, origin: str | None) -> str:
    """Return the row of similar resources: their common change, an example, and each resource behind a click."""
    deep = " deep" if row.depth else ""
    example = _tagged("span", "detail remark", _text(row.example)) if row.example else ""
    names = ", ".join(_text(member.name) for member in row.members[:FEW])
    more = f" … and {number(len(row.members) - FEW)} more" if len(row.members) > FEW else ""
    rows = "\n".join(_row(each, look, origin) for each in row.rows)
    return (
        f'<li class="group{deep}">{_symbol(row)}<div><span class="name">{_text(row.label)}'
        f"</span>{_details(row)}{example}</div>{_place(row, look)}"
        f'<details><summary>{names}{more}</summary><ul class="rows">{rows}</ul></details></li>'
    )


def _details(row: SectionRow) -> str:
    """Return the details of a row, with spaces between them, at which a line may break."""
    return "".join(f" {_detail(detail)}" for detail in row.details)


def _detail(detail: ChangeDetail) -> str:
    label = _tagged("span", "label", f"{_text(detail.label)}: ") if detail.label else ""
    return _tagged("span", "detail", label + "".join(map(_span, detail.spans)))


def _span(span: Span) -> str:
    if element := ELEMENTS.get(span.mark):
        return f"<{element}>{_text(span.text)}</{element}>"
    return _tagged("span", "remark", _text(span.text)) if span.mark is SpanMark.REMARK else _text(span.text)


def _diagnostics(diagnostics: Sequence[Diagnostic]) -> Iterator[str]:
    if diagnostics:
        tone = Tone.ERROR if any(each.severity is Severity.ERROR for each in diagnostics) else Tone.WARNING
        yield f'<section class="{tone.value}"><h2>{_text(tally(diagnostics))}</h2><ul class="rows">'
        yield from map(_diagnostic, merged(diagnostics))
        yield "</ul></section>"


def _diagnostic(diagnostic: Diagnostic) -> str:
    name = _tagged("span", "name", _text(f"{diagnostic.severity.value}[{diagnostic.code}]"))
    text = f"<div>{name} {_sentence(message(diagnostic))}</div>"
    place = _tagged("span", "place", _text(where(diagnostic).removesuffix(": ")))
    return f"<li>{_tagged('span', 'symbol', '!')}{text}{place}</li>"
