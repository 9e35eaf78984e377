"""`--format json` prints one document in every case, and a report of an earlier plan is always replaced."""

import json
import re
import signal
import socket
from pathlib import Path
from typing import Any

import click
import pytest

from syncengine.cli.options import Globals
from syncengine.cli.output import Output
from syncengine.cli.output_files import MARKS, OutputFiles, Reports
from syncengine.cli.plan import REPORTS
from syncengine.errors import Unreachable
from syncengine.render import DIAGNOSTIC_FORMATS, PLAN_REPORTS, VALIDATE_FORMATS
from syncengine.render.ci import TEST_FORMATS
from syncengine.render.schemas import schemas
from syncengine.state import transfer
from tests.manifest.loading import write
from tests.support.formats import fitting

from .program import REPOSITORY, Project, activity_type, category, ended, tag
from .service import AT_ONCE, Service
from .test_help import LEAVES

pytestmark = pytest.mark.slow

COMMANDS = sorted(
    words
    for words, command in LEAVES.items()
    for each in command.params
    if each.name == "format" and isinstance(each.type, click.Choice) and "json" in each.type.choices
)


def test_each_command_prints_a_format_that_is_published() -> None:
    """docs/formats.md names the format of each command, and each format has a schema."""
    page = (REPOSITORY / "docs/formats.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(syncengine\.[\w-]+/v\d)` \| (.+) \|$", page, re.MULTILINE)
    published = re.findall(r'"const": "(syncengine\.[\w-]+/v\d)"', json.dumps(schemas()))
    assert {name for name, _ in rows} == {*published, transfer.FORMAT}
    named = {command for _, cell in rows for command in re.findall(r"`([a-z ]+)`", cell)} - {"runs", "entries"}
    assert named == {*COMMANDS} - {"render"} | {"state export"}


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_prints_one_document_whatever_is_wrong(project: Project, command: str) -> None:
    """A misspelt option, an unknown environment or a missing project file gives a document that fits its schema."""
    for mistake in (("--xyzzy",), ("--config", "nowhere.yaml", "x", "x", "x", "x")):
        done = project.run(*command.split(), "--format", "json", *mistake)
        assert done.code in (1, 8, 64), done
        assert fitting(done.document) == ("report" if command == "apply" else "diagnostics")


PATHS = [
    ("validate", 0, "diagnostics"),
    ("plan", 0, "plan"),
    ("plan manifests/nowhere", 64, "diagnostics"),
    ("show nowhere.plan", 64, "diagnostics"),
    ("state show nonsense", 64, "diagnostics"),
    ("state show tag/NOWHERE", 1, "diagnostics"),
    ("aply", 64, "diagnostics"),
    ("apply", 64, "report"),
    ("apply -y", 0, "report"),
    ("validate", 8, "diagnostics"),
    ("plan", 8, "diagnostics"),
    ("apply -y", 8, "report"),
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
    """Success and every kind of error give one document, which is that of the command (docs/commands.md). With wrong
    manifests it has every finding with its file and line, and no state is created."""
    project.wants(tags=[tag("NEW-1", category="fresh")], tagCategories=[category("fresh")])
    if code == 8:
        project.wants(tags=[{"nme": "BAD-1"}, {"name": "BAD-2", "descripton": "x"}])
    done = project.run(*words.split(), "--format", "json")
    assert (done.code, fitting(done.document)) == (code, format)
    if code == 8:
        found = {(each["file"], each["line"]) for each in done.document["diagnostics"]}
        assert found == {("manifests/all.yaml", 2), ("manifests/all.yaml", 3)}
    assert (project.folder / ".syncengine" / "state.db").exists() == (words == "apply -y" and code == 0)


def test_an_incomplete_apply_prints_one_document_and_writes_every_report(project: Project, service: Service) -> None:
    service.fault("upsertTags", status=503, headers=AT_ONCE, times=None)
    project.wants(tags=[tag("NEW-1")])
    formats = ("json", "markdown", "text", "junit", "sarif", "github", "gitlab")
    reports = [word for name in formats for word in ("--report", f"{name}=report.{name}")]
    done = project.run("apply", "-y", "--format", "json", *reports)
    assert (done.code, fitting(done.document)) == (3, "report")
    assert json.loads((project.folder / "report.json").read_text()) == done.document
    assert all("NEW-1" in (project.folder / f"report.{name}").read_text() for name in formats)


def test_a_refused_apply_lists_what_it_skipped(project: Project, service: Service) -> None:
    """Each result has the reason: a closed gate, another team, or an unreachable service."""
    project.settle(tags=[tag("HELD-1"), tag("HELD-2")])
    project.wants(tags=[tag("NEW-1")])
    gate = project.apply_unapproved()
    service.fault("teamInfo", status=503, headers=AT_ONCE, times=None)
    away = project.apply()
    service.heal()
    service.choose(teamName="Somebody else")
    other = project.apply()
    told = [(d.code, d.document["status"], d.document["summary"]["skipped"]) for d in (gate, away, other)]
    assert told == [(4, "refused", 3), (9, "failed", 3), (7, "refused", 3)]
    for done in (gate, away, other):
        assert fitting(done.document) == "report"
        assert set(done.outcomes().values()) == {"skipped"}
        (message,) = {each["error"]["message"] for each in done.document["results"]}
        assert message == done.document["diagnostics"][-1]["message"]


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


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ("validate --nope --format github", 64, "No such option"),
        ("validate --nope --format gitlab", 64, "No such option"),
        ("validate --nope --format sarif", 64, "No such option"),
        ("plan --nope --format json --report sarif=-", 64, "2.1.0"),
        ("plan --format markdown", 8, "### No plan: 1 error."),
        ("plan --format html", 8, "<!doctype html>"),
    ],
)
def test_errors_have_the_format_that_was_asked_for(project: Project, words: str, code: int, says: str) -> None:
    """A report on stdout takes the place of the document. Stderr has the error as text."""
    project.wants(tags=[tag("NEW-1", nope="x")])
    done = project.run(*words.split())
    assert (done.code, says in done.out, "error[" in done.err) == (code, True, True), done
    assert not re.search("sarif|gitlab", words) or json.loads(done.out)


# --- reports of a plan for every exit code


STALE = "the report of an earlier plan"
STARTS = {
    **MARKS,
    "json": '{"format": "syncengine.plan/v1", "id": "',
    "html": '<!doctype html><meta name="generator" content="syncengine">',
    "github": "::notice ::",
    "gitlab": '[{"engine_name": "syncengine", "description": "',
    "sarif": '{"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "name": "syncengine"',
}
"""How each report begins; a file that begins so may be replaced."""
WORDS = [word for name in PLAN_REPORTS for word in ("--report", f"{name}=report.{name}")]


HELD = {"tags": [tag("HELD-1")], "activityTypes": [activity_type("A100")], "tagCategories": [category("gone")]}
USAGE = (
    *("--nope", "manifests/nowhere.yaml", "--target tag/NOWHERE", "--sweep --target tag/*", "--approve-deletes x"),
    *("--report nonsense=x", "--out nowhere/plan.json"),
)
NO_SERVER = "postgresql+psycopg://127.0.0.1:9/none?connect_timeout=1"
ENDS: list[tuple[int, str, str, dict[str, Any], dict[str, str]]] = [
    (0, "", '"changes": []', {}, {}),
    (2, "", "tag/NEW-1", {"tags": [tag("HELD-1"), tag("NEW-1")]}, {}),
    (4, "", '"tripped": true', {"tagCategories": []}, {}),
    (1, "", '"diagnostics": [', {}, {"SYNCENGINE_STATE": NO_SERVER}),
    (1, "", '"diagnostics": [', {}, {"SYNCENGINE_STATE": "manifests"}),
    (8, "", '"unknown-field"', {"tags": [tag("HELD-1", nope="x"), {"nme": "x"}]}, {}),
    (8, "--env nowhere", '"error"', {}, {}),
    (8, "--config bad.yaml", '"error"', {}, {}),
    *((64, words, '"usage"', {}, {}) for words in USAGE),
]


def stale(project: Project) -> dict[str, Path]:
    """Write reports of an earlier plan, in every format, and return their files."""
    files = {name: project.folder / f"report.{name}" for name in PLAN_REPORTS}
    for name, file in files.items():
        file.write_text(STARTS[name] + STALE)
    return files


@pytest.mark.parametrize(("code", "words", "shown", "sections", "environ"), ENDS)
def test_every_plan_replaces_the_reports_of_an_earlier_one(
    project: Project, code: int, words: str, shown: str, sections: dict[str, Any], environ: dict[str, str]
) -> None:
    """By the plan or by what is wrong, also in a folder that `-C` chooses before or after the command."""
    project.settle(**HELD)
    project.wants(**{**HELD, **sections})
    write(project.folder, {"bad.yaml": "version: 7\n"})
    for start, end in (("-C project plan", ""), ("plan", "-Cproject")):
        files = stale(project)
        line = (*start.split(), "--detailed-exitcode", *words.split(), *WORDS, *end.split())
        assert project.run(*line, cwd=project.folder.parent, environ=environ).code == code
        assert [name for name, file in files.items() if STALE in file.read_text()] == []
        assert shown in files["json"].read_text()


def test_130_says_that_it_was_interrupted(project: Project) -> None:
    """A plan that is interrupted while it waits for a source reports `interrupted`."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        source = f"sources: {{crm: {{http: 'http://127.0.0.1:{silent.getsockname()[1]}'}}}}"
        project.settings(source)
        block = "generate: [{forEach: {http: {source: crm, path: /}}, tags: [{name: '{{ row.no }}'}]}]"
        write(project.folder, {"manifests/all.yaml": block})
        files = stale(project)
        process = project.fork("plan", *WORDS)
        silent.settimeout(60)
        connection, _ = silent.accept()
        with connection:
            process.send_signal(signal.SIGINT)
            done = ended(process)
    assert done.code == 130
    assert [name for name, file in files.items() if STALE in file.read_text()] == []
    assert '"interrupted"' in files["json"].read_text()


def test_an_internal_error_is_reported_without_its_message(tmp_path: Path) -> None:
    """Whatever exception ends a plan, its report has the error's code and no data."""
    file = tmp_path / "report.json"
    for error, code in {
        ZeroDivisionError("secret"): "internal",
        OSError(5, "trouble", "somewhere"): "file",
        KeyboardInterrupt(): "interrupted",
        Unreachable("nobody answers"): "unreachable",
        click.UsageError("misspelt"): "usage",
    }.items():
        reporting = Reports(REPORTS, Output(Globals(), tmp_path), OutputFiles(tmp_path), [f"json={file}"])
        with pytest.raises(type(error)), reporting.on_every_path():
            raise error
        assert f'"{code}"' in file.read_text()
        assert "secret" not in file.read_text()


def test_a_report_that_cannot_be_written_does_not_stop_the_others(project: Project) -> None:
    """`plan` exits with 1 and names the failed report, below the plan, which took its time."""
    write(project.folder, {"manifests/all.yaml": "tags: []", "folder/kept": ""})
    done = project.run("plan", "--report", "json=folder", *WORDS)
    assert (done.code, "No changes" in done.out, "error[report-file]" in done.err) == (1, True, True), done.err
    assert "the report folder cannot be written" in done.err
    assert all((project.folder / f"report.{name}").exists() for name in PLAN_REPORTS)


def test_every_plan_report_format_can_report_errors() -> None:
    """Otherwise an error would leave an earlier report in place."""
    assert list(DIAGNOSTIC_FORMATS) == [*PLAN_REPORTS, "junit"]
    assert DIAGNOSTIC_FORMATS.keys() >= {*VALIDATE_FORMATS, *TEST_FORMATS}


def title(project: Project, *options: str, **environ: str) -> str:
    """The heading of a plan's page without its first part, which is the team or the service."""
    done = project.run(*options, "plan", "--format", "html", environ=environ)
    assert done.code == 0, done.err
    heading = done.out.partition("<h1>")[2].partition("</h1>")[0]
    assert f"<title>{heading} · " in done.out
    return heading.partition(" · ")[2]


def test_a_page_names_its_project(project: Project) -> None:
    """The heading has the folder, or in a job the repository; another project file; and the environment."""
    project.settings("environments: {production: {}}")
    project.wants(tags=[tag("T-1")])
    assert title(project) == "project"
    assert title(project, "--env", "production") == "project · production"
    (project.folder / "other.yaml").write_bytes((project.folder / "syncengine.yaml").read_bytes())
    assert title(project, "--config", "other.yaml") == "project/other.yaml"
    assert title(project, GITHUB_REPOSITORY="acme/<b>tags") == "acme/&lt;b&gt;tags"
    (project.folder.parent / ".git").mkdir()
    assert title(project, CI_PROJECT_PATH="firm/teams/tags") == "firm/teams/tags/project"
