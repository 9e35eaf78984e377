"""Renderings of the samples equal their golden files exactly, and a document loses nothing in a file.

`SYNCENGINE_GOLDEN=write pytest tests/render/test_documents.py` rewrites the golden files; review the difference before
committing it.
"""

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from syncengine.plan.diff import Action, Change, FieldChange
from syncengine.plan.model import Base, Plan, Undo, Wait
from syncengine.render import PLAN_FORMATS, REPORT_FORMATS, formats
from syncengine.render.documents import dumped, part_of, plan_document
from syncengine.render.plan_files import document_in
from syncengine.render.style import PLAIN

from .samples import PLANS, REPORTS, tag, without_files

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


DOCUMENTS = Path(__file__).parents[1] / "contract" / "documents"
WRITTEN = {"plan": formats.PlanFormat, "plan-settled": formats.PlanFormat, "report": formats.ReportFormat}


@pytest.mark.parametrize(("name", "type"), WRITTEN.items())
def test_a_document_is_read_as_it_was_written(name: str, type: type) -> None:
    text = (DOCUMENTS / f"{name}.json").read_text(encoding="utf-8").replace('"TIME"', '"2026-01-01T00:00:00+00:00"')
    document: object = msgspec.json.decode(text, type=type)
    assert msgspec.json.decode(dumped(document)) == msgspec.json.decode(text)
    if isinstance(document, formats.PlanFormat):
        assert part_of(document, lambda change: True) == document


@pytest.mark.parametrize("sample", PLANS.values(), ids=PLANS)
def test_a_document_that_is_read_is_the_one_that_was_made(sample: Callable[[], Plan]) -> None:
    """Nothing that a view shows is lost in a file, so that a comment shows what the terminal showed."""
    plan = sample()
    replaced = (FieldChange("category", "a", None, replaced=True), FieldChange("tagCategoryId", None, "7"))
    moved = Change(key=tag("MOVED"), action=Action.UPDATE, source=None, fields=replaced)
    waiting = {str(change.key): Wait("merged", "merged") for change in plan.changes[:1]}
    base = Base("main", "c0ffee", waiting, sweeps=True)
    undone = Undo("r-1", "apply", "2026-01-01T00:00:00+00:00")
    plan = structs.replace(plan, changes=(*plan.changes, moved), compared=base, undo=undone, redoes=(moved.key,))
    document = plan_document(plan)
    assert document_in(dumped(document).encode(), "plan.json") == document
    assert [field.clears for field in document.changes[-1].fields] == [False, False]
