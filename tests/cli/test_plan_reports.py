"""Reports of a plan on every exit: none of an earlier plan stays where today's could not be made."""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from syncengine.cli.options import Globals
from syncengine.cli.output import Output
from syncengine.cli.output_files import MARKS, Reports
from syncengine.cli.plan import REPORTS
from syncengine.errors import Unreachable
from syncengine.render.registry import DIAGNOSTIC_FORMATS, PLAN_REPORTS, VALIDATE_FORMATS

from .program import Project, activity_type, category, ended, tag

STALE = "the report of an earlier plan"
STARTS = {
    **MARKS,
    "json": '{"format": "syncengine.plan/v1", "id": "',
    "html": '<!doctype html><meta name="generator" content="syncengine">',
    "github": "::notice ::",
    "gitlab": '[{"engine_name": "syncengine", "description": "',
    "sarif": '{"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "name": "syncengine"',
}
"""How the reports of an earlier plan begin, by which they may be replaced."""
WORDS = [word for name in PLAN_REPORTS for word in ("--report", f"{name}=report.{name}")]


@pytest.fixture
def reported(project: Project) -> Iterator[Project]:
    """A project with reports of an earlier plan, none of which is there at the end."""
    project.settle(tagCategories=[category("gone")], activityTypes=[activity_type("A100")], tags=[tag("HELD-1")])
    for name in PLAN_REPORTS:
        (project.folder / f"report.{name}").write_text(STARTS[name] + STALE)
    yield project
    assert [name for name in PLAN_REPORTS if STALE in (project.folder / f"report.{name}").read_text()] == []


def reports(project: Project) -> str:
    return (project.folder / "report.json").read_text()


def test_0_has_the_plan(reported: Project) -> None:
    """The usual end."""
    assert reported.run("plan", *WORDS).code == 0
    assert '"changes": []' in reports(reported)


def test_2_has_the_changes(reported: Project) -> None:
    """Reports are the same with a detailed exit code."""
    reported.wants(
        tags=[tag("HELD-1"), tag("NEW-1")], activityTypes=[activity_type("A100")], tagCategories=[category("gone")]
    )
    assert reported.run("plan", "--detailed-exitcode", *WORDS).code == 2
    assert "tag/NEW-1" in reports(reported)


def test_4_has_the_gate(reported: Project) -> None:
    """With its approval."""
    reported.wants(tags=[tag("HELD-1")], activityTypes=[activity_type("A100")])
    assert reported.run("plan", "--detailed-exitcode", *WORDS).code == 4
    assert '"tripped": true' in reports(reported)


def test_no_state_yet_is_in_the_plan(reported: Project) -> None:
    """A new project has a plan, too."""
    assert reported.run("plan", *WORDS, environ={"SYNCENGINE_STATE": "new.db"}).code == 0
    assert "no-state" in reports(reported)


def test_another_teams_state_is_in_the_plan(reported: Project) -> None:
    """And so is another service's."""
    reported.settings(service=("team: Another",))
    assert reported.run("plan", *WORDS).code == 0
    assert "wrong-team" in reports(reported)


def test_1_is_a_state_that_cannot_be_read(reported: Project) -> None:
    """A database that does not answer; a file that is none."""
    gone = "postgresql+psycopg://127.0.0.1:9/none?connect_timeout=1"
    assert reported.run("plan", *WORDS, environ={"SYNCENGINE_STATE": gone}).code == 1
    assert '"diagnostics": [' in reports(reported)
    (reported.folder / "report.json").write_text(STARTS["json"] + STALE)
    assert reported.run("plan", *WORDS, environ={"SYNCENGINE_STATE": "manifests"}).code == 1


def test_8_has_every_finding(reported: Project) -> None:
    """Of the manifests, and of the project file."""
    reported.wants(tags=[tag("HELD-1", nope="x"), {"nme": "x"}])
    assert reported.run("plan", *WORDS).code == 8
    assert reports(reported).count('"error"') >= 2
    (reported.folder / "syncengine.yaml").write_text("version: 7\n")
    (reported.folder / "report.json").write_text(STARTS["json"] + STALE)
    assert reported.run("plan", *WORDS).code == 8


@pytest.mark.parametrize(
    "words",
    [
        ("--nope",),
        ("manifests/nowhere.yaml",),
        ("--target", "tag/NOWHERE"),
        ("--sweep", "--target", "tag/*"),
        ("--approve-deletes", "x"),
        ("--report", "nonsense=x"),
    ],
)
def test_64_says_what_was_misspelt(reported: Project, words: tuple[str, ...]) -> None:
    """The command line of a job that somebody changes."""
    done = reported.run("plan", *WORDS, *words)
    assert done.code == 64
    assert '"usage"' in reports(reported)


def test_a_report_in_a_folder_that_is_chosen_by_c_says_what_was_misspelt(reported: Project) -> None:
    """Whether `-C` stands before the command or behind it."""
    for words in (("-C", "project", "plan", *WORDS, "--nope"), ("plan", "--nope", *WORDS, "-Cproject")):
        (reported.folder / "report.json").write_text(STARTS["json"] + STALE)
        assert reported.run(*words, cwd=reported.folder.parent).code == 64
        assert '"usage"' in reports(reported)


def test_130_says_that_it_was_interrupted(reported: Project) -> None:
    """A job that is cancelled while a source keeps it waiting."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        source = f"sources: {{crm: {{http: 'http://127.0.0.1:{silent.getsockname()[1]}'}}}}"
        reported.settings(source)
        block = (
            "generate:\n  - forEach: {http: {source: crm, path: /}}\n    as: row\n    tags: [{name: '{{ row.no }}'}]\n"
        )
        (reported.folder / "manifests/all.yaml").write_text(block)
        process = reported.start("plan", *WORDS)
        silent.settimeout(60)
        connection, _ = silent.accept()
        with connection:
            process.send_signal(signal.SIGINT)
            done = ended(process)
    assert done.code == 130
    assert '"interrupted"' in reports(reported)


def test_an_error_of_ours_is_reported_without_its_data(tmp_path: Path) -> None:
    """A bug must not leave an older plan either; nor what its message holds."""
    file = tmp_path / "report.json"
    for error, code in {
        ZeroDivisionError("secret"): "internal",
        OSError(5, "trouble", "somewhere"): "file",
        KeyboardInterrupt(): "interrupted",
        Unreachable("nobody answers"): "unreachable",
        click.UsageError("misspelt"): "usage",
    }.items():
        reporting = Reports(REPORTS, Output(Globals(), tmp_path), [("json", str(file))])
        with pytest.raises(type(error)), reporting.on_every_path():
            raise error
        assert f'"{code}"' in file.read_text()
        assert "secret" not in file.read_text()


def test_a_report_is_written_though_nobody_reads_the_output(reported: Project) -> None:
    """`plan | head` ends early."""
    reported.wants(tags=[tag(f"NEW-{n}") for n in range(3000)])
    process = reported.start("plan", "-v", *WORDS, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    ended(process)
    assert "tag/NEW-2999" in reports(reported)


def test_one_report_that_cannot_be_written_keeps_no_other_from_it(reported: Project) -> None:
    """The rest is written, and the trouble is said."""
    (reported.folder / "folder").mkdir()
    done = reported.run("plan", "--report", "json=folder", *WORDS)
    assert (done.code, "the report folder cannot be written" in done.err) == (1, True)


def test_every_report_of_a_plan_has_one_of_trouble() -> None:
    """Else it would stay as it was."""
    assert list(DIAGNOSTIC_FORMATS) == list(PLAN_REPORTS)
    assert DIAGNOSTIC_FORMATS.keys() >= set(VALIDATE_FORMATS)


def title(project: Project, *options: str, **environ: str) -> str:
    """The first words of the heading of a plan's page: the team, or else the service, comes before them."""
    done = project.run(*options, "plan", "--format", "html", environ=environ)
    assert done.code == 0, done.err
    heading = done.out.partition("<h1>")[2].partition("</h1>")[0]
    assert f"<title>{heading} · " in done.out
    return heading.partition(" · ")[2]


def test_a_page_names_its_project(project: Project) -> None:
    """Its folder, or in a job its repository and its folder there; another project file; and the environment."""
    project.settings("environments: {production: {}}")
    project.wants(tags=[tag("T-1")])
    assert title(project) == "project"
    assert title(project, "--env", "production") == "project · production"
    (project.folder / "other.yaml").write_bytes((project.folder / "syncengine.yaml").read_bytes())
    assert title(project, "--config", "other.yaml") == "project/other.yaml"
    assert title(project, GITHUB_REPOSITORY="acme/<b>tags") == "acme/&lt;b&gt;tags"
    (project.folder.parent / ".git").mkdir()
    assert title(project, CI_PROJECT_PATH="firm/teams/tags") == "firm/teams/tags/project"
