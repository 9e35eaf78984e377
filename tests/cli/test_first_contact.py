"""The first plan at a service that may already hold resources: it notes that there is no state yet."""

from __future__ import annotations

import pytest

from .program import Project, tag
from .service import Service
from .test_terminal import QUESTION, terminal

ADVICE = "syncengine adopt FILE"


@pytest.fixture
def first(project: Project) -> Project:
    """A project that has never been planned."""
    project.wants(tags=[tag("A-1")])
    return project


def noted(project: Project, *words: str) -> list[str]:
    """The codes of the diagnostics of a plan."""
    return project.run("plan", "--format", "json", *words).codes


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_first_plan_names_the_adopt_command(first: Project, form: str) -> None:
    """Each format of the plan names it once."""
    shown = first.run("plan", "--format", form).out.replace("\\", "")
    assert " ".join(shown.split()).count(ADVICE) == 1, shown


def test_apply_shows_the_note_before_its_question(first: Project, service: Service) -> None:
    """Declining leaves the note in later plans, although `apply` has created an empty state, and sends nothing."""
    with terminal(first, "apply") as person:
        person.wait_for(QUESTION)
        person.type("n\n")
        done = person.ended()
    assert done.out.index("no-state") < done.out.index("Create 1 tag")
    assert noted(first) == ["no-state"]
    assert service.asked() == []


def test_a_first_apply_without_a_question_says_it_too(first: Project) -> None:
    """`apply -y` shows the note once; after the first apply it is gone."""
    assert "no-state" in first.run("apply", "-y").out
    assert noted(first) == []
    assert "no-state" not in first.run("apply", "-y").out


def test_the_sandbox_holds_nothing_but_what_was_applied_to_it(first: Project) -> None:
    """With `--sandbox` there is nothing to adopt: the note does not name `adopt`."""
    first.settings()
    assert ADVICE not in first.run("plan", "--sandbox").out
    assert noted(first, "--sandbox") == ["no-state"]
    assert "no-state" not in first.run("apply", "--sandbox", "-y").out
