"""`state prune` and `state erase` on the command line."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from .program import Project, category, tag
from .service import Json, Service

pytestmark = pytest.mark.slow

PERSON = "Jané Doe"
"""A name that JSON may encode with other bytes."""
SECRETS = (PERSON, "her matter", "jane-keyword")
KEPT = [tag(f"ACME-{n}") for n in range(1, 5)]
ERASE = ("state", "erase", f"tag/{PERSON}", "-y")


@pytest.fixture
def left(project: Project) -> Project:
    """A tag with a person's name was removed from the manifests, which are large enough for a cache."""
    many = [tag(f"MATTER-{n:05}", description="d" * 40) for n in range(1500)]
    person = tag(PERSON, category="acme", description="her matter", keywords=["jane-keyword"])
    project.settle(tagCategories=[category("acme")], tags=[*many, person])
    project.settle(tagCategories=[category("acme")], tags=many)
    return project


def holding(folder: Path, text: str) -> list[str]:
    """The files below `.syncengine` that contain the text."""
    files = (folder / ".syncengine").rglob("*")
    return sorted(path.name for path in files if path.is_file() and text.encode() in path.read_bytes())


def runs(project: Project) -> list[Json]:
    found: list[Json] = project.run("state", "history", "--format", "json").document["runs"]
    return found


def test_an_erased_name_is_in_no_file(left: Project) -> None:
    """It is in neither state nor cache. Nothing else changes, and the run is recorded without the name.

    Bytes that another reader keeps in the file go with the next command that compacts it.
    """
    assert all(holding(left.folder, text) for text in SECRETS)
    with closing(sqlite3.connect(left.folder / ".syncengine/state.db")) as reader:
        reader.execute("PRAGMA journal_mode = WAL")
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM state_rows").fetchone()
        done = left.run(*ERASE)
    assert (done.code, PERSON in done.out + done.err) == (0, False), done.err
    for words in ("can no longer be undone", "saved plans", "another process was reading"):
        assert words in done.out
    assert left.run("plan", "--detailed-exitcode").code == 0
    assert (runs(left)[0]["command"], runs(left)[0]["counts"]) == ("state erase", {"erased": 1})
    pruned = left.run("state", "prune", "--before", "9999d", "-y", "--format", "json")
    assert (pruned.code, pruned.document["compacted"]) == (0, True)
    assert [file for text in SECRETS for file in holding(left.folder, text)] == []


def test_an_erased_name_is_masked_in_texts_about_other_tags(project: Project, service: Service) -> None:
    """The service's error on another tag and the reason of its quarantine stay, with "(erased)" for the name."""
    person = tag(PERSON, description="her matter")
    project.settle(tags=[tag("ACME-1"), person])
    words = f"ACME-1 clashes with {PERSON}"
    service.fault("upsertTags", itemErrors=[{"index": 0, "errorDescription": words}])
    project.wants(tags=[tag("ACME-1", description="two"), person])
    assert project.apply().code == 3
    reason = f"until {PERSON} has left"
    assert project.run("state", "quarantine", "tag/ACME-1", "--reason", reason).code == 0
    project.settle(tags=[tag("ACME-1", description="two")])
    assert project.run(*ERASE, "--format", "json").document["compacted"]
    assert [file for text in SECRETS for file in holding(project.folder, text)] == []
    quoted = project.run("plan").out
    assert "until (erased) has left" in quoted
    assert "ACME-1 clashes with (erased)" in quoted


def test_declared_or_unknown_tags_are_not_erased(project: Project) -> None:
    """`state erase` also refuses without `-y`, and changes nothing."""
    project.settle(tags=[*KEPT, tag(PERSON)])
    project.settle(tags=KEPT)
    before = project.rows()
    refused = project.run(*ERASE, "tag/ACME-1", "--format", "json")
    assert (refused.code, refused.codes) == (1, ["not-erasable"])
    assert "remove it from the manifests" in refused.document["diagnostics"][0]["message"]
    assert project.run("state", "erase", "tag/NOBODY", "-y", "--format", "json").codes == ["not-recorded"]
    assert project.run("state", "erase", f"tag/{PERSON}").code == 64
    assert project.rows() == before


def test_an_undone_tag_is_erased_once_no_manifest_declares_it(project: Project) -> None:
    """Until then the state must know it, to refuse that it is created again."""
    project.settle(tags=KEPT)
    project.settle(tags=[*KEPT, tag(PERSON)])
    assert project.run("plan", "--undo", "last", "--out", "undo.plan").code == 0
    assert project.run("apply", "undo.plan", *project.approvals()).code == 0
    refused = project.run(*ERASE, "--format", "json")
    assert (refused.code, refused.codes) == (1, ["not-erasable"])
    assert "merge the revert" in refused.document["diagnostics"][0]["message"]
    assert project.apply().codes[-1] == "undone"
    project.settle(tags=KEPT)
    assert project.run(*ERASE).code == 0


def test_a_run_with_erased_changes_is_undone_without_them(project: Project) -> None:
    """A note says so. Where nothing else is left of the run, it is refused, and no run before it is taken instead."""
    project.settle(tags=[*KEPT, tag("ACME-5", description="one"), tag(PERSON), tag("OTHER")])
    project.settle(tags=[*KEPT, tag("ACME-5", description="two"), tag("OTHER")])
    assert project.run(*ERASE).code == 0
    plan = project.run("plan", "--undo", "last", "--format", "json").document
    assert [change["address"] for change in plan["changes"]] == ["tag/ACME-5"]
    assert plan["undo"]["leftOut"] == ["tag/(erased)"]
    assert ["erased" in note["message"] for note in plan["notes"] if note["kind"] == "left-out"] == [True]
    project.settle(tags=[*KEPT, tag("ACME-5", description="two")])
    last = runs(project)[0]["id"]
    assert project.run("state", "erase", "tag/OTHER", "-y").code == 0
    for name in ("last", last):
        refused = project.run("plan", "--undo", name, "--format", "json")
        assert (refused.code, refused.codes) == (64, ["usage"])
        message = refused.document["diagnostics"][0]["message"]
        assert (f"run {last}" in message, "`state erase`" in message) == (True, True), message


def test_prune_removes_old_history(project: Project, service: Service) -> None:
    """`--dry-run` counts the same runs. Rows stay, and there are no changes to apply."""
    project.settle(tags=[*KEPT, tag(PERSON, description="her matter")])
    project.settle(tags=KEPT)
    project.age(100)
    rows, held = project.rows(), service.holds()
    date = (datetime.now(UTC) - timedelta(days=50)).date().isoformat()
    trial = project.run("state", "prune", "--before", date, "--dry-run", "--format", "json").document
    assert (trial["runs"], trial["dryRun"], trial["entries"] > 4) == (1, True, True)
    assert project.run("state", "prune", "--before", date).code == 64
    done = project.run("state", "prune", "--before", date, "-y")
    assert done.code == 0, done.err
    assert "can no longer be undone" in done.out
    # The last apply is kept, as its limits count for the next one.
    assert [run["command"] for run in runs(project)] == ["state prune", "apply"]
    forgotten = project.run("state", "history", "tag/ACME-1")
    assert (forgotten.out, forgotten.err) == ("", "No history of tag/ACME-1 is recorded\n")
    assert (project.rows(), service.holds()) == (rows, held)
    assert project.run("plan", "--detailed-exitcode").code == 0
    assert holding(project.folder, "her matter") == ["state.db"]  # the released tag's own row


@pytest.mark.parametrize("words", [("erase", "tag/X", "-y"), ("prune", "--before", "1d", "-y")])
def test_erase_and_prune_create_no_state(project: Project, words: tuple[str, ...]) -> None:
    """A CI job would use an empty state as its own."""
    assert project.run("state", *words, "--format", "json").codes == ["no-state"]
    assert not (project.folder / ".syncengine/state.db").exists()


def test_a_run_without_its_history_is_not_undone(project: Project, service: Service) -> None:
    """Neither is a run of which only changes in doubt are left; the message names `state prune`."""
    project.settle(tags=[tag("FIRST", description="one"), tag("SECOND")])
    service.fault("upsertTags", status=400, body={"errors": [{"index": 1, "errorDescription": "no"}]})
    project.wants(tags=[tag("FIRST", description="two"), tag("SECOND", description="two")])
    assert project.apply().code == 3
    project.age(100)
    half, first = (run["id"] for run in runs(project))
    assert project.run("state", "prune", "--before", "50d", "-y").code == 0
    for run in (first, half, "last"):
        done = project.run("plan", "--undo", run)
        assert (done.code, "`state prune`" in done.err) == (64, True), done.out + done.err
