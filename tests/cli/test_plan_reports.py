"""Reports of a plan for every exit code: a report of an earlier plan is always replaced."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
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
"""How each report begins; a file that begins so may be replaced."""
WORDS = [word for name in PLAN_REPORTS for word in ("--report", f"{name}=report.{name}")]


@pytest.fixture
def reported(project: Project) -> Iterator[Project]:
    """A project with reports of an earlier plan. All of them must be replaced when the test ends."""
    project.settle(**HELD)
    for name in PLAN_REPORTS:
        (project.folder / f"report.{name}").write_text(STARTS[name] + STALE)
    yield project
    assert [name for name in PLAN_REPORTS if STALE in (project.folder / f"report.{name}").read_text()] == []


def reports(project: Project) -> str:
    return (project.folder / "report.json").read_text()


HELD = {"tags": [tag("HELD-1")], "activityTypes": [activity_type("A100")], "tagCategories": [category("gone")]}


@pytest.mark.parametrize(
    ("more", "code", "shown"),
    [
        ({}, 0, '"changes": []'),
        ({"tags": [tag("HELD-1"), tag("NEW-1")]}, 2, "tag/NEW-1"),
        ({"tagCategories": []}, 4, '"tripped": true'),
    ],
)
def test_0_2_and_4_have_the_plan(reported: Project, more: dict[str, Any], code: int, shown: str) -> None:
    """`--detailed-exitcode` does not change the reports."""
    reported.wants(**{**HELD, **more})
    assert reported.run("plan", "--detailed-exitcode", *WORDS).code == code
    assert shown in reports(reported)


def test_1_is_a_state_that_cannot_be_read(reported: Project) -> None:
    """An unreachable database and a file that is no state are reported as errors."""
    gone = "postgresql+psycopg://127.0.0.1:9/none?connect_timeout=1"
    assert reported.run("plan", *WORDS, environ={"SYNCENGINE_STATE": gone}).code == 1
    assert '"diagnostics": [' in reports(reported)
    (reported.folder / "report.json").write_text(STARTS["json"] + STALE)
    assert reported.run("plan", *WORDS, environ={"SYNCENGINE_STATE": "manifests"}).code == 1


def test_8_has_every_finding(reported: Project) -> None:
    """The report has all errors of the manifests or of the project file."""
    reported.wants(tags=[tag("HELD-1", nope="x"), {"nme": "x"}])
    assert reported.run("plan", *WORDS).code == 8
    assert reports(reported).count('"error"') >= 2
    for more, settings in ((["--env", "nowhere"], "version: 1\n"), ([], "version: 7\n")):
        (reported.folder / "syncengine.yaml").write_text(settings)
        (reported.folder / "report.json").write_text(STARTS["json"] + STALE)
        assert reported.run("plan", *WORDS, *more).code == 8
        assert STALE not in reports(reported)


@pytest.mark.parametrize(
    "words",
    [
        "--nope",
        "manifests/nowhere.yaml",
        "--target tag/NOWHERE",
        "--sweep --target tag/*",
        "--approve-deletes x",
        "--report nonsense=x",
        "--out nowhere/plan.json",
    ],
)
def test_64_has_the_usage_error(reported: Project, words: str) -> None:
    """A wrong command line replaces the reports as well, also in a folder that `-C` chooses before or after it."""
    for start, end in (("-C project plan", ""), ("plan", "-Cproject")):
        (reported.folder / "report.json").write_text(STARTS["json"] + STALE)
        line = (*start.split(), *words.split(), *WORDS, *end.split())
        assert reported.run(*line, cwd=reported.folder.parent).code == 64
        assert '"usage"' in reports(reported)


def test_130_says_that_it_was_interrupted(reported: Project) -> None:
    """A plan that is interrupted while it waits for a source reports `interrupted`."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        source = f"sources: {{crm: {{http: 'http://127.0.0.1:{silent.getsockname()[1]}'}}}}"
        reported.settings(source)
        block = "generate: [{forEach: {http: {source: crm, path: /}}, tags: [{name: '{{ row.no }}'}]}]"
        (reported.folder / "manifests/all.yaml").write_text(block)
        process = reported.fork("plan", *WORDS)
        silent.settimeout(60)
        connection, _ = silent.accept()
        with connection:
            process.send_signal(signal.SIGINT)
            done = ended(process)
    assert done.code == 130
    assert '"interrupted"' in reports(reported)


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


def test_a_report_that_cannot_be_written_does_not_stop_the_others(reported: Project) -> None:
    """`plan` exits with 1 and names the failed report, below the plan, which took its time."""
    (reported.folder / "folder").mkdir()
    done = reported.run("plan", "--report", "json=folder", *WORDS)
    assert (done.code, "No changes" in done.out, "error[report-file]" in done.err) == (1, True, True), done.err
    assert "the report folder cannot be written" in done.err


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
