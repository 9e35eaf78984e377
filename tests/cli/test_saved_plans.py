"""Saved plans: written for their owner, shown in every format, applied once, to the state that they were made for."""

from __future__ import annotations

import json
import os
import stat

import pytest

from .program import Project, ended, tag
from .service import Service


@pytest.fixture
def saved(project: Project) -> Project:
    """TOUCHED-1 is to change; the plan for it is in `saved.plan`."""
    project.settle(tags=[tag("TOUCHED-1"), tag("OTHER-1")])
    project.wants(tags=[tag("TOUCHED-1", description="planned"), tag("OTHER-1")])
    assert project.run("plan", "--out", "saved.plan").code == 0
    return project


def test_a_saved_plan_is_its_owners_and_shown_in_every_format(saved: Project) -> None:
    """0600, and what `show` says is what `plan` said."""
    assert stat.S_IMODE((saved.folder / "saved.plan").stat().st_mode) == 0o600
    assert saved.run("show", "saved.plan", "--format", "json").document["summary"]["update"] == 1
    for format in ("text", "markdown", "html"):
        shown = saved.run("show", "saved.plan", "--format", format)
        assert (shown.code, "TOUCHED-1" in shown.out, shown.err) == (0, True, ""), format


def test_a_plan_goes_through_a_link_and_into_a_pipe(project: Project) -> None:
    """A file is replaced whole; whatever is no file stays what it is."""
    project.wants(tags=[tag("NEW-1")])
    (project.folder / "kept").mkdir()
    (project.folder / "link.json").symlink_to("kept/real.json")
    os.mkfifo(project.folder / "pipe")
    assert project.run("plan", "--out", "link.json").code == 0
    assert (project.folder / "link.json").is_symlink()
    assert (project.folder / "kept" / "real.json").stat().st_mode & 0o777 == 0o600
    running = project.start("plan", "--out", "pipe")
    read = json.loads((project.folder / "pipe").read_bytes())
    assert ended(running).code == 0
    assert (read["format"], (project.folder / "pipe").is_fifo()) == ("syncengine.plan/v1", True)
    assert sorted(path.name for path in project.folder.iterdir() if "plan" in path.name) == []


def test_a_saved_plan_is_applied_once_and_reads_no_manifest(saved: Project, service: Service) -> None:
    """No question is asked, and the second time it is used up (engine.md §6)."""
    saved.wants(tags=[{"broken": True}])
    assert saved.run("apply", "saved.plan").code == 0
    assert [held.get("description") for held in service.holds()["tags"]] == [None, "planned"]
    again = saved.run("apply", "saved.plan", "--format", "json")
    assert (again.code, again.codes) == (5, ["plan-used"])
    assert saved.run("show", "saved.plan").code == 0


def test_a_saved_plan_is_stale_once_what_it_touches_has_changed(saved: Project, service: Service) -> None:
    """By name, and nothing is sent."""
    saved.settle(tags=[tag("TOUCHED-1", description="overtaken"), tag("OTHER-1")])
    asked = service.asked()
    stale = saved.run("apply", "saved.plan", "--format", "json")
    assert (stale.code, stale.codes) == (5, ["stale-plan"])
    assert "tag/TOUCHED-1" in stale.document["diagnostics"][0]["message"]
    assert service.asked() == asked


def test_an_unrelated_apply_does_not_matter_to_a_saved_plan(saved: Project, service: Service) -> None:
    """Only the rows that it touches count."""
    saved.settle(tags=[tag("TOUCHED-1"), tag("OTHER-1", description="changed"), tag("MORE-1")])
    assert saved.run("apply", "saved.plan").code == 0
    assert len(service.tags()) == 3


def test_a_saved_plan_that_was_killed_is_applied_again(saved: Project, service: Service) -> None:
    """It is used up only when it ran to its end."""
    service.fault("upsertTags", delay=60)
    process = saved.start("apply", "saved.plan")
    service.wait_for("upsertTags")
    process.kill()
    ended(process)
    done = saved.run("apply", "saved.plan", "--lock-timeout", "0s")
    assert done.code == 0, done.err
    assert saved.plan().changes == ()


@pytest.mark.parametrize("flag", [("--target", "tag/*"), ("--exclude", "tag/*"), ("--no-delete",), ("--reassert",)])
def test_no_selection_goes_with_a_saved_plan(saved: Project, flag: tuple[str, ...]) -> None:
    """It is applied as it was reviewed."""
    assert saved.run("apply", "saved.plan", *flag).code == 64


def test_a_plan_that_was_edited_or_only_printed_is_refused(saved: Project, service: Service) -> None:
    """What is applied is what was saved."""
    file = saved.folder / "saved.plan"
    document = json.loads(file.read_text())
    file.write_text(file.read_text().replace("planned", "PLANNED"))
    assert "was changed after it was saved" in saved.run("apply", "saved.plan").err
    del document["execution"]
    file.write_text(json.dumps(document))
    printed = saved.run("apply", "saved.plan")
    assert (printed.code, "was printed, not saved" in printed.err) == (1, True)
    assert all("description" not in held for held in service.holds()["tags"])
