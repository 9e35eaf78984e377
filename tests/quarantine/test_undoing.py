"""An undo leaves out the resources in quarantine, and names them (docs/repair.md)."""

from __future__ import annotations

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


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_what_is_in_quarantine_is_left_out_and_named(
    half_applied: Project, service: Refusing, force: tuple[str, ...]
) -> None:
    """`--force` only undoes what other runs changed."""
    aside(half_applied, "tag/BAD", "--until", day(10))
    document = half_applied.run("plan", "--undo", "last", *force, "--out", "undo.plan", "--format", "json").document
    assert (changes(document), document["undo"]["leftOut"]) == ({"tag/GOOD": "update"}, ["tag/BAD"])
    (note,) = document["notes"]
    assert note["message"] == f"not undone: it is in quarantine until {day(10)} (ticket 4711)"
    before = len(service.sent("upsertTags"))
    assert half_applied.run("apply", "undo.plan").code == 0
    assert service.sent("upsertTags")[before:] == [["GOOD"]]
    assert [
        each["address"] for each in half_applied.run("state", "quarantine", "--format", "json").document["quarantine"]
    ] == ["tag/BAD"]
    half_applied.wants(tags=[tag("GOOD", description="one"), tag("BAD", description="two")])
    assert planned(half_applied)[0] == 0


def test_an_entry_of_the_project_file_is_left_out_and_its_line_is_named(half_applied: Project) -> None:
    half_applied.settings("quarantine: [{address: tag/BAD, reason: ticket 4711}]")
    document = half_applied.run("plan", "--undo", "last", "--format", "json").document
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
    project.settle(tagCategories=[category("acme")], tags=[tag("T", category="acme", description="one"), tag("U")])
    project.settle(tagCategories=[category("acme")], tags=[tag("T", category="acme", description="two"), tag("U")])
    run = last(project)
    service.refuse("acme")
    project.wants(
        tagCategories=[category("acme", description="x")],
        tags=[tag("T", category="acme", description="two"), tag("U")],
    )
    assert project.apply().code == 3
    aside(project, "category/acme")
    document = project.run("plan", "--undo", run, "--format", "json").document
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
    document = project.run("plan", "--undo", run, "--force", "--format", "json").document
    assert changes(document) == {}
    assert {*document["undo"]["leftOut"]} >= {"category/old", "tag/T"}
