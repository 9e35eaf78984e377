"""The `state` commands, with text and JSON output, and what a plan says about its state."""

from __future__ import annotations

import pytest

from syncengine.project.references import canonical_url
from tests.support.git import commit_all, git

from .program import Project, category, tag
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
    assert runs(held)[0]["outcome"] == "complete"
    assert "apply" in held.run("state", "history").out


def runs(project: Project) -> list[Json]:
    """The runs of the history, the last one first."""
    found: list[Json] = project.run("state", "history", "--format", "json").document["runs"]
    return found


def test_refused_runs_are_recorded(held: Project, service: Service) -> None:
    """The history has their exit code, reason and CI actor, even while another run holds the lock; no plan is in it."""
    told: list[Json] = []

    def refused(*words: str) -> None:
        done = held.run("apply", *words, environ={"GITHUB_ACTOR": "octo"})
        told.append(runs(held)[0])
        assert told[-1]["exitCode"] == done.code, done

    lock = held.run("state", "lock", "--format", "json").document["lock"]["id"]
    held.wants(**MORE)
    refused("-y", "--lock-timeout", "0s")
    held.wants(tags=[tag("NEW-1", nmae="x")])
    refused("-y")
    assert held.run("plan").code == 8
    assert len(runs(held)) == 3
    held.run("state", "unlock", lock)
    held.wants(**MORE)
    assert held.run("plan", "--out", "plan.json").code == 0
    service.choose(teamName="Others")
    refused("plan.json")
    service.choose(teamName="Sandbox")
    refused("-y", "--reviewed", "nowhere.json")
    held.settle(**{**HELD, "tags": [KEPT, tag("NEW-1", url="http://x")]})
    refused("plan.json")
    held.wants(tags=[])
    refused("-y")
    assert {(run["command"], run["outcome"], run["actor"]) for run in told} == {("apply", "refused", "octo")}
    assert [(run["exitCode"], run["reason"].partition(":")[0]) for run in told] == [
        (6, "locked"),
        (8, "unknown-field"),
        (7, "wrong-team"),
        (5, "reviewed-missing"),
        (5, "stale-plan"),
        (4, "gate"),
    ]
    text = held.run("state", "history").out
    assert "refused (exit 8)" in text
    assert "for octo" in text


def test_a_report_says_when_where_and_by_whom(held: Project) -> None:
    """The report of an apply has team, commit, tree, actor, job, approvals and times; the history some of them."""
    held.wants(tags=[tag("NEW-1")])
    git(held.folder, "init", "-q")
    (held.folder / ".gitignore").write_text(".syncengine\n")
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
    run = runs(held)[0]
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


def test_a_lock_by_hand_holds_until_it_is_unlocked_by_its_id(held: Project) -> None:
    """A refused apply names the lock's reason, and unlocking needs its id."""
    lock = held.run("state", "lock", "--reason", "moving house", "--format", "json").document["lock"]["id"]
    refused = held.run("apply", "-y", "--lock-timeout", "0s")
    assert (refused.code, "moving house" in refused.err) == (6, True)
    assert held.run("state", "unlock", "another").code == 1
    assert lock in held.run("state", "unlock", lock).out
    assert not held.is_locked()


def test_a_renamed_team_is_accepted_by_rebind(held: Project, service: Service) -> None:
    """`state rebind` needs `-y` or an answer (docs/planning.md 1.6)."""
    service.choose(teamName="Renamed")
    assert held.run("state", "rebind").code == 64
    assert held.run("state", "rebind", "-y", "--format", "json").document["team"] == "Renamed"
    held.settle(**MORE)


def test_plan_warns_of_another_service_and_apply_refuses_it(held: Project, service: Service) -> None:
    """A service at another address may lack everything; `state rebind` accepts it.

    A slash at the end, upper case in the host and the default port make no other address.
    """
    with serving() as other:
        there = Project(held.folder, other.url)
        planned = there.run("plan", "--out", "saved.plan", "--format", "json")
        assert (planned.code, planned.codes) == (0, ["other-service"])
        assert there.run("plan").out.startswith("warning[other-service]: the state belongs to ")
        for arguments in (("apply", "-y"), ("apply", "saved.plan")):
            refused = there.run(*arguments, "--format", "json")
            assert (refused.code, refused.codes) == (7, ["other-service"]), refused.out
        assert other.asked() == []
        assert there.run("state", "rebind", "-y").code == 0
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


def test_a_plan_leaves_a_read_only_state_as_it_is(held: Project) -> None:
    """`plan` takes no lock and writes no file next to the state (docs/planning.md 1.4, 1.5)."""
    folder = held.folder / ".syncengine"
    (folder / "state.db").chmod(0o400)
    folder.chmod(0o500)
    before = held.files()
    code = held.run("plan", "--detailed-exitcode").code
    folder.chmod(0o700)
    assert (code, held.files()) == (0, before)


# --- the first plan


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


def test_the_sandbox_holds_nothing_but_what_was_applied_to_it(project: Project) -> None:
    """With `--sandbox` there is nothing to adopt: the note does not name `adopt`."""
    project.wants(tags=[tag("A-1")])
    assert "syncengine adopt FILE" not in project.run("plan", "--sandbox").out
    assert project.run("plan", "--sandbox", "--format", "json").codes == ["no-state"]
    assert "no-state" not in project.run("apply", "--sandbox", "-y").out


# --- addresses with characters of globs


def test_the_exact_address_of_a_resource_selects_it_alone(project: Project) -> None:
    """In every command, also where it would match others as a glob. An undo selects only what its run changed."""
    odd, names = "tag/A[1]", ("A[1]", "A1", "B?", "Bx")
    project.settle(tags=[tag(name, description="old") for name in names])
    project.wants(tags=[tag(name, description="new") for name in names])

    def selected(*words: str) -> set[str]:
        found = project.run(*words, "--format", "json").document
        return {each["address"] for each in found.get("changes", found.get("results", found.get("resources")))}

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
