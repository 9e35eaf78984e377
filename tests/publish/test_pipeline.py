"""The jobs that `init --ci` writes, run from a pull request through its merge and apply to its revert.

They run on a bare repository with two clones and a state in PostgreSQL, against imitations of both hosts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from syncengine.state.tables import METADATA
from tests.cli.program import Project, tag
from tests.cli.service import KEY, Service, serving
from tests.publish.forge import Event, GitHubRunner, GitLabRunner, JobEnd
from tests.publish.hosts import TOKEN, Imitation, imitation
from tests.support.git import git

pytestmark = pytest.mark.slow

SECRETS = (KEY, TOKEN, "reader-pa55", "tester:")


@dataclass
class Forge:
    """A bare repository, the clone of an author of manifests, and one host with its runner."""

    author: Project
    service: Service
    host: Imitation
    plan: Callable[[Event], JobEnd]
    apply: Callable[[Event], JobEnd]
    reassert: Callable[[Event], JobEnd]
    drift: Callable[[Event], JobEnd]
    state: str
    number: int = 20

    def commit(self, message: str) -> str:
        git(self.author.folder, "add", "-A")
        git(self.author.folder, "commit", "-q", "-m", message)
        return git(self.author.folder, "rev-parse", "HEAD")

    def branch(self, name: str) -> None:
        git(self.author.folder, "checkout", "-q", "-b", name, "main")

    def propose(self, message: str, *, fork: bool = False) -> Event:
        """Commit and push the branch, and the merge commit that the host would create."""
        head = self.commit(message)
        folder = self.author.folder
        git(folder, "checkout", "-q", "--detach", "main")
        git(folder, "merge", "-q", "--no-ff", "-m", "merge", head)
        merge = git(folder, "rev-parse", "HEAD")
        git(
            folder,
            "push",
            "-q",
            "origin",
            f"{merge}:refs/heads/merge-{self.number}",
            f"{head}:refs/heads/{head[:9]}",
            "-f",
        )
        git(folder, "checkout", "-q", head)
        return Event("pull_request", merge, self.number, head, fork)

    def merge(self, event: Event) -> Event:
        """Squash the pull request into main without deleting its branch."""
        folder = self.author.folder
        git(folder, "checkout", "-q", "main")
        git(folder, "merge", "-q", "--squash", event.head)
        commit = self.commit(f"merged {event.number}")
        git(folder, "push", "-q", "origin", "main")
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
    bare, folder = tmp_path / "bare.git", tmp_path / "author"
    git(tmp_path, "init", "-q", "--bare", str(bare))
    git(tmp_path, "clone", "-q", str(bare), str(folder))
    with serving() as service, imitation(request.param) as host:
        author = Project(folder, service.url)
        author.settings("state: {env: SYNCENGINE_STATE}")
        author.wants(tags=[tag(f"HELD-{n}") for n in range(9)])
        assert author.run("init", "--ci", request.param, "--install", "firm-syncengine==2.0").code == 0
        assert author.run("fmt").code == 0
        (folder / ".gitignore").write_text(".syncengine/\nplan.json\nreport.json\nreviewed/\n")
        made = Forge(author, service, host, *_jobs(request.param, tmp_path, bare, host, roles), roles["writer"])
        git(folder, "checkout", "-q", "-b", "main")
        made.commit("first")
        git(folder, "push", "-q", "origin", "main")
        first = author.run("apply", "-y", "--new-state", environ={"SYNCENGINE_STATE": roles["writer"], "CI": "true"})
        assert first.code == 0, first.err
        yield made


Job = Callable[[Event], JobEnd]
JOBS = ("plan", "apply", "reassert", "drift")


def _jobs(kind: str, folder: Path, bare: Path, host: Imitation, roles: dict[str, str]) -> tuple[Job, Job, Job, Job]:
    """Return functions that run the plan, apply and scheduled jobs, each with its own secrets."""
    writes = {"SYNCENGINE_API_KEY": KEY, "SYNCENGINE_STATE": roles["writer"]}
    if kind == "github":
        reads = {"SYNCENGINE_STATE_READER": roles["reader"]}
        secrets = {"": reads, "production": {**reads, **writes}}
        runner = GitHubRunner(folder / "runner", bare, host, secrets)
        return tuple(lambda event, job=job: runner.run(job, event) for job in JOBS)  # type: ignore[return-value,misc]
    scopes = {"": {}, "plan": {"SYNCENGINE_STATE": roles["reader"]}, "production": writes}
    pipelines = GitLabRunner(folder / "runner", bare, host, {**scopes, "publish": {"GITLAB_TOKEN": TOKEN}})
    return tuple([lambda event: _together(pipelines.run(event))] * len(JOBS))  # type: ignore[return-value] # as a test calls it


def _together(ends: dict[str, JobEnd]) -> JobEnd:
    """Merge the jobs of a pipeline into one result."""
    outputs = {name: value for end in ends.values() for name, value in end.outputs.items()}
    return JobEnd(all(end.passed for end in ends.values()), "".join(end.log for end in ends.values()), outputs)


def checked(end: JobEnd, *, passed: bool = True) -> JobEnd:
    assert end.passed is passed, end.log
    for secret in SECRETS:
        assert secret not in end.log + end.summary
    return end


def test_a_change_goes_from_its_pull_request_to_the_service_and_back(forge: Forge) -> None:
    """A pull request is planned, commented, merged and applied as reviewed; its revert is applied likewise."""
    forge.branch("change")
    forge.author.wants("new.yaml", tags=[{"name": "NEW-1", "description": "Opposition"}])
    assert forge.author.run("fmt").code == 0
    proposed = forge.propose("change")
    planned = checked(forge.plan(proposed))
    assert "### Plan: 1 to create; 9 unchanged; 1 request." in forge.comment()
    assert (planned.outputs["create"], planned.outputs["gate"]) == ("1", "false")
    assert "No tests found" in planned.log
    assert "NEW-1" not in forge.service.tags()

    applied = checked(forge.apply(forge.merge(proposed)))
    assert "Applied 1 change" in forge.comment("applied")
    assert "NEW-1" in forge.service.tags()
    assert "reviewed/20.json" in applied.log

    forge.host.comments.clear()
    forge.branch("revert")
    git(forge.author.folder, "revert", "--no-edit", "HEAD")
    git(forge.author.folder, "reset", "-q", "--soft", "HEAD~1")
    reverted = forge.propose("revert")
    planned = checked(forge.plan(reverted))
    assert planned.outputs["remove"] == "1"
    checked(forge.apply(forge.merge(reverted)))
    assert "Applied 1 change" in forge.comment("applied")
    rows = forge.author.run("plan", "--format", "json", environ={"SYNCENGINE_STATE": forge.state})
    assert rows.document["changes"] == []


def test_a_plan_that_may_not_be_applied_fails_its_job(forge: Forge) -> None:
    """A plan that needs an approval is published and kept, but its job fails until it is approved."""
    forge.branch("removals")
    forge.author.wants(tags=[tag("HELD-0")])
    assert forge.author.run("fmt").code == 0
    checked(forge.plan(forge.propose("remove")), passed=False)
    approval = re.search(r"8@[0-9a-f]{20}", forge.comment())
    assert approval is not None
    assert forge.host.artifacts[forge.number]

    forge.author.settings(f"state: {{env: SYNCENGINE_STATE}}\napprovals: [{approval[0]}]")
    assert forge.author.run("fmt").code == 0
    approved = forge.propose("approve")
    checked(forge.plan(approved))
    checked(forge.apply(forge.merge(approved)))


def test_the_jobs_of_a_fork_have_no_secrets(forge: Forge) -> None:
    """A fork's pull request is planned in Git only, without secrets or a comment; invalid manifests fail its job."""
    forge.branch("fork")
    forge.author.wants("new.yaml", tags=[{"name": "NEW-1"}])
    assert forge.author.run("fmt").code == 0
    planned = checked(forge.plan(forge.propose("from elsewhere", fork=True)))
    assert "NEW-1" in planned.log + planned.summary
    assert "HELD-1" not in planned.log + planned.summary
    forge.author.wants("new.yaml", tags=[{"nme": "NEW-1"}])
    checked(forge.plan(forge.propose("misspelt", fork=True)), passed=False)
    assert forge.host.comments == {}


def test_a_pull_request_of_the_hosts_bot_is_planned_without_a_state(forge: Forge) -> None:
    """Jobs of GitHub's bot have no secrets, so its pull request is compared in Git and no plan is stored."""
    if forge.host.kind == "gitlab":
        pytest.skip("GitLab has no such bot")
    forge.branch("bump")
    forge.author.wants("new.yaml", tags=[{"name": "NEW-1"}])
    assert forge.author.run("fmt").code == 0
    planned = checked(forge.plan(replace(forge.propose("bump"), bot=True)))
    assert "HELD-1" not in planned.log
    assert "NEW-1" in forge.comment()
    assert forge.host.artifacts == {}


def test_a_forged_plan_is_neither_published_nor_kept(forge: Forge) -> None:
    """A plan that the branch committed or linked as `plan.json` fails the job and is not published."""
    folder = forge.author.folder
    done = forge.author.run("plan", "--format", "json", environ={"SYNCENGINE_STATE": forge.state})
    assert done.document["changes"] == []
    for name, settings in {"plan.json": "policies: [plan.json]", "forged.json": ""}.items():
        forge.branch(f"with-{name}")
        forge.author.wants(tags=[])
        forge.author.settings(f"state: {{env: SYNCENGINE_STATE}}\n{settings}")
        (folder / name).write_text(done.out)
        if name != "plan.json":
            (folder / "plan.json").symlink_to(name)
        git(folder, "add", "-f", name, "plan.json")
        checked(forge.plan(forge.propose(name)), passed=False)
        assert not any("No changes" in body for body in forge.host.bodies())
        kept = json.loads(forge.host.artifacts.pop(forge.number, b"{}"))
        assert kept.get("changes") != []


def test_a_merge_queue_is_planned_and_commented_nowhere(forge: Forge) -> None:
    """A merge queue's group is planned against its base; the plan is in the job's summary, without a comment."""
    if forge.host.kind == "gitlab":
        pytest.skip("GitLab's merge trains are merge requests")
    base = git(forge.author.folder, "rev-parse", "main")
    forge.branch("queued")
    forge.author.wants("new.yaml", tags=[{"name": "NEW-1"}])
    assert forge.author.run("fmt").code == 0
    proposed = forge.propose("queued")
    planned = checked(forge.plan(Event("merge_group", proposed.commit, base=base)))
    assert "### Plan: 1 to create; 9 unchanged; 1 request." in planned.summary
    assert (forge.host.comments, forge.host.artifacts) == ({}, {})


def test_everything_is_sent_again_on_a_schedule(forge: Forge) -> None:
    """The scheduled job sends every resource again, which reverts manual edits on the service."""
    before = forge.service.asked().count("upsertTags")
    commit = git(forge.author.folder, "rev-parse", "main")
    checked(forge.reassert(Event("schedule", commit)))
    assert forge.service.asked().count("upsertTags") == before + 1


def test_the_nightly_job_fails_on_drift(forge: Forge) -> None:
    """The nightly job only reads the service; it fails if there is drift, and does not name unknown tags."""
    commit = git(forge.author.folder, "rev-parse", "main")
    night = Event("schedule", commit, schedule="drift")
    sent, before = forge.service.asked(), forge.service.holds()
    quiet = checked(forge.drift(night))
    assert "### No drift" in quiet.summary + quiet.log
    forge.service.control.post("/posted-time", json={"tags": [{"name": "BY-HAND"}]})
    found = checked(forge.drift(night), passed=False)
    assert "### Drift: 1 unknown" in found.summary + found.log
    assert "BY-HAND" not in found.summary + found.log
    assert set(forge.service.asked()[len(sent) :]) == {"teamInfo", "listPostedTime"}
    assert forge.service.holds() == before
