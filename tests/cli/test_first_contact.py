"""The first plan at a service that may hold things already: everything seems new, and nothing can be read back."""

from __future__ import annotations

import pytest

from .program import Project, tag
from .service import Service
from .test_terminal import QUESTION, terminal

ADVICE = "syncengine adopt FILE"
EXISTING = "name,description\nA-1,by hand\n"


@pytest.fixture
def first(project: Project) -> Project:
    """A project that has never been planned."""
    project.wants(tags=[tag("A-1")])
    return project


def noted(project: Project, *words: str) -> list[str]:
    """The notes of a plan, or of an apply, by code."""
    return project.run("plan", "--format", "json", *words).codes


@pytest.mark.parametrize("form", ["text", "markdown", "html", "json"])
def test_a_first_plan_names_the_command_that_records_what_is_there(first: Project, form: str) -> None:
    """Once, in every form of a plan."""
    shown = first.run("plan", "--format", form).out.replace("\\", "")
    assert " ".join(shown.split()).count(ADVICE) == 1, shown


def test_who_is_asked_reads_it_before_the_question(first: Project, service: Service) -> None:
    """The apply has made a state by then, and an empty one knows no more than none; no answer has sent anything."""
    with terminal(first, "apply") as person:
        person.wait_for(QUESTION)
        person.type("n\n")
        done = person.ended()
    assert done.out.index("no-state") < done.out.index("Create 1 tag")
    assert noted(first) == ["no-state"]
    assert service.asked() == []


def test_a_first_apply_without_a_question_says_it_too(first: Project) -> None:
    """In a pipeline, whose log is read afterwards; what was applied is known from then on."""
    assert "no-state" in first.run("apply", "-y").out
    assert noted(first) == []
    assert "no-state" not in first.run("apply", "-y").out


def test_what_was_adopted_is_known(first: Project) -> None:
    """Then the plan shows what differs, and has nothing to add."""
    (first.folder / "tags.csv").write_text(EXISTING, encoding="utf-8")
    assert first.run("adopt", "tags.csv").code == 0
    assert noted(first) == []


def test_the_sandbox_holds_nothing_but_what_was_applied_to_it(first: Project) -> None:
    """There is nothing to adopt; that everything is new, it says as ever."""
    first.settings()
    assert ADVICE not in first.run("plan", "--sandbox").out
    assert noted(first, "--sandbox") == ["no-state"]
    assert "no-state" not in first.run("apply", "--sandbox", "-y").out
