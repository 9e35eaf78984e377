"""The jobs that `init --ci` writes, run from a pull request through its merge and apply to its revert.

They run on a bare repository with two clones and a state in PostgreSQL, against imitations of both hosts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from syncengine.state.tables import METADATA
from tests.cli.program import Project, tag
from tests.cli.service import KEY, Json, Service, serving
from tests.publish.forge import Event, GitHubRunner, GitLabRunner, JobEnd, Runner
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
    """A pull request is planned, commented, merged and applied as reviewed; its revert is applied likewise."""
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
