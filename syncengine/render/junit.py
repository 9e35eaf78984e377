"""Report → JUnit XML, in which each change is a test case; pure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from syncengine.apply.report import Outcome, Report, Result
from syncengine.errors import Diagnostic, Severity
from syncengine.render.diagnostics import message, where
from syncengine.render.escape import visible
from syncengine.render.outcomes import finding
from syncengine.render.style import PLAIN, Look

ELEMENTS = {Outcome.FAILED: "failure", Outcome.UNKNOWN: "error", Outcome.SKIPPED: "skipped"}


def report_junit(report: Report, look: Look = PLAIN) -> str:
    cases = list(chain(map(_change, report.results), _diagnostics(report)))
    suite = Element("testsuite", {"name": "syncengine apply", "tests": str(len(cases)), **_counts(cases)})
    suite.extend(cases)
    suites = Element("testsuites", dict(suite.attrib))
    suites.append(suite)
    indent(suites)
    return tostring(suites, encoding="unicode", xml_declaration=False) + "\n"


def _counts(cases: list[Element]) -> dict[str, str]:
    tags = [case[0].tag for case in cases if len(case)]
    return {name: str(tags.count(tag)) for name, tag in _COUNTED.items()}


_COUNTED = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def _change(result: Result) -> Element:
    """A test case of the file, named by the action and the resource."""
    file = result.source.file if result.source else result.key.kind.value
    case = Element("testcase", _attributes(classname=file, name=f"{result.action.word} {result.key}"))
    if result.outcome in ELEMENTS:
        _trouble(case, ELEMENTS[result.outcome], finding(result))
    return case


def _diagnostics(report: Report) -> Iterator[Element]:
    """Errors of the run as a whole. Warnings would be test cases that pass, which says nothing."""
    for diagnostic in report.diagnostics:
        if diagnostic.severity is Severity.ERROR:
            case = Element("testcase", _attributes(classname=diagnostic.file or "syncengine", name=diagnostic.code))
            _trouble(case, "error", diagnostic)
            yield case


def _trouble(case: Element, tag: str, diagnostic: Diagnostic) -> None:
    element = SubElement(case, tag, _attributes(message=message(diagnostic), type=diagnostic.code))
    element.text = visible(f"{where(diagnostic)}{message(diagnostic)}")


def _attributes(**values: str) -> dict[str, str]:
    return {name: visible(value) for name, value in values.items()}
