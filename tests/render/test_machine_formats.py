"""The formats for machines: JSON, JUnit, SARIF, GitHub and GitLab."""

from __future__ import annotations

import json
import sys
from types import FrameType
from urllib.parse import unquote
from xml.etree import ElementTree

import jsonschema
import pytest
from msgspec.structs import replace

from syncengine import errors
from syncengine.apply.report import Chronicle, Circumstances, Outcome, Report, RunStatus, status_after
from syncengine.engine import RECORDED
from syncengine.errors import Severity, SyncengineError
from syncengine.plan.diff import Action
from syncengine.render import PLAN_FORMATS, PLAN_REPORTS, REPORT_FORMATS, VALIDATE_FORMATS
from syncengine.render.ci import github, gitlab, report_junit, sarif
from syncengine.render.documents import (
    diagnostics_json,
    diagnostics_of,
    plan_document,
    plan_json,
    report_document,
    report_json,
)
from syncengine.render.report import TROUBLES, findings, report_of
from syncengine.render.schemas import schemas
from syncengine.render.style import PLAIN, Links, Look

from .samples import FOUND, HOSTILE, PLANS, REPORTS, at, changing, field, plan_limit, plan_of, said, tag, updating


def test_every_published_format_is_there() -> None:
    """The names that docs/commands.md promises, in the order in which help lists them."""
    assert list(PLAN_FORMATS) == ["text", "json", "markdown", "html"]
    assert list(REPORT_FORMATS) == ["text", "json", "junit", "sarif", "github", "gitlab", "markdown"]
    assert list(VALIDATE_FORMATS) == ["text", "json", "github", "gitlab", "sarif"]


def test_every_outcome_but_applied_has_a_name() -> None:
    assert set(TROUBLES) == set(Outcome) - {Outcome.APPLIED}


# --- JSON


DOCUMENTS = {
    **{f"plan of {name}": ("plan", plan_json(plan_document(sample()))) for name, sample in PLANS.items()},
    **{f"report of {name}": ("report", report_json(sample())) for name, sample in REPORTS.items()},
    "diagnostics": ("diagnostics", diagnostics_json(FOUND)),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_has_nothing_that_its_schema_does_not_name(name: str) -> None:
    """Published schemas allow additional fields, but name every field that the program writes."""
    schema, text = DOCUMENTS[name]
    closed = json.dumps(schemas()[f"{schema}.schema.json"]).replace(
        '"additionalProperties": true', '"additionalProperties": false'
    )
    jsonschema.Draft202012Validator(json.loads(closed)).validate(json.loads(text))


@pytest.mark.parametrize("value", ["half \ud800 a pair", 2**70])
def test_json_is_printed_whatever_a_value_holds(value: str | int) -> None:
    """Values that the fast JSON writer rejects, such as a lone surrogate, are written by the slow one."""
    change = updating("A", field("closedTimestamp", None, value))
    assert json.loads(plan_json(plan_document(plan_of(change))))["changes"][0]["fields"][0]["after"] == value


REFUSED = (
    errors.GateTripped("no"),
    errors.StalePlan("no"),
    errors.LockHeld("no"),
    errors.WrongTeam("no"),
    errors.Problems(FOUND),
    errors.Usage("no"),
)
FAILED = (errors.AuthFailed("no"), errors.Unreachable("no"), errors.Interrupted("no"), SyncengineError("no"))


def refused(error: SyncengineError) -> Report:
    chronicle = Chronicle(lambda event: None)
    chronicle.plan = plan_of(*(updating(f"A-{n}", line=n) for n in range(1, 31)))
    return chronicle.report(Circumstances(), error)


@pytest.mark.parametrize("error", [*REFUSED, *FAILED], ids=lambda error: error.code)
def test_an_apply_that_never_began_has_a_report_too(error: SyncengineError) -> None:
    """In every format. What was refused is recorded in the history, except a usage error, which is no run."""
    status = RunStatus.REFUSED if error in REFUSED else RunStatus.FAILED
    assert status_after(error) is status
    assert status is RunStatus.FAILED or (error.exit_code in RECORDED) is not isinstance(error, errors.Usage)
    document = report_document(report_of(error))
    assert (document.status, document.plan, document.results) == (status, None, [])
    assert diagnostics_of(document.diagnostics) == error.diagnostics()
    assert [name for name, render in REPORT_FORMATS.items() if not render(document, PLAIN)] == []


@pytest.mark.parametrize("error", [*REFUSED, *FAILED[:2]], ids=lambda error: error.code)
def test_changes_that_were_never_begun_are_skipped_with_the_reason(error: SyncengineError) -> None:
    report = refused(error)
    assert (report.totals.skipped, report.totals.applied, len(report.results)) == (30, 0, 30)
    assert {(r.outcome, r.error and r.error.message) for r in report.results} == {(Outcome.SKIPPED, error.message)}
    assert report.status is status_after(error)


@pytest.mark.parametrize("name", ["text", "github", "gitlab", "sarif", "markdown"])
def test_a_refusal_of_the_whole_plan_is_shown_once(name: str) -> None:
    said = REPORT_FORMATS[name](report_document(refused(errors.GateTripped("nobody approved"))), PLAIN)
    assert said.count("nobody approved") == 1
    assert "tag/A-" not in said
    assert "Repeat" not in said


def test_junit_shows_an_error_of_the_whole_run() -> None:
    suite = ElementTree.fromstring(
        report_junit(report_document(report_of(errors.Unreachable("no answer; repeat unchanged"))))
    )[0]
    shown = [(case.get("name"), case[0].get("message")) for case in suite]
    assert shown == [("unreachable", "no answer; repeat unchanged")]


# --- SARIF and GitLab


def test_sarif_names_files_as_uris_and_points_at_the_column() -> None:
    document = json.loads(sarif(REPORTS["bitten"]()))
    uri = document["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert (uri.isascii(), set(uri) & set(' <>"\\\n')) == (True, set())
    assert unquote(uri) == HOSTILE.replace("\\", "/")
    result = json.loads(sarif(FOUND))["runs"][0]["results"][0]
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 2, "startColumn": 5}


@pytest.mark.parametrize("file", ["caf\udce9.yaml", "half\ud83d.yaml"], ids=["bytes", "half a letter"])
def test_a_file_whose_name_is_no_text_has_an_address(file: str) -> None:
    """A file's name may be bytes, and a document may come from anywhere."""
    moved = changing(tag("T-1"), Action.CREATE, at(1, file))
    look = Look(links=Links("https://host/{commit}/{file}#L{line}", "c0ffee"))
    for format in PLAN_REPORTS.values():
        assert format(plan_document(plan_of(moved)), look)


def test_each_place_is_kept_and_each_fingerprint_is_its_own() -> None:
    issues = json.loads(gitlab(plan_limit()))
    assert len({issue["location"]["lines"]["begin"] for issue in issues}) == 812
    twice = json.loads(gitlab((FOUND[0], FOUND[0])))
    assert len({issue["fingerprint"] for issue in (*issues, *twice)}) == 814


def test_a_fingerprint_outlives_a_moved_line() -> None:
    here, there = (json.loads(gitlab([each]))[0] for each in (FOUND[0], replace(FOUND[0], line=99, column=None)))
    assert here["fingerprint"] == there["fingerprint"]


def test_paths_begin_at_the_root_of_the_repository() -> None:
    """A finding without a place names the project file, or hosts would drop it."""
    look = Look(prefix="time/project", project_file="other.yaml")
    assert json.loads(gitlab(FOUND, look))[0]["location"]["path"] == "time/project/manifests/acme.yaml"
    assert json.loads(gitlab(FOUND, look))[2]["location"]["path"] == "time/project/other.yaml"
    assert "file=time/project/manifests/acme.yaml," in github(FOUND, look)


# --- GitHub


def test_a_workflow_command_points_at_its_line() -> None:
    assert github(FOUND).splitlines() == [
        "::error file=manifests/acme.yaml,line=2,col=5,title=unknown-field::"
        "unknown field `descripton`; did you mean `description`?",
        "::warning file=manifests/a.yaml,title=source-slow::the source took 40 s",
        "::error title=unreachable::tag/ACME-0043: no route",
    ]


def test_a_workflow_command_cannot_be_broken_out_of() -> None:
    found = said(Severity.ERROR, "c", "100%\r\n::error::x\x1b", file="a,b:c%.yaml", line=1)
    assert github([found]) == ("::error file=a%2Cb%3Ac%25.yaml,line=1,title=c::100%25\\r%0A:\\u003aerror::x\\x1b\n")


@pytest.mark.parametrize("sample", REPORTS)
def test_every_finding_is_one_workflow_command(sample: str) -> None:
    lines = github(REPORTS[sample]()).splitlines()
    assert len(lines) == 1 + len(findings(REPORTS[sample]()))
    assert lines[0].startswith("::notice title=syncengine apply::Applied ")
    assert all(line.startswith(("::error ", "::warning ")) for line in lines[1:])


# --- size


@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("name", PLAN_FORMATS)
def test_rendering_time_grows_linearly_with_the_plan(name: str, verbose: bool) -> None:
    _, few, many = (_calls(name, count, verbose) for count in (1, 400, 800))  # the first one imports and fills caches
    assert many < 2.5 * few


def _calls(name: str, count: int, verbose: bool) -> int:
    """Return the number of function calls, C functions included, that rendering a plan of `count` changes takes."""
    plan, calls = plan_of(*(updating(f"T-{n}", field("url", "a", str(n % 600)), line=n) for n in range(count))), 0

    def profile(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        PLAN_FORMATS[name](plan_document(plan), Look(verbose=verbose))
    finally:
        sys.setprofile(None)
    return calls
