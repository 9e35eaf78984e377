"""Every exit code of docs/commands.md, and the message that goes with it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.git import commit_all, git

from .program import Project, category, ended, tag
from .service import AT_ONCE, Service

pytestmark = pytest.mark.slow

DELETING = {"category/gone": "delete", "tag/MEMBER-1": "delete"}


def test_0_and_2_tell_whether_there_are_changes(project: Project) -> None:
    """`plan` exits with 2 for changes only with `--detailed-exitcode`."""
    project.wants(tags=[tag("NEW-1")])
    assert project.run("plan").code == 0
    assert project.run("plan", "--detailed-exitcode").code == 2
    assert project.run("apply", "-y").code == 0
    assert project.run("plan", "--detailed-exitcode").code == 0


def test_1_is_an_error_without_a_code_of_its_own(project: Project) -> None:
    """`state show` of an address that is not recorded exits with 1."""
    project.settle(tags=[tag("HELD-1")])
    done = project.run("state", "show", "tag/ELSE-1")
    assert (done.code, done.out) == (1, "")
    assert "tag/ELSE-1 is not recorded" in done.err


def test_3_is_an_apply_of_which_something_was_refused(project: Project, service: Service) -> None:
    """Other items are applied; the report names the refused item, its line and the service's message."""
    service.fault("upsertTags", itemErrors=[{"index": 1, "errorDescription": "no room for it"}])
    project.wants(tags=[tag("GOES-1"), tag("REFUSED-1")])
    done = project.run("apply", "-y")
    assert done.code == 3
    assert "manifests/all.yaml:3: error[refused]: tag/REFUSED-1: no room for it (upsertTags, item 1)" in done.out
    assert service.tags() == ["GOES-1"]


def test_4_is_a_removal_that_nobody_approved(project: Project, service: Service) -> None:
    """The plan prints an approval that is valid for exactly this removal."""
    project.settle(tagCategories=[category("gone"), category("stays")], tags=[tag("MEMBER-1", category="gone")])
    project.wants(tagCategories=[category("stays")])
    asked = project.run("plan", "--detailed-exitcode", "--format", "json")
    assert asked.code == 4
    approval = asked.document["gate"]["approve"]
    assert {change["address"]: change["action"] for change in asked.document["changes"]} == DELETING

    refused = project.run("apply", "-y")
    assert (refused.code, service.tags()) == (4, ["MEMBER-1"])
    assert approval in refused.out
    assert project.run("apply", "-y", "--approve-deletes", approval[:-1]).code == 64
    approved = project.run("apply", "-y", environ={"SYNCENGINE_APPROVE_DELETES": approval})
    assert (approved.code, service.tags()) == (0, [])


@pytest.mark.parametrize("place", ["option", "variable", "file"])
def test_the_output_names_where_an_approval_was_given(project: Project, service: Service, place: str) -> None:
    """With a valid approval the plan is not shown as blocked; text and JSON name the place of the approval."""
    project.settle(tags=[tag("HELD-1"), tag("HELD-2"), tag("HELD-3")])
    project.wants(tags=[tag("HELD-1")])
    text = project.run("plan", "--format", "json").document["gate"]["approve"]
    assert text is not None
    words = ("--approve-deletes", text) if place == "option" else ()
    environ = {"SYNCENGINE_APPROVE_DELETES": f"1@000000000000,{text}"} if place == "variable" else {}
    if place == "file":
        project.settings("approvals:", "  - 1@000000000000", f"  - {text}")
    by = {"option": "--approve-deletes", "variable": "SYNCENGINE_APPROVE_DELETES", "file": "syncengine.yaml"}[place]
    line = 9 if place == "file" else None
    gate = project.run("plan", *words, "--format", "json", environ=environ).document["gate"]
    assert (gate["tripped"], gate["approved"]) == (False, {"by": by, "line": line})
    assert project.run("plan", *words, "--out", "saved.json", "--detailed-exitcode", environ=environ).code == 2
    shown = project.run("show", "saved.json", environ=environ).out
    done = project.run("apply", "-y", *words, environ=environ)
    said = f"Approved: {by}{f':{line}' if line else ''} approves these removals."
    assert (done.code, said in done.out, "Blocked" in done.out) == (0, True, False)
    assert done.out.index(said) < done.out.index("Applied 2 changes")
    assert (said in shown) == (place != "option")


def test_4_is_a_new_state_in_a_job(project: Project) -> None:
    """In CI, a runner that lost its state would send everything again (docs/planning.md 7)."""
    project.wants(tags=[tag("NEW-1")])
    refused = project.run("apply", "-y", environ={"CI": "true"})
    assert (refused.code, "--new-state" in refused.err) == (4, True)
    assert project.run("apply", "-y", "--new-state", environ={"CI": "true"}).code == 0


@pytest.mark.parametrize("value", ["False", ""])
def test_a_new_state_is_made_if_the_ci_variable_is_off(project: Project, value: str) -> None:
    """`CI` set to a false value counts as not running in CI."""
    project.wants(tags=[tag("NEW-1")])
    assert project.run("apply", "-y", environ={"CI": value}).code == 0


def test_5_is_an_older_commit_than_the_last_applied_one(project: Project, service: Service) -> None:
    """The older of two pipelines is refused, unless `--allow-older` is given (docs/planning.md 1.7)."""
    (project.folder / ".gitignore").write_text(".syncengine/\n")
    git(project.folder, "init", "-q", "-b", "main")
    revisions = []
    for tags in ([tag("FIRST-1")], [tag("FIRST-1"), tag("SECOND-1")]):
        project.wants(tags=tags)
        commit_all(project.folder)
        revisions.append(git(project.folder, "rev-parse", "HEAD"))
    older, newer = revisions
    assert project.run("apply", "-y").code == 0

    git(project.folder, "checkout", "-q", older)
    project.wants(tags=[tag("FIRST-1", description="changed")])
    refused = project.run("apply", "-y", "--format", "json")
    assert (refused.code, refused.codes) == (5, ["older-commit"])
    assert older[:12] in refused.out
    assert newer[:12] in refused.out
    assert project.run("apply", "-y", "--allow-older", *project.approvals()).code == 0


def test_6_is_a_lock_that_another_run_holds(project: Project, service: Service) -> None:
    """The second apply names the holder and sends nothing; the first one is not disturbed."""
    service.fault("upsertTags", delay=60)
    project.wants(tags=[tag("NEW-1")])
    first = project.fork("apply", "-y")
    service.wait_for("upsertTags")
    second = project.run("apply", "-y", "--lock-timeout", "0s", "--format", "json")
    assert (second.code, second.codes) == (6, ["locked"])
    assert f"process {first.pid}" in second.out
    assert service.asked().count("upsertTags") == 1
    first.kill()
    ended(first)


def test_7_is_a_key_that_the_service_refuses(project: Project, service: Service) -> None:
    """The service answers 401, and nothing else is sent."""
    project.wants(tags=[tag("NEW-1")])
    done = project.run("apply", "-y", "--format", "json", environ={"SYNCENGINE_API_KEY": "another key"})
    assert (done.code, done.codes) == (7, ["no-state", "auth-failed"])
    assert service.tags() == []
    assert "another key" not in done.out + done.err


def test_7_is_another_team_than_the_states(project: Project, service: Service) -> None:
    """A key of another team would treat that team's tags as this project's (docs/planning.md 1.6)."""
    project.settle(tags=[tag("HELD-1")])
    service.choose(teamName="Somebody else")
    project.wants(tags=[tag("HELD-1"), tag("NEW-1")])
    done = project.run("apply", "-y", "--format", "json")
    assert (done.code, done.codes) == (7, ["wrong-team"])
    assert service.tags() == ["HELD-1"]


@pytest.mark.parametrize("command", ["validate", "plan", "apply"])
def test_8_is_a_manifest_with_errors(project: Project, command: str) -> None:
    """All errors are reported at once, each with its line, and no state is created."""
    project.wants(tags=[{"name": "BAD-1", "descripton": "x"}, {"description": "no name"}])
    done = project.run(command, *(["-y"] if command == "apply" else []))
    assert done.code == 8
    shown = done.out + done.err
    assert "manifests/all.yaml:2:" in shown
    assert "manifests/all.yaml:3:" in shown
    assert "description" in shown
    assert not (project.folder / ".syncengine" / "state.db").exists()


@pytest.mark.parametrize("missing", ["baseUrl", "SYNCENGINE_API_KEY"])
def test_8_is_a_project_without_a_base_url_or_key(project: Project, missing: str) -> None:
    """The program never falls back to the sandbox (docs/project-file.md)."""
    project.wants(tags=[tag("NEW-1")])
    file = project.folder / "syncengine.yaml"
    file.write_text(
        "\n".join(line for line in file.read_text().splitlines() if "baseUrl" not in line or missing != "baseUrl")
    )
    key = {"SYNCENGINE_API_KEY": ""} if missing == "SYNCENGINE_API_KEY" else {}
    done = project.run("apply", "-y", environ=key)
    assert done.code == 8
    assert "error[" in done.err


def test_9_says_repeat_unchanged_in_every_format(project: Project, service: Service) -> None:
    """Every report format says to repeat the command."""
    service.fault("teamInfo", status=503, headers=AT_ONCE, times=None)
    project.wants(tags=[tag("NEW-1")])
    formats = ("json", "markdown", "text", "junit", "sarif", "github", "gitlab")
    done = project.run("apply", "-y", *(word for name in formats for word in ("--report", f"{name}=report.{name}")))
    assert (done.code, "repeat unchanged" in done.err) == (9, True)
    assert [n for n in formats if "repeat unchanged" not in (project.folder / f"report.{n}").read_text()] == []


AWAY: dict[str, tuple[dict[str, Any], str]] = {
    "503": ({"status": 503, "headers": AT_ONCE}, "answered 503"),
    "404": ({"status": 404}, "answered 404"),
    "a page": ({"status": 200, "body": "<html>"}, "does not name the team"),
    "no answer": ({"drop": "before"}, "cannot be reached"),
}


@pytest.mark.parametrize(("fault", "words"), AWAY.values(), ids=AWAY)
def test_9_is_a_service_that_does_not_answer(
    project: Project, service: Service, fault: dict[str, Any], words: str
) -> None:
    """Nothing was sent; the message says what came instead, and to repeat the command unchanged, which then works."""
    service.fault("teamInfo", times=None, **fault)
    project.wants(tags=[tag("NEW-1")])
    done = project.run("apply", "-y", "--format", "json")
    assert (done.code, done.codes) == (9, ["no-state", "unreachable"])
    message = done.document["diagnostics"][-1]["message"]
    assert (words in message, message.count("repeat unchanged")) == (True, 1), message
    assert {*service.asked()} <= {"teamInfo"} and len(service.asked()) <= 6
    service.heal()
    assert project.run("apply", "-y").code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "--nope"),
        ("apply", "-y", "--target", "tag/*", "--sweep"),
        ("apply", "-y", "--approve-deletes", "all"),
        ("plan", "manifests/nowhere.yaml"),
        ("plan", "--report", "nonsense"),
    ],
)
def test_64_is_usage(project: Project, arguments: tuple[str, ...]) -> None:
    """The message on stderr names the wrong arguments."""
    project.wants(tags=[tag("NEW-1")])
    done = project.run(*arguments)
    assert (done.code, done.out) == (64, "")
    assert done.err
