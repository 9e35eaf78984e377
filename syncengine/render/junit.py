"""Report → JUnit XML, in which each change is a test case; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
    return suites("syncengine apply", list(chain(map(_change, report.results), _diagnostics(report))))


def suites(name: str, cases: list[Element]) -> str:
    """Return the JUnit XML document of one suite with the given cases."""
    suite = Element("testsuite", {"name": name, "tests": str(len(cases)), **_counts(cases)})
    suite.extend(cases)
    whole = Element("testsuites", dict(suite.attrib))
    whole.append(suite)
    indent(whole)
    return tostring(whole, encoding="unicode", xml_declaration=False) + "\n"


def test_case(classname: str, name: str) -> Element:
    return Element("testcase", _attributes(classname=classname, name=name))


def with_trouble(case: Element, tag: str, code: str, message: str, lines: Iterable[str]) -> Element:
    """Return the case with an added `failure`, `error` or `skipped` element that contains `lines`."""
    SubElement(case, tag, _attributes(message=message, type=code)).text = "\n".join(map(visible, lines))
    return case


def _counts(cases: list[Element]) -> dict[str, str]:
    tags = [case[0].tag for case in cases if len(case)]
    return {name: str(tags.count(tag)) for name, tag in _COUNTED.items()}


_COUNTED = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def _change(result: Result) -> Element:
    """Return the test case of a change: its class is the file, its name the action and the address."""
    file = result.source.file if result.source else result.key.kind.value
    case = test_case(file, f"{result.action.word} {result.key}")
    if result.outcome in ELEMENTS:
        _trouble(case, ELEMENTS[result.outcome], finding(result))
    return case


def _diagnostics(report: Report) -> Iterator[Element]:
    """Yield a failed test case for each error of the whole run. Warnings would only be passed cases."""
    for diagnostic in report.diagnostics:
        if diagnostic.severity is Severity.ERROR:
            yield _trouble(test_case(diagnostic.file or "syncengine", diagnostic.code), "error", diagnostic)


def _trouble(case: Element, tag: str, diagnostic: Diagnostic) -> Element:
    line = f"{where(diagnostic)}{message(diagnostic)}"
    return with_trouble(case, tag, diagnostic.code, message(diagnostic), [line])


def _attributes(**values: str) -> dict[str, str]:
    return {name: visible(value) for name, value in values.items()}
