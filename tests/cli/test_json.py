"""`--format json` prints one document in every case, and the document fits its published schema."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import click
import pytest

from syncengine.cli import program
from syncengine.render.schemas import SUFFIX, schemas
from tests.support.formats import fitting

from .program import REPOSITORY, Project, category, tag
from .service import AT_ONCE, Service

pytestmark = pytest.mark.slow

MISTAKES = (("--xyzzy",), ("--config", "nowhere.yaml", "x", "x", "x", "x"))


def _commands(group: click.Group, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of each command that prints JSON."""
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        if isinstance(command, click.Group):
            yield from _commands(command, (*above, name))
        elif command and any(
            isinstance(each.type, click.Choice) and "json" in each.type.choices and each.name == "format"
            for each in command.params
        ):
            yield *above, name


COMMANDS = sorted(_commands(program))


def test_each_command_prints_a_format_that_is_published() -> None:
    """docs/formats.md names the format of each command, and each format has a schema."""
    page = (REPOSITORY / "docs/formats.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `syncengine\.([\w-]+)/v1` \| (.+) \|$", page, re.MULTILINE)
    assert {name for name, _ in rows} == {name.removesuffix(SUFFIX) for name in schemas()} - {
        "manifest",
        "policies",
        "project",
    }
    named = {command for _, cell in rows for command in re.findall(r"`([a-z ]+)`", cell)} - {"runs", "entries"}
    assert named == {" ".join(words) for words in COMMANDS} - {"render"} | {"state export"}


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_each_command_prints_one_document_whatever_is_wrong(project: Project, command: tuple[str, ...]) -> None:
    """A misspelt option, an unknown environment or a missing project file gives a document that fits its schema."""
    for mistake in MISTAKES:
        done = project.run(*command, "--format", "json", *mistake)
        assert done.code in (1, 8, 64), done
        assert fitting(done.document) == ("report" if command == ("apply",) else "diagnostics")


PATHS: list[tuple[tuple[str, ...], int, str]] = [
    (("validate",), 0, "diagnostics"),
    (("plan",), 0, "plan"),
    (("plan", "--nope"), 64, "diagnostics"),
    (("plan", "manifests/nowhere"), 64, "diagnostics"),
    (("show", "nowhere.plan"), 64, "diagnostics"),
    (("state", "show", "nonsense"), 64, "diagnostics"),
    (("state", "show", "tag/NOWHERE"), 1, "diagnostics"),
    (("aply",), 64, "diagnostics"),
    (("--env", "nowhere", "plan"), 8, "diagnostics"),
    (("apply",), 64, "report"),
    (("apply", "-y", "--nope"), 64, "report"),
    (("apply", "-y", "--env", "nowhere"), 8, "report"),
    (("apply", "-y"), 0, "report"),
]


@pytest.mark.parametrize(("arguments", "code", "format"), PATHS)
def test_every_path_prints_one_document(project: Project, arguments: tuple[str, ...], code: int, format: str) -> None:
    """Success and every kind of error give one document (docs/commands.md)."""
    project.wants(tags=[tag("NEW-1", category="fresh")], tagCategories=[category("fresh")])
    done = project.run(*arguments, "--format", "json")
    assert (done.code, fitting(done.document)) == (code, format)


@pytest.mark.parametrize(
    ("command", "format"), [("validate", "diagnostics"), ("plan", "diagnostics"), ("apply", "report")]
)
def test_bad_manifests_print_one_document(project: Project, command: str, format: str) -> None:
    """The document has every finding with its file and line."""
    project.wants(tags=[{"nme": "BAD-1"}])
    done = project.run(command, "--format", "json")
    if command == "apply":
        done = project.run(command, "-y", "--format", "json")
    assert (done.code, fitting(done.document)) == (8, format)
    assert {(d["file"], d["line"]) for d in done.document["diagnostics"]} == {("manifests/all.yaml", 2)}


def test_an_incomplete_apply_prints_one_document_and_writes_every_report(project: Project, service: Service) -> None:
    """An apply that exits with 3 still writes all its reports (docs/planning.md 4.11)."""
    service.fault("upsertTags", status=503, headers=AT_ONCE, times=None)
    project.wants(tags=[tag("NEW-1")])
    formats = ("json", "markdown", "text", "junit", "sarif", "github", "gitlab")
    reports = [word for name in formats for word in ("--report", f"{name}=report.{name}")]
    done = project.run("apply", "-y", "--format", "json", *reports)
    assert (done.code, fitting(done.document)) == (3, "report")
    assert json.loads((project.folder / "report.json").read_text()) == done.document
    assert all("NEW-1" in (project.folder / f"report.{name}").read_text() for name in formats)


@pytest.mark.parametrize(("format", "head"), [("markdown", "### No plan: 1 error."), ("html", "<!doctype html>")])
def test_a_plan_that_cannot_be_made_says_so_in_the_format_that_was_asked_for(
    project: Project, format: str, head: str
) -> None:
    """The error is printed in that format on stdout and as text on stderr."""
    project.wants(tags=[tag("NEW-1", nope="x")])
    done = project.run("plan", "--format", format)
    assert (done.code, done.out.startswith(head)) == (8, True)
    assert "error[unknown-field]" in done.err


def test_a_refused_apply_lists_what_it_skipped(project: Project, service: Service) -> None:
    """Each result has the reason: a closed gate, another team, or an unreachable service."""
    project.settle(tags=[tag("HELD-1"), tag("HELD-2")])
    project.wants(tags=[tag("NEW-1")])
    gate = project.run("apply", "-y", "--format", "json")
    approval = project.approvals()
    service.fault("teamInfo", status=503, headers=AT_ONCE, times=None)
    away = project.run("apply", "-y", *approval, "--format", "json")
    service.heal()
    service.choose(teamName="Somebody else")
    other = project.run("apply", "-y", *approval, "--format", "json")
    told = [(d.code, d.document["status"], d.document["summary"]["skipped"]) for d in (gate, away, other)]
    assert told == [(4, "refused", 3), (9, "failed", 3), (7, "refused", 3)]
    for done in (gate, away, other):
        assert fitting(done.document) == "report"
        assert set(done.outcomes().values()) == {"skipped"}
        assert {r["error"]["message"] for r in done.document["results"]} == {
            done.document["diagnostics"][-1]["message"]
        }


BY_HAND: list[tuple[str, ...]] = [
    ("time", "list"),
    ("time", "pull"),
    ("time", "audit"),
    ("time", "register"),
    ("time", "register", "webhook"),
    ("time", "unregister"),
    ("connector", "register"),
    ("connector", "check"),
    ("health", "report", "unknown"),
    ("health", "clear"),
]
"""Commands that call the service outside plan and apply."""

DELIVERING = """\
postedTime:
  webhook: {callbackUrl: "http://127.0.0.1:9/hook", callerKey: {env: SYNCENGINE_API_KEY}}
  deliver: [{name: file, jsonl: {path: out.jsonl}}]
"""


@pytest.mark.parametrize("words", BY_HAND, ids=" ".join)
def test_other_calls_to_the_service_print_one_document_on_errors(
    project: Project, service: Service, words: tuple[str, ...]
) -> None:
    """A usage error, a wrong key and a refusal each give one document without the service's text."""
    project.settings(DELIVERING)
    usage = project.run(*words, "--nope", "--format", "json")
    locked_out = project.run(*words, "--format", "json", environ={"SYNCENGINE_API_KEY": "another-key"})
    service.fault("*", times=None, status=400, body="somebody's words")
    refused = project.run(*words, "--format", "json")
    assert [usage.code, locked_out.code] == [64, 7]
    assert refused.code in (1, 9)
    for done in (usage, locked_out, refused):
        assert (fitting(done.document), len(done.codes)) == ("diagnostics", 1)
        assert "somebody" not in done.out + done.err


@pytest.mark.parametrize("words", [BY_HAND[0], ("apply", "-y"), ("state", "rebind", "-y")], ids=" ".join)
def test_each_command_warns_of_a_key_sent_in_clear_text(
    project: Project, service: Service, words: tuple[str, ...]
) -> None:
    """The warning is given for an http:// address other than this machine's own."""
    project.settings(DELIVERING)
    project.wants(tags=[tag("A")])
    service.choose(holdSeconds=0)
    open_to_all = service.url.replace("127.0.0.1", "0.0.0.0")
    done = project.run(*words, environ={"SYNCENGINE_BASE_URL": open_to_all})
    assert (done.out + done.err).count("insecure-url") == 1


@pytest.mark.parametrize("name", ["github", "gitlab", "sarif"])
def test_other_formats_for_machines_contain_usage_errors(project: Project, name: str) -> None:
    """The formats `github`, `gitlab` and `sarif` report an error that ends `validate` before it has findings."""
    usage = project.run("validate", "--nope", "--format", name)
    assert usage.code == 64
    assert "No such option" in usage.out
    if name != "github":
        json.loads(usage.out)
