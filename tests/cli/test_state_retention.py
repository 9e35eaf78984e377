"""`state prune` and `state erase` on the command line."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from .program import Project, category, tag
from .service import Service

pytestmark = pytest.mark.slow

PERSON = "Jané Doe"
"""A name that JSON may encode with other bytes."""
SECRETS = (PERSON, "her matter", "jane-keyword")


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


def test_an_erased_name_is_in_no_file(left: Project) -> None:
    """It is in neither state nor cache. Nothing else changes, and the run is recorded without the name."""
    assert all(holding(left.folder, text) for text in SECRETS)
    done = left.run("state", "erase", f"tag/{PERSON}", "-y")
    assert done.code == 0, done.err
    assert [file for text in SECRETS for file in holding(left.folder, text)] == []
    assert PERSON not in done.out + done.err
    assert "can no longer be undone" in done.out
    assert "saved plans" in done.out
    assert left.run("plan", "--detailed-exitcode").code == 0
    run = left.run("state", "history", "--format", "json").document["runs"][0]
    assert (run["command"], run["counts"]) == ("state erase", {"erased": 1})


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
    project.wants(tags=[tag("ACME-1", description="two")])
    assert project.apply().code == 0
    assert project.run("state", "erase", f"tag/{PERSON}", "-y").code == 0
    assert [file for text in SECRETS for file in holding(project.folder, text)] == []
    quoted = project.run("plan").out
    assert "until (erased) has left" in quoted
    assert "ACME-1 clashes with (erased)" in quoted


def test_declared_or_unknown_tags_are_not_erased(left: Project) -> None:
    """`state erase` also refuses without `-y`, and changes nothing."""
    before = left.rows()
    refused = left.run("state", "erase", "tag/MATTER-00001", f"tag/{PERSON}", "-y", "--format", "json")
    assert (refused.code, refused.codes) == (1, ["not-erasable"])
    assert "remove it from the manifests" in refused.document["diagnostics"][0]["message"]
    assert left.run("state", "erase", "tag/NOBODY", "-y", "--format", "json").codes == ["not-recorded"]
    assert left.run("state", "erase", f"tag/{PERSON}").code == 64
    assert left.rows() == before


def test_an_undone_tag_is_erased_once_no_manifest_declares_it(project: Project) -> None:
    """Until then the state must know it, to refuse that it is created again."""
    kept = [tag(name) for name in ("ACME-1", "ACME-2", "ACME-3", "ACME-4")]
    project.settle(tags=kept)
    project.settle(tags=[*kept, tag(PERSON)])
    assert project.run("plan", "--undo", "last", "--out", "undo.plan").code == 0
    assert project.run("apply", "undo.plan", *project.approvals()).code == 0
    refused = project.run("state", "erase", f"tag/{PERSON}", "-y", "--format", "json")
    assert (refused.code, refused.codes) == (1, ["not-erasable"])
    assert "merge the revert" in refused.document["diagnostics"][0]["message"]
    assert project.apply().codes[-1] == "undone"
    project.wants(tags=kept)
    assert project.apply().code == 0
    assert project.run("state", "erase", f"tag/{PERSON}", "-y").code == 0


def test_a_run_with_erased_changes_stays_the_last_and_is_not_undone(project: Project) -> None:
    """`--undo last` does not undo the run before it instead."""
    kept = [tag(f"ACME-{n}") for n in range(1, 5)]
    project.settle(tags=[*kept, tag(PERSON)])
    project.settle(tags=kept)
    last = project.run("state", "history", "--format", "json").document["runs"][0]["id"]
    assert project.run("state", "erase", f"tag/{PERSON}", "-y").code == 0
    for name in ("last", last):
        refused = project.run("plan", "--undo", name, "--format", "json")
        assert (refused.code, refused.codes) == (64, ["usage"])
        assert f"run {last}" in refused.document["diagnostics"][0]["message"]
        assert "`state erase`" in refused.document["diagnostics"][0]["message"]


def test_an_undo_leaves_out_erased_resources_with_a_note(project: Project) -> None:
    """The rest of the run is undone."""
    kept = [tag(f"ACME-{n}") for n in range(1, 5)]
    project.settle(tags=[*kept, tag("ACME-5", description="one"), tag(PERSON)])
    project.settle(tags=[*kept, tag("ACME-5", description="two")])
    assert project.run("state", "erase", f"tag/{PERSON}", "-y").code == 0
    plan = project.run("plan", "--undo", "last", "--format", "json").document
    assert [change["address"] for change in plan["changes"]] == ["tag/ACME-5"]
    assert plan["undo"]["leftOut"] == ["tag/(erased)"]
    assert ["erased" in note["message"] for note in plan["notes"] if note["kind"] == "left-out"] == [True]


def test_an_erase_reports_a_reader_that_blocks_compaction(left: Project) -> None:
    """The erased bytes stay in the file until a later command compacts it."""
    with closing(sqlite3.connect(left.folder / ".syncengine/state.db")) as reader:
        reader.execute("PRAGMA journal_mode = WAL")
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM state_rows").fetchone()
        done = left.run("state", "erase", f"tag/{PERSON}", "-y", "--format", "json")
        assert (done.code, done.document["compacted"]) == (0, False)
    assert left.run("state", "prune", "--before", "9999d", "-y").code == 0
    assert holding(left.folder, PERSON) == []


def aged(project: Project, days: float) -> None:
    """Move everything in the history back by this many days."""
    with closing(sqlite3.connect(project.folder / ".syncengine/state.db")) as connection, connection:
        for table, columns in (("state_calls", ("at",)), ("state_runs", ("started", "ended"))):
            for column in columns:
                connection.execute(f"UPDATE {table} SET {column} = {column} - ?", (days * 86_400,))


def test_prune_removes_old_history(left: Project, service: Service) -> None:
    """`--dry-run` counts the same runs. Rows stay, and there are no changes to apply."""
    aged(left, 100)
    rows, held = left.rows(), service.holds()
    date = (datetime.now(UTC) - timedelta(days=50)).date().isoformat()
    trial = left.run("state", "prune", "--before", date, "--dry-run", "--format", "json").document
    assert (trial["runs"], trial["dryRun"]) == (1, True)
    assert trial["entries"] > 1500
    assert left.run("state", "prune", "--before", date).code == 64
    done = left.run("state", "prune", "--before", date, "-y")
    assert done.code == 0, done.err
    assert "can no longer be undone" in done.out
    assert [run["command"] for run in left.run("state", "history", "--format", "json").document["runs"]] == [
        "state prune",
        "apply",  # kept, as its limits count for the next apply
    ]
    forgotten = left.run("state", "history", "tag/MATTER-00001")
    assert (forgotten.out, forgotten.err) == ("", "No history of tag/MATTER-00001 is recorded\n")
    assert (left.rows(), service.holds()) == (rows, held)
    assert left.run("plan", "--detailed-exitcode").code == 0
    assert holding(left.folder, "her matter") == ["state.db"]  # the released tag's own row


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
    aged(project, 100)
    first, half = (run["id"] for run in reversed(project.run("state", "history", "--format", "json").document["runs"]))
    assert project.run("state", "prune", "--before", "50d", "-y").code == 0
    for run in (first, half, "last"):
        done = project.run("plan", "--undo", run)
        assert (done.code, "`state prune`" in done.err) == (64, True), done.out + done.err
