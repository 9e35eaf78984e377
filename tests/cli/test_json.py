"""`--format json` prints one document in every case, and the document fits its published schema."""

from __future__ import annotations

import json
import re

import click
import pytest

from syncengine.render.schemas import SUFFIX, schemas
from tests.support.formats import fitting

from .program import REPOSITORY, Project, category, tag
from .service import AT_ONCE, Service
from .test_help import LEAVES

pytestmark = pytest.mark.slow

MISTAKES = (("--xyzzy",), ("--config", "nowhere.yaml", "x", "x", "x", "x"))


def prints_json(command: click.Command) -> bool:
    choices = (
        each.type.choices for each in command.params if each.name == "format" and isinstance(each.type, click.Choice)
    )
    return any("json" in each for each in choices)


COMMANDS = sorted(words for words, command in LEAVES.items() if prints_json(command))


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
    assert named == {*COMMANDS} - {"render"} | {"state export"}


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_prints_one_document_whatever_is_wrong(project: Project, command: str) -> None:
    """A misspelt option, an unknown environment or a missing project file gives a document that fits its schema."""
    for mistake in MISTAKES:
        done = project.run(*command.split(), "--format", "json", *mistake)
        assert done.code in (1, 8, 64), done
        assert fitting(done.document) == ("report" if command == "apply" else "diagnostics")


PATHS = [
    ("validate", 0, "diagnostics"),
    ("plan", 0, "plan"),
    ("plan --nope", 64, "diagnostics"),
    ("plan manifests/nowhere", 64, "diagnostics"),
    ("show nowhere.plan", 64, "diagnostics"),
    ("state show nonsense", 64, "diagnostics"),
    ("state show tag/NOWHERE", 1, "diagnostics"),
    ("aply", 64, "diagnostics"),
    ("--env nowhere plan", 8, "diagnostics"),
    ("apply", 64, "report"),
    ("apply -y --nope", 64, "report"),
    ("apply -y --env nowhere", 8, "report"),
    ("apply -y", 0, "report"),
    # The value of an option, or a word after another command, is not taken for the command.
    ("--env apply plan --nope", 64, "diagnostics"),
    ("plan --env apply --nope", 64, "diagnostics"),
    ("--var-file apply state list --nope", 64, "diagnostics"),
    ("state apply", 64, "diagnostics"),
    ("--env plan apply --nope", 64, "report"),
    ("-C plan apply --nope", 64, "report"),
]


@pytest.mark.parametrize(("words", "code", "format"), PATHS)
def test_every_path_prints_one_document(project: Project, words: str, code: int, format: str) -> None:
    """Success and every kind of error give one document, which is that of the command (docs/commands.md)."""
    project.wants(tags=[tag("NEW-1", category="fresh")], tagCategories=[category("fresh")])
    done = project.run(*words.split(), "--format", "json")
    assert (done.code, fitting(done.document)) == (code, format)


@pytest.mark.parametrize(
    ("words", "format"), [("validate", "diagnostics"), ("plan", "diagnostics"), ("apply -y", "report")]
)
def test_bad_manifests_print_one_document(project: Project, words: str, format: str) -> None:
    """The document has every finding with its file and line, and no state is created."""
    project.wants(tags=[{"nme": "BAD-1"}, {"name": "BAD-2", "descripton": "x"}])
    done = project.run(*words.split(), "--format", "json")
    assert (done.code, fitting(done.document)) == (8, format)
    assert {(d["file"], d["line"]) for d in done.document["diagnostics"]} == {("manifests/all.yaml", n) for n in (2, 3)}
    assert not (project.folder / ".syncengine" / "state.db").exists()


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


BY_HAND = (
    *("time list", "time pull", "time audit", "time register", "time register webhook", "time unregister"),
    *("connector register", "connector check", "health report unknown", "health clear"),
)
"""Commands that call the service outside plan and apply."""

DELIVERING = """\
postedTime:
  webhook: {callbackUrl: "http://127.0.0.1:9/hook", callerKey: {env: SYNCENGINE_API_KEY}}
  deliver: [{name: file, jsonl: {path: out.jsonl}}]
"""


@pytest.mark.parametrize("line", BY_HAND)
def test_other_calls_to_the_service_print_one_document_on_errors(project: Project, service: Service, line: str) -> None:
    """A usage error, a wrong key and a refusal each give one document without the service's text."""
    project.settings(DELIVERING)
    words = line.split()
    usage = project.run(*words, "--nope", "--format", "json")
    locked_out = project.run(*words, "--format", "json", environ={"SYNCENGINE_API_KEY": "another-key"})
    service.fault("*", times=None, status=400, body="somebody's words")
    refused = project.run(*words, "--format", "json")
    assert [usage.code, locked_out.code] == [64, 7]
    assert refused.code in (1, 9)
    for done in (usage, locked_out, refused):
        assert (fitting(done.document), len(done.codes)) == ("diagnostics", 1)
        assert "somebody" not in done.out + done.err


@pytest.mark.parametrize("words", ["time list", "apply -y", "state rebind -y"])
def test_each_command_warns_of_a_key_sent_in_clear_text(project: Project, service: Service, words: str) -> None:
    """The warning is given for an http:// address other than this machine's own."""
    project.settings(DELIVERING)
    project.wants(tags=[tag("A")])
    service.choose(holdSeconds=0)
    open_to_all = service.url.replace("127.0.0.1", "0.0.0.0")
    done = project.run(*words.split(), environ={"SYNCENGINE_BASE_URL": open_to_all})
    assert (done.out + done.err).count("insecure-url") == 1


@pytest.mark.parametrize("name", ["github", "gitlab", "sarif"])
def test_other_formats_for_machines_contain_usage_errors(project: Project, name: str) -> None:
    """The formats `github`, `gitlab` and `sarif` report an error that ends `validate` before it has findings."""
    usage = project.run("validate", "--nope", "--format", name)
    assert (usage.code, "No such option" in usage.out) == (64, True)
    assert name == "github" or json.loads(usage.out)


def test_a_usage_error_prints_one_document_on_stdout(project: Project) -> None:
    """With `--report sarif=-`, the error is in that report and not in a second document."""
    done = project.run("plan", "--format", "json", "--report", "sarif=-", "--misspelt")
    assert (done.code, done.document["version"]) == (64, "2.1.0")
