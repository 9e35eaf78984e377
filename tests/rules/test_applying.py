"""A plan that a rule denies is shown whole and never applied: fresh, saved, forged, or by `serve`."""

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
    """An open matter is applied; its manifest now closes it and leaves its keyword, and another tag comes."""
    project.settle(tags=[tag("A", keywords=["x"])])
    project.wants(tags=[CLOSED, tag("B-new")])
    return with_rules(project)


def denials(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in document["diagnostics"] if each["code"] == "policy-denied"]


def test_a_denied_plan_is_shown_whole(closing: Project) -> None:
    """With the rule, the address and the line; `--detailed-exitcode` ends with 4."""
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
def test_people_see_it(closing: Project, format: str) -> None:
    """Whatever they read."""
    out = closing.run("plan", "--format", format).out
    assert "closed and still tags time" in out
    assert "policy-denied" in out


def test_the_comment_counts_the_rules(closing: Project) -> None:
    """Read back from the report, as in the plan itself."""
    assert closing.run("plan", "--report", "json=plan.json").code == 0
    comment = closing.run("publish", "plan.json", "--to", "github", "--dry-run").out
    assert "Denied: 1 rule of this project denies this plan" in comment


def test_nothing_is_sent(closing: Project, service: Service) -> None:
    """Also what the rule has nothing against stays; the history has the refusal."""
    before = service.holds()
    done = closing.run("apply", "-y", "--format", "json")
    assert (done.code, done.document["status"], len(denials(done.document))) == (4, "refused", 1)
    assert service.holds() == before
    text = closing.run("apply", "-y")
    assert (text.code, "Not applied: this project's rules deny the plan" in text.err) == (4, True)
    assert "policy-denied" in closing.run("state", "history").out


def test_it_is_applied_once_the_rule_is_kept(closing: Project) -> None:
    """And then there is nothing left to do."""
    closing.wants(tags=[{**CLOSED, "keywords": []}, tag("B-new")])
    assert closing.apply().code == 0
    assert closing.run("plan", "--detailed-exitcode").code == 0


def test_approvals_do_not_help(closing: Project) -> None:
    """A denial is no removal that somebody approves."""
    assert closing.run("apply", "-y", "--approve-deletes", "1@0123456789ab").code == 4


# --- saved plans


def test_a_denied_plan_that_was_saved_is_not_applied(closing: Project, service: Service) -> None:
    """By what the file says itself, also where the rules are gone meanwhile."""
    assert closing.run("plan", "--out", "plan.json").code == 0
    assert len(denials(json.loads((closing.folder / "plan.json").read_text()))) == 1
    before = service.holds()
    assert closing.run("apply", "plan.json").code == 4
    (closing.folder / "policies" / "closed.yaml").unlink()
    done = closing.run("apply", "plan.json", "--format", "json")
    assert (done.code, len(denials(done.document)), service.holds()) == (4, 1, before)


def test_a_plan_that_was_saved_before_there_was_a_rule(closing: Project, service: Service) -> None:
    """It is judged when it is applied, as it is by the limits of today."""
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


def test_a_forged_plan_without_its_denial(closing: Project, service: Service) -> None:
    """A plan file comes from outside: what it would do is judged, not what it says."""
    path = closing.folder / "plan.json"
    assert closing.run("plan", "--out", str(path)).code == 0
    save(replace(load(path, SHOWN), diagnostics=()), SHOWN, path)
    assert denials(json.loads(path.read_text())) == []
    before = service.holds()
    done = closing.run("apply", "plan.json", "--format", "json")
    assert (done.code, len(denials(done.document)), service.holds()) == (4, 1, before)


def test_a_rule_that_fails_stops_a_saved_plan_too(closing: Project) -> None:
    """Exit 8, as from the manifests."""
    rules = closing.folder / "policies" / "closed.yaml"
    rules.write_text("rules: [{name: r, for: tag, warn: false}]")
    assert closing.run("plan", "--out", "plan.json").code == 0
    rules.write_text("rules: [{name: r, for: tag, deny: after.keywords + 1}]")
    for arguments in (("plan", "--format", "json"), ("apply", "plan.json", "--format", "json")):
        done = closing.run(*arguments)
        assert (done.code, set(done.codes) & {"bad-rule"}) == (8, {"bad-rule"})


# --- elsewhere


def test_validate_finds_bad_rules(closing: Project) -> None:
    """Offline, with all that is wrong with manifests; a file of rules may be named."""
    (closing.folder / "policies" / "bad.yaml").write_text("rules: [{name: r, for: tag, deny: befor}]")
    done = closing.run("validate", "--format", "json")
    assert (done.code, done.codes) == (8, ["unknown-name"])
    (closing.folder / "policies" / "bad.yaml").unlink()
    done = closing.run("validate", "policies/closed.yaml", "--format", "json")
    assert (done.code, done.codes) == (0, [])


def test_bad_rules_stop_everything_before_it_begins(closing: Project, service: Service) -> None:
    """A rule that cannot be read is no rule that allows."""
    (closing.folder / "policies" / "bad.yaml").write_text("rules: [{name: r, for: tag, dany: true}]")
    before = service.holds()
    assert closing.run("plan").code == 8
    assert (closing.run("apply", "-y").code, service.holds()) == (8, before)


def test_reports_have_it(closing: Project, tmp_path: Path) -> None:
    """JUnit and SARIF name the line."""
    done = closing.run(
        "apply", "-y", "--report", f"junit={tmp_path / 'r.xml'}", "--report", f"sarif={tmp_path / 'r.sarif'}"
    )
    assert done.code == 4
    assert "closed and still tags time" in (tmp_path / "r.xml").read_text()
    assert "policy-denied" in (tmp_path / "r.sarif").read_text()


def test_secrets_cannot_be_said(closing: Project) -> None:
    """Rules see the change and nothing else: no variable, no environment, no file, no key."""
    for name in ("env.SYNCENGINE_API_KEY", "var.secret", "data('syncengine.yaml')", "config"):
        with_rules(closing, f'rules: [{{name: r, for: tag, deny: true, message: "{{{{ {name} }}}}"}}]')
        done = closing.run("plan", "--format", "json")
        assert (done.code, done.codes) == (8, ["unknown-name"])
