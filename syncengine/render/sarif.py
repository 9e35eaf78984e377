"""Findings → SARIF 2.1.0, which code-scanning pages read; pure."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from syncengine import __version__
from syncengine.apply.report import Report
from syncengine.errors import Diagnostic, Row
from syncengine.manifest.lints import LINTS
from syncengine.render.diagnostics import message
from syncengine.render.escape import visible
from syncengine.render.gitlab import fingerprints
from syncengine.render.json import Document, dumped
from syncengine.render.outcomes import findings
from syncengine.render.repo_paths import in_repository, repository_line, repository_path
from syncengine.render.style import PLAIN, Look

LEVELS = {"notice": "note"}
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def report_sarif(report: Report, look: Look = PLAIN) -> str:
    return diagnostics_sarif(findings(report), look)


def diagnostics_sarif(diagnostics: Sequence[Diagnostic], look: Look = PLAIN) -> str:
    return log_of(diagnostics, look, [diagnostic.severity.value for diagnostic in diagnostics])


def log_of(diagnostics: Sequence[Diagnostic], look: Look, levels: Sequence[str]) -> str:
    """Return a SARIF log with one result for each diagnostic; `levels` are `error`, `warning` or `notice`."""
    return dumped({"$schema": SCHEMA, "version": "2.1.0", "runs": [_run(diagnostics, look, levels)]})


def _run(diagnostics: Sequence[Diagnostic], look: Look, levels: Sequence[str]) -> Document:
    rules = {code: index for index, code in enumerate(dict.fromkeys(diagnostic.code for diagnostic in diagnostics))}
    prints = fingerprints(diagnostics)
    return {
        "tool": {"driver": {"name": "syncengine", "version": __version__, "rules": list(map(_rule, rules))}},
        "columnKind": "unicodeCodePoints",
        "results": [
            _result(each, rules[each.code], mark, look, LEVELS.get(level, level))
            for each, mark, level in zip(diagnostics, prints, levels, strict=True)
        ],
    }


def _rule(code: str) -> Document:
    """Return the rule of a code, described by its lint or else by the words of the code itself."""
    return {"id": code, "shortDescription": {"text": LINTS.get(code, code.replace("-", " "))}}


def _result(diagnostic: Diagnostic, rule: int, fingerprint: str, look: Look, level: str) -> Document:
    return {
        "ruleId": diagnostic.code,
        "ruleIndex": rule,
        "level": level,
        "message": {"text": visible(message(diagnostic))},
        "locations": [{"physicalLocation": _location(diagnostic, look)}],
        **({"relatedLocations": [_row(diagnostic.data, look)]} if diagnostic.data else {}),
        "partialFingerprints": {"syncengine/v1": fingerprint},
    }


def _row(data: Row, look: Look) -> Document:
    """Return the place of a data row. SARIF has no other place for the name of a database or a service."""
    at = {"uri": quote(in_repository(data.file, look))}
    message = {"text": visible(f"data row {data.file}:{data.row}")}
    return {
        "id": 1,
        "physicalLocation": {"artifactLocation": at, "region": {"startLine": data.row}},
        "message": message,
    }


def _location(diagnostic: Diagnostic, look: Look) -> Document:
    """Return the location of a diagnostic, never empty: code scanning rejects a file if one result has none."""
    region = {"startLine": repository_line(diagnostic)}
    if diagnostic.line and diagnostic.column:
        region["startColumn"] = diagnostic.column
    return {"artifactLocation": {"uri": quote(repository_path(diagnostic, look))}, "region": region}
