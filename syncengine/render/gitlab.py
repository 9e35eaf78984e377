"""Findings → GitLab's Code Quality report, which annotates the lines of a merge request; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from syncengine.apply.report import Report
from syncengine.document.digest import sha256_of
from syncengine.errors import Diagnostic
from syncengine.render.diagnostics import message
from syncengine.render.escape import visible
from syncengine.render.json import Document, dumped
from syncengine.render.outcomes import findings
from syncengine.render.repo_paths import repository_line, repository_path
from syncengine.render.style import PLAIN, Look

SEVERITIES = {"error": "major", "warning": "minor", "notice": "info"}


def report_gitlab(report: Report, look: Look = PLAIN) -> str:
    return diagnostics_gitlab(findings(report), look)


def diagnostics_gitlab(diagnostics: Sequence[Diagnostic], look: Look = PLAIN) -> str:
    prints = fingerprints(diagnostics)
    issues = (issue(each, mark, look, each.severity.value) for each, mark in zip(diagnostics, prints, strict=True))
    return dumped(list(issues))


def fingerprints(diagnostics: Sequence[Diagnostic]) -> Iterator[str]:
    """Yield an id for each finding that stays the same in later runs: lines and places in batches are left out."""
    counts: Counter[tuple[str | None, ...]] = Counter()
    for diagnostic in diagnostics:
        identity = (diagnostic.code, diagnostic.file, diagnostic.address or diagnostic.message)
        counts[identity] += 1
        yield sha256_of(repr((*identity, counts[identity])))


def issue(diagnostic: Diagnostic, fingerprint: str, look: Look, level: str) -> Document:
    return {
        "description": visible(message(diagnostic)),
        "check_name": diagnostic.code,
        "fingerprint": fingerprint,
        "severity": SEVERITIES[level],
        "location": {
            "path": repository_path(diagnostic, look),
            "lines": {"begin": repository_line(diagnostic)},
        },
    }
