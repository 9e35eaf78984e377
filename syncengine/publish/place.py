"""Variables of a CI job → the place of its comment: project, pull request, commit, run. Read GitHub's event file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from syncengine.errors import SyncengineError, Usage
from syncengine.project.runner import job_url

REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
PROJECT = re.compile(r"[\w./-]+")
COMMIT = re.compile(r"[0-9a-f]{7,64}")  # SHA-1 and SHA-256, or short
TOKEN = re.compile(r"[\x21-\x7e]+")
HEADS = "refs/heads/"
_PULL = re.compile(r"refs/pull/([0-9]+)/")

PUSHES = frozenset({"", "push", "workflow_dispatch"})
"""The events of GitHub that are about the commit of a branch. Others name another commit, or the newest of all."""

Environ = Mapping[str, str]


class RunOrder(NamedTuple):
    """A CI run, ordered by time. `id` counts on a whole host, `number` in a project; 0 means unknown."""

    id: int = 0
    number: int = 0
    attempt: int = 0


class PullState(StrEnum):
    """The states of a pull request in which it may get a comment."""

    OPEN = "open"
    MERGED = "merged"


class CommentPlace(NamedTuple):
    """The place of a comment, and the CI job that writes it.

    `number` is `None` when the job belongs to no pull request; one in the state `searched` may be found by the commit
    `head`. `branch` is the branch that was pushed, if any. `token` is `None` when the job has none, as in the job of a
    fork (`is_fork`). `page` is the URL of the list of pull requests. `workflow` is the path of the job's file, or the
    name of its workflow if the path is unknown, on GitHub. `follows`: the job publishes what another run made, maybe of
    a commit that is not checked out.
    """

    api: str
    project: str
    number: int | None
    token: str | None
    head: str
    run: RunOrder
    job: str | None
    page: str
    is_fork: bool
    searched: PullState | None
    branch: str
    workflow: str = ""
    follows: bool = False


def github_place(environ: Environ) -> CommentPlace:
    """Return the place in GitHub Actions. Raise `Usage`, with all missing variables, outside of it."""
    _need(environ, "GITHUB_REPOSITORY", "GITHUB_API_URL")
    repository, ref = environ["GITHUB_REPOSITORY"], environ.get("GITHUB_REF", "")
    if not REPOSITORY.fullmatch(repository):
        raise Usage(f"GITHUB_REPOSITORY is not OWNER/NAME: {repository!r}")
    event = _event(environ)
    pull, earlier = as_mapping(event.get("pull_request")), as_mapping(event.get("workflow_run"))
    head = as_mapping(pull.get("head"))
    web = f"{environ.get('GITHUB_SERVER_URL', 'https://github.com').rstrip('/')}/{repository}"
    workflow = environ.get("GITHUB_WORKFLOW_REF", "").partition("@")[0].removeprefix(f"{repository}/")
    if earlier:  # its runs began in the order of the commits, those of its followers in the order in which they ended
        kind, number = as_text(earlier.get("event")), _of_earlier(event, earlier)
        run = [str(earlier.get(name, "")) for name in ("id", "run_number", "run_attempt")]
        commit, branch = _commit(earlier.get("head_sha")), as_text(earlier.get("head_branch"))
    else:
        kind = environ.get("GITHUB_EVENT_NAME", "")
        issue, of_ref = as_mapping(event.get("issue")), _PULL.match(ref)
        numbers = (pull.get("number"), event.get("number"), issue.get("number") if "pull_request" in issue else None)
        number = next((n for n in numbers if isinstance(n, int)), int(of_ref[1]) if of_ref else None)
        run = [environ.get(f"GITHUB_RUN_{name}", "") for name in ("ID", "NUMBER", "ATTEMPT")]
        commit = _commit(head.get("sha"), environ.get("GITHUB_SHA"))
        branch = ref.removeprefix(HEADS) if ref.startswith(HEADS) else ""
    searched = PullState.MERGED if kind in PUSHES else None
    return CommentPlace(
        api=environ["GITHUB_API_URL"].rstrip("/"),
        project=repository,
        number=number,
        token=_token(environ, "GITHUB_TOKEN"),
        head=commit,
        run=RunOrder(*map(as_number, run)),
        job=job_url(environ),
        page=f"{web}/pull",
        is_fork="repo" in head and _name(head) != (_name(as_mapping(pull.get("base"))) or repository.casefold()),
        searched=PullState.OPEN if earlier and kind.startswith("pull_request") else searched,
        branch=branch,
        workflow=workflow or environ.get("GITHUB_WORKFLOW", ""),
        follows=bool(earlier),
    )


def _of_earlier(event: Mapping[str, Any], earlier: Mapping[str, Any]) -> int | None:
    """Return the one pull request of the run that caused this one. The list may name pull requests of forks, too."""
    if not as_text(earlier.get("event")).startswith("pull_request"):
        return None
    own, head = as_mapping(event.get("repository")).get("id"), earlier.get("head_sha")
    numbers, pulls = [], earlier.get("pull_requests")
    for pull in map(as_mapping, pulls if isinstance(pulls, list) else ()):
        base = as_mapping(as_mapping(pull.get("base")).get("repo")).get("id")
        commit = as_mapping(pull.get("head")).get("sha")
        if (base is None or own is None or base == own) and commit in (None, head):
            numbers.append(pull.get("number"))
    return numbers[0] if len(numbers) == 1 and isinstance(numbers[0], int) else None


def _name(side: Mapping[str, Any]) -> str:
    """Return the full name of the repository of a side of a pull request; `""` if it was deleted."""
    return as_text(as_mapping(side.get("repo")).get("full_name")).casefold()


def gitlab_place(environ: Environ) -> CommentPlace:
    """Return the place in GitLab CI. For a fork's pipeline, the project is the target of the merge request."""
    _need(environ, "CI_API_V4_URL", "CI_PROJECT_ID")
    project = environ.get("CI_MERGE_REQUEST_PROJECT_ID") or environ["CI_PROJECT_ID"]
    if not PROJECT.fullmatch(project):
        raise Usage(f"CI_PROJECT_ID is not a project: {project!r}")
    source = environ.get("CI_MERGE_REQUEST_SOURCE_PROJECT_ID") or project
    own = environ.get("CI_PROJECT_URL", "")
    return CommentPlace(
        api=environ["CI_API_V4_URL"].rstrip("/"),
        project=project,
        number=as_number(environ.get("CI_MERGE_REQUEST_IID", "")) or None,
        token=_token(environ, "GITLAB_TOKEN"),
        head=_commit(environ.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA"), environ.get("CI_COMMIT_SHA")),
        run=RunOrder(*(as_number(environ.get(f"CI_{name}", "")) for name in ("PIPELINE_ID", "PIPELINE_IID", "JOB_ID"))),
        job=job_url(environ),
        page=f"{environ.get('CI_MERGE_REQUEST_PROJECT_URL') or own}/-/merge_requests",
        is_fork=source != project,
        searched=None if environ.get("CI_PIPELINE_SOURCE") == "schedule" else PullState.MERGED,
        branch=environ.get("CI_COMMIT_BRANCH", ""),
    )


def _need(environ: Environ, *names: str) -> None:
    if missing := [name for name in names if not environ.get(name)]:
        are, them = ("is", "it") if len(missing) == 1 else ("are", "them")
        cure = f"CI sets {them} in its jobs; elsewhere, only `publish --dry-run` works without {them}"
        raise Usage(f"{', '.join(missing)} {are} not set: {cure}")


def _token(environ: Environ, name: str) -> str | None:
    token = environ.get(name, "").strip()
    if token and not TOKEN.fullmatch(token):
        raise Usage(f"{name} is not a token: it contains spaces or characters outside ASCII")
    return token or None


def _event(environ: Environ) -> Mapping[str, Any]:
    """Return the event that started the job, or an empty mapping without an event file."""
    file = environ.get("GITHUB_EVENT_PATH")
    if not file or not Path(file).is_file():
        return {}
    try:
        return as_mapping(json.loads(Path(file).read_bytes()))
    except (OSError, ValueError, RecursionError):
        raise SyncengineError(f"GITHUB_EVENT_PATH: {file} is not JSON", code="publish-event") from None


def as_mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _commit(*candidates: object) -> str:
    """Return the first candidate that is a commit id, or `""`."""
    return next((text for text in candidates if isinstance(text, str) and COMMIT.fullmatch(text)), "")


def as_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def as_number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0
