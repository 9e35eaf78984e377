"""Plan, report or diagnostics → findings → the formats in which CI hosts show them; results of rule tests, too. Pure.

Of a plan, removals and a closed gate are warnings, other changes are notices. Changes with the same action at the same
line, such as a template's, are one finding. Only as many are written as a host shows; the last one counts the others.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from syncengine import __version__
from syncengine.apply.report import Outcome
from syncengine.content import sha256_of
from syncengine.errors import Diagnostic, Severity
from syncengine.manifest.lints import LINTS
from syncengine.render import formats
from syncengine.render.diagnostics import diagnostic_lines, merged, message, where
from syncengine.render.documents import diagnostic_items, diagnostics_of, dumped
from syncengine.render.escape import cut, file_name, harmless, visible
from syncengine.render.report import finding, headline
from syncengine.render.report import findings as findings_of_report
from syncengine.render.sections import GONE, UPDATE
from syncengine.render.style import PLAIN, Look, Tone, in_repository, in_url, lettered, painted
from syncengine.render.values import (
    BRIEF,
    ValuePart,
    Values,
    cleared,
    keywords_deleted,
    metadata_deleted,
    opened,
    updated,
    value_details,
)
from syncengine.render.view import gate_view
from syncengine.render.words import comma_list, count_of, number
from syncengine.resource import is_blank
from syncengine.rules.model import Deviation, RuleTestResult

GITHUB_SHOWS = 10
"""The number of annotations of one level that GitHub shows for a step."""
GITLAB_SHOWS = 1_000
"""The number of annotations for GitLab, which documents no limit."""
SARIF_SHOWS = 5_000
"""The number of results that GitHub's code scanning shows; it accepts 25,000."""
SHOWN_VALUES = 3
_LONGEST = 300  # a few lines of the box in which a host shows a finding

Shown = formats.PlanFormat | formats.ReportFormat | Sequence[Diagnostic]
"""What hosts show: changes to review, changes that were not applied, or findings."""


class HostFinding(NamedTuple):
    """A diagnostic and its level: `error`, `warning` or `notice`."""

    level: str
    diagnostic: Diagnostic


def findings_of(value: Shown, most: int | None = None) -> list[HostFinding]:
    """Return the findings of a report or of diagnostics, or at most `most` of a plan."""
    if isinstance(value, formats.PlanFormat):
        found = plan_findings(value)
        return found if most is None else at_most(most, found)
    diagnostics = findings_of_report(value) if isinstance(value, formats.ReportFormat) else value
    return [HostFinding(each.severity.value, each) for each in diagnostics]


def plan_findings(plan: formats.PlanFormat) -> list[HostFinding]:
    """Return findings for the gate, removals, diagnostics and all other changes, in this order."""
    found: list[HostFinding] = []
    if plan.gate.tripped:
        reasons, approvals = "; ".join(plan.gate.reasons), ", ".join(gate_view(plan).approvals)
        words = f"Approval needed for this plan: {reasons}" + (f". Approve with {approvals}" if approvals else "")
        found.append(HostFinding("warning", Diagnostic(severity=Severity.WARNING, code="gate", message=words)))
    groups = defaultdict[tuple[object, str, bool], list[formats.ChangeItem]](list)
    for change in plan.changes:
        place = (change.source.file, change.source.line) if change.source else change.address
        groups[place, change.action, change.action in GONE or bool(_losses(change))].append(change)
    removals, others = list[HostFinding](), list[HostFinding]()
    for (_, action, removes), group in groups.items():
        source = group[0].source
        diagnostic = Diagnostic(
            severity=Severity.WARNING,
            code=action,
            message=_words(group),
            file=source.file if source else None,
            # the line of a removed resource may be another one's now
            line=source.line if source and action not in GONE else None,
            address=group[0].address,
        )
        if removes:
            removals.append(HostFinding("warning", diagnostic))
        else:
            others.append(HostFinding("notice", diagnostic))
    return [*found, *removals, *findings_of(diagnostics_of(plan.diagnostics)), *others]


def _losses(change: formats.ChangeItem) -> Values:
    """Return the values that a change takes away from a resource that stays, or opens."""
    sets, opening = (value for value in updated(change) if value.part is ValuePart.METADATA), change.opening
    return (
        *keywords_deleted(change),
        *metadata_deleted(change),
        *cleared(change),
        *(opened(opening.before, change) if opening else ()),
        *(value for value in sets if is_blank(value.after) and not is_blank(value.before)),
    )


def at_most(count: int, every: Sequence[HostFinding]) -> list[HostFinding]:
    """Return at most `count` findings; the last one counts those that are left out."""
    if len(every) <= count:
        return list(every)
    rest = every[count - 1 :]
    words = f"… and {number(len(rest))} more; `--format json` and the HTML page list all of them"
    more = Diagnostic(severity=Severity.WARNING, code="more", message=words)
    return [*every[: count - 1], HostFinding(rest[0].level, more)]


def _words(group: Sequence[formats.ChangeItem]) -> str:
    """Return `update tag/ACME-0042: keywords: removed "x"; url: "old" → "new"`, or the names of several resources."""
    first = group[0]
    if len(group) > 1:
        names = comma_list([change.address for change in group])
        return f"{first.action} {count_of(len(group), 'resource')}: {cut(visible(names), _LONGEST)}"
    values = tuple(dict.fromkeys((*_losses(first), *(updated(first) if first.action == UPDATE else ()))))
    details = [f"deleted with {first.cascade}"] if first.cascade else []
    details += map(str, value_details(values, BRIEF))
    more = f"; and {number(len(details) - SHOWN_VALUES)} more" if len(details) > SHOWN_VALUES else ""
    shown = "; ".join(details[:SHOWN_VALUES]) + more
    return f"{first.action} {first.address}{f': {cut(shown, _LONGEST)}' if shown else ''}"


def _path(diagnostic: Diagnostic, look: Look) -> str:
    """Return the file of a diagnostic in the repository; without a place the project file, or hosts would drop it."""
    return in_repository(diagnostic.file or look.project_file, look.prefix)


def _fingerprints(found: Iterable[HostFinding]) -> Iterator[str]:
    """Yield an id for each finding that stays the same in later runs: lines and places in batches are left out."""
    counts: Counter[tuple[str | None, ...]] = Counter()
    for _, diagnostic in found:
        identity = (diagnostic.code, diagnostic.file, diagnostic.address or diagnostic.message)
        counts[identity] += 1
        yield sha256_of(repr((*identity, counts[identity])))


# --- GitHub: workflow commands, one a line, in which no message can end its command or start another one

_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})


def github(value: Shown, look: Look = PLAIN) -> str:
    """Return annotations, after a notice with the summary of a report.

    GitHub shows ten of each level, so that there is one for each mistake, and those of a plan are counted by level.
    """
    lines = []
    if isinstance(value, formats.PlanFormat):
        every = plan_findings(value)
        by_level = ([each for each in every if each.level == level] for level in ("error", "warning", "notice"))
        found = [each for group in by_level for each in at_most(GITHUB_SHOWS, group)]
    elif isinstance(value, formats.ReportFormat):
        lines.append(f"::notice title=syncengine apply::{_data(headline(value))}\n")
        found = findings_of(value)
    else:
        found = findings_of(merged(value))
    for level, diagnostic in found:
        properties = {
            "file": _path(diagnostic, look) if diagnostic.file else None,
            "line": diagnostic.line,
            "col": diagnostic.column,
            "title": diagnostic.code,
        }
        settings = ",".join(
            f"{name}={harmless(visible(str(value))).translate(_PROPERTY)}"
            for name, value in properties.items()
            if value is not None
        )
        lines.append(f"::{level} {settings}::{_data(message(diagnostic))}\n")
    return "".join(lines)


def _data(text: str) -> str:
    """Return text escaped for the message of a command; its line ends are kept."""
    return harmless("\n".join(map(visible, text.split("\n")))).translate(_DATA)


# --- GitLab: the Code Quality report

SEVERITIES = {"error": "major", "warning": "minor", "notice": "info"}


def gitlab(value: Shown, look: Look = PLAIN) -> str:
    """Return the issues of a Code Quality report."""
    found = findings_of(value, GITLAB_SHOWS)
    issues: list[dict[str, Any]] = [
        {
            "engine_name": "syncengine",
            "description": visible(message(diagnostic)),
            "check_name": diagnostic.code,
            "fingerprint": fingerprint,
            "severity": SEVERITIES[level],
            "location": {"path": _path(diagnostic, look), "lines": {"begin": diagnostic.line or 1}},
        }
        for (level, diagnostic), fingerprint in zip(found, _fingerprints(found), strict=True)
    ]
    return dumped(issues)


# --- SARIF 2.1.0, which code-scanning pages read

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(value: Shown, look: Look = PLAIN) -> str:
    """Return the log of one run."""
    found = findings_of(value, SARIF_SHOWS)
    rules = {code: index for index, code in enumerate(dict.fromkeys(each.diagnostic.code for each in found))}
    # A rule is described by its lint, or else by the words of the code itself.
    described = [{"id": c, "shortDescription": {"text": LINTS.get(c, c.replace("-", " "))}} for c in rules]
    results: list[dict[str, Any]] = []
    for (level, diagnostic), fingerprint in zip(found, _fingerprints(found), strict=True):
        region = {"startLine": diagnostic.line or 1}  # code scanning rejects a file if one result has no place
        if diagnostic.line and diagnostic.column:
            region["startColumn"] = diagnostic.column
        at = {"artifactLocation": {"uri": in_url(_path(diagnostic, look))}, "region": region}
        result: dict[str, Any] = {
            "ruleId": diagnostic.code,
            "ruleIndex": rules[diagnostic.code],
            "level": "note" if level == "notice" else level,
            "message": {"text": visible(message(diagnostic))},
            "locations": [{"physicalLocation": at}],
        }
        if data := diagnostic.data:  # SARIF has no other place for the name of a database or a service
            row = {
                "artifactLocation": {"uri": in_url(in_repository(data.file, look.prefix))},
                "region": {"startLine": data.row},
            }
            text = {"text": visible(f"data row {data.file}:{data.row}")}
            result["relatedLocations"] = [{"id": 1, "physicalLocation": row, "message": text}]
        results.append({**result, "partialFingerprints": {"syncengine/v1": fingerprint}})
    run = {
        "tool": {"driver": {"name": "syncengine", "version": __version__, "rules": described}},
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    return dumped({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


# --- JUnit XML, in which each change is a test case

ELEMENTS = {Outcome.FAILED: "failure", Outcome.UNKNOWN: "error", Outcome.SKIPPED: "skipped"}


def report_junit(report: formats.ReportFormat, look: Look = PLAIN) -> str:
    """Return a case for each change, whose class is the file, and one for each error of the whole run."""
    cases = []
    for each in report.results:
        file = each.source.file if each.source else each.address.partition("/")[0]
        case = test_case(file, f"{each.action} {each.address}")
        cases.append(_found(case, ELEMENTS[each.outcome], finding(each)) if each.outcome in ELEMENTS else case)
    return suites("syncengine apply", [*cases, *_errors(diagnostics_of(report.diagnostics))])


def trouble_junit(diagnostics: Sequence[Diagnostic], look: Look = PLAIN) -> str:
    """Return a case for each error that kept `test` from running any."""
    return suites("syncengine test", list(_errors(diagnostics)))


def _found(case: Element, tag: str, diagnostic: Diagnostic) -> Element:
    words = message(diagnostic)
    return with_trouble(case, tag, diagnostic.code, words, [f"{where(diagnostic)}{words}"])


def _errors(diagnostics: Iterable[Diagnostic]) -> Iterator[Element]:
    """Yield a case for each error; warnings would only be passed cases."""
    for each in diagnostics:
        if each.severity is Severity.ERROR:
            yield _found(test_case(each.file or "syncengine", each.code), "error", each)


def suites(name: str, cases: list[Element]) -> str:
    """Return the JUnit XML document of one suite with the given cases."""
    tags = [case[0].tag for case in cases if len(case)]
    counts = {"failures": tags.count("failure"), "errors": tags.count("error"), "skipped": tags.count("skipped")}
    attributes = {"name": name, "tests": str(len(cases)), **{key: str(count) for key, count in counts.items()}}
    suite = Element("testsuite", attributes)
    suite.extend(cases)
    whole = Element("testsuites", attributes)
    whole.append(suite)
    indent(whole)
    return tostring(whole, encoding="unicode", xml_declaration=False) + "\n"


def test_case(classname: str, name: str) -> Element:
    return Element("testcase", {"classname": visible(classname), "name": visible(name)})


def with_trouble(case: Element, tag: str, code: str, message: str, lines: Iterable[str]) -> Element:
    """Return the case with an added `failure`, `error` or `skipped` element that contains `lines`."""
    trouble = SubElement(case, tag, {"message": visible(message), "type": visible(code)})
    trouble.text = "\n".join(map(visible, lines))
    return case


# --- results of the tests of a project's rules

NO_TESTS = "No tests found: add tests under `tests:` in a rules file (docs/rules.md)."


def results_text(results: Sequence[RuleTestResult], look: Look = PLAIN) -> str:
    """Return each failed test with its differences, followed by the counts."""
    if not results:
        return NO_TESTS + "\n"
    lines = list[str]()
    for each in results:
        if not each.passes:
            place = lettered(f"{file_name(each.file)}:{each.line}: ", look)
            lines.append(f"{place}{painted('failed:', Tone.ERROR, look)} {lettered(visible(each.name), look)}")
            lines += (lettered(f"    {visible(_sentence(deviation))}", look) for deviation in each.deviations)
            lines += (*(f"    {line}" for line in diagnostic_lines(each.diagnostics, look)), "")
    failures = sum(not result.passes for result in results)
    counted = f"{number(failures)} of {count_of(len(results), 'test')} failed." if failures else ""
    return "\n".join((*lines, counted or f"{count_of(len(results), 'test')} passed.")) + "\n"


def _sentence(deviation: Deviation) -> str:
    """Return the difference in a sentence: `summary.delete: expected 0, got 1`."""
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in deviation.path).lstrip(".")
    expected, actual = (json.dumps(value, ensure_ascii=False) for value in (deviation.expected, deviation.actual))
    if deviation.actual is None:
        return f"{path}: {expected} is missing"
    return (
        f"{path}: {actual} is unexpected"
        if deviation.expected is None
        else f"{path}: expected {expected}, got {actual}"
    )


def results_junit(results: Sequence[RuleTestResult], look: Look = PLAIN) -> str:
    """Return a JUnit test suite with one case for each test."""
    cases = []
    for result in results:
        found = (f"{where(each)}{each.code}: {message(each)}" for each in result.diagnostics)
        sentences = [*map(_sentence, result.deviations), *found]
        case = test_case(result.file, result.name)
        cases.append(with_trouble(case, "failure", "failed", sentences[0], sentences) if sentences else case)
    return suites("syncengine test", cases)


def results_json(results: Sequence[RuleTestResult], look: Look = PLAIN) -> str:
    failures = sum(not result.passes for result in results)
    summary = formats.TestSummary(len(results) - failures, failures)
    items = []
    for each in results:
        differences = [formats.TestDifference(*deviation) for deviation in each.deviations]
        outcome = "passed" if each.passes else "failed"
        items.append(
            formats.TestItem(each.name, each.file, each.line, outcome, differences, diagnostic_items(each.diagnostics))
        )
    return dumped(formats.TestFormat(summary, items))


TEST_FORMATS: Mapping[str, Callable[[Sequence[RuleTestResult], Look], str]] = {
    "text": results_text,
    "junit": results_junit,
    "json": results_json,
}
