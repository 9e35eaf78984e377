"""The formats for machines: JSON, JUnit, SARIF, GitHub and GitLab, and the changes of a plan at their lines."""

import json
import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any
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
from syncengine.render.ci import GITHUB_SHOWS, GITLAB_SHOWS, SARIF_SHOWS, github, gitlab, report_junit, sarif
from syncengine.render.documents import (
    diagnostics_json,
    diagnostics_of,
    plan_document,
    plan_json,
    report_document,
    report_json,
)
from syncengine.render.report import report_of
from syncengine.render.schemas import schemas
from syncengine.render.style import PLAIN, Links, Look
from syncengine.resource import Key, Kind
from tests.cli.program import Project, category, tag

from .samples import FOUND, HOSTILE, PLANS, REPORTS, at, changing, field, plan_limit, plan_of, said, updating


def test_every_published_format_is_there() -> None:
    """The names that docs/commands.md promises, in the order in which help lists them."""
    assert list(PLAN_FORMATS) == ["text", "json", "markdown", "html"]
    assert list(REPORT_FORMATS) == ["text", "json", "junit", "sarif", "github", "gitlab", "markdown"]
    assert list(VALIDATE_FORMATS) == ["text", "json", "github", "gitlab", "sarif"]


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
    """In every format, and every change is skipped for the same reason. What was refused is recorded in the history,
    except a usage error, which is no run."""
    status = RunStatus.REFUSED if error in REFUSED else RunStatus.FAILED
    assert status_after(error) is status
    assert status is RunStatus.FAILED or (error.exit_code in RECORDED) is not isinstance(error, errors.Usage)
    document = report_document(report_of(error))
    assert (document.status, document.plan, document.results) == (status, None, [])
    assert diagnostics_of(document.diagnostics) == error.diagnostics()
    assert [name for name, render in REPORT_FORMATS.items() if not render(document, PLAIN)] == []
    report = refused(error)
    assert (report.totals.skipped, report.totals.applied, report.status) == (30, 0, status)
    assert {(r.outcome, r.error and r.error.message) for r in report.results} == {(Outcome.SKIPPED, error.message)}


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
    moved = changing(Key(Kind.TAG, "T-1"), Action.CREATE, at(1, file))
    look = Look(links=Links("https://host/{commit}/{file}#L{line}", "c0ffee"))
    for format in PLAN_REPORTS.values():
        assert format(plan_document(plan_of(moved)), look)


def test_each_place_is_kept_and_each_fingerprint_is_its_own() -> None:
    """A fingerprint outlives a moved line."""
    issues = json.loads(gitlab(plan_limit()))
    assert len({issue["location"]["lines"]["begin"] for issue in issues}) == 812
    first, again = json.loads(gitlab((FOUND[0], FOUND[0])))
    assert len({issue["fingerprint"] for issue in (*issues, first, again)}) == 814
    (moved,) = json.loads(gitlab([replace(FOUND[0], line=99, column=None)]))
    assert moved["fingerprint"] == first["fingerprint"]


def test_paths_begin_at_the_root_of_the_repository() -> None:
    """A finding without a place names the project file, or hosts would drop it."""
    look = Look(prefix="time/project", project_file="other.yaml")
    assert json.loads(gitlab(FOUND, look))[0]["location"]["path"] == "time/project/manifests/acme.yaml"
    assert json.loads(gitlab(FOUND, look))[2]["location"]["path"] == "time/project/other.yaml"
    assert "file=time/project/manifests/acme.yaml," in github(FOUND, look)
    assert '"time/project/manifests/acme.yaml"' in sarif(FOUND, look)


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


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project whose state records three tags, one of them with keywords."""
    project = Project(tmp_path / "project", "sandbox")
    project.settle(tags=[tag("STAYS-1", description="old", keywords=["k1", "k2"]), tag("GONE-1"), tag("SAME-1")])
    return project


def change(project: Project, new: int = 1) -> None:
    made = [tag(f"NEW-{n}") for n in range(new)]
    project.wants(tags=[tag("STAYS-1", description="new", keywords=["k1"]), tag("SAME-1"), *made])


def annotated(project: Project) -> tuple[list[tuple[str, str]], list[Any], list[Any]]:
    """Plan, and return GitHub's annotations as level and message, and the items of GitLab and SARIF."""
    words = [word for name in ("github", "gitlab", "sarif") for word in ("--report", f"{name}=report.{name}")]
    done = project.run("plan", "-q", *words)
    assert done.code == 0, done.err
    lines, issues, log = ((project.folder / f"report.{name}").read_text() for name in ("github", "gitlab", "sarif"))
    commands = re.findall(r"^::(.*?)::(.*)$", lines, re.MULTILINE)
    return commands, json.loads(issues), json.loads(log)["runs"][0]["results"]


def test_changes_are_annotated_where_they_are_declared(project: Project) -> None:
    """Removals, also those of keywords, are warnings; new resources are notices; unchanged ones have no annotation.

    A removal names only the file, since its recorded line may now belong to another resource.
    """
    change(project)
    commands, issues, results = annotated(project)
    update = 'update tag/STAYS-1: keywords: removed "k2"; description: "old" → "new"'
    assert {
        ("warning file=manifests/all.yaml,title=forget", "forget tag/GONE-1"),
        ("warning file=manifests/all.yaml,line=2,title=update", update),
        ("notice file=manifests/all.yaml,line=4,title=create", "create tag/NEW-0"),
    } <= set(commands)
    found = {each["description"]: each for each in issues}
    lost, new = found["forget tag/GONE-1"], found["create tag/NEW-0"]
    assert (lost["severity"], new["severity"]) == ("minor", "info")
    assert [each["location"]["lines"] for each in (lost, new)] == [{"begin": 1}, {"begin": 4}]
    assert len({each["fingerprint"] for each in issues}) == len(found)
    assert "SAME-1" not in f"{commands} {issues}"
    told = {each["message"]["text"]: each for each in results}
    assert [told[each]["level"] for each in ("forget tag/GONE-1", "create tag/NEW-0")] == ["warning", "note"]
    assert told["forget tag/GONE-1"]["locations"][0]["physicalLocation"]["region"] == {"startLine": 1}


def test_every_open_unit_has_its_approval(project: Project) -> None:
    (project.folder / "policies").mkdir()
    rule = "{name: named, for: category, approve: action == 'create'}"
    (project.folder / "policies/all.yaml").write_text(f"rules: [{rule}]\n", encoding="utf-8")
    project.wants(tagCategories=[category("new")])
    gate = project.run("plan", "--format", "json").document["gate"]
    approvals = ", ".join(unit["approve"] for unit in gate["units"])
    level, words = annotated(project)[0][0]
    assert level.startswith("warning ")
    assert words.startswith("Approval needed for this plan: 3 of 3 tags ")
    assert words.endswith(f" requires approval of 1 change: category/new. Approve with {approvals}")


def test_a_host_gets_no_more_than_it_shows(project: Project) -> None:
    """GitHub shows ten annotations of a level. The last one counts the others, and names where all of them are."""
    change(project, new=5_200)
    commands, issues, results = annotated(project)
    notices = [words for level, words in commands if level.startswith("notice ")]
    assert (len(notices), len(issues), len(results)) == (GITHUB_SHOWS, GITLAB_SHOWS, SARIF_SHOWS)
    assert GITHUB_SHOWS == 10
    for last, rest in (
        (notices[-1], 5_201 - GITHUB_SHOWS),
        (issues[-1]["description"], 5_204 - GITLAB_SHOWS),  # an update, a removal and its approval are items, too
        (results[-1]["message"]["text"], 5_204 - SARIF_SHOWS),
    ):
        assert f"… and {rest:,} more; `--format json` and the HTML page list all of them" in last


def test_resources_of_one_template_are_one_annotation_and_removals_of_one_file_are_not(project: Project) -> None:
    """Resources from one template share its line; of removals it is unknown."""
    project.wants(tags=[tag("STAYS-1")])
    block = "generate:\n  - forEach: {csv: ../rows.csv}\n    as: row\n    tags: [{name: '{{ row.no }}'}]\n"
    (project.folder / "manifests/rows.yaml").write_text(block)
    (project.folder / "rows.csv").write_text("no\n" + "".join(f"ROW-{n}\n" for n in range(300)))
    found = [words for _, words in annotated(project)[0]]
    names = "tag/ROW-0, tag/ROW-1, tag/ROW-2, tag/ROW-3, tag/ROW-4"
    assert [each for each in found if each.startswith("create ")] == [f"create 300 resources: {names} … and 295 more"]
    assert [each for each in found if each.startswith("forget ")] == ["forget tag/GONE-1", "forget tag/SAME-1"]


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
