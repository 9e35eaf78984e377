"""Every rendering of the samples, letter by letter.

`SYNCENGINE_GOLDEN=write pytest tests/render/test_golden.py` writes the files anew; read the difference before
committing it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from syncengine.render.registry import PLAN_FORMATS, REPORT_FORMATS
from syncengine.render.style import PLAIN

from .samples import PLANS, REPORTS, without_files

GOLDEN = Path(__file__).parent / "golden"

WHOLE = ("everything", "hostile")
PLAN_CASES = [
    (sample, name) for sample in PLANS for name in PLAN_FORMATS if sample in WHOLE or name not in ("json", "html")
]
"""The forms that fold nothing are held by two samples: they differ from one plan to another only in its changes."""

REPORT_CASES = [(sample, name) for sample in REPORTS for name in REPORT_FORMATS if sample != "plan-limit"]
REPORT_CASES += [("plan-limit", "text"), ("plan-limit", "markdown")]


def agree(name: str, rendered: str) -> None:
    file = GOLDEN / name
    if os.environ.get("SYNCENGINE_GOLDEN") == "write":
        file.write_text(rendered, encoding="utf-8", newline="")
    assert file.read_bytes().decode() == rendered


@pytest.mark.parametrize(("sample", "name"), PLAN_CASES)
def test_a_plan_reads_as_it_did(sample: str, name: str) -> None:
    """A rendering of a plan changes only when somebody means it to."""
    agree(f"plan-{sample}.{name}", without_files(PLAN_FORMATS[name](PLANS[sample](), PLAIN)))


@pytest.mark.parametrize(("sample", "name"), REPORT_CASES)
def test_a_report_reads_as_it_did(sample: str, name: str) -> None:
    """A rendering of a report changes only when somebody means it to."""
    agree(f"report-{sample}.{name}", REPORT_FORMATS[name](REPORTS[sample](), PLAIN))


def test_no_golden_file_is_left_over() -> None:
    """Each golden file belongs to a case."""
    expected = {f"plan-{sample}.{name}" for sample, name in PLAN_CASES}
    expected |= {f"report-{sample}.{name}" for sample, name in REPORT_CASES}
    assert {file.name for file in GOLDEN.iterdir()} == expected
