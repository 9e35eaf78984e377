"""The registry of formats for plans, reports and diagnostics, by the names that `--format` and `--report` take.

Each entry maps a value and a `Look` to a text that is empty or ends with a line end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from syncengine.apply.report import Report
from syncengine.errors import Diagnostic
from syncengine.plan.model import Plan
from syncengine.render.annotations import diagnostics_rdjson, plan_github, plan_gitlab, plan_rdjson, plan_sarif
from syncengine.render.diagnostics import diagnostics_text
from syncengine.render.github import diagnostics_github, report_github
from syncengine.render.gitlab import diagnostics_gitlab, report_gitlab
from syncengine.render.html import plan_html, trouble_html
from syncengine.render.json import diagnostics_json, plan_json, report_json
from syncengine.render.junit import report_junit
from syncengine.render.markdown import plan_markdown, trouble_markdown
from syncengine.render.report_markdown import report_markdown
from syncengine.render.report_text import report_text
from syncengine.render.sarif import diagnostics_sarif, report_sarif
from syncengine.render.style import Look
from syncengine.render.text import plan_text

PLAN_FORMATS: Mapping[str, Callable[[Plan, Look], str]] = {
    "text": plan_text,
    "json": plan_json,
    "markdown": plan_markdown,
    "html": plan_html,
}

REPORT_FORMATS: Mapping[str, Callable[[Report, Look], str]] = {
    "text": report_text,
    "json": report_json,
    "junit": report_junit,
    "sarif": report_sarif,
    "github": report_github,
    "gitlab": report_gitlab,
    "markdown": report_markdown,
}

PLAN_REPORTS: Mapping[str, Callable[[Plan, Look], str]] = {
    **PLAN_FORMATS,
    "github": plan_github,
    "gitlab": plan_gitlab,
    "sarif": plan_sarif,
    "rdjson": plan_rdjson,
}
"""The formats of `plan --report`: all formats of a plan, and annotations of its changes."""

DIAGNOSTIC_FORMATS: Mapping[str, Callable[[Sequence[Diagnostic], Look], str]] = {
    "text": diagnostics_text,
    "json": diagnostics_json,
    "markdown": trouble_markdown,
    "html": trouble_html,
    "github": diagnostics_github,
    "gitlab": diagnostics_gitlab,
    "sarif": diagnostics_sarif,
    "rdjson": diagnostics_rdjson,
}
"""The formats of diagnostics: all formats of `plan --report`, because errors may prevent a plan."""

VALIDATE_FORMATS = ("text", "json", "github", "gitlab", "sarif")
"""The formats that `validate` offers."""
