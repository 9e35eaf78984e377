"""Findings → GitHub's workflow commands, which annotate the lines of a pull request; pure.

Each command is one line. Text is escaped for the runner, so that no message can end its command or start another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from syncengine.apply.report import Report
from syncengine.errors import Diagnostic
from syncengine.render.diagnostics import merged, message
from syncengine.render.escape import harmless, visible
from syncengine.render.outcomes import findings, headline
from syncengine.render.repo_paths import repository_path
from syncengine.render.style import PLAIN, Look

_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})


def report_github(report: Report, look: Look = PLAIN) -> str:
    """Return a notice with the summary, then an annotation for each change that was not applied."""
    notice = f"::notice title=syncengine apply::{_data(headline(report))}\n"
    return notice + _commands(findings(report), look)


def diagnostics_github(diagnostics: Sequence[Diagnostic], look: Look = PLAIN) -> str:
    """Return an annotation for each mistake, since GitHub shows ten errors and ten warnings of a step."""
    return _commands(merged(diagnostics), look)


def _commands(diagnostics: Iterable[Diagnostic], look: Look) -> str:
    return "".join(f"{command(each, look, each.severity.value)}\n" for each in diagnostics)


def command(diagnostic: Diagnostic, look: Look, level: str) -> str:
    """Return the command that annotates a line; `level` is `error`, `warning` or `notice`."""
    properties = {
        "file": repository_path(diagnostic, look) if diagnostic.file else None,
        "line": diagnostic.line,
        "col": diagnostic.column,
        "title": diagnostic.code,
    }
    settings = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items() if value is not None)
    return f"::{level} {settings}::{_data(message(diagnostic))}"


def _property(text: str) -> str:
    return harmless(visible(text)).translate(_PROPERTY)


def _data(text: str) -> str:
    """Return text escaped for the message of a command; its line ends are kept."""
    return harmless("\n".join(map(visible, text.split("\n")))).translate(_DATA)
