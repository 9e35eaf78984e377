"""An undo leaves out the resources in quarantine, and names them (docs/repair.md)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.program import Project, category, tag
from tests.cli.test_undo import last

from .refusing import Refusing
from .test_quarantine import aside, changes, day, planned


@pytest.fixture
def half_applied(project: Project, service: Refusing) -> Project:
    """A project whose last run changed two tags, one of which the service refused."""
    project.settle(tags=[tag("GOOD", description="one"), tag("BAD", description="one")])
    service.refuse("BAD")
    project.wants(tags=[tag("GOOD", description="two"), tag("BAD", description="two")])
    assert project.apply().code == 3
    return project


def test_what_is_in_quarantine_is_left_out_and_named(half_applied: Project, service: Refusing) -> None:
    """Also with `--force`, which only undoes what other runs changed."""
    aside(half_applied, "tag/BAD", "--until", day(10))
    for force in ((), ("--force",)):
        document = undone(half_applied, "last", *force, "--out", "undo.plan")
        assert (changes(document), document["undo"]["leftOut"]) == ({"tag/GOOD": "update"}, ["tag/BAD"])
        (note,) = document["notes"]
        assert note["message"] == f"not undone: it is in quarantine until {day(10)} (ticket 4711)"
    before = len(service.sent("upsertTags"))
    assert half_applied.run("apply", "undo.plan").code == 0
    assert service.sent("upsertTags")[before:] == [["GOOD"]]
    half_applied.wants(tags=[tag("GOOD", description="one"), tag("BAD", description="two")])
    assert planned(half_applied)[0] == 0


def undone(project: Project, run: str, *more: str) -> Any:
    """Return the document of the plan that undoes this run."""
    return project.run("plan", "--undo", run, *more, "--format", "json").document


def test_an_entry_of_the_project_file_is_left_out_and_its_line_is_named(half_applied: Project) -> None:
    half_applied.settings("quarantine: [{address: tag/BAD, reason: ticket 4711}]")
    document = undone(half_applied, "last")
    assert changes(document) == {"tag/GOOD": "update"}
    assert "syncengine.yaml:" in document["notes"][0]["message"]


def test_a_saved_undo_of_what_was_quarantined_since_is_stale(half_applied: Project, service: Refusing) -> None:
    """An undo that was saved without the resource is applied, even after the quarantine has ended."""
    assert half_applied.run("plan", "--undo", "last", "--out", "all.plan").code == 0
    run = last(half_applied)
    aside(half_applied, "tag/BAD")
    assert half_applied.run("plan", "--undo", run, "--out", "part.plan").code == 0
    done = half_applied.run("apply", "all.plan", "--format", "json")
    assert (done.code, done.codes) == (5, ["stale-plan"])
    assert "tag/BAD was quarantined after" in done.out
    assert half_applied.run("state", "quarantine", "tag/BAD", "--end").code == 0
    service.heal()
    done = half_applied.run("apply", "part.plan", "--format", "json")
    assert (done.code, done.outcomes()) == (0, {"tag/GOOD": "applied"})


def test_a_tag_waits_that_the_undo_would_put_into_a_quarantined_category(project: Project, service: Refusing) -> None:
    before, after = ([tag("T", category="acme", description=words)] for words in ("one", "two"))
    project.settle(tagCategories=[category("acme")], tags=before)
    project.settle(tagCategories=[category("acme")], tags=after)
    run = last(project)
    service.refuse("acme")
    project.wants(tagCategories=[category("acme", description="x")], tags=after)
    assert project.apply().code == 3
    aside(project, "category/acme")
    document = undone(project, run)
    assert (document["changes"], document["undo"]["leftOut"]) == ([], ["tag/T"])
    assert "it needs category/acme, which is in quarantine" in document["notes"][0]["message"]


@pytest.mark.parametrize("name", ["new", "newer"])
def test_a_renamed_category_waits_with_both_names(project: Project, service: Refusing, name: str) -> None:
    """The undo does not create the old name beside the new one, even if the category was renamed again."""
    project.settle(tagCategories=[category("old")], tags=[tag("T", category="old")])
    new = category("new", previously=["old"])
    project.settle(tagCategories=[new], tags=[tag("T", category="new")])
    run = last(project)
    if name == "newer":
        new = category("newer", previously=["new"])
        project.settle(tagCategories=[new], tags=[tag("T", category=name)])
    service.refuse(name)
    project.wants(tagCategories=[{**new, "description": "x"}], tags=[tag("T", category=name)])
    assert project.apply().code == 3
    aside(project, f"category/{name}")
    document = undone(project, run, "--force")
    assert changes(document) == {}
    assert {*document["undo"]["leftOut"]} >= {"category/old", "tag/T"}
