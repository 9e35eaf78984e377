"""Saved plans: private to their owner, shown in every format, applied once, and valid only for their state."""

from __future__ import annotations

import json
import os
import shlex
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.memory import MEMORY

from .program import Project, ended, tag
from .service import Service

pytestmark = pytest.mark.slow


@pytest.fixture
def saved(project: Project) -> Project:
    """A project whose manifest changes TOUCHED-1; `saved.plan` is its saved plan."""
    project.settle(tags=[tag("TOUCHED-1"), tag("OTHER-1")])
    project.wants(tags=[tag("TOUCHED-1", description="planned"), tag("OTHER-1")])
    save(project)
    return project


def save(project: Project, file: str = "saved.plan") -> None:
    assert project.run("plan", "--out", file).code == 0


def refused(project: Project, service: Service) -> tuple[list[str], str]:
    """The codes and the first message with which the saved plan is refused; nothing is sent."""
    asked = service.asked()
    done = project.run("apply", "saved.plan", "--format", "json")
    assert (done.code, service.asked()) == (5, asked), done.out
    return done.codes, done.document["diagnostics"][0]["message"]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_saved_plan_is_private_and_shown_in_every_format_like_a_printed_one(saved: Project) -> None:
    """`plan --format json` prints the document that `plan --out` saves; only a saved one can be applied."""
    assert mode(saved.folder / "saved.plan") == 0o600
    assert saved.run("show", "saved.plan", "--format", "json").document["summary"]["update"] == 1
    (saved.folder / "printed.json").write_text(saved.run("plan", "--format", "json").out)
    for format in ("text", "markdown", "html"):
        done = [
            saved.run("show", file, "--format", format, "--target", "tag/*") for file in ("saved.plan", "printed.json")
        ]
        assert [(each.code, each.err) for each in done] == [(0, "")] * 2, format
        assert done[0].out.count("TOUCHED-1") == done[1].out.count("TOUCHED-1") != 0, format
    printed = saved.run("apply", "printed.json")
    assert (printed.code, "was printed, not saved" in printed.err) == (1, True)
    (saved.folder / "report.json").write_text(saved.run("apply", "-y", "--format", "json").out)
    report = saved.run("show", "report.json")
    assert (report.code, "report.json is not a plan, but the report of an apply" in report.err) == (1, True)


def test_a_plan_can_be_written_to_a_pipe(project: Project) -> None:
    """A named pipe or stdout is written to, and not replaced by a file."""
    project.wants(tags=[tag("NEW-1")])
    os.mkfifo(project.folder / "pipe")
    running = project.fork("plan", "--out", "pipe")
    read = json.loads((project.folder / "pipe").read_bytes())
    assert ended(running).code == 0
    assert (read["format"], (project.folder / "pipe").is_fifo()) == ("syncengine.plan/v1", True)
    assert sorted(path.name for path in project.folder.iterdir() if "plan" in path.name) == []
    shown = project.run("plan", "--out", "/dev/stdout", "--report", "json=report.json", "-q")
    assert (shown.code, '"execution"' in shown.out, mode(project.folder / "report.json")) == (0, True, 0o644)


def test_the_command_that_approves_a_shown_plan_works(project: Project) -> None:
    """A saved plan is applied by its file; one that was printed cannot be, so that the command plans again."""
    project.settle(tags=[tag("OPENED-1", visibility="PRIVATE")])
    project.wants(tags=[tag("OPENED-1", visibility="PUBLIC")])
    (project.folder / "printed.json").write_text(project.run("plan", "--out", "saved.plan", "--format", "json").out)
    for file, code in {"printed.json": 0, "saved.plan": 5}.items():  # the second one is stale by then
        (line,) = (each for each in project.run("show", file).out.splitlines() if "--approve-deletes" in each)
        words = shlex.split(line)
        assert (words[:2], file in words) == (["syncengine", "apply"], file == "saved.plan")
        assert project.run(*words[1:], "-y").code == code


@pytest.mark.skipif(MEMORY is None, reason="no folder for files in memory here")
def test_a_plan_in_shared_memory_is_private(project: Project) -> None:
    """A file under `/dev/shm` is no stream, although its path begins with `/dev`."""
    project.wants(tags=[tag("NEW-1")])
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        save(project, f"{folder}/kept.plan")
        assert [(each.name, mode(each)) for each in Path(folder).iterdir()] == [("kept.plan", 0o600)]


WRITES = {
    "a plan": ("plan", "--out", "{place}"),
    "a report": ("plan", "--report", "json={place}"),
    "a report of an apply": ("apply", "-y", "--report", "json={place}"),
    "an export": ("state", "export", "--out", "{place}"),
    "manifests": ("fmt", "{place}"),
}


@pytest.mark.parametrize("command", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("is_folder", [False, True], ids=["a link", "a folder that is a link"])
def test_no_output_is_written_through_a_link(project: Project, command: tuple[str, ...], is_folder: bool) -> None:
    """A link may come from the repository, so it does not show where the user wants to write."""
    project.wants(tags=[tag("NEW-1")])
    place = "manifests/linked/kept.yaml" if is_folder else "manifests/linked.yaml"
    kept = project.folder / "elsewhere" / "kept.yaml"
    kept.parent.mkdir()
    kept.write_text("tags:   []\n")
    link = project.folder / "manifests" / ("linked" if is_folder else "linked.yaml")
    link.symlink_to("../elsewhere" if is_folder else "../elsewhere/kept.yaml")
    done = project.run(*(word.format(place=place) for word in command))
    assert done.code in (1, 8), (done.out, done.err)
    assert "is a symbolic link" in done.err, done.err
    assert ("nothing was applied" in done.err) == (command[0] == "apply"), done.err
    assert not (project.folder / ".syncengine" / "state.db").exists()
    assert (kept.read_text(), link.is_symlink()) == ("tags:   []\n", True)
    assert [path.name for path in kept.parent.iterdir()] == ["kept.yaml"]


@pytest.mark.parametrize("linked", ["schemas", ".gitignore"])
def test_neither_init_nor_schema_follows_a_link(project: Project, linked: str) -> None:
    """The target of the link is unchanged."""
    (project.folder / "syncengine.yaml").unlink()
    kept = project.folder / "kept"
    kept.write_text("mine\n") if linked == ".gitignore" else kept.mkdir()
    (project.folder / linked).symlink_to("kept")
    assert project.run("init").code == 1
    if linked == "schemas":
        assert project.run("schema", "-o", "schemas").code == 1
        assert list(kept.iterdir()) == []
    else:
        assert kept.read_text() == "mine\n"


def test_a_saved_plan_is_applied_once_and_reads_no_manifest(saved: Project, service: Service) -> None:
    """`apply` asks no question, and the second apply is refused (docs/planning.md 6)."""
    saved.wants(tags=[{"broken": True}])
    assert saved.run("apply", "saved.plan").code == 0
    assert [held.get("description") for held in service.holds()["tags"]] == [None, "planned"]
    assert refused(saved, service)[0] == ["plan-used"]
    assert saved.run("show", "saved.plan").code == 0


def test_a_saved_plan_that_the_service_refused_is_used_up(saved: Project, service: Service) -> None:
    """The report does not advise to repeat the command, which would be refused: only a new plan goes on."""
    service.fault("upsertTags", status=404)
    done = saved.run("apply", "saved.plan")
    assert done.code == 3
    assert "Plan again to see what remains" in done.out
    assert "run the command again" not in done.out
    assert refused(saved, service)[0] == ["plan-used"]


def test_a_saved_plan_is_stale_once_what_it_touches_has_changed(saved: Project, service: Service) -> None:
    """The message names the resource, the change and its run, and nothing is sent."""
    saved.settle(tags=[tag("TOUCHED-1", description="overtaken"), tag("OTHER-1")])
    run = saved.runs()[0]["id"]
    codes, message = refused(saved, service)
    assert codes == ["stale-plan"]
    assert "tag/TOUCHED-1: it changed since the plan was made (fields.description: nothing → overtaken" in message
    assert f"last changed by run {run} (apply)" in message


@pytest.mark.parametrize("way", ["deleted", "refused"])
def test_a_saved_plan_is_stale_once_the_id_of_a_category_that_its_tags_need_is_lost(
    project: Project, service: Service, way: str
) -> None:
    """The category was deleted, or the service has refused its id, so that only a new plan asks for it again."""
    needed = [{"externalId": "needed"}]
    project.settle(tagCategories=needed, tags=[tag("OTHER-1")])
    project.wants(tagCategories=needed, tags=[tag("OTHER-1"), tag("NEW-1", category="needed")])
    save(project)
    if way == "deleted":
        project.settle(tags=[tag("OTHER-1")])
    else:
        service.fault("upsertTags", status=404)
        project.wants(tagCategories=needed, tags=[tag("OTHER-1"), tag("REFUSED-1", category="needed")])
        assert project.apply().code == 3
    codes, message = refused(project, service)
    assert codes == ["stale-plan"]
    assert "category/needed: its id, which tags need, is no longer known (last changed by run" in message
    project.settle(tagCategories=needed, tags=[tag("OTHER-1"), tag("NEW-1", category="needed")])


@pytest.mark.parametrize("flag", [("--target", "tag/*"), ("--exclude", "tag/*"), ("--no-delete",), ("--reassert",)])
def test_no_selection_goes_with_a_saved_plan(saved: Project, flag: tuple[str, ...]) -> None:
    """A selection would apply something other than the reviewed plan."""
    assert saved.run("apply", "saved.plan", *flag).code == 64


NO_JSON = "is not JSON, or incomplete"
SPOILT: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "edited": (lambda whole: whole.replace(b"planned", b"PLANNED"), "was changed after it was saved"),
    "with CRLF": (lambda whole: whole.replace(b"\n", b"\r\n"), ""),
    "with no line end at all": (lambda whole: whole.replace(b'"}\n', b'"}'), ""),
    "cut early": (lambda whole: whole[:40], NO_JSON),
    "cut before what is executed": (lambda whole: whole[: whole.index(b'"execution"')], NO_JSON),
    "cut within what is executed": (lambda whole: whole[: whole.index(b'"execution"') + 500], NO_JSON),
    "cut at its end": (lambda whole: whole[:-3], NO_JSON),
}
"""How a file is changed, and what `show` says then: nothing if it is the same document with other line ends."""


@pytest.mark.parametrize(("spoil", "says"), SPOILT.values(), ids=SPOILT)
def test_a_plan_that_was_changed_after_it_was_saved_is_refused(
    saved: Project, service: Service, spoil: Callable[[bytes], bytes], says: str
) -> None:
    """By hand, by a transfer in text mode, or by an upload that ended early."""
    file, asked = saved.folder / "saved.plan", service.asked()
    file.write_bytes(spoil(file.read_bytes()))
    done = saved.run("apply", "saved.plan")
    assert (done.code, "was changed after it was saved: plan again" in done.err) == (1, True), done.err
    assert service.asked() == asked
    shown = saved.run("show", "saved.plan")
    assert (shown.code, says in shown.err) == (int(bool(says)), True), shown.err


def test_a_link_that_leads_to_itself_is_no_plan(project: Project) -> None:
    """It is a usage error, like a missing file."""
    (project.folder / "link.plan").symlink_to("link.plan")
    done = project.run("apply", "-y", "link.plan")
    assert (done.code, "internal" in done.err) == (64, False)
