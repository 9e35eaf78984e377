"""A plan that a rule denies is shown in full and never applied, whether it is planned now, saved or forged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from syncengine.plan.saved import load, save
from syncengine.render.documents import SHOWN
from tests.cli.program import Project, tag
from tests.cli.service import Service

CLOSED = tag("A", keywords=["x"], closedTimestamp="2026-01-01T00:00:00Z")
RULES = """\
rules:
  - name: closed-matters-lose-keywords
    for: tag
    deny: after.closedTimestamp and after.keywords
    message: "{{ address }} is closed and still tags time."
"""


def with_rules(project: Project, text: str = RULES) -> Project:
    folder = project.folder / "policies"
    folder.mkdir(exist_ok=True)
    (folder / "closed.yaml").write_text(text, encoding="utf-8")
    return project


@pytest.fixture
def closing(project: Project) -> Project:
    """Apply an open tag, then close it in the manifest with its keyword kept, and declare another tag."""
    project.settle(tags=[tag("A", keywords=["x"])])
    project.wants(tags=[CLOSED, tag("B-new")])
    return with_rules(project)


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


@pytest.mark.parametrize("format", ["text", "markdown", "html"])
def test_every_format_shows_the_denial(closing: Project, format: str) -> None:
    out = closing.run("plan", "--format", format).out
    assert "closed and still tags time" in out
    assert "policy-denied" in out


def test_a_comment_counts_the_rules_that_deny(closing: Project) -> None:
    """`publish` counts the rules that deny the plan from its JSON report."""
    assert closing.run("plan", "--report", "json=plan.json").code == 0
    comment = closing.run("publish", "plan.json", "--to", "github", "--dry-run").out
    assert "Denied: 1 rule of this project denies this plan" in comment


def test_nothing_of_a_denied_plan_is_sent(closing: Project, service: Service) -> None:
    """The changes that no rule denies are not sent either; the history records the refusal."""
    before = service.holds()
    done = closing.run("apply", "-y", "--format", "json")
    assert (done.code, done.document["status"], len(denials(done.document))) == (4, "refused", 1)
    assert service.holds() == before
    text = closing.run("apply", "-y")
    assert (text.code, "Not applied: this project's rules deny the plan" in text.err) == (4, True)
    assert "policy-denied" in closing.run("state", "history").out


def test_a_manifest_that_keeps_the_rule_is_applied(closing: Project) -> None:
    """A tag that keeps the rule is applied, and the next plan is empty."""
    closing.wants(tags=[{**CLOSED, "keywords": []}, tag("B-new")])
    assert closing.apply().code == 0
    assert closing.run("plan", "--detailed-exitcode").code == 0


def test_an_approval_does_not_lift_a_denial(closing: Project) -> None:
    """`--approve-deletes` approves removals, and does not lift a denial."""
    assert closing.run("apply", "-y", "--approve-deletes", "1@0123456789ab").code == 4


# --- saved plans


def test_a_denied_plan_that_was_saved_is_not_applied(closing: Project, service: Service) -> None:
    """The denial in the plan file counts even after the rule was deleted."""
    assert closing.run("plan", "--out", "plan.json").code == 0
    assert len(denials(json.loads((closing.folder / "plan.json").read_text()))) == 1
    before = service.holds()
    assert closing.run("apply", "plan.json").code == 4
    (closing.folder / "policies" / "closed.yaml").unlink()
    done = closing.run("apply", "plan.json", "--format", "json")
    assert (done.code, len(denials(done.document)), service.holds()) == (4, 1, before)


def test_a_plan_that_was_saved_before_the_rule_is_denied(closing: Project, service: Service) -> None:
    """`apply` judges a saved plan by the project's present rules."""
    rules = closing.folder / "policies" / "closed.yaml"
    text = rules.read_text()
    rules.unlink()
    assert closing.run("plan", "--out", "plan.json").code == 0
    rules.write_text(text)
    before = service.holds()
    done = closing.run("apply", "plan.json", "--format", "json")
    assert (done.code, len(denials(done.document)), service.holds()) == (4, 1, before)
    rules.unlink()
    assert closing.run("apply", "plan.json").code == 0


def test_a_plan_file_whose_denial_was_removed_is_denied(closing: Project, service: Service) -> None:
    """`apply` judges the changes of a plan file again, even when its diagnostics hold no denial."""
    path = closing.folder / "plan.json"
    assert closing.run("plan", "--out", str(path)).code == 0
    save(replace(load(path, SHOWN), diagnostics=()), SHOWN, path)
    assert denials(json.loads(path.read_text())) == []
    before = service.holds()
    done = closing.run("apply", "plan.json", "--format", "json")
    assert (done.code, len(denials(done.document)), service.holds()) == (4, 1, before)


def test_a_rule_that_fails_stops_a_saved_plan_too(closing: Project) -> None:
    """`plan` and `apply` of a saved plan exit with 8 when a rule cannot be evaluated."""
    rules = closing.folder / "policies" / "closed.yaml"
    rules.write_text("rules: [{name: r, for: tag, warn: false}]")
    assert closing.run("plan", "--out", "plan.json").code == 0
    rules.write_text("rules: [{name: r, for: tag, deny: after.keywords + 1}]")
    for arguments in (("plan", "--format", "json"), ("apply", "plan.json", "--format", "json")):
        done = closing.run(*arguments)
        assert (done.code, set(done.codes) & {"bad-rule"}) == (8, {"bad-rule"})


# --- invalid rules, reports, secrets


def test_validate_finds_bad_rules(closing: Project) -> None:
    """`validate` checks all rules of the project, or the file of rules that it is given."""
    (closing.folder / "policies" / "bad.yaml").write_text("rules: [{name: r, for: tag, deny: befor}]")
    done = closing.run("validate", "--format", "json")
    assert (done.code, done.codes) == (8, ["unknown-name"])
    (closing.folder / "policies" / "bad.yaml").unlink()
    done = closing.run("validate", "policies/closed.yaml", "--format", "json")
    assert (done.code, done.codes) == (0, [])


def test_invalid_rules_stop_plan_and_apply(closing: Project, service: Service) -> None:
    """`plan` and `apply` exit with 8 when a rule is invalid, and nothing is sent."""
    (closing.folder / "policies" / "bad.yaml").write_text("rules: [{name: r, for: tag, dany: true}]")
    before = service.holds()
    assert closing.run("plan").code == 8
    assert (closing.run("apply", "-y").code, service.holds()) == (8, before)


def test_junit_and_sarif_reports_show_the_denial(closing: Project, tmp_path: Path) -> None:
    done = closing.run(
        "apply", "-y", "--report", f"junit={tmp_path / 'r.xml'}", "--report", f"sarif={tmp_path / 'r.sarif'}"
    )
    assert done.code == 4
    assert "closed and still tags time" in (tmp_path / "r.xml").read_text()
    assert "policy-denied" in (tmp_path / "r.sarif").read_text()


def test_a_rule_cannot_print_secrets(closing: Project) -> None:
    """A rule has no access to variables, the environment, files or settings."""
    for name in ("env.SYNCENGINE_API_KEY", "var.secret", "data('syncengine.yaml')", "config"):
        with_rules(closing, f'rules: [{{name: r, for: tag, deny: true, message: "{{{{ {name} }}}}"}}]')
        done = closing.run("plan", "--format", "json")
        assert (done.code, done.codes) == (8, ["unknown-name"])
