"""Imitations of both hosts' runners, which run the jobs that `init --ci` writes, each in a fresh clone.

The files are interpreted as written: a condition, expression or action that is not known here fails the run.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from syncengine.tools.init.jobs import ACTIONS, CONDITIONS, OWN
from tests.cli.program import REPOSITORY
from tests.publish.hosts import Imitation
from tests.support.git import git

SHELL = ["bash", "--noprofile", "--norc", "-eo", "pipefail"]
SCHEDULES = {"17 4 * * 1": "", "41 3 * * *": "drift"}
PIP = """#!/bin/sh
# Replaces pip: the program under test takes the place of every package.
case "$*" in
  *"install $SYNCENGINE_PACKAGE") ;;
  *"wheel --wheel-dir .syncengine/wheels $SYNCENGINE_PACKAGE") ;;
  *"install --no-index --no-deps .syncengine/wheels/"*) ;;
  *) echo "unexpected: pip $*" >&2; exit 1 ;;
esac
"""
PYTHON = """#!/bin/sh
[ "$1 $2 $3" = "-I -m pip" ] && shift 3 && exec pip "$@"
exit 1
"""


@dataclass(frozen=True)
class Event:
    """The event that starts a pipeline: a commit, and its pull request if there is one."""

    kind: str
    commit: str
    number: int = 0
    head: str = ""
    fork: bool = False
    bot: bool = False
    """Whether GitHub's bot made the pull request; its jobs have no secrets."""
    schedule: str = ""
    """The name of the schedule; empty for the default one."""
    base: str = ""
    """The commit onto which a merge queue's group is merged."""


@dataclass
class JobEnd:
    """The result of a job: `outputs` of all its steps, and `log` with everything that it printed."""

    passed: bool
    log: str
    outputs: dict[str, str] = field(default_factory=dict)
    summary: str = ""


@dataclass
class Runner:
    """A machine that runs each job in a clean environment."""

    folder: Path
    bare: Path
    host: Imitation
    secrets: Mapping[str, Mapping[str, str]]
    """Secrets by environment; the key `` has those of every job."""
    runs: int = 0

    def __post_init__(self) -> None:
        programs = self.folder / "programs"
        programs.mkdir(parents=True)
        program = f'#!/bin/sh\nexec env PYTHONPATH="{REPOSITORY}" {sys.executable} -m syncengine "$@"\n'
        for name, text in {"pip": PIP, "python": PYTHON, "syncengine": program}.items():
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        self._path = f"{programs}:{os.environ['PATH']}"

    def run(self, job: str, event: Event) -> JobEnd:
        raise NotImplementedError

    def checkout(self, commit: str) -> Path:
        self.runs += 1
        work = self.folder / f"work-{self.runs}"
        git(self.folder, "clone", "-q", str(self.bare), str(work))
        git(work, "checkout", "-q", commit)
        return work

    def shell(self, script: str, work: Path, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        usual = {"PATH": self._path, "HOME": str(self.folder), "LANG": "C.UTF-8", "CI": "true"}
        file, given = self.folder / "script", {**usual, **environ}
        file.write_text(script)
        return subprocess.run([*SHELL, file], cwd=work, env=given, capture_output=True, text=True, timeout=120)


class GitHubRunner(Runner):
    """Runs jobs of a workflow."""

    def run(self, job: str, event: Event) -> JobEnd:
        work = self.checkout(event.commit)
        document = yaml.load((work / ".github/workflows/syncengine.yml").read_text(), yaml.CSafeLoader)
        assert event.kind in document[True]  # as YAML 1.1 reads `on`
        definition = document["jobs"][job]
        assert self._holds(definition["if"], event, passed=True), f"{job} does not run on {event.kind}"
        environ = {**self._variables(event), **document["env"]}
        end, secrets = JobEnd(True, ""), {} if event.bot else self.secrets[definition.get("environment", "")]
        for step in definition["steps"]:
            if self._holds(step.get("if", "success()"), event, passed=end.passed):
                self._step(step, work, {**environ, **self._environ(step, secrets, event)}, event, end)
        return end

    def _holds(self, condition: str, event: Event, *, passed: bool) -> bool:
        """Evaluate a condition; one without a status function is true only while no step has failed."""
        is_own = event.kind == "pull_request" and not (event.fork or event.bot)
        queued = event.kind == "merge_group"
        known = {
            "success()": passed,
            "!cancelled()": True,
            f"!cancelled() && {OWN}": is_own,
            CONDITIONS["PLANNED"]: passed and (queued or is_own),
            CONDITIONS["FOREIGN"]: passed and not (queued or is_own),
            "github.event_name == 'pull_request' || github.event_name == 'merge_group'": queued or bool(event.number),
            "github.event_name == 'push'": event.kind == "push",
            **{
                f"github.event.schedule == '{cron}'": event.kind == "schedule" and event.schedule == job
                for cron, job in SCHEDULES.items()
            },
        }
        return known[condition.removeprefix("${{ ").removesuffix(" }}")]

    def _variables(self, event: Event) -> dict[str, str]:
        self.host.number = event.number or self.host.number
        more = {"GITHUB_ACTIONS": "true", "GITHUB_SHA": event.commit, "GITHUB_EVENT_NAME": event.kind}
        more["GITHUB_REF"] = f"refs/pull/{event.number}/merge" if event.number else "refs/heads/main"
        more |= {name: str(self.folder / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "RUNNER_TEMP")}
        shutil.rmtree(more["RUNNER_TEMP"], ignore_errors=True)
        Path(more["RUNNER_TEMP"]).mkdir()
        file = self.folder / "event.json"
        names = {"head": "stranger/tags" if event.fork else "acme/tags", "base": "acme/tags"}
        sides = {side: {"repo": {"full_name": name, "fork": True}} for side, name in names.items()}
        file.write_text(json.dumps({"pull_request": {"number": event.number, **sides}}))
        more |= {"GITHUB_EVENT_PATH": str(file), "GITHUB_BASE_REF": "main"} if event.number else {}
        self.host.reads_only = event.fork
        environ = self.host.environ(self.runs, **more)
        del environ["GITHUB_TOKEN"]
        return environ

    def _environ(self, step: Mapping[str, Any], secrets: Mapping[str, str], event: Event) -> dict[str, str]:
        def value(text: str) -> str:
            if text == "${{ github.event.merge_group.base_sha }}":
                return event.base
            if match := re.fullmatch(r"\$\{\{ secrets\.(\w+) \}\}", text):
                return secrets.get(match[1], "")
            assert text == "${{ github.token }}", text
            return self.host.environ()["GITHUB_TOKEN"]

        return {name: value(text) for name, text in step.get("env", {}).items()}

    def _step(self, step: Mapping[str, Any], work: Path, environ: dict[str, str], event: Event, end: JobEnd) -> None:
        if "uses" in step:
            self._use(step, work, event)
            return
        for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
            (self.folder / name).write_text("")
        assert "${{" not in step["run"], "a template in a script"
        done = self.shell(step["run"], work, environ)
        end.log += done.stdout + done.stderr
        end.passed &= done.returncode == 0
        end.outputs |= dict(line.split("=", 1) for line in (self.folder / "GITHUB_OUTPUT").read_text().splitlines())
        end.summary += (self.folder / "GITHUB_STEP_SUMMARY").read_text()

    def _use(self, step: Mapping[str, Any], work: Path, event: Event) -> None:
        """Imitate an action: checkout and Python need nothing; an artifact is stored by the host."""
        names = {text.partition(" ")[0]: name for name, text in ACTIONS.items()}
        path = work / str(step.get("with", {}).get("path")).replace("${{ runner.temp }}", f"{self.folder}/RUNNER_TEMP")
        if names[step["uses"]] == "UPLOAD_ARTIFACT" and path.exists():
            self.host.artifacts[event.number] = path.read_bytes()
            self.host.heads[event.number] = event.head


class GitLabRunner(Runner):
    """Runs the jobs of a pipeline, in the order of its stages."""

    def run(self, job: str, event: Event) -> JobEnd:
        """Run all jobs of the event's pipeline, whichever is asked for, and return their results as one."""
        work = self.checkout(event.commit)
        document = yaml.load((work / ".gitlab-ci.yml").read_text(), yaml.CSafeLoader)
        jobs = {name: body for name, body in document.items() if isinstance(body, dict) and "script" in body}
        variables = self._variables(event)
        assert any(self._holds(rule["if"], variables) for rule in document["workflow"]["rules"])
        whole = JobEnd(True, "")
        kept = self.folder / "artifacts"
        shutil.rmtree(kept, ignore_errors=True)
        for stage in document["stages"]:
            passed = whole.passed
            for name, body in jobs.items():
                rule = next((r for r in body.get("rules", [{}]) if self._holds(r.get("if", ""), variables)), None)
                if body["stage"] == stage and rule is not None and (passed or rule.get("when") == "always"):
                    end = self._job(name, body, {**variables, **document["variables"]}, event, kept)
                    outputs = {**whole.outputs, **end.outputs}
                    whole = JobEnd(whole.passed and end.passed, whole.log + end.log, outputs)
        return whole

    def _job(self, name: str, body: Mapping[str, Any], variables: dict[str, str], event: Event, kept: Path) -> JobEnd:
        work = self.checkout(event.commit)
        if kept.exists():
            shutil.copytree(kept, work, dirs_exist_ok=True)
        environment = body.get("environment", "")
        secrets = self.secrets[environment if isinstance(environment, str) else environment["name"]]
        job = {"CI_JOB_ID": str(self.runs), "CI_JOB_URL": f"https://host.example/acme/tags/-/jobs/{self.runs}"}
        done = self.shell("\n".join(body["script"]), work, {**variables, **job, **({} if event.fork else secrets)})
        artifacts = body.get("artifacts", {})
        if done.returncode == 0 or artifacts.get("when") == "always":
            for source in (work / path for path in artifacts.get("paths", [])):
                if source.is_dir():
                    shutil.copytree(source, kept / source.relative_to(work), dirs_exist_ok=True)
                elif source.exists():
                    kept.mkdir(exist_ok=True)
                    shutil.copy(source, kept / source.relative_to(work))
        if name == "plan" and (work / "plan.json").exists():
            self.host.artifacts[event.number] = (work / "plan.json").read_bytes()
        dotenv = work / artifacts.get("reports", {}).get("dotenv", "none")
        outputs = dict(line.split("=", 1) for line in dotenv.read_text().splitlines()) if dotenv.is_file() else {}
        return JobEnd(done.returncode == 0, done.stdout + done.stderr, outputs)

    def _holds(self, condition: str, variables: Mapping[str, str]) -> bool:
        """Evaluate comparisons that are joined by `&&`."""

        def value(word: str) -> str:
            return variables.get(word[1:], "") if word.startswith("$") else word.strip('"')

        parts = (re.split(" ([!=]=) ", part) for part in condition.split(" && ") if part)
        return all((value(one) == value(other)) is (how == "==") for one, how, other in parts)

    def _variables(self, event: Event) -> dict[str, str]:
        self.host.number = event.number or self.host.number
        environ = self.host.environ(self.runs, CI_COMMIT_SHA=event.commit, CI_DEFAULT_BRANCH="main")
        del environ["GITLAB_TOKEN"]
        kind = {"pull_request": "merge_request_event"}.get(event.kind, event.kind)
        number = str(event.number or "")
        environ |= {"CI_PIPELINE_SOURCE": kind, "CI_MERGE_REQUEST_IID": number, "SYNCENGINE_JOB": event.schedule}
        if event.number:
            source = "8" if event.fork else "77"
            environ |= {"CI_MERGE_REQUEST_SOURCE_PROJECT_ID": source, "CI_PROJECT_ID": source}
            environ["CI_MERGE_REQUEST_PROJECT_ID"] = "77"
            environ["CI_MERGE_REQUEST_TARGET_BRANCH_NAME"] = "main"
            environ["CI_MERGE_REQUEST_DIFF_BASE_SHA"] = git(self.bare, "merge-base", "main", event.head)
        else:
            environ["CI_COMMIT_BRANCH"] = "main"
        return environ
