"""Every rendering of the samples equals its golden file exactly.

`SYNCENGINE_GOLDEN=write pytest tests/render/test_golden.py` rewrites the files; review the difference before
committing it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from syncengine.render import PLAN_FORMATS, REPORT_FORMATS
from syncengine.render.documents import plan_document
from syncengine.render.style import PLAIN

from .samples import PLANS, REPORTS, without_files

GOLDEN = Path(__file__).parent / "golden"

PLAN_CASES = [(sample, name) for sample in PLANS for name in ("text", "markdown")]
PLAN_CASES += [("partly", "json"), ("everything", "html"), ("hostile", "html")]
"""JSON and HTML fold nothing, so that few samples suffice for them. Most of a plan's JSON is held in tests/contract."""

REPORT_CASES = [(sample, name) for sample in REPORTS for name in ("text", "markdown")]
REPORT_CASES += [
    (sample, name)
    for sample in ("mixed", "bitten")
    for name in REPORT_FORMATS
    if name not in ("text", "markdown") and (sample, name) != ("bitten", "json")
]


def agree(name: str, rendered: str) -> None:
    file = GOLDEN / name
    if os.environ.get("SYNCENGINE_GOLDEN") == "write":
        file.write_text(rendered, encoding="utf-8", newline="")
    assert file.read_bytes().decode() == rendered


@pytest.mark.parametrize(("sample", "name"), PLAN_CASES)
def test_a_plan_equals_its_golden_file(sample: str, name: str) -> None:
    agree(f"plan-{sample}.{name}", without_files(PLAN_FORMATS[name](plan_document(PLANS[sample]()), PLAIN)))


@pytest.mark.parametrize(("sample", "name"), REPORT_CASES)
def test_a_report_equals_its_golden_file(sample: str, name: str) -> None:
    agree(f"report-{sample}.{name}", REPORT_FORMATS[name](REPORTS[sample](), PLAIN))


def test_no_golden_file_is_left_over() -> None:
    expected = {f"plan-{sample}.{name}" for sample, name in PLAN_CASES}
    expected |= {f"report-{sample}.{name}" for sample, name in REPORT_CASES}
    assert {file.name for file in GOLDEN.iterdir()} == expected
