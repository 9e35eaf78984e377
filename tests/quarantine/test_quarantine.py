"""A refused resource is put into quarantine: everything else is applied, and nothing is lost (docs/repair.md)."""

import asyncio
import io
import re
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from syncengine.serve.log import Log
from syncengine.serve.probes import Readiness
from syncengine.serve.reconcile import Reconciling
from tests.cli.program import Project, activity_type, category, tag
from tests.support.git import commit_all, git

from .refusing import WORDS, Refusing, refusing

pytestmark = pytest.mark.slow

QUARANTINE = ("state", "quarantine")
BECAUSE = ("--reason", "ticket 4711")


@pytest.fixture
def service() -> Iterator[Refusing]:
    with refusing() as started:
        yield started


@pytest.fixture
def refused(project: Project, service: Refusing) -> Project:
    """A project with two tags, of which the service refuses one."""
    project.settle(tags=[tag("GOOD")])
    service.refuse("BAD")
    project.wants(tags=[tag("GOOD"), tag("BAD")])
    assert project.apply().code == 3
    return project


def day(days: int) -> str:
    return f"{datetime.now(UTC) + timedelta(days=days):%Y-%m-%d}"


def aside(project: Project, address: str, *more: str) -> None:
    done = project.run(*QUARANTINE, address, *BECAUSE, *more)
    assert done.code == 0, done.err


def end(project: Project, service: Refusing, address: str) -> None:
    service.heal()
    assert project.run(*QUARANTINE, address, "--end").code == 0
    assert project.apply().code == 0


def planned(project: Project, *more: str) -> tuple[int, Any]:
    done = project.run("plan", "--format", "json", "--detailed-exitcode", *more)
    return done.code, done.document


def warned(document: Any, code: str = "quarantined") -> list[Any]:
    return [each for each in document["diagnostics"] if each["code"] == code]


def changes(document: Any) -> dict[str, str]:
    return {change["address"]: change["action"] for change in document["changes"]}


# --- setting aside


def test_a_refused_resource_is_set_aside_and_the_exit_is_0_again(refused: Project, service: Refusing) -> None:
    """`plan` and `apply` warn at the resource's line, and quote the service."""
    assert planned(refused)[0] == 2
    aside(refused, "tag/BAD")
    code, document = planned(refused)
    assert (code, document["changes"]) == (0, [])
    (warning,) = warned(document)
    assert (warning["file"], warning["line"], warning["address"]) == ("manifests/all.yaml", 3, "tag/BAD")
    assert "ticket 4711" in warning["message"]
    assert re.search(rf'refused 1 time since [0-9:]{{5}}: "{WORDS}"', warning["message"])
    before = service.sent("upsertTags")
    done = refused.apply()
    assert (done.code, done.codes, service.sent("upsertTags")) == (0, ["quarantined"], before)


def test_only_what_was_refused_can_be_set_aside(refused: Project, service: Refusing) -> None:
    """For any other resource or content the command fails, says why, and changes nothing."""
    assert_refused(refused, "tag/GOOD", "its last call was not refused")
    assert_refused(refused, "tag/NOBODY", "not recorded", code="not-recorded")
    refused.wants(tags=[tag("GOOD"), tag("BAD", description="other")])
    assert_refused(refused, "tag/BAD", "its manifest changed since it was refused")
    refused.wants(tags=[tag("GOOD"), tag("BAD")])
    service.operations["upsertTags"] = (200, "<html>")
    assert refused.apply().code == 3
    assert_refused(refused, "tag/BAD", "the outcome of its last call is unknown")
    assert refused.run(*QUARANTINE).out == "Nothing is in quarantine.\n"


def assert_refused(project: Project, address: str, words: str, code: str = "not-refused") -> None:
    done = project.run(*QUARANTINE, address, *BECAUSE, "--format", "json")
    assert (done.code, done.codes, words in done.out) == (1, [code], True), done.out


MISSPELT = (
    (("tag/BAD",), "give --reason TEXT"),
    (("tag/BAD", "--reason", " "), "give a few words"),
    (("tag/BAD", "--reason", "x" * 501), "at most 500"),
    (("tag/BAD", *BECAUSE, "--until", "soon"), "'soon' is not a time: write a duration (7d, 36h)"),
    (("tag/BAD", *BECAUSE, "--until", "2020-01-31"), "2020-01-31 is in the past"),
    (("tag/BAD", *BECAUSE, "--end"), "cannot be combined"),
    (("BAD", *BECAUSE), "is not an address"),
    (("--end",), "need an ADDRESS"),
)


def test_a_misspelt_command_is_a_usage_error(refused: Project) -> None:
    for words, says in MISSPELT:
        done = refused.run(*QUARANTINE, *words)
        assert (done.code, says in done.err) == (64, True), done.err
    assert planned(refused)[0] == 2


def test_an_entry_is_listed_and_ended(refused: Project, service: Refusing) -> None:
    """The history has both commands as runs, and the history of the resource has both events."""
    aside(refused, "tag/BAD", "--until", day(90))
    listed = refused.run(*QUARANTINE, "--format", "json").document
    (entry,) = listed["quarantine"]
    assert (entry["address"], entry["reason"], entry["refused"]["message"]) == ("tag/BAD", "ticket 4711", WORDS)
    assert f"tag/BAD until {day(90)}: ticket 4711" in refused.run(*QUARANTINE).out
    assert refused.run(*QUARANTINE, "tag/BAD", "--end").code == 0
    code, document = planned(refused)
    assert (code, changes(document)) == (2, {"tag/BAD": "create"})
    assert refused.run(*QUARANTINE, "tag/BAD", "--end", "--format", "json").codes == ["not-quarantined"]
    told = refused.run("state", "history", "tag/BAD", "--format", "json").document["entries"]
    assert [entry["outcome"] for entry in told] == ["failed", "quarantined", "quarantine-ended"]
    runs = refused.run("state", "history", "--format", "json").document["runs"]
    assert [run["command"] for run in runs[:2]] == ["state quarantine"] * 2
    service.heal()
    assert refused.apply().code == 0
    assert service.tags() == {"GOOD", "BAD"}


# --- the end


def test_a_quarantine_ends_when_the_manifest_changes(refused: Project) -> None:
    """Another order or place is no change. The new content is not in quarantine when it is refused, too."""
    bad = tag("BAD", keywords=["first words", "other words"], metadata={"a": "1", "b": "2"})
    refused.wants(tags=[tag("GOOD"), bad])
    assert refused.apply().code == 3
    aside(refused, "tag/BAD")
    same = tag("BAD", metadata={"b": "2", "a": "1"}, keywords=["other words", "first words"])
    refused.wants(tags=[same, tag("GOOD")])
    assert planned(refused)[0] == 0
    refused.wants(tags=[tag("GOOD"), {**bad, "description": "other"}])
    code, document = planned(refused)
    assert (code, changes(document)) == (2, {"tag/BAD": "create"})
    assert "its manifest changed" in warned(document, "quarantine-ended")[0]["message"]
    assert refused.apply().code == 3
    code, document = planned(refused)
    assert (code, document["diagnostics"]) == (2, [])


def test_a_removal_needs_a_date_of_at_most_30_days(project: Project, service: Refusing) -> None:
    """By the command and in the project file. Until then the tag stays as it is."""
    policy = "policy: {tagRemoval: retire}"
    project.settings(policy)
    project.settle(tags=[tag("GOOD"), tag("BAD")])
    service.refuse("BAD")
    project.wants(tags=[tag("GOOD")])
    assert project.apply().code == 3
    undated = project.run(*QUARANTINE, "tag/BAD", *BECAUSE)
    assert (undated.code, "add --until DATE" in undated.err) == (64, True)
    assert project.run(*QUARANTINE, "tag/BAD", *BECAUSE, "--until", day(31)).code == 64
    project.settings(policy, *BAD)
    code, document = planned(project)
    assert (code, "add `until`" in warned(document, "quarantine-unused")[0]["message"]) == (2, True)
    for days, is_planned in ((31, 2), (30, 0)):
        project.settings(policy, *entry(f", reason: x, until: {day(days)}"))
        assert planned(project)[0] == is_planned
    project.settings(policy)
    aside(project, "tag/BAD", "--until", day(30))
    assert (project.apply().code, project.rows()["tag/BAD"]["status"]) == (0, "active")
    end(project, service, "tag/BAD")
    assert project.rows()["tag/BAD"]["status"] == "retired"


# --- what waits with it


def test_no_category_is_deleted_whose_member_is_in_quarantine(project: Project, service: Refusing) -> None:
    """The category and the tags in it stay until the quarantine ends; then they are deleted as before."""
    project.settle(tagCategories=[category("old")], tags=[tag("M", category="old"), tag("GONE", category="old")])
    service.refuse("M")
    project.wants(tags=[tag("M", description="moved out")])
    assert project.apply().outcomes()["category/old"] == "skipped"
    aside(project, "tag/M")
    code, document = planned(project)
    assert (code, document["changes"], document["gate"]["tripped"]) == (0, [], False)
    assert "waits for tag/M, which is in quarantine" in document["notes"][0]["message"]
    assert project.apply().code == 0
    assert (service.tags(), service.categories()) == ({"M", "GONE"}, {"old"})
    service.heal()
    assert project.run(*QUARANTINE, "tag/M", "--end").code == 0
    assert project.run("apply", "-y").code == 0, "the approval of the run that began it still covers it"
    assert (service.tags(), service.categories()) == ({"M"}, set())


def test_no_sweep_is_planned_while_an_activity_type_is_in_quarantine(project: Project, service: Refusing) -> None:
    """Also with `--sweep`, as a warning says."""
    project.settings("policy: {activityTypes: exact}")
    project.settle(activityTypes=[activity_type("A"), activity_type("GOES")])
    service.refuse("BAD")
    project.wants(activityTypes=[activity_type("A"), activity_type("BAD")])
    assert project.apply().code == 3
    aside(project, "activity-type/BAD")
    assert project.apply().code == 0, "what was uploaded together with it is sent again"
    code, document = planned(project, "--sweep")
    assert (code, document["changes"], len(warned(document, "sweep-left-out"))) == (0, [], 1)
    assert "no sweep can complete" in document["notes"][0]["message"]
    assert service.types() == {"A", "GOES"}
    end(project, service, "activity-type/BAD")
    assert service.types() == {"A", "BAD"}


# --- with other options


@pytest.mark.parametrize("words", [("--target", "tag/BAD"), ("--reassert",), ("--no-delete",)])
def test_no_option_sends_what_is_in_quarantine(refused: Project, service: Refusing, words: tuple[str, ...]) -> None:
    aside(refused, "tag/BAD")
    _, document = planned(refused, *words)
    assert "tag/BAD" not in changes(document)
    assert len(warned(document)) == 1
    before = len(service.sent("upsertTags"))
    assert refused.apply(*words).code == 0
    assert all("BAD" not in names for names in service.sent("upsertTags")[before:])


def test_protection_is_kept(project: Project, service: Refusing) -> None:
    """A protected tag in quarantine that is no longer declared is neither removed nor released."""
    project.settle(tags=[tag("T", protect=True), tag("STAYS")])
    service.refuse("T")
    project.wants(tags=[tag("T", protect=True, description="x"), tag("STAYS")])
    assert project.apply().code == 3
    aside(project, "tag/T")
    assert project.apply().code == 0
    project.wants(tags=[tag("STAYS")])
    service.heal()
    assert project.apply().code == 0
    assert service.tags() == {"T", "STAYS"}


def test_an_exported_state_has_quarantines_and_refusals(refused: Project) -> None:
    aside(refused, "tag/BAD")
    assert refused.run("state", "export", "-o", "state.jsonl").code == 0
    assert refused.run("state", "forget", "tag/BAD", "-y").code == 0
    assert planned(refused)[0] == 2
    assert refused.run("state", "import", "state.jsonl", "-y").code == 0
    _, document = planned(refused)
    assert (changes(document), len(warned(document))) == ({"tag/GOOD": "update"}, 1)


# --- saved and reviewed plans


def test_a_saved_plan_that_would_send_what_is_in_quarantine_is_stale(refused: Project) -> None:
    """The error names the resource. What has less than was reviewed is applied, and so is a plan without it."""
    refused.wants(tags=[tag("GOOD", description="x"), tag("BAD")])
    assert refused.run("plan", "--out", "all.plan", "--report", "json=reviewed.json").code == 0
    aside(refused, "tag/BAD")
    done = refused.run("apply", "all.plan", "--format", "json")
    assert (done.code, done.codes) == (5, ["stale-plan"])
    assert "tag/BAD was quarantined after the plan was made" in done.out
    assert refused.run("apply", "-y", "--reviewed", "reviewed.json").code == 0
    refused.wants(tags=[tag("GOOD", description="y"), tag("BAD")])
    assert refused.run("plan", "--out", "less.plan").code == 0
    assert refused.run(*QUARANTINE, "tag/BAD", "--end").code == 0
    done = refused.run("apply", "less.plan", "--format", "json")
    assert (done.code, done.outcomes()) == (0, {"tag/GOOD": "applied"})


def test_a_saved_plan_that_deletes_the_category_of_what_waits_is_stale(project: Project, service: Refusing) -> None:
    """The tag was to be retired, and would be deleted with its category instead."""
    members = [tag("BAD", category="old"), tag("STAYS")]
    project.settings("policy: {tagRemoval: retire}")
    project.settle(tagCategories=[category("old")], tags=members)
    service.refuse("BAD")
    project.wants(tagCategories=[category("old")], tags=members[1:])
    assert project.apply().code == 3
    project.wants(tags=members[1:])
    assert project.run("plan", "--out", "all.plan").code == 0
    approvals = project.approvals()
    aside(project, "tag/BAD", "--until", day(9))
    done = project.run("apply", "all.plan", *approvals)
    assert (done.code, "tag/BAD was quarantined" in done.err) == (5, True), done.err
    assert service.categories() == {"old"}


NAMES = ["ACME 0042; rm x --end", "It's $HOME", "turned \u202e round\\"]


@pytest.mark.parametrize("name", NAMES)
def test_the_command_that_ends_it_can_be_pasted_into_a_shell(name: str, project: Project, service: Refusing) -> None:
    service.refuse(name)
    project.wants(tags=[tag(name)])
    assert project.apply().code == 3
    done = project.run("-C", ".", *QUARANTINE, f"tag/{name}", *BECAUSE)
    command = done.out.rpartition("End it with: ")[2].strip()
    assert command.isprintable() and command.endswith("--end -C .")
    shell = ["bash", "-c", f"LC_ALL=C.UTF-8; printf '%s\\n' {command}"]
    words = subprocess.check_output(shell, encoding="utf-8").splitlines()
    assert words == ["syncengine", *QUARANTINE, f"tag/{name}", "--end", "-C", "."]
    assert project.run(*words[1:]).code == 0


# --- the project file


def entry(more: str, address: str = "tag/BAD") -> tuple[str, str]:
    return ("quarantine:", f"  - {{address: {address}{more}}}")


BAD = entry(", reason: ticket 4711")


def test_an_entry_of_the_project_file_sets_aside(refused: Project, service: Refusing) -> None:
    """The warning names the entry's line; changed content is sent once, and in quarantine too if it is refused."""
    refused.settings(*BAD)
    code, document = planned(refused)
    assert (code, document["changes"]) == (0, [])
    assert "(ticket 4711, syncengine.yaml:8)" in warned(document)[0]["message"]
    assert refused.apply().code == 0
    refused.wants(tags=[tag("GOOD"), tag("BAD", description="x")])
    assert refused.apply().code == 3
    assert planned(refused)[0] == 0
    assert refused.run(*QUARANTINE, "tag/BAD", "--end").code == 1


def test_an_invalid_entry_is_an_error_at_its_line(refused: Project) -> None:
    for invalid in (entry(", reason: x", "BAD"), entry(""), entry(", reason: x, until: soon")):
        refused.settings(*invalid)
        done = refused.run("plan", "--format", "json")
        assert (done.code, done.document["diagnostics"][0]["line"]) == (8, 8)


# --- what every plan quotes


def test_every_plan_quotes_the_last_refusal(refused: Project, service: Refusing) -> None:
    service.refuse("BAD", words='not "now"\x1b[31m')
    for _ in range(2):
        assert refused.apply().code == 3
    (change,) = planned(refused)[1]["changes"]
    assert (change["refused"]["times"], change["refused"]["message"]) == (3, 'not "now" [31m')
    assert datetime.fromisoformat(change["refused"]["since"]).tzinfo is not None
    for format in ("text", "markdown", "html"):
        shown = refused.run("plan", "--format", format, environ={"COLUMNS": "200"}).out
        assert re.search(r"refused 3 times since [^\n]*[0-9:]{5}[^\n]*now", shown), shown
        assert "\x1b" not in shown
    service.heal()
    assert refused.apply().code == 0
    service.refuse("BAD")
    refused.wants(tags=[tag("GOOD"), tag("BAD", description="x")])
    assert refused.apply().code == 3
    assert planned(refused)[1]["changes"][0]["refused"]["times"] == 1


def test_refusals_of_a_keyword_delete_are_counted(project: Project, service: Refusing) -> None:
    """The tag itself is accepted each time before."""
    project.settle(tags=[tag("T", keywords=["k"]), tag("U", keywords=["k"])])
    service.operations["deleteKeyword"] = (400, {"message": WORDS})
    project.wants(tags=[tag("T"), tag("U", keywords=["k"])])
    for _ in range(3):
        assert project.apply().code == 3
    assert planned(project)[1]["changes"][0]["refused"]["times"] == 3
    aside(project, "tag/T")
    assert planned(project)[0] == 0


def test_other_errors_are_no_refusals_of_a_resource(project: Project, service: Refusing) -> None:
    """An invalid key and a server error do not concern the resource."""
    project.settle(tags=[tag("GOOD")])
    project.wants(tags=[tag("GOOD"), tag("BAD")])
    for answer in ((401, {"message": "who?"}), (500, {"message": "oops"})):
        service.operations["upsertTags"] = answer
        assert project.apply().code != 0
        assert_refused(project, "tag/BAD", "not refused")
    assert "refused" not in planned(project)[1]["changes"][0]


def test_the_quarantine_of_a_pull_request_counts_and_is_a_change_of_policy(refused: Project) -> None:
    (refused.folder / ".gitignore").write_text(".syncengine/\n")
    git(refused.folder, "init", "-q", "-b", "main")
    commit_all(refused.folder)
    refused.settings(*BAD)
    commit_all(refused.folder)
    _, document = planned(refused, "--base", "HEAD~1")
    (said,) = warned(document, "policy-changed")
    assert 'quarantine of tag/BAD (none) → "ticket 4711" (syncengine.yaml:8)' in said["message"]
    assert document["changes"] == []
    refused.settings()
    commit_all(refused.folder)
    code, document = planned(refused, "--base", "HEAD~1")
    (said,) = warned(document, "policy-changed")
    assert '"ticket 4711" → (none)' in said["message"]
    assert (code, [change["origin"] for change in document["changes"]]) == (2, ["pull-request"])


# --- undoing: what is in quarantine is left out and named


def undone(project: Project, run: str, *more: str) -> Any:
    return project.run("plan", "--undo", run, *more, "--format", "json").document


def test_what_is_in_quarantine_is_left_out_and_named(project: Project, service: Refusing) -> None:
    """By command or project file, also with `--force`, which only undoes what other runs changed."""
    project.settle(tags=[tag("GOOD", description="one"), tag("BAD", description="one")])
    service.refuse("BAD")
    project.wants(tags=[tag("GOOD", description="two"), tag("BAD", description="two")])
    assert project.apply().code == 3
    assert project.run("plan", "--undo", "last", "--out", "all.plan").code == 0
    project.settings(*BAD)
    document = undone(project, "last")
    assert changes(document) == {"tag/GOOD": "update"}
    assert "syncengine.yaml:" in document["notes"][0]["message"]
    project.settings()
    aside(project, "tag/BAD", "--until", day(10))
    assert project.run("apply", "all.plan", "--format", "json").codes == ["stale-plan"]
    for force in ((), ("--force",)):
        document = undone(project, "last", *force, "--out", "undo.plan")
        assert (changes(document), document["undo"]["leftOut"]) == ({"tag/GOOD": "update"}, ["tag/BAD"])
        (note,) = document["notes"]
        assert note["message"] == f"not undone: it is in quarantine until {day(10)} (ticket 4711)"
    before = len(service.sent("upsertTags"))
    assert project.run("apply", "undo.plan").code == 0
    assert service.sent("upsertTags")[before:] == [["GOOD"]]
    project.wants(tags=[tag("GOOD", description="one"), tag("BAD", description="two")])
    assert planned(project)[0] == 0


def test_a_tag_waits_that_the_undo_would_put_into_a_quarantined_category(project: Project, service: Refusing) -> None:
    before, after = ([tag("T", category="acme", description=words)] for words in ("one", "two"))
    project.settle(tagCategories=[category("acme")], tags=before)
    project.settle(tagCategories=[category("acme")], tags=after)
    run = project.run_id()
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
    run = project.run_id()
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


# --- serving


def reconciled(project: Project, readiness: Readiness) -> str:
    stream = io.StringIO()

    async def once() -> None:
        stop = asyncio.Event()
        log, environ = Log(stream, time.time), project.surroundings()
        serving = Reconciling(project.loaded(), project.url, environ, log=log, readiness=readiness, stop=stop)
        readiness.reconciled = None
        running = asyncio.create_task(serving.run())
        while readiness.reconciled is None:  # noqa: ASYNC110 -- it sets no event
            await asyncio.sleep(0.01)
        stop.set()
        await running

    asyncio.run(once())
    return stream.getvalue()


def seen(readiness: Readiness) -> tuple[str | None, float | None, float | None]:
    """How the last round ended, and the numbers of resources that are refused and in quarantine."""
    names = ("syncengine_refused_resources", "syncengine_quarantined_resources")
    refused, quarantined = (readiness.metrics.registry.get_sample_value(name) for name in names)
    return readiness.reconciled, refused, quarantined


def test_a_quarantine_is_counted_and_logged_once(refused: Project, service: Refusing) -> None:
    readiness = Readiness()
    log = reconciled(refused, readiness)
    assert (seen(readiness), "not-applied" in log) == (("incomplete", 1, 0), True)
    aside(refused, "tag/BAD")
    logs = [reconciled(refused, readiness) for _ in range(2)]
    assert seen(readiness) == ("complete", 1, 1)
    assert ["tag/BAD is in quarantine" in each for each in logs] == [True, False]
    service.heal()
    assert refused.run(*QUARANTINE, "tag/BAD", "--end").code == 0
    reconciled(refused, readiness)
    assert seen(readiness) == ("complete", 0, 0)
