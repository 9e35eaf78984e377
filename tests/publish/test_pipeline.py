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
from tests.cli.service import KEY, Json, Service, serving
from tests.publish.forge import Event, GitHubRunner, GitLabRunner, JobEnd
from tests.publish.hosts import TOKEN, Imitation, imitation
from tests.support.git import bare, commit_all, git

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
        made = Forge(author, service, host, *_jobs(request.param, tmp_path, origin, host, roles), roles["writer"])
        git(folder, "checkout", "-q", "-b", "main")
        commit_all(folder, "first")
        git(folder, "push", "-q", "origin", "main")
        git(folder, "checkout", "-q", "--detach")
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
    proposed = forge.propose("change", tag("NEW-1", description="Opposition"))
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
    git(forge.author.folder, "revert", "--no-edit", "HEAD")
    reverted = forge.push(git(forge.author.folder, "rev-parse", "HEAD"))
    assert checked(forge.plan(reverted)).outputs["remove"] == "1"
    checked(forge.apply(forge.merge(reverted)))
    assert "Applied 1 change" in forge.comment("applied")
    rows = forge.author.run("plan", "--format", "json", environ={"SYNCENGINE_STATE": forge.state})
    assert rows.document["changes"] == []


def test_a_plan_that_may_not_be_applied_fails_its_job(forge: Forge) -> None:
    checked(forge.plan(forge.propose("remove", tag("HELD-0"), file="all.yaml")), passed=False)
    approval = re.search(r"8@[0-9a-f]{20}", forge.comment())
    assert approval is not None
    assert forge.host.artifacts[forge.number]

    forge.author.settings(f"state: {{env: SYNCENGINE_STATE}}\napprovals: [{approval[0]}]")
    approved = forge.propose("approve")
    checked(forge.plan(approved))
    checked(forge.apply(forge.merge(approved)))


def test_jobs_without_secrets_plan_in_git_only(forge: Forge) -> None:
    """Those of a fork, which write no comment and fail for invalid manifests, and on GitHub those of its bot. A merge
    queue's group is planned against its base in the job's summary."""
    planned = checked(forge.plan(forge.propose("from elsewhere", tag("NEW-1"), fork=True)))
    assert "NEW-1" in planned.log + planned.summary
    assert "HELD-1" not in planned.log + planned.summary
    checked(forge.plan(forge.propose("misspelt", {"nme": "NEW-1"}, fork=True)), passed=False)
    assert forge.host.comments == {}
    if forge.host.kind == "gitlab":
        return  # which has no such bot, and whose merge trains are merge requests
    proposed = forge.propose("corrected", tag("NEW-1"))
    base = git(forge.author.folder, "rev-parse", "main")
    planned = checked(forge.plan(Event("merge_group", proposed.commit, base=base)))
    assert "### Plan: 1 to create; 9 unchanged; 1 request." in planned.summary
    assert forge.host.comments == {}
    planned = checked(forge.plan(replace(proposed, bot=True)))
    assert "HELD-1" not in planned.log
    assert "NEW-1" in forge.comment()
    assert forge.host.artifacts == {}


def test_a_forged_plan_is_neither_published_nor_kept(forge: Forge) -> None:
    """A plan that the branch committed or linked as `plan.json` fails the job and is not published."""
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
        checked(forge.plan(forge.push(commit_all(folder))), passed=False)
        assert not any("No changes" in body for body in forge.host.bodies())
        kept = json.loads(forge.host.artifacts.pop(forge.number, b"{}"))
        assert kept.get("changes") != []


def test_scheduled_jobs_send_everything_again_or_fail_on_drift(forge: Forge) -> None:
    """The weekly job sends every resource again, which reverts manual edits on the service. The nightly job only reads
    the service; it fails if there is drift, and does not name unknown tags."""
    commit = git(forge.author.folder, "rev-parse", "main")
    before = forge.service.asked().count("upsertTags")
    checked(forge.reassert(Event("schedule", commit)))
    assert forge.service.asked().count("upsertTags") == before + 1
    night = Event("schedule", commit, schedule="drift")
    sent, held = forge.service.asked(), forge.service.holds()
    quiet = checked(forge.drift(night))
    assert "### No drift" in quiet.summary + quiet.log
    forge.service.say("/posted-time", {"tags": [{"name": "BY-HAND"}]})
    found = checked(forge.drift(night), passed=False)
    assert "### Drift: 1 unknown" in found.summary + found.log
    assert "BY-HAND" not in found.summary + found.log
    assert set(forge.service.asked()[len(sent) :]) == {"teamInfo", "listPostedTime"}
    assert forge.service.holds() == held
