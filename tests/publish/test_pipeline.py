"""The jobs that `init --ci` writes, run from a pull request through its merge and apply to its revert.

They run on a bare repository with two clones and a state in PostgreSQL, against imitations of both hosts. A runner
interprets the files as written: a condition, expression or action that it does not know fails the run.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml

from syncengine.state.tables import METADATA
from syncengine.tools.init.jobs import ACTIONS, CONDITIONS, OWN
from tests.cli.program import REPOSITORY, Project, tag
from tests.cli.service import KEY, Json, Service, serving
from tests.publish.hosts import TOKEN, Imitation, imitation
from tests.support.git import bare, commit_all, git

pytestmark = pytest.mark.slow

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


SECRETS = (KEY, TOKEN, "reader-pa55", "tester:")


@dataclass
class Forge:
    """A bare repository, the clone of an author of manifests, and one host with its runner."""

    author: Project
    service: Service
    host: Imitation
    runner: Runner
    state: str
    number: int = 20

    def run(self, job: str, event: Event, *, passed: bool = True) -> JobEnd:
        """Run a job, which must end like this and show no secret."""
        end = self.runner.run(job, event)
        assert end.passed is passed, end.log
        assert [secret for secret in SECRETS if secret in end.log + end.summary] == []
        return end

    def propose(self, name: str, *tags: Json, file: str = "new.yaml", fork: bool = False) -> Event:
        """Commit this manifest on what is checked out, which is no branch, and push the commit."""
        folder = self.author.folder
        if tags:
            self.author.wants(file, tags=list(tags))
        assert self.author.run("fmt").code in (0, 8)  # a test may write what is invalid
        return self.push(commit_all(folder, name), fork=fork)

    def push(self, head: str, *, fork: bool = False) -> Event:
        """Push the commit `head` of a branch, and the merge commit that the host would create."""
        folder = self.author.folder
        git(folder, "checkout", "-q", "--detach", "main")
        git(folder, "merge", "-q", "--no-ff", "-m", "merge", head)
        merge = git(folder, "rev-parse", "HEAD")
        targets = (f"{merge}:refs/heads/merge-{self.number}", f"{head}:refs/heads/{head[:9]}")
        git(folder, "push", "-q", "-f", "origin", *targets)
        git(folder, "checkout", "-q", head)
        return Event("pull_request", merge, self.number, head, fork)

    def merge(self, event: Event) -> Event:
        """Squash the pull request into main without deleting its branch."""
        folder = self.author.folder
        git(folder, "checkout", "-q", "main")
        git(folder, "merge", "-q", "--squash", event.head)
        commit = commit_all(folder, f"merged {event.number}")
        git(folder, "push", "-q", "origin", "main")
        git(folder, "checkout", "-q", "--detach")
        self.host.pulls[commit] = [event.number]
        self.host.heads[event.number] = event.head
        self.number += 1
        self.host.number = event.number
        return Event("push", commit)

    def comment(self, key: str = "default") -> str:
        (body,) = [body for body in self.host.bodies() if body.startswith(f"<!-- syncengine:{key} ")]
        return body


@pytest.fixture
def roles(postgresql_url: str) -> Iterator[dict[str, str]]:
    """URLs of the state for a role that writes and for one that only reads."""
    engine = sa.create_engine(postgresql_url, isolation_level="AUTOCOMMIT")
    METADATA.drop_all(engine)
    with engine.connect() as connection:
        if not connection.scalar(sa.text("SELECT 1 FROM pg_roles WHERE rolname = 'reader_of_jobs'")):
            connection.execute(sa.text("CREATE ROLE reader_of_jobs LOGIN PASSWORD 'reader-pa55'"))
        connection.execute(sa.text("GRANT USAGE ON SCHEMA public TO reader_of_jobs"))
        connection.execute(
            sa.text("ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO reader_of_jobs")
        )
    reader = engine.url.set(username="reader_of_jobs", password="reader-pa55").render_as_string(hide_password=False)
    yield {"writer": postgresql_url, "reader": reader}
    METADATA.drop_all(engine)
    engine.dispose()


@pytest.fixture(params=["github", "gitlab"])
def forge(request: pytest.FixtureRequest, tmp_path: Path, roles: dict[str, str]) -> Iterator[Forge]:
    """A project with CI files, whose manifests were applied by hand once."""
    origin, folder = bare(tmp_path / "bare.git"), tmp_path / "author"
    git(tmp_path, "clone", "-q", str(origin), str(folder))
    with serving() as service, imitation(request.param) as host:
        author = Project(folder, service.url)
        author.settings("state: {env: SYNCENGINE_STATE}")
        author.wants(tags=[tag(f"HELD-{n}") for n in range(9)])
        assert author.run("init", "--ci", request.param, "--install", "firm-syncengine==2.0").code == 0
        assert author.run("fmt").code == 0
        (folder / ".gitignore").write_text(".syncengine/\nplan.json\nreport.json\nreviewed/\n")
        secrets = {"": {}, "production": {"SYNCENGINE_API_KEY": KEY, "SYNCENGINE_STATE": roles["writer"]}}
        kind: type[Runner] = GitHubRunner if request.param == "github" else GitLabRunner
        if request.param == "github":
            for each in secrets.values():
                each["SYNCENGINE_STATE_READER"] = roles["reader"]
        else:
            secrets |= {"plan": {"SYNCENGINE_STATE": roles["reader"]}, "publish": {"GITLAB_TOKEN": TOKEN}}
        made = Forge(author, service, host, kind(tmp_path / "runner", origin, host, secrets), roles["writer"])
        git(folder, "checkout", "-q", "-b", "main")
        commit_all(folder, "first")
        git(folder, "push", "-q", "origin", "main")
        git(folder, "checkout", "-q", "--detach")
        first = author.run("apply", "-y", "--new-state", environ={"SYNCENGINE_STATE": roles["writer"], "CI": "true"})
        assert first.code == 0, first.err
        yield made


def test_a_change_goes_from_its_pull_request_to_the_service_and_back(forge: Forge) -> None:
    proposed = forge.propose("change", tag("NEW-1", description="Opposition"))
    planned = forge.run("plan", proposed)
    assert "### Plan: 1 to create; 9 unchanged; 1 request." in forge.comment()
    assert (planned.outputs["create"], planned.outputs["gate"]) == ("1", "false")
    assert "No tests found" in planned.log
    assert "NEW-1" not in forge.service.tags()

    applied = forge.run("apply", forge.merge(proposed))
    assert "Applied 1 change" in forge.comment("applied")
    assert "NEW-1" in forge.service.tags()
    assert "reviewed/20.json" in applied.log

    forge.host.comments.clear()
    git(forge.author.folder, "revert", "--no-edit", "HEAD")
    reverted = forge.push(git(forge.author.folder, "rev-parse", "HEAD"))
    assert forge.run("plan", reverted).outputs["remove"] == "1"
    forge.run("apply", forge.merge(reverted))
    assert "Applied 1 change" in forge.comment("applied")
    rows = forge.author.run("plan", "--format", "json", environ={"SYNCENGINE_STATE": forge.state})
    assert rows.document["changes"] == []


def test_a_plan_that_may_not_be_applied_fails_its_job(forge: Forge) -> None:
    forge.run("plan", forge.propose("remove", tag("HELD-0"), file="all.yaml"), passed=False)
    approval = re.search(r"8@[0-9a-f]{20}", forge.comment())
    assert approval is not None
    assert forge.host.artifacts[forge.number]

    forge.author.settings(f"state: {{env: SYNCENGINE_STATE}}\napprovals: [{approval[0]}]")
    approved = forge.propose("approve")
    forge.run("plan", approved)
    forge.run("apply", forge.merge(approved))


def test_jobs_without_secrets_plan_in_git_only(forge: Forge) -> None:
    """Those of a fork, which write no comment and fail for invalid manifests, and on GitHub those of its bot. A merge
    queue's group is planned against its base in the job's summary."""
    planned = forge.run("plan", forge.propose("from elsewhere", tag("NEW-1"), fork=True))
    assert "NEW-1" in planned.log + planned.summary
    assert "HELD-1" not in planned.log + planned.summary
    forge.run("plan", forge.propose("misspelt", {"nme": "NEW-1"}, fork=True), passed=False)
    assert forge.host.comments == {}
    if forge.host.kind == "gitlab":
        return  # which has no such bot, and whose merge trains are merge requests
    proposed = forge.propose("corrected", tag("NEW-1"))
    base = git(forge.author.folder, "rev-parse", "main")
    planned = forge.run("plan", Event("merge_group", proposed.commit, base=base))
    assert "### Plan: 1 to create; 9 unchanged; 1 request." in planned.summary
    assert forge.host.comments == {}
    planned = forge.run("plan", replace(proposed, bot=True))
    assert "HELD-1" not in planned.log
    assert "NEW-1" in forge.comment()
    assert forge.host.artifacts == {}


def test_a_forged_plan_is_neither_published_nor_kept(forge: Forge) -> None:
    folder = forge.author.folder
    done = forge.author.run("plan", "--format", "json", environ={"SYNCENGINE_STATE": forge.state})
    assert done.document["changes"] == []
    for name, settings in {"plan.json": "policies: [plan.json]", "forged.json": ""}.items():
        git(folder, "checkout", "-q", "--detach", "main")
        forge.author.wants(tags=[])
        forge.author.settings(f"state: {{env: SYNCENGINE_STATE}}\n{settings}")
        (folder / name).write_text(done.out)
        if name != "plan.json":
            (folder / "plan.json").symlink_to(name)
        git(folder, "add", "-f", name, "plan.json")
        forge.run("plan", forge.push(commit_all(folder)), passed=False)
        assert not any("No changes" in body for body in forge.host.bodies())
        kept = json.loads(forge.host.artifacts.pop(forge.number, b"{}"))
        assert kept.get("changes") != []


def test_scheduled_jobs_send_everything_again_or_fail_on_drift(forge: Forge) -> None:
    """The weekly job sends every resource again, which reverts manual edits on the service. The nightly job only reads
    the service; it fails if there is drift, and does not name unknown tags."""
    commit = git(forge.author.folder, "rev-parse", "main")
    before = forge.service.asked().count("upsertTags")
    forge.run("reassert", Event("schedule", commit))
    assert forge.service.asked().count("upsertTags") == before + 1
    night = Event("schedule", commit, schedule="drift")
    sent, held = forge.service.asked(), forge.service.holds()
    quiet = forge.run("drift", night)
    assert "### No drift" in quiet.summary + quiet.log
    forge.service.say("/posted-time", {"tags": [{"name": "BY-HAND"}]})
    found = forge.run("drift", night, passed=False)
    assert "### Drift: 1 unknown" in found.summary + found.log
    assert "BY-HAND" not in found.summary + found.log
    assert set(forge.service.asked()[len(sent) :]) == {"teamInfo", "listPostedTime"}
    assert forge.service.holds() == held
