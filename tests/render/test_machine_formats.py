"""The formats for machines: JSON, JUnit, SARIF, GitHub and GitLab."""

from __future__ import annotations

import json
import sys
from types import FrameType
from urllib.parse import unquote
from xml.etree import ElementTree

import jsonschema
import pytest

from syncengine.apply.report import Chronicle, Circumstances, Outcome, Report, RunStatus, status_after
from syncengine.engine import RECORDED
from syncengine.errors import (
    AuthFailed,
    Diagnostic,
    GateTripped,
    Interrupted,
    LockHeld,
    Problems,
    Severity,
    StalePlan,
    SyncengineError,
    Unreachable,
    Usage,
    WrongTeam,
)
from syncengine.plan.diff import Action, Change
from syncengine.render import PLAN_FORMATS, PLAN_REPORTS, REPORT_FORMATS, VALIDATE_FORMATS
from syncengine.render.ci import (
    github,
    gitlab,
    report_junit,
    sarif,
)
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
from syncengine.resource import Source

from .samples import FOUND, HOSTILE, PLANS, REPORTS, at, field, mixed, plan_limit, plan_of, tag

# --- the registry -----------------------------------------------------------------------------------------------------


def test_every_published_format_is_there() -> None:
    """The names that docs/commands.md promises, in the order in which help lists them."""
    assert list(PLAN_FORMATS) == ["text", "json", "markdown", "html"]
    assert list(REPORT_FORMATS) == ["text", "json", "junit", "sarif", "github", "gitlab", "markdown"]
    assert list(VALIDATE_FORMATS) == ["text", "json", "github", "gitlab", "sarif"]


def test_every_outcome_but_applied_has_a_name() -> None:
    assert set(TROUBLES) == set(Outcome) - {Outcome.APPLIED}


# --- JSON -------------------------------------------------------------------------------------------------------------


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
    change = Change(key=tag("A"), action=Action.UPDATE, source=None, fields=(field("closedTimestamp", None, value),))
    assert json.loads(plan_json(plan_document(plan_of(change))))["changes"][0]["fields"][0]["after"] == value


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (GateTripped("no"), RunStatus.REFUSED),
        (StalePlan("no"), RunStatus.REFUSED),
        (LockHeld("no"), RunStatus.REFUSED),
        (WrongTeam("no"), RunStatus.REFUSED),
        (Usage("no"), RunStatus.REFUSED),
        (Problems(FOUND), RunStatus.REFUSED),
        (AuthFailed("no"), RunStatus.FAILED),
        (Unreachable("no"), RunStatus.FAILED),
        (Interrupted("no"), RunStatus.FAILED),
        (SyncengineError("no"), RunStatus.FAILED),
    ],
)
def test_an_apply_that_never_began_has_a_report_too(error: SyncengineError, status: RunStatus) -> None:
    """An error before `apply` begins yields a report in every format."""
    report = report_document(report_of(error))
    assert (report.status, report.plan, report.results) == (status, None, [])
    assert diagnostics_of(report.diagnostics) == error.diagnostics()
    assert {name: bool(render(report, PLAIN)) for name, render in REPORT_FORMATS.items()} == dict.fromkeys(
        REPORT_FORMATS, True
    )


def refused(error: SyncengineError, count: int = 30) -> Report:
    """Return the report of a run that failed after its plan was made and before it was applied."""
    chronicle = Chronicle(lambda event: None)
    changes = [Change(key=tag(f"A-{n}"), action=Action.UPDATE, source=at(n + 1)) for n in range(count)]
    chronicle.plan = plan_of(*changes)
    return chronicle.report(Circumstances(), error)


@pytest.mark.parametrize("kind", [GateTripped, StalePlan, LockHeld, WrongTeam, Problems, Usage], ids=lambda k: k.code)
def test_refused_runs_are_recorded_in_the_history(kind: type[SyncengineError]) -> None:
    """An error with the status `refused` is recorded in the history, except a usage error, which is no run."""
    error = kind([]) if kind is Problems else kind("no")
    assert status_after(error) is RunStatus.REFUSED
    assert (error.exit_code in RECORDED) is (kind is not Usage)


NEVER_BEGUN = (GateTripped, StalePlan, LockHeld, WrongTeam, Usage, AuthFailed, Unreachable)


@pytest.mark.parametrize("error", [*(kind("no") for kind in NEVER_BEGUN), Problems(FOUND)], ids=lambda e: e.code)
def test_changes_that_were_never_begun_are_skipped_with_the_reason(error: SyncengineError) -> None:
    """If `apply` fails before it begins, each change of its plan is counted as skipped, because of the error."""
    report = refused(error)
    assert (report.totals.skipped, report.totals.applied, len(report.results)) == (30, 0, 30)
    assert {(r.outcome, r.error and r.error.message) for r in report.results} == {(Outcome.SKIPPED, error.message)}
    assert report.status is report_of(error).status


@pytest.mark.parametrize("name", ["text", "github", "gitlab", "sarif", "markdown"])
def test_a_refusal_of_the_whole_plan_is_shown_once(name: str) -> None:
    """A refusal of the whole plan is one message, without a warning for each skipped change."""
    said = REPORT_FORMATS[name](report_document(refused(GateTripped("nobody approved"))), PLAIN)
    assert said.count("nobody approved") == 1
    assert "tag/A-" not in said
    assert "Repeat" not in said


# --- JUnit ------------------------------------------------------------------------------------------------------------


def test_junit_shows_an_error_of_the_whole_run() -> None:
    suite = ElementTree.fromstring(
        report_junit(report_document(report_of(Unreachable("the service does not answer; repeat unchanged"))))
    )[0]
    assert [(case.get("name"), case[0].get("message")) for case in suite] == [
        ("unreachable", "the service does not answer; repeat unchanged")
    ]


# --- SARIF and GitLab -------------------------------------------------------------------------------------------------


def test_sarif_names_files_as_uris() -> None:
    document = json.loads(sarif(REPORTS["bitten"]()))
    uri = document["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri.isascii()
    assert set(uri) & set(' <>"\\\n') == set()
    assert unquote(uri) == HOSTILE.replace("\\", "/")


@pytest.mark.parametrize("file", ["caf\udce9.yaml", "half\ud83d.yaml"], ids=["bytes", "half a letter"])
def test_a_file_whose_name_is_no_text_has_an_address(file: str) -> None:
    """A file's name may be bytes, and a document may come from anywhere."""
    moved = Change(key=tag("T-1"), action=Action.CREATE, source=Source(file, 1))
    look = Look(links=Links("https://host/{commit}/{file}#L{line}", "c0ffee"))
    for format in PLAN_REPORTS.values():
        assert format(plan_document(plan_of(moved)), look)


def test_sarif_points_at_the_column() -> None:
    result = json.loads(sarif(FOUND))["runs"][0]["results"][0]
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 2, "startColumn": 5}


def test_each_place_is_kept_and_each_fingerprint_is_its_own() -> None:
    """Formats for machines list each failed change with its own place and fingerprint, even if messages are equal."""
    issues = json.loads(gitlab(plan_limit()))
    assert len({issue["location"]["lines"]["begin"] for issue in issues}) == 812
    twice = json.loads(gitlab((FOUND[0], FOUND[0])))
    assert len({issue["fingerprint"] for issue in (*issues, *twice)}) == 814


def test_a_fingerprint_outlives_a_moved_line() -> None:
    moved = Diagnostic(severity=Severity.ERROR, code=FOUND[0].code, message=FOUND[0].message, file=FOUND[0].file,
                       line=99, address=FOUND[0].address)  # fmt: skip
    here, there = (json.loads(gitlab([each]))[0]["fingerprint"] for each in (FOUND[0], moved))
    assert here == there


def test_paths_begin_at_the_root_of_the_repository() -> None:
    look = Look(prefix="time/project")
    assert json.loads(gitlab(FOUND, look))[0]["location"]["path"] == "time/project/manifests/acme.yaml"
    assert "file=time/project/manifests/acme.yaml," in github(FOUND, look)


# --- GitHub -----------------------------------------------------------------------------------------------------------


def test_a_workflow_command_points_at_its_line() -> None:
    assert github(FOUND).splitlines() == [
        "::error file=manifests/acme.yaml,line=2,col=5,title=unknown-field::"
        "unknown field `descripton`; did you mean `description`?",
        "::warning file=manifests/a.yaml,title=source-slow::the source took 40 s",
        "::error title=unreachable::tag/ACME-0043: no route",
    ]


def test_a_workflow_command_cannot_be_broken_out_of() -> None:
    found = Diagnostic(severity=Severity.ERROR, code="c", message="100%\r\n::error::x\x1b", file="a,b:c%.yaml", line=1)
    assert github([found]) == ("::error file=a%2Cb%3Ac%25.yaml,line=1,title=c::100%25\\r%0A:\\u003aerror::x\\x1b\n")


@pytest.mark.parametrize("sample", REPORTS)
def test_every_finding_is_one_workflow_command(sample: str) -> None:
    """A report has one workflow command for each finding; a message of the service cannot start another one."""
    lines = github(REPORTS[sample]()).splitlines()
    assert len(lines) == 1 + len(findings(REPORTS[sample]()))
    assert lines[0].startswith("::notice title=syncengine apply::Applied ")
    assert all(line.startswith(("::error ", "::warning ")) for line in lines[1:])


# --- size -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("name", PLAN_FORMATS)
def test_rendering_time_grows_linearly_with_the_plan(name: str, verbose: bool) -> None:
    """Rendering twice the changes costs about twice the function calls, whether changes are alike or different."""
    _, few, many = (_calls(name, count, verbose) for count in (1, 400, 800))  # the first one imports and fills caches
    assert many < 2.5 * few


def _calls(name: str, count: int, verbose: bool) -> int:
    """Return the number of function calls, C functions included, that rendering a plan of `count` changes takes."""
    changes = [
        Change(key=tag(f"T-{n}"), action=Action.UPDATE, source=at(n), fields=(field("url", "a", str(n % 600)),))
        for n in range(count)
    ]
    plan, calls = plan_of(*changes), 0

    def profile(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        PLAN_FORMATS[name](plan_document(plan), Look(verbose=verbose))
    finally:
        sys.setprofile(None)
    return calls


def test_gitlab_has_what_code_quality_asks_for() -> None:
    """A finding without a place names the project file, or hosts would drop it."""
    issues = json.loads(gitlab(mixed()))
    assert [issue["severity"] for issue in issues] == ["major", "major", "minor", "minor"]
    assert issues[3]["location"]["path"] == "syncengine.yaml"
    issues = json.loads(gitlab(mixed(), Look(project_file="other.yaml", prefix="sub")))
    assert issues[3]["location"]["path"] == "sub/other.yaml"
