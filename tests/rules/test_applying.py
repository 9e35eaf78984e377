"""A plan that a rule denies is shown in full and never applied, whether it is planned now, saved or forged."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from syncengine.plan.saved import load, save
from syncengine.render.documents import SHOWN
from tests.cli.program import Project, tag
from tests.cli.service import Service
from tests.manifest.loading import write

CLOSED = tag("A", keywords=["x"], closedTimestamp="2026-01-01T00:00:00Z")
RULES = """\
rules:
  - name: closed-matters-lose-keywords
    for: tag
    deny: after.closedTimestamp and after.keywords
    message: "{{ address }} is closed and still tags time."
"""


def with_rules(project: Project, text: str = RULES, file: str = "closed.yaml") -> None:
    write(project.folder, {f"policies/{file}": text})


@pytest.fixture
def closing(project: Project) -> Project:
    """Apply an open tag, then close it in the manifest with its keyword kept, and declare another tag."""
    project.settle(tags=[tag("A", keywords=["x"])])
    project.wants(tags=[CLOSED, tag("B-new")])
    with_rules(project)
    return project


def denials(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in document["diagnostics"] if each["code"] == "policy-denied"]


def test_a_denied_plan_is_shown_in_full(closing: Project) -> None:
    """The denial has the rule, the address and the line; `--detailed-exitcode` exits with 4."""
    done = closing.run("plan", "--format", "json", "--detailed-exitcode")
    assert (done.code, [change["address"] for change in done.document["changes"]]) == (4, ["tag/A", "tag/B-new"])
    (denial,) = denials(done.document)
    assert denial == {
        "severity": "error",
        "code": "policy-denied",
        "message": "tag/A is closed and still tags time. (rule closed-matters-lose-keywords, policies/closed.yaml:2)",
        "file": "manifests/all.yaml",
        "line": 2,
        "column": None,
        "address": "tag/A",
        "rule": "closed-matters-lose-keywords",
    }
    assert closing.run("plan").code == 0


REPORTS = {("plan",): ("text", "markdown", "html", "json"), ("apply", "-y"): ("junit", "sarif")}


@pytest.mark.parametrize("command", REPORTS)
def test_every_report_shows_the_denial(closing: Project, command: tuple[str, ...]) -> None:
    closing.run(*command, *(f"--report={each}=r.{each}" for each in REPORTS[command]))
    for each in REPORTS[command]:
        report = (closing.folder / f"r.{each}").read_text()
        assert ("closed and still tags time" in report, "policy-denied" in report) == (True, True), each
    if "json" in REPORTS[command]:
        comment = closing.run("publish", "r.json", "--to", "github", "--dry-run").out
        assert "Denied: 1 rule of this project denies this plan" in comment


def test_nothing_of_a_denied_plan_is_sent(closing: Project, service: Service) -> None:
    """The changes that no rule denies are not sent either, whatever is approved; the history records the refusal."""
    before = service.holds()
    done = closing.run("apply", "-y", "--format", "json")
    assert (done.code, done.document["status"], len(denials(done.document))) == (4, "refused", 1)
    text = closing.run("apply", "-y", "--approve-deletes", "1@0123456789ab")
    assert (text.code, "Not applied: this project's rules deny the plan" in text.err) == (4, True)
    assert service.holds() == before
    assert "policy-denied" in closing.run("state", "history").out
    closing.wants(tags=[{**CLOSED, "keywords": []}, tag("B-new")])
    assert closing.apply().code == 0
    assert closing.run("plan", "--detailed-exitcode").code == 0


# --- saved plans


def assert_refused(project: Project, service: Service) -> None:
    """The saved plan is not applied."""
    before = service.holds()
    done = project.run("apply", "plan.json", "--format", "json")
    assert (done.code, len(denials(done.document)), service.holds()) == (4, 1, before)


def test_a_saved_plan_is_judged_by_its_own_denial_and_by_the_rules_of_today(closing: Project, service: Service) -> None:
    """The denial in the plan file counts even after the rule was deleted, and the rule even without the denial."""
    path, rules = closing.folder / "plan.json", closing.folder / "policies" / "closed.yaml"
    assert closing.run("plan", "--out", str(path)).code == 0
    text = path.read_text()
    save(replace(load(path, SHOWN), diagnostics=()), SHOWN, path)
    assert_refused(closing, service)
    rules.unlink()
    path.write_text(text)
    assert_refused(closing, service)
    assert closing.run("plan", "--out", str(path)).code == 0
    with_rules(closing)
    assert_refused(closing, service)
    rules.unlink()
    assert closing.run("apply", "plan.json").code == 0


def test_a_rule_that_fails_stops_a_saved_plan_too(closing: Project) -> None:
    with_rules(closing, "rules: [{name: r, for: tag, warn: false}]")
    assert closing.run("plan", "--out", "plan.json").code == 0
    with_rules(closing, "rules: [{name: r, for: tag, deny: after.keywords + 1}]")
    for words in (("plan",), ("apply", "plan.json")):
        done = closing.run(*words, "--format", "json")
        assert (done.code, "bad-rule" in done.codes) == (8, True)


# --- invalid rules, reports, secrets


def test_invalid_rules_stop_every_command(closing: Project, service: Service) -> None:
    """`validate` checks all rules of the project, or the file of rules that it is given."""
    with_rules(closing, "rules: [{name: r, for: tag, deny: befor}]", "bad.yaml")
    before = service.holds()
    for words in (("validate",), ("plan",), ("apply", "-y")):
        done = closing.run(*words, "--format", "json")
        assert (done.code, done.codes) == (8, ["unknown-name"])
    assert service.holds() == before
    (closing.folder / "policies" / "bad.yaml").unlink()
    done = closing.run("validate", "policies/closed.yaml", "--format", "json")
    assert (done.code, done.codes) == (0, [])
