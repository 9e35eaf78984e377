"""Plan → one self-contained HTML page with search and filters: nothing is loaded, everything is escaped; pure.

The page's security policy allows only its own script and style, by their digests. Without scripts the page shows the
same plan, but has no search and no filters.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256
from importlib.resources import files
from io import StringIO

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from syncengine.errors import Diagnostic, Severity
from syncengine.plan.diff import Action
from syncengine.plan.model import ChangeOrigin
from syncengine.render.diagnostics import merged, message, tally, where
from syncengine.render.escape import visible
from syncengine.render.formats import PlanFormat
from syncengine.render.sections import NOTE_SYMBOL, Fold
from syncengine.render.style import PLAIN, Look, Tone
from syncengine.render.view import (
    SHORT,
    first_sentence,
    headline,
    view_of,
)
from syncengine.render.words import FEW, minute, number

ACTIONS = {**{action.value: action.word for action in Action}, NOTE_SYMBOL: "note"}
"""The name of each symbol, for the filter by action."""


def plan_html(plan: PlanFormat, look: Look = PLAIN) -> str:
    """Return the page of a plan."""
    look = replace(look, links=look.links.at(plan.commit, plan.base.commit if plan.base else ""))
    view = view_of(plan, look, Fold.NOTHING if look.verbose else Fold.BEHIND)
    parts = [(view.sections, look, ChangeOrigin.PULL_REQUEST.value if plan.base else None)]
    if view.waiting:
        parts.append((view.waiting.sections, replace(look, links=look.links.at(None)), ChangeOrigin.WAITING.value))
    return _page(
        view.diagnostics,
        view=view,
        parts=parts,
        subject=subject_of(plan, look),
        headline=headline(plan),
        foremost=(*view.foremost, *view.doubts),
    )


def trouble_html(diagnostics: Sequence[Diagnostic], look: Look = PLAIN) -> str:
    """Return a page with the errors that prevented a plan."""
    subject = " · ".join(filter(None, (look.project, "no plan")))
    return _page(diagnostics, view=None, subject=subject, headline=tally(diagnostics), foremost=())


def subject_of(plan: PlanFormat, look: Look) -> str:
    """Return the team, or else the service, with the project and the environment that a plan is for."""
    url, environment = plan.service.base_url, plan.basis.environment
    # A file may name any text as its URL, which `urlsplit` rejects.
    service = "Embedded sandbox" if url == "sandbox" else url.partition("://")[2].partition("/")[0]
    return " · ".join(filter(None, (plan.service.team or service, look.project, environment)))


def _page(diagnostics: Iterable[Diagnostic], **values: object) -> str:
    found = list(diagnostics)
    is_error = any(each.severity is Severity.ERROR for each in found)
    page = StringIO()  # whose peak of memory is two thirds of that of a list of all rows, which is joined
    rows = _template().generate(
        values,
        style=Markup(page_file("pages.css")),  # noqa: S704 - our own file
        script=Markup(page_file("plan.js")),  # noqa: S704 - our own file
        actions=ACTIONS,
        few=FEW,
        short=SHORT,
        diagnostics=merged(found),
        tally=tally(found) if found else "",
        tone=(Tone.ERROR if is_error else Tone.WARNING).value,
    )
    page.writelines(rows)
    return page.getvalue()


@cache
def _template() -> Template:
    """Return the page's template, which shows control characters of every text and escapes it."""
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    environment.filters |= {
        "digest": lambda text: Markup(digest(str(text))),  # noqa: S704 - letters, digits and quotes
        "first_sentence": first_sentence,
        "message": message,
        "minute": minute,
        "number": number,
        "sentence": _sentence,
        "where": lambda diagnostic: where(diagnostic).removesuffix(": "),
    }
    text = files("syncengine.render").joinpath("templates", "plan.html.j2").read_text(encoding="utf-8")
    return environment.from_string(text)


def _sentence(text: str) -> Markup:
    """Return a sentence, escaped, with code where it has backticks in pairs."""
    first, *rest = [Markup.escape(visible(part)) for part in text.split("`")]
    if len(rest) % 2:
        return Markup.escape(visible(text))
    code = (Markup("<code>{}</code>{}").format(*pair) for pair in zip(rest[::2], rest[1::2], strict=True))
    return first + Markup("").join(code)


@cache
def page_file(name: str) -> str:
    """Return the text of a file of `static`."""
    return files("syncengine.render").joinpath("static", name).read_text(encoding="utf-8")


def digest(text: str) -> str:
    """Return the source of a content security policy that allows exactly this text."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
