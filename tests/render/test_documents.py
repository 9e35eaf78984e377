"""A plan, report or diagnostics document that is read and written again stays the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from syncengine.plan.diff import Action, Change, FieldChange
from syncengine.plan.model import Base, Plan, Undo, Wait
from syncengine.render import PLAN_FORMATS, formats
from syncengine.render.documents import diagnostics_of, dumped, part_of, plan_document
from syncengine.render.plan_files import document_in
from syncengine.render.sections import Fold
from syncengine.render.style import Look
from syncengine.render.view import view_of
from syncengine.resource import Key, Kind
from tests.cli.program import Project, activity_type, category, tag

from .samples import PLANS as SAMPLES

DOCUMENTS = Path(__file__).parents[1] / "contract" / "documents"
PLANS = sorted(path.stem for path in DOCUMENTS.glob("plan*.json") if '"syncengine.plan/v1"' in path.read_text())
REPORTS = sorted(path.stem for path in DOCUMENTS.glob("*.json") if '"syncengine.report/v1"' in path.read_text())


@pytest.mark.parametrize("name", [*PLANS, *REPORTS])
def test_a_document_is_read_as_it_was_written(name: str) -> None:
    text = (DOCUMENTS / f"{name}.json").read_text().replace('"TIME"', '"2026-01-01T00:00:00+00:00"')
    document = msgspec.json.decode(text, type=formats.PlanFormat if name in PLANS else formats.ReportFormat)
    assert msgspec.json.decode(dumped(document)) == msgspec.json.decode(text)
    if isinstance(document, formats.PlanFormat):
        assert part_of(document, lambda change: True) == document


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_a_document_that_is_read_is_the_one_that_was_made(sample: Callable[[], Plan]) -> None:
    """Nothing that a view shows is lost in a file, so that a comment shows what the terminal showed."""
    plan = sample()
    replaced = (FieldChange("category", "a", None, replaced=True), FieldChange("tagCategoryId", None, "7"))
    moved = Change(key=Key(Kind.TAG, "MOVED"), action=Action.UPDATE, source=None, fields=replaced)
    waiting = {str(change.key): Wait("merged", "merged") for change in plan.changes[:1]}
    base = Base("main", "c0ffee", waiting, sweeps=True)
    undone = Undo("r-1", "apply", "2026-01-01T00:00:00+00:00")
    plan = structs.replace(plan, changes=(*plan.changes, moved), compared=base, undo=undone, redoes=(moved.key,))
    document = plan_document(plan)
    assert document_in(dumped(document).encode(), "plan.json") == document
    assert [field.clears for field in document.changes[-1].fields] == [False, False]


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_every_rendering_says_the_same_numbers(sample: Callable[[], Plan]) -> None:
    """Head and sections are decided once, so that text, Markdown and HTML count alike."""
    document, look = plan_document(sample()), Look(width=10_000)
    shown = view_of(document, look, Fold.LONG)
    text, markdown, html = (PLAN_FORMATS[name](document, look) for name in ("text", "markdown", "html"))
    for title in (shown.head[0], *(section.title for section in shown.sections)):
        assert title in text
        assert title in re.sub(r"&#8203;|\\(?=\W)", "", markdown)
        assert escape(title) in html
    numbers = [f"{count.number:,}" for count in shown.counts]
    assert f"| {' | '.join(numbers)} |" in markdown
    for count in shown.counts:
        assert (f"<b>{count.number:,}</b> {count.word}" in html) is bool(count.number)


def test_diagnostics_are_read_as_they_were_written() -> None:
    document = msgspec.json.decode((DOCUMENTS / "diagnostics.json").read_bytes(), type=formats.Diagnostics)
    assert len(diagnostics_of(document.diagnostics)) == len(document.diagnostics)


def test_a_document_makes_the_same_markdown_as_its_plan(tmp_path: Path) -> None:
    """`publish` renders the same Markdown from a plan document as `plan --report markdown` from the plan."""
    project = Project(tmp_path / "project", "sandbox")
    before = [tag("ACME-1", category="acme", url="https://a.example", metadata={"a": "1", "b": "2"}), tag("OLD-1")]
    types = [activity_type("A100"), activity_type("A200")]
    project.settle(tagCategories=[category("acme"), category("gone")], activityTypes=types, tags=before)
    after = [tag("ACME-1", category="acme", metadata={"a": "3"}), tag("NEW-1", previously=["OLD-1"])]
    project.wants(tagCategories=[category("acme", keywords=["k"])], activityTypes=types[1:], tags=after)
    assert project.run("plan", "--report", "json=plan.json", "--report", "markdown=report.markdown").code == 0
    text = (project.folder / "plan.json").read_text()
    document = msgspec.json.decode(text, type=formats.PlanFormat)
    assert (document.gate.tripped, dumped(document)) == (True, text)
    published = project.run("publish", "plan.json", "--to", "github", "--dry-run").out
    _, _, printed = (project.folder / "report.markdown").read_text().rstrip().partition("\n")  # after the marker line
    assert [line for line in printed.splitlines() if line not in published] == []
