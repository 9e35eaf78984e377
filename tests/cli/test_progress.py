"""Progress on stderr without a terminal: one line at the end of each stage, and every ten seconds in a long one."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from syncengine.apply.report import ItemEnded, Outcome, StageStarted
from syncengine.cli.apply import EVERY_SECONDS, Progress
from syncengine.cli.options import Globals
from syncengine.cli.output import Output
from syncengine.resource import Key, Kind

from .program import Project, category, tag
from .service import Service

KEY = Key(Kind.TAG, "A")


class Clock:
    """A clock that a test advances."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_a_long_stage_prints_progress_every_ten_seconds(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """It also prints a line at its end, and counts the items that were not applied."""
    clock = Clock()
    with closing(Progress(Output(Globals(), tmp_path), clock)) as progress:
        progress.tell(StageStarted("tags", 10_000))
        for n in range(10_000):
            clock.seconds += EVERY_SECONDS / 4_000
            progress.tell(ItemEnded(KEY, Outcome.FAILED if n % 5_000 == 0 else Outcome.APPLIED))
        progress.tell(StageStarted("tag retirements", 1))
        progress.tell(ItemEnded(KEY, Outcome.APPLIED))
    assert capsys.readouterr().err.splitlines() == [
        "tags: 4,000 of 10,000, 1 not applied",
        "tags: 8,000 of 10,000, 2 not applied",
        "tags: 10,000 of 10,000, 2 not applied",
        "tag retirements: 1 of 1",
    ]


def test_short_stages_print_nothing_if_a_shortest_time_is_set(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A longer stage, or one with an item that was not applied, is printed. The sandbox uses this."""
    clock = Clock()
    with closing(Progress(Output(Globals(), tmp_path), clock, shortest=1.0)) as progress:
        for name, seconds, outcome in (
            ("categories", 0.9, Outcome.APPLIED),
            ("tags", 1.1, Outcome.APPLIED),
            ("tag retirements", 0.1, Outcome.FAILED),
        ):
            progress.tell(StageStarted(name, 1))
            clock.seconds += seconds
            progress.tell(ItemEnded(KEY, outcome))
    assert capsys.readouterr().err.splitlines() == ["tags: 1 of 1", "tag retirements: 1 of 1, 1 not applied"]


def test_a_piped_apply_prints_each_stage(project: Project, service: Service) -> None:
    """Each stage is one line on stderr; with `-q` there is none."""
    project.wants(tagCategories=[category("acme")], tags=[tag(f"A-{n}", category="acme") for n in range(12)])
    done = project.run("apply", "-y", "--format", "json")
    assert done.err.splitlines() == ["categories: 1 of 1", "tags: 12 of 12"]
    project.wants(tagCategories=[category("acme")], tags=[tag("B-1", category="acme")])
    assert project.run("apply", "-y", "-q", *project.approvals()).err == ""


def test_every_resource_that_a_call_reaches_is_counted(project: Project, service: Service) -> None:
    """A category rename counts as two resources, and a category delete counts its tags."""
    project.settle(
        tagCategories=[category("old"), category("gone")],
        tags=[tag("KEEP", category="old"), *(tag(f"GONE-{n}", category="gone") for n in range(3))],
    )
    project.wants(tagCategories=[category("new", previously=["old"])], tags=[tag("KEEP", category="new")])
    done = project.apply()
    assert (done.code, done.err.splitlines()[:1]) == (0, ["categories: 2 of 2"]), done.err
    assert "category deletes: 4 of 4" in done.err
