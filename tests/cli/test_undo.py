"""Undoing runs: what is planned, reported and refused (docs/repair.md)."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from syncengine.plan.model import Undo
from syncengine.plan.saved import load, save
from syncengine.project.runner import Holder
from syncengine.render.documents import SHOWN
from syncengine.state.history import Run
from syncengine.state.store import open_state
from tests.support.git import commit_all, git

from .program import Project, activity_type, category, tag
from .service import Json, Service

pytestmark = pytest.mark.slow

BEFORE: dict[str, Any] = {
    "tagCategories": [category("acme")],
    "activityTypes": [activity_type("A1")],
    "tags": [
        tag("EDITED", category="acme", url="https://a.example", keywords=["one"], metadata={"Client": "A", "Old": "x"}),
        tag("DROPPED", visibility="PRIVATE"),
    ],
}
AFTER: dict[str, Any] = {
    "tagCategories": [category("acme", label="Renamed"), category("beta")],
    "activityTypes": [activity_type("A1"), activity_type("A2")],
    "tags": [tag("EDITED", category="beta", keywords=["two"], metadata={"Client": "B"}), tag("MADE", category="beta")],
}


def changed(project: Project) -> dict[str, Any]:
    """Apply BEFORE and then AFTER, and return the rows after BEFORE."""
    project.settle(**BEFORE)
    rows = project.rows()
    project.settle(**AFTER)
    return rows


def described(word: str, **more: Any) -> list[Json]:
    """Tag A with this description, and tag B."""
    return [tag("A", description=word, **more), tag("B")]


def settle(project: Project, *words: str) -> None:
    """Apply manifests that describe A by each of these words, one after the other."""
    for word in words:
        project.settle(tags=described(word))


def planned(project: Project, run: str = "last", *words: str) -> Json:
    done = project.run("plan", "--undo", run, "--format", "json", *words)
    assert done.code == 0, done.err
    return done.document


def actions(document: Json) -> dict[str, str]:
    return {change["address"]: change["action"] for change in document["changes"]}


def kinds(document: Json) -> dict[str, str]:
    """The kind of the note on each address."""
    return {note["address"]: note["kind"] for note in document["notes"]}


def undo(project: Project, run: str = "last", *words: str) -> Json:
    """Plan an undo, apply it with the approval that it needs, and return the plan."""
    document = planned(project, run, "--out", "undo.plan", *words)
    approve = document["gate"]["approve"]
    done = project.run("apply", "undo.plan", "--format", "json", *(("--approve-deletes", approve) if approve else ()))
    assert done.code == 0, done.out
    return document


# --- what an undo plans


def test_an_undo_restores_rows_and_deletes_nothing(project: Project, service: Service) -> None:
    """A tag that the run created is retired; a category or activity type that it created is only released."""
    rows = changed(project)
    document = undo(project)
    assert actions(document) == {"category/acme": "update", "tag/EDITED": "update", "tag/MADE": "retire"}
    assert kinds(document) == {"category/beta": "kept", "activity-type/A2": "kept", "tag/DROPPED": "managed"}
    now = project.rows()
    assert {address: now[address] for address in rows} == rows
    assert {address: now[address]["status"] for address in now.keys() - rows.keys()} == {
        "category/beta": "released",
        "activity-type/A2": "released",
        "tag/MADE": "retired",
    }
    project.wants(**BEFORE)
    reverted = project.run("plan", "--format", "json").document
    assert [*actions(reverted)] == ["activity-type/A2"]  # which the manifests declare


def test_what_another_run_changed_since_is_left_out_and_named(project: Project) -> None:
    """With `--force` it is undone as well."""
    for a, b in (("one", "one"), ("two", "two"), ("three", "two")):
        project.settle(tags=[tag("A", description=a), tag("B", description=b)])
    run = project.run_id(2)
    document = planned(project, run)
    assert ([*actions(document)], document["undo"]["leftOut"]) == (["tag/B"], ["tag/A"])
    assert project.run_id() in document["notes"][0]["message"]
    forced = planned(project, run, "--force")["changes"]
    assert {each["address"]: each["fields"][0]["after"] for each in forced} == {"tag/A": "one", "tag/B": "one"}


def test_a_later_run_blocks_an_undo_until_it_is_undone_too(project: Project) -> None:
    """So several runs can be undone, newest first. A redone run blocks again, and one with the same result does too."""
    settle(project, "one", "two", "three")
    run = project.run_id(2)

    def left_out() -> list[str]:
        document = planned(project, run)
        assert [change["fields"][0]["after"] for change in document["changes"]] in ([], ["one"])
        assert bool(document["changes"]) != bool(document["undo"]["leftOut"])
        found: list[str] = document["undo"]["leftOut"]
        return found

    assert left_out() == ["tag/A"]
    undo(project)
    assert left_out() == []
    assert project.apply("--redo").code == 0
    assert left_out() == ["tag/A"]
    settle(project, "two")
    assert left_out() == ["tag/A"]


def test_undoing_a_category_delete_creates_it_with_its_tags(project: Project, service: Service) -> None:
    project.settle(tagCategories=[category("acme"), category("gone")], tags=[tag("T", category="gone"), tag("U")])
    rows = project.rows()
    project.settle(tagCategories=[category("acme")], tags=[tag("U")])
    assert kinds(undo(project)) == {"category/gone": "made-anew", "tag/T": "made-anew"}
    assert project.rows() == rows


def test_a_renamed_category_keeps_its_id(project: Project, service: Service) -> None:
    """Undoing the rename restores the old name, and its tags stay in it."""
    project.settle(tagCategories=[category("old")], tags=[tag("T", category="old")])
    ids = service.category_ids()
    project.settle(tagCategories=[category("new", previously=["old"])], tags=[tag("T", category="new")])
    for target in ("category/old", "category/new"):
        (change,) = planned(project, "last", "--target", target)["changes"]
        assert (change["address"], change["previously"]) == ("category/old", "new")
    undo(project)
    assert service.category_ids() == ids


@pytest.mark.parametrize("exists", [True, False], ids=["beside the old one", "after a person deleted the old one"])
def test_a_rename_to_a_new_category_is_undone_and_redone(project: Project, service: Service, exists: bool) -> None:
    """The history says that the rename failed; the undo puts the tag into the old category, made anew if it is gone."""
    project.settle(tagCategories=[category("old")], tags=[tag("T", category="old"), tag("U")])
    if exists:
        service.fault("upsertTagCategories", status=400, body={"message": "ids are ours"})
    else:
        service.person_deletes("category", "old")
    project.settle(tagCategories=[category("new", previously=["old"])], tags=[tag("T", category="new"), tag("U")])
    entries = project.run("state", "history", "category/old", "--format", "json").document["entries"]
    told = [(each["outcome"], each["status"]["after"]) for each in entries]
    assert told == [("settled", "active"), ("failed", "deleted"), ("recorded", "released")]
    assert "instead of renaming category/old" in entries[1]["message"]
    undo(project)
    assert service.places() == {"T": "old", "U": None}
    assert planned(project, project.run_id(2))["changes"] == []
    assert project.apply("--redo").code == 0
    assert service.places() == {"T": "new", "U": None}
    assert project.plan().changes == ()


def test_a_category_renamed_twice_keeps_its_id(project: Project, service: Service) -> None:
    """`--force` gives it the name from before the run, with all its tags."""
    project.settle(tagCategories=[category("a")], tags=[tag("T", category="a"), tag("U")])
    ids = service.category_ids()
    project.settle(tagCategories=[category("b", previously=["a"])], tags=[tag("T", category="b"), tag("U")])
    run, renamed = project.run_id(), [category("c", previously=["b"])]
    project.settle(tagCategories=renamed, tags=[tag("T", category="c"), tag("U", category="c")])
    formers = {each["address"]: each.get("previously") for each in undo(project, run, "--force")["changes"]}
    assert formers == {"category/a": "c", "tag/T": None}
    assert service.category_ids() == ids
    assert project.rows()["tag/U"]["fields"]["category"] == "a"
    assert planned(project, run, "--force")["changes"] == []


def test_undoing_a_change_to_private_needs_an_approval(project: Project) -> None:
    """The undo makes the tag PUBLIC, although no manifest declares that."""
    project.settle(tags=[tag("T"), tag("U")])
    project.settle(tags=[tag("T", visibility="PRIVATE"), tag("U")])
    assert planned(project)["changes"][0]["fields"][0]["after"] == "PUBLIC"
    assert project.run("plan", "--undo", "last", "--detailed-exitcode").code == 4


def test_repeating_a_public_rename_publishes_nothing_new(project: Project, service: Service) -> None:
    """The new name is another tag of the service and keeps its content. Undoing the rename removes its keywords;
    undoing that undo needs no approval to make it public."""
    content = {"description": "secret", "metadata": {"Client": "A"}}
    project.settle(tags=[tag("OLD", visibility="PRIVATE", **content), tag("U")])
    project.settle(tags=[tag("NEW", visibility="PUBLIC", previously=["OLD"], **content), tag("U")])

    def held() -> dict[str, Any]:
        return {each["name"]: {**each, "keywords": []} for each in service.holds()["tags"]}

    before = held()
    assert (before["OLD"]["visibility"], before["NEW"]["visibility"]) == ("PRIVATE", "PUBLIC")
    undo(project)
    assert held() == before
    again = undo(project)
    assert not any("opened" in unit["lost"] for unit in again["gate"]["units"])
    (change,) = (each for each in again["changes"] if each["address"] == "tag/NEW")
    assert (change["fields"], change["metadata"]["set"], change["keywords"]["add"]) == ([], {}, ["NEW"])
    assert held() == before


@pytest.mark.parametrize("of", ["description", "metadata"])
def test_publishing_a_private_tags_content_again_needs_an_approval(project: Project, of: str) -> None:
    """An undo gave a reused public name its earlier content; undoing that publishes the private content again."""
    secret, before = ({of: {"Client": word} if of == "metadata" else word} for word in ("secret", "harmless"))
    kept = [tag("OLD", visibility="PRIVATE", **secret), tag("U")]
    project.settle(tags=[tag("NEW", visibility="PUBLIC", **before), *kept])
    project.settle(tags=kept, removed=[{"tag": "NEW", "as": "retire", "reason": "closed"}])
    project.settle(tags=[tag("NEW", visibility="PUBLIC", previously=["OLD"], **secret), tag("U")])
    undo(project)
    document = planned(project, "last", "--out", "undo.plan")
    (change,) = (each for each in document["changes"] if each["address"] == "tag/NEW")
    assert (change["opens"], change["previously"]) == (["OLD"], "OLD")
    assert project.run("apply", "undo.plan").code == 4
    assert project.run("apply", "undo.plan", "--approve-deletes", document["gate"]["approve"]).code == 0
    statuses = {name: row["status"] for name, row in project.rows().items()}
    assert statuses == {"tag/NEW": "active", "tag/OLD": "retired", "tag/U": "active"}


def test_an_undo_leaves_out_a_protected_tag_that_the_run_created(project: Project) -> None:
    """As for any removal, the protection must be lifted first."""
    project.settle(tags=[tag("T")])
    project.settle(tags=[tag("T"), tag("NEW", protect=True)])
    document = planned(project)
    assert (document["changes"], kinds(document)) == ([], {"tag/NEW": "left-out"})


def test_an_undo_never_sweeps(project: Project, service: Service) -> None:
    """Activity types that this project never declared stay, and swept ones come back."""
    project.settings("policy: {activityTypes: exact}")
    project.settle(activityTypes=[activity_type("A1"), activity_type("A2")])
    project.settle(activityTypes=[activity_type("A1"), activity_type("A3")])
    theirs = activity_type("THEIRS", description="of other people")
    service.say("/activity-types", {"activityTypes": [theirs]})
    document = undo(project)
    assert (document["sweep"], document["gate"]["tripped"]) == (None, False)
    assert service.types() == {"A1", "A2", "A3", "THEIRS"}


# --- what was undone is remembered


def test_manifests_that_still_declare_an_undone_run_are_refused(project: Project) -> None:
    """This holds for the whole plan, a selection and a saved plan, until the revert is merged or `--redo` is given.
    Changes are to be reverted, and removed tags to be declared again; a selection names its own alone. An export and
    its import keep this."""
    changed(project)
    undo(project)
    asked = project.run("plan", "--out", "again.plan", "--format", "json")
    assert (asked.code, asked.codes) == (0, ["undone"])
    both = asked.document["diagnostics"][-1]["message"]
    assert ("its changes to" in both, "tag/EDITED" in both, "leave out tag/DROPPED" in both) == (True, True, True), both
    one = project.run("plan", "--target", "tag/DROPPED", "--format", "json").document["diagnostics"][-1]["message"]
    assert ("EDITED" in one, "tag/DROPPED, which it removed: declare it again" in one) == (False, True), one
    assert project.run("plan", "--detailed-exitcode").code == 4
    for words in (["-y"], ["-y", "--target", "tag/EDITED"], ["again.plan"]):
        done = project.run("apply", "--format", "json", *words)
        assert (done.code, done.codes[0]) == (4, "undone"), words
    text = project.run("apply", "-y")
    assert (text.code, "merge the revert), or repeat with --redo" in text.out) == (4, True)
    assert "as shown above" in text.err
    assert project.run("apply", "-y", "--target", "tag/DROPPED", "--exclude", "tag/*").code != 4
    assert project.run("state", "export", "-o", "rows.jsonl").code == 0
    (project.folder / ".syncengine/state.db").unlink()
    assert project.run("state", "import", "rows.jsonl", "-y").code == 0
    assert "undone" in project.run("plan", "--format", "json").codes


@pytest.mark.parametrize("said", [{}, {"visibility": "PUBLIC"}])
def test_a_creation_that_was_undone_is_not_repeated(said: dict[str, str], project: Project) -> None:
    """This holds whether or not its manifest sets `visibility`."""
    project.settle(tags=[tag("KEPT")])
    project.settle(tags=[tag("KEPT"), tag("MADE", **said)])
    undo(project)
    assert "undone" in project.apply().codes
    project.settle(tags=[tag("KEPT")])


def test_a_plan_that_was_saved_before_the_undo_does_not_lift_it(project: Project) -> None:
    settle(project, "one", "two")
    project.wants(tags=[*described("two"), tag("C")])
    assert project.run("plan", "--out", "before.plan").code == 0
    undo(project)
    assert project.run("apply", "before.plan").code == 0
    assert "undone" in project.apply().codes
    project.wants(tags=[*described("one"), tag("C")])
    assert project.run("plan", "--out", "reverted.plan").code == 0
    assert project.run("apply", "reverted.plan").code == 0
    project.settle(tags=[*described("two"), tag("C")])


def test_an_undo_can_be_undone_and_a_run_redone(project: Project) -> None:
    """After a second `--undo last` the manifests from before the run count as undone, until `apply --redo`."""
    changed(project)
    made = project.rows()
    undo(project)
    undo(project)
    assert project.rows() == made
    assert project.run("plan", "--detailed-exitcode").code == 0
    project.wants(**BEFORE)
    assert project.run("plan", "--redo", "--detailed-exitcode").code == 4
    assert f"syncengine apply --redo {' '.join(project.approvals())}" in project.run("plan").out
    assert project.run("plan", "--redo", "--out", "redo.plan").code == 0
    approved = project.approvals()
    assert project.run("apply", "redo.plan", *approved, "--format", "json").codes[-1] == "undone"
    assert project.run("apply", "redo.plan", *approved, "--redo").code == 0
    assert project.run("plan", "--detailed-exitcode").code == 0


def test_each_undone_run_is_remembered_until_a_third_value_is_applied(project: Project) -> None:
    """After two runs that changed a tag are undone, the manifests of either are refused, also with a further change."""
    settle(project, "one", "two", "three")
    runs = {"two": project.run_id(2), "three": project.run_id()}
    undo(project)
    undo(project, runs["two"], "--force")
    for word, run in runs.items():
        project.wants(tags=described(word, url="https://x.example"))
        done = project.apply()
        assert done.codes[-1] == "undone"
        assert f"run {run} was undone" in done.document["diagnostics"][-1]["message"]
    settle(project, "four", "two", "three")


def test_an_undo_that_restores_an_undone_change_ends_its_memory(project: Project) -> None:
    """A revert is undone, and then the run that it reverted; the manifests of both may be applied."""
    settle(project, "one", "two", "one")
    run = project.run_id(2)
    undo(project)
    undo(project, run, "--force")
    settle(project, "one", "two")


def test_an_undo_with_a_selection_undoes_only_that_part(project: Project) -> None:
    """Manifests with the other changes may still be applied. A selection without changes of the run is warned of."""
    for word in ("one", "two"):
        project.settle(tags=[tag("A", description=word), tag("B", description=word), tag("C")])
    for words in (["--target", "tag/C"], ["--exclude", "tag/[AB]"]):
        document = planned(project, "last", *words)
        (found,) = document["diagnostics"]
        assert (document["changes"], found["code"]) == ([], "nothing-selected")
        assert f"no change of run {project.run_id()}" in found["message"]
    assert undo(project, "last", "--target", "tag/A")["diagnostics"] == []
    rows = project.rows()
    assert [rows[name]["fields"]["description"] for name in ("tag/A", "tag/B")] == ["one", "two"]
    assert project.run("apply", "-y", "--target", "tag/B").code == 0
    assert "undone" in project.run("apply", "-y", "--target", "tag/A", "--format", "json").codes


# --- which run, and what is refused


def test_only_a_run_that_changed_something_can_be_undone(project: Project) -> None:
    """Refused and empty runs cannot be undone, and `last` skips them, also if they sent the same values again. The
    begin of an id is enough."""
    assert "no run of this state" in project.run("plan", "--undo", "last").err
    settle(project, "one")
    first = project.run_id()
    assert project.apply("--reassert").code == 0
    assert project.apply().code == 0
    empty = project.run_id()
    project.wants(tags=[])
    assert project.run("apply", "-y").code == 4
    for run, says in ((empty, "changed nothing"), (project.run_id(), "was refused")):
        done = project.run("plan", "--undo", run)
        assert (done.code, says in done.err) == (64, True), done.err
    assert planned(project)["undo"]["run"] == planned(project, first[:6])["undo"]["run"] == first


def test_a_run_in_progress_is_not_undone(project: Project) -> None:
    """`plan --undo` exits with 6, as the run holds the lock."""
    project.settle(tags=[tag("A")])
    with (
        open_state(project.loaded().state, write=True) as state,
        state.lock(Holder.here("apply", {}), wait=1, request_timeout=1),
    ):
        state.begin_run(Run("under-way", 1.0, "apply", "p", "h", "u", None, None, None))
        done = project.run("plan", "--undo", "under-way")
    assert (done.code, "under way" in done.err) == (6, True), done.err


def test_a_plan_that_only_claims_to_be_an_undo_is_refused(project: Project) -> None:
    """A forged undo could otherwise apply what was undone."""
    changed(project)
    undo(project)
    undone_by = project.run_id()
    assert project.run("plan", "--out", "forged.plan").code == 0
    path = project.folder / "forged.plan"
    for run in (undone_by, "nosuchrun"):
        plan = replace(load(path, SHOWN), undo=Undo(run, "apply", "2026-01-01T00:00:00+00:00"), diagnostics=())
        plan = replace(plan, basis=replace(plan.basis, id="forged"))
        save(plan, SHOWN, path)
        done = project.run("apply", "forged.plan", "--format", "json", *project.approvals())
        assert (done.code, done.codes[-1]) == (5, "plan-inconsistent"), done.out


# --- in Git


def test_an_undo_prints_the_git_revert_of_its_commit(project: Project) -> None:
    """For a merge it has `-m 1`. A run with uncommitted manifests has none."""
    folder = project.folder
    project.begin_git("*.plan", ".syncengine")
    project.commit(tags=described("one"))
    assert project.apply().code == 0
    git(folder, "checkout", "-qb", "topic")
    project.commit(tags=described("two"))
    git(folder, "checkout", "-q", "main")
    git(folder, "merge", "-q", "--no-ff", "--no-edit", "topic")
    assert project.apply().code == 0
    command = f"git revert -m 1 {git(folder, 'rev-parse', '--short=12', 'HEAD')}"
    assert planned(project)["undo"]["revert"] == command
    assert f": `{command}`." in " ".join(project.run("plan", "--undo", "last").out.split())
    settle(project, "three")
    assert planned(project)["undo"]["revert"] is None


def test_an_undo_is_not_compared_with_the_checked_out_tree(project: Project) -> None:
    """It comes from the history, so it is never refused as `not-merged`."""
    project.begin_git("*.plan", ".syncengine")
    changed(project)
    commit_all(project.folder)
    document = planned(project, "last", "--out", "undo.plan")
    assert (document["commit"], document["basis"]["tree"]) == (None, None)
    project.commit(**BEFORE)
    approve = document["gate"]["approve"]
    assert project.run("apply", "undo.plan", *(("--approve-deletes", approve) if approve else ())).code == 0


def test_a_forged_commit_of_a_run_is_no_option_for_git(project: Project, tmp_path: Path) -> None:
    """A commit in the state such as `--output=FILE` must not make `git rev-list` overwrite the file."""
    project.begin_git(".syncengine")
    project.commit(tags=[tag("A")])
    assert project.apply().code == 0
    victim = tmp_path / "victim"
    victim.write_text("precious")
    with closing(sqlite3.connect(project.loaded().state)) as state, state:
        state.execute("UPDATE state_runs SET clean = 1, revision = ?", (f"--output={victim}",))
    assert project.run("plan", "--undo", "last").code == 0
    assert victim.read_text() == "precious"
