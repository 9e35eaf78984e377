"""The `state` commands, with text and JSON output, and what a plan says about its state."""

import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from syncengine.project.references import canonical_url
from tests.manifest.loading import write
from tests.support.git import commit_all, git

from .program import Ended, Project, category, tag
from .service import Json, Service, serving

pytestmark = pytest.mark.slow

KEPT = tag("HELD-1", category="held", keywords=["of it"])
HELD = {"tagCategories": [category("held")], "tags": [KEPT]}
MORE = {**HELD, "tags": [KEPT, tag("NEW-1")]}


@pytest.fixture
def held(project: Project) -> Project:
    project.settle(**HELD)
    return project


def test_rows_are_listed_and_shown(held: Project) -> None:
    """Text has one line for each row; JSON has everything. No match is not taken for an empty state."""
    assert [line.split()[0] for line in held.run("state", "list").out.splitlines()] == ["category/held", "tag/HELD-1"]
    listed = held.run("state", "list", "tag/*", "--format", "json").document
    assert [row["address"] for row in listed["resources"]] == ["tag/HELD-1"]
    shown = held.run("state", "show", "tag/HELD-1", "--format", "json").document
    assert (sorted(shown["keywords"]), shown["fields"]["category"]) == (["HELD-1", "of it"], "held")
    assert "of it" in held.run("state", "show", "tag/HELD-1").out
    done = held.run("state", "list", "tag/Z*", "tag/Y*")
    assert (done.code, done.out) == (0, "No recorded address matches tag/Z* or tag/Y*.\n")
    assert held.run("state", "list", "tag/Z*", "--format", "json").document["resources"] == []
    assert held.run("state", "list", environ={"SYNCENGINE_STATE": "new.db"}).out == "Nothing is recorded.\n"


def test_history_lists_runs_or_the_changes_of_one_resource(held: Project) -> None:
    """A change has its run and the line of its manifest (docs/planning.md 1.3). Text has the newest first."""
    held.settle(tagCategories=[category("held")], tags=[tag("HELD-1", category="held", description="now")])
    entries = held.run("state", "history", "tag/HELD-1", "--format", "json").document["entries"]
    assert [entry["outcome"] for entry in entries]
    assert entries == sorted(entries, key=lambda entry: entry["at"])
    text = held.run("state", "history", "tag/HELD-1").out
    assert "manifests/all.yaml" in text
    assert text.index("description: ") < text.index("keywords added")
    assert held.runs()[0]["outcome"] == "complete"
    assert "apply" in held.run("state", "history").out


def test_refused_runs_are_recorded(held: Project) -> None:
    """The history has their exit code, reason and CI actor, even while a person holds the lock; no plan is in it. An
    apply names the reason of the lock, and to unlock it needs its id."""
    told: list[Json] = []

    def refused(*words: str) -> Ended:
        done = held.run("apply", *words, environ={"GITHUB_ACTOR": "octo"})
        told.append(held.runs()[0])
        assert told[-1]["exitCode"] == done.code, done
        return done

    lock = held.run("state", "lock", "--reason", "moving house", "--format", "json").document["lock"]["id"]
    held.wants(**MORE)
    assert "moving house" in refused("-y", "--lock-timeout", "0s").err
    held.wants(tags=[tag("NEW-1", nmae="x")])
    refused("-y")
    assert held.run("plan").code == 8
    assert len(held.runs()) == 3
    assert held.run("state", "unlock", "another").code == 1
    assert lock in held.run("state", "unlock", lock).out
    held.wants(**MORE)
    assert held.run("plan", "--out", "plan.json").code == 0
    held.settle(**{**HELD, "tags": [KEPT, tag("NEW-1", url="http://x")]})
    refused("plan.json")
    held.wants(tags=[])
    refused("-y")
    assert {(run["command"], run["outcome"], run["actor"]) for run in told} == {("apply", "refused", "octo")}
    assert [(run["exitCode"], run["reason"].partition(":")[0]) for run in told] == [
        (6, "locked"),
        (8, "unknown-field"),
        (5, "stale-plan"),
        (4, "gate"),
    ]
    text = held.run("state", "history").out
    assert "refused (exit 8)" in text
    assert "for octo" in text


def test_a_report_says_when_where_and_by_whom(held: Project) -> None:
    """The report of an apply has team, commit, tree, actor, job, approvals and times; the history some of them."""
    held.wants(tags=[tag("NEW-1")])
    held.begin_git(".syncengine")
    head, tree = commit_all(held.folder), git(held.folder, "rev-parse", "HEAD^{tree}")
    environ = {"GITLAB_USER_LOGIN": "jd", "CI_JOB_URL": "https://ci.example.com/7"}
    refused = held.run("apply", "-y", "--format", "json", environ=environ)
    assert (refused.code, refused.document["approvals"], refused.document["commit"]) == (4, [], head)
    options = held.approvals()
    done = held.run("apply", "-y", *options, "--format", "json", environ=environ)
    report = done.document
    assert done.code == 0
    assert [report[name] for name in ("team", "environment", "commit", "tree", "actor", "job")] == [
        *("Sandbox", None, head, tree, "jd", "https://ci.example.com/7")
    ]
    assert report["approvals"] == [{"by": "--approve-deletes", "line": None, "approve": options[1]}]
    assert report["started"] <= report["ended"]
    assert done.outcomes() == dict.fromkeys(("tag/NEW-1", "category/held", "tag/HELD-1"), "applied")
    run = held.runs()[0]
    assert (run["outcome"], run["approvals"], run["actor"]) == ("complete", [options[1]], "jd")
    assert run["counts"]["applied"] == 3
    assert f"approved: {options[1]}" in held.run("state", "history").out


def test_a_forgotten_row_is_created_again(held: Project, service: Service) -> None:
    """`state forget` deletes nothing at the service, and fails if an address is not recorded."""
    assert held.run("state", "forget", "tag/HELD-1", "tag/NOWHERE", "-y").code == 1
    assert held.run("state", "forget", "tag/HELD-1").code == 64
    assert held.run("state", "forget", "tag/HELD-1", "-y", "--format", "json").document["forgotten"] == ["tag/HELD-1"]
    assert service.tags() == ["HELD-1"]
    assert [str(change.key) for change in held.plan().changes] == ["tag/HELD-1"]


def test_plan_warns_of_another_service_and_apply_refuses_it(held: Project, service: Service) -> None:
    """A service at another address may lack everything; `state rebind` accepts it, as it does a renamed team. A slash
    at the end, upper case in the host and the default port make no other address."""
    with serving() as other:
        there = Project(held.folder, other.url)
        planned = there.run("plan", "--out", "saved.plan", "--format", "json")
        assert (planned.code, planned.codes) == (0, ["other-service"])
        assert there.run("plan").out.startswith("warning[other-service]: the state belongs to ")
        for arguments in (("apply", "-y"), ("apply", "saved.plan")):
            refused = there.run(*arguments, "--format", "json")
            assert (refused.code, refused.codes) == (7, ["other-service"]), refused.out
        assert other.asked() == []
        other.choose(teamName="Renamed")
        assert there.run("state", "rebind").code == 64
        assert there.run("state", "rebind", "-y", "--format", "json").document["team"] == "Renamed"
        assert Project(held.folder, there.url.replace("http://127", "HTTP://127") + "/").run("apply", "-y").code == 0
    assert canonical_url("https://A.example:443/x/") == canonical_url("https://a.example/x") != "https://a.example"


@pytest.mark.parametrize("words", ["plan", "apply -y", "state list"])
def test_a_broken_or_mistyped_state_is_named(held: Project, service: Service, words: str) -> None:
    """No file is changed or made, and nothing is sent. What is no path is not shown: it may hold a password."""
    file = held.folder / ".syncengine" / "state.db"
    file.write_bytes(b"this is no database at all, whoever wrote it" * 100)
    before, asked = held.files(), service.asked()
    done = held.run(*words.split())
    assert (done.code, "state.db" in done.err, "internal" in done.err) == (1, True, False), done.err
    for place in ("postgresql:/x", "host=db dbname=state", "jo@db/state"):
        done = held.run(*words.split(), environ={"SYNCENGINE_STATE": place})
        assert (done.code, "error[state-url]" in done.err, place in done.err) == (8, True, False), done.err
    assert (held.files(), service.asked()) == (before, asked)
    assert held.run("plan", environ={"SYNCENGINE_STATE": "./a=b@c.db"}).code == 0


def test_a_first_plan_says_that_there_is_no_state_and_how_to_adopt(project: Project) -> None:
    """The service may hold resources, and the path may be wrong. `apply -y` says it, too, once."""
    project.wants(tags=[tag("A-1")])
    assert project.run("plan").out.startswith("warning[no-state]: no state at .syncengine/state.db yet: everything is")
    for form in ("text", "json"):
        shown = project.run("plan", "--format", form).out.replace("\\", "")
        assert " ".join(shown.split()).count("syncengine adopt FILE") == 1, shown
    assert "no-state" in project.run("apply", "-y").out
    assert project.run("plan", "--format", "json").codes == []
    assert "no-state" not in project.run("apply", "-y").out
    # The sandbox holds nothing but what was applied to it, so that there is nothing to adopt.
    assert "syncengine adopt FILE" not in project.run("plan", "--sandbox").out
    assert project.run("plan", "--sandbox", "--format", "json").codes == ["no-state"]


def test_the_exact_address_of_a_resource_selects_it_alone(project: Project) -> None:
    """In every command, also where it would match others as a glob. An undo selects only what its run changed."""
    odd, names = "tag/A[1]", ("A[1]", "A1", "B?", "Bx")
    project.settle(tags=[tag(name, description="old") for name in names])
    project.wants(tags=[tag(name, description="new") for name in names])

    def selected(*words: str) -> set[str]:
        found = project.run(*words, "--format", "json").document
        (name,) = {"changes", "results", "resources"} & found.keys()
        return {each["address"] for each in found[name]}

    for address in (odd, "tag/B?"):
        assert selected("plan", "--target", address) == {address}
        assert selected("plan", "--exclude", address) == {f"tag/{name}" for name in names} - {address}
    assert selected("plan", "--target", "tag/[AB]?") == {"tag/A1", "tag/B?", "tag/Bx"}  # no resource of this name
    assert project.run("plan", "--out", "saved.plan").code == 0
    assert selected("show", "saved.plan", "--target", odd) == {odd}
    assert selected("state", "list", odd) == {odd}
    assert selected("apply", "-y", "--exclude", odd) == {"tag/A1", "tag/B?", "tag/Bx"}
    assert selected("plan", "--undo", "last", "--target", odd) == set()
    assert selected("plan", "--undo", "last", "--target", "tag/A1") == {"tag/A1"}


# --- `state prune` and `state erase`


PERSON = "Jané Doe"
"""A name that JSON may encode with other bytes."""
SECRETS = (PERSON, "her matter", "jane-keyword")
ACME = [tag(f"ACME-{n}") for n in range(1, 5)]
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


def test_an_erased_name_is_in_no_file(left: Project) -> None:
    """It is in neither state nor cache. Nothing else changes, and the run is recorded without the name. Bytes that
    another reader keeps in the file go with the next command that compacts it."""
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
    assert (left.runs()[0]["command"], left.runs()[0]["counts"]) == ("state erase", {"erased": 1})
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
    """`state erase` also refuses without `-y`, and changes nothing. Neither does `prune` make a state where none is."""
    for words in (("erase", "tag/X", "-y"), ("prune", "--before", "1d", "-y")):
        assert project.run("state", *words, "--format", "json").codes == ["no-state"]
    assert not (project.folder / ".syncengine/state.db").exists()
    project.settle(tags=[*ACME, tag(PERSON)])
    project.settle(tags=ACME)
    before = project.rows()
    refused = project.run(*ERASE, "tag/ACME-1", "--format", "json")
    assert (refused.code, refused.codes) == (1, ["not-erasable"])
    assert "remove it from the manifests" in refused.document["diagnostics"][0]["message"]
    assert project.run("state", "erase", "tag/NOBODY", "-y", "--format", "json").codes == ["not-recorded"]
    assert project.run("state", "erase", f"tag/{PERSON}").code == 64
    assert project.rows() == before


def test_an_undone_tag_is_erased_once_no_manifest_declares_it(project: Project) -> None:
    """Until then the state must know it, to refuse that it is created again."""
    project.settle(tags=ACME)
    project.settle(tags=[*ACME, tag(PERSON)])
    assert project.run("plan", "--undo", "last", "--out", "undo.plan").code == 0
    assert project.run("apply", "undo.plan", *project.approvals()).code == 0
    refused = project.run(*ERASE, "--format", "json")
    assert (refused.code, refused.codes) == (1, ["not-erasable"])
    assert "merge the revert" in refused.document["diagnostics"][0]["message"]
    assert project.apply().codes[-1] == "undone"
    project.settle(tags=ACME)
    assert project.run(*ERASE).code == 0


def test_a_run_with_erased_changes_is_undone_without_them(project: Project) -> None:
    """A note says so. Where nothing else is left of the run, it is refused, and no run before it is taken instead."""
    project.settle(tags=[*ACME, tag("ACME-5", description="one"), tag(PERSON), tag("OTHER")])
    project.settle(tags=[*ACME, tag("ACME-5", description="two"), tag("OTHER")])
    assert project.run(*ERASE).code == 0
    plan = project.run("plan", "--undo", "last", "--format", "json").document
    assert [change["address"] for change in plan["changes"]] == ["tag/ACME-5"]
    assert plan["undo"]["leftOut"] == ["tag/(erased)"]
    assert ["erased" in note["message"] for note in plan["notes"] if note["kind"] == "left-out"] == [True]
    project.settle(tags=[*ACME, tag("ACME-5", description="two")])
    last = project.runs()[0]["id"]
    assert project.run("state", "erase", "tag/OTHER", "-y").code == 0
    for name in ("last", last):
        refused = project.run("plan", "--undo", name, "--format", "json")
        assert (refused.code, refused.codes) == (64, ["usage"])
        message = refused.document["diagnostics"][0]["message"]
        assert (f"run {last}" in message, "`state erase`" in message) == (True, True), message


def test_prune_removes_old_history(project: Project, service: Service) -> None:
    """`--dry-run` counts the same runs. Rows stay, and there are no changes to apply."""
    project.settle(tags=[*ACME, tag(PERSON, description="her matter")])
    project.settle(tags=ACME)
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
    assert [run["command"] for run in project.runs()] == ["state prune", "apply"]
    forgotten = project.run("state", "history", "tag/ACME-1")
    assert (forgotten.out, forgotten.err) == ("", "No history of tag/ACME-1 is recorded\n")
    assert (project.rows(), service.holds()) == (rows, held)
    assert project.run("plan", "--detailed-exitcode").code == 0
    assert holding(project.folder, "her matter") == ["state.db"]  # the released tag's own row


def test_a_run_without_its_history_is_not_undone(project: Project, service: Service) -> None:
    """Neither is a run of which only changes in doubt are left; the message names `state prune`."""
    project.settle(tags=[tag("FIRST", description="one"), tag("SECOND")])
    service.fault("upsertTags", status=400, body={"errors": [{"index": 1, "errorDescription": "no"}]})
    project.wants(tags=[tag("FIRST", description="two"), tag("SECOND", description="two")])
    assert project.apply().code == 3
    project.age(100)
    half, first = (run["id"] for run in project.runs())
    assert project.run("state", "prune", "--before", "50d", "-y").code == 0
    for run in (first, half, "last"):
        done = project.run("plan", "--undo", run)
        assert (done.code, "`state prune`" in done.err) == (64, True), done.out + done.err


# --- `state rebuild` makes a lost state again from the manifests in Git


CATEGORIES = [category("acme"), category("other")]


def rebuild(project: Project, *arguments: str, revision: str = "HEAD") -> Ended:
    return project.run("state", "rebuild", "--from-git", revision, "-y", *arguments)


@pytest.fixture
def kept(project: Project) -> Project:
    """A project in Git with two applied commits; the second removes a tag whose category stays."""
    project.begin_git(".syncengine/")
    both = [tag("ACME-1", category="acme"), tag("ACME-2", category="acme", keywords=["of it"])]
    for tags in (both, both[:1]):
        project.commit(tagCategories=CATEGORIES, tags=tags)
        assert project.apply().code == 0
    return project


def test_a_lost_state_is_rebuilt_and_sent_again(kept: Project, service: Service) -> None:
    """All rows are in doubt and have their source lines; the next apply sends them, and then there are no changes. A
    state with rows is rebuilt only with `--replace`, which keeps the ids of the service and begins a new lineage."""
    held, recorded = service.holds(), kept.rows()
    shutil.rmtree(kept.folder / ".syncengine")
    done = rebuild(kept, "--format", "json")
    head = git(kept.folder, "rev-parse", "HEAD")
    counts = {"commit": head, "rebuilt": 3, "diagnostics": []}
    assert (done.code, done.document) == (0, {"format": "syncengine.rebuild/v1", **counts})
    rows = kept.rows()
    assert rows.keys() == {address for address, row in recorded.items() if row["status"] != "released"}
    assert {(row["status"], row["doubtful"]) for row in rows.values()} == {("active", True)}
    assert "manifests/all.yaml:5" in kept.run("state", "list").out
    changes = {str(each.key): each.action.word for each in kept.plan().changes}
    assert changes == dict.fromkeys(("category/acme", "category/other", "tag/ACME-1"), "update")
    assert "without its id" in kept.run("plan").out
    assert kept.apply().code == 0
    assert service.holds() == held
    assert kept.run("plan", "--detailed-exitcode").code == 0
    rows, lineage = kept.rows(), kept.plan().basis.lineage
    refused = rebuild(kept)
    assert (refused.code, "--replace" in refused.err, kept.rows() == rows) == (1, True, True)
    assert rebuild(kept, "--replace").code == 0
    assert kept.plan().basis.lineage != lineage
    shown = kept.run("state", "show", "category/acme", "--format", "json").document
    assert (shown["doubtful"], bool(shown["serverId"])) == (True, True)


def test_a_rebuild_is_a_run_of_the_history_and_uses_up_approvals(kept: Project) -> None:
    """The run has the commit, so that older ones are refused. Approvals in the project file become invalid."""
    kept.wants(tagCategories=CATEGORIES, tags=[])
    approval = kept.plan().gate.approve
    git(kept.folder, "checkout", "-q", ".")
    kept.settings("approvals:", f"  - {approval}")
    head = commit_all(kept.folder)
    shutil.rmtree(kept.folder / ".syncengine")
    assert rebuild(kept).code == 0
    run = kept.runs()[0]
    assert (run["command"], run["commit"], run["outcome"]) == ("state rebuild", head, "complete")
    assert run["counts"] == {"applied": 3}
    assert kept.apply().code == 0
    kept.wants(tagCategories=CATEGORIES, tags=[])
    assert kept.run("apply", "-y").code == 4


def test_an_invalid_revision_is_refused_with_its_places(kept: Project) -> None:
    """`state rebuild` exits with 8, names the file of each error, and creates no state; nor do wrong arguments."""
    kept.commit("broken.yaml", tags=[tag("NEW-1", nmae="x")])
    shutil.rmtree(kept.folder / ".syncengine")
    refused = rebuild(kept, "--format", "json")
    assert (refused.code, [d["code"] for d in refused.document["diagnostics"]]) == (8, ["unknown-field"])
    assert refused.document["diagnostics"][0]["file"] == "manifests/broken.yaml"
    kept.commit("broken.yaml", tags=[tag("NEW-1")])
    for words in ((), ("--from-git", "nowhere", "-y"), ("--from-git", "HEAD")):
        assert kept.run("state", "rebuild", *words).code == 64
    assert not (kept.folder / ".syncengine/state.db").exists()
    assert rebuild(kept).code == 0
    assert "tag/NEW-1" in kept.rows()


def test_a_missing_commit_of_a_shallow_clone_is_reported_with_the_cure(kept: Project, tmp_path: Path) -> None:
    """The message suggests `fetch-depth: 0`. The latest commit can be rebuilt."""
    there = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{kept.folder}", str(there))
    shallow = Project(there, kept.url)
    refused = rebuild(shallow, revision="HEAD~1")
    assert (refused.code, "fetch-depth: 0" in refused.err) == (64, True), refused.err
    assert rebuild(shallow).code == 0


def test_rows_of_databases_are_not_rebuilt(kept: Project) -> None:
    """A warning names each block with such a source, and everything else is recorded, here of an environment."""
    live = "environments: {live: {manifests: [live], state: live.db}}"
    kept.settings("sources: {matters: {sql: {env: MATTERS}}}", live)
    rows = "{forEach: {sql: {source: matters, query: SELECT 1 AS n}}, tags: [{name: 'M-{{ row.n }}'}]}"
    write(kept.folder, {"live/rows.yaml": f"generate:\n  - {rows}\ntags: [{{name: LIVE-1}}]\n"})
    commit_all(kept.folder)
    done = rebuild(kept, "--env", "live", "--format", "json")
    assert (done.code, done.document["rebuilt"]) == (0, 1)
    assert kept.run("--env", "live", "state", "list").out.startswith("tag/LIVE-1 ")
    (found,) = done.document["diagnostics"]
    assert (found["severity"], found["code"], "matters" in found["message"]) == ("warning", "source-left-out", True)
    assert (found["file"], found["line"]) == ("live/rows.yaml", 2)
