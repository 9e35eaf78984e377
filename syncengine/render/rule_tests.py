"""Results of `syncengine test` → text, JUnit XML and JSON; pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from syncengine.render import formats
from syncengine.render.ci import suites, test_case, with_trouble
from syncengine.render.diagnostics import diagnostic_lines, message, where
from syncengine.render.documents import diagnostic_items, dumped
from syncengine.render.escape import file_name, visible
from syncengine.render.style import PLAIN, Look, Tone, lettered, painted
from syncengine.render.words import count_of, number
from syncengine.rules.model import Deviation, RuleTestResult

NO_TESTS = "No tests found: add tests under `tests:` in a rules file (docs/rules.md)."


def results_text(results: Sequence[RuleTestResult], look: Look = PLAIN) -> str:
    """Return each failed test with its differences, followed by the counts."""
    if not results:
        return NO_TESTS + "\n"
    lines = [line for result in results if not result.passes for line in (*_failure(result, look), "")]
    failures = sum(not result.passes for result in results)
    counted = f"{number(failures)} of {count_of(len(results), 'test')} failed." if failures else ""
    return "\n".join((*lines, counted or f"{count_of(len(results), 'test')} passed.")) + "\n"


def _failure(result: RuleTestResult, look: Look) -> Iterator[str]:
    label = painted("failed:", Tone.ERROR, look)
    yield (
        lettered(f"{file_name(result.file)}:{result.line}: ", look) + f"{label} {lettered(visible(result.name), look)}"
    )
    for deviation in result.deviations:
        yield lettered(f"    {visible(_sentence(deviation))}", look)
    yield from (f"    {line}" for line in diagnostic_lines(result.diagnostics, look))


def _sentence(deviation: Deviation) -> str:
    """Return the difference in a sentence: `summary.delete: expected 0, got 1`."""
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in deviation.path).lstrip(".")
    if deviation.actual is None:
        return f"{path}: {_json(deviation.expected)} is missing"
    if deviation.expected is None:
        return f"{path}: {_json(deviation.actual)} is unexpected"
    return f"{path}: expected {_json(deviation.expected)}, got {_json(deviation.actual)}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


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
    return dumped(formats.TestFormat(summary=summary, tests=[_item(result) for result in results]))


def _item(result: RuleTestResult) -> formats.TestItem:
    return formats.TestItem(
        name=result.name,
        file=result.file,
        line=result.line,
        outcome="passed" if result.passes else "failed",
        differences=[formats.TestDifference(*deviation) for deviation in result.deviations],
        diagnostics=diagnostic_items(result.diagnostics),
    )


TEST_FORMATS: Mapping[str, Callable[[Sequence[RuleTestResult], Look], str]] = {
    "text": results_text,
    "junit": results_junit,
    "json": results_json,
}
