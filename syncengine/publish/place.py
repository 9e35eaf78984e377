"""Variables of a CI job → the place of its comment: project, pull request, commit, run. Read GitHub's event file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from syncengine.errors import SyncengineError, Usage
from syncengine.publish.marker import RunOrder
from syncengine.state.holder import job_url

REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
PROJECT = re.compile(r"[\w./-]+")
COMMIT = re.compile(r"[0-9a-f]{7,64}")
TOKEN = re.compile(r"[\x21-\x7e]+")
_PULL = re.compile(r"refs/pull/([0-9]+)/")

Environ = Mapping[str, str]


class CommentPlace(NamedTuple):
    """The place of a comment, and the CI job that writes it.

    `number` is `None` when the job does not know its pull request, which may be found by the commit `head`. `token` is
    `None` when the job has none, as in the job of a fork (`is_fork`). `page` is the URL of the list of pull requests.
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


def github_place(environ: Environ) -> CommentPlace:
    """Return the place in GitHub Actions. Raise `Usage`, with all missing variables, outside of it."""
    _need(environ, "GITHUB_REPOSITORY", "GITHUB_API_URL")
    repository = environ["GITHUB_REPOSITORY"]
    if not REPOSITORY.fullmatch(repository):
        raise Usage(f"GITHUB_REPOSITORY is not OWNER/NAME: {repository!r}")
    event = _event(environ)
    pull = _mapping(event.get("pull_request"))
    head = _mapping(pull.get("head"))
    web = f"{environ.get('GITHUB_SERVER_URL', 'https://github.com').rstrip('/')}/{repository}"
    return CommentPlace(
        api=environ["GITHUB_API_URL"].rstrip("/"),
        project=repository,
        number=_pull_number(event, pull, environ),
        token=_token(environ, "GITHUB_TOKEN"),
        head=_commit(head.get("sha"), environ.get("GITHUB_SHA")),
        run=RunOrder(*(_number(environ, f"GITHUB_RUN_{name}") for name in ("ID", "NUMBER", "ATTEMPT"))),
        job=job_url(environ),
        page=f"{web}/pull",
        is_fork=bool(_mapping(head.get("repo")).get("fork")),
    )


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
        number=_number(environ, "CI_MERGE_REQUEST_IID") or None,
        token=_token(environ, "GITLAB_TOKEN"),
        head=_commit(environ.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA"), environ.get("CI_COMMIT_SHA")),
        run=RunOrder(*(_number(environ, name) for name in ("CI_PIPELINE_ID", "CI_PIPELINE_IID", "CI_JOB_ID"))),
        job=job_url(environ),
        page=f"{environ.get('CI_MERGE_REQUEST_PROJECT_URL') or own}/-/merge_requests",
        is_fork=source != project,
    )


def _need(environ: Environ, *names: str) -> None:
    if missing := [name for name in names if not environ.get(name)]:
        are, them = ("is", "it") if len(missing) == 1 else ("are", "them")
        cure = f"CI sets {them} in its jobs; elsewhere, `publish --dry-run` works without {them}"
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
        return _mapping(json.loads(Path(file).read_bytes()))
    except (OSError, ValueError, RecursionError):
        raise SyncengineError(f"GITHUB_EVENT_PATH: {file} is not JSON", code="publish-event") from None


def _pull_number(event: Mapping[str, Any], pull: Mapping[str, Any], environ: Environ) -> int | None:
    issue = _mapping(event.get("issue"))
    numbers = (pull.get("number"), event.get("number"), issue.get("number") if "pull_request" in issue else None)
    of_ref = _PULL.match(environ.get("GITHUB_REF", ""))
    return next((n for n in numbers if isinstance(n, int)), int(of_ref[1]) if of_ref else None)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _commit(*candidates: object) -> str:
    """Return the first candidate that is a commit id, or `""`."""
    return next((text for text in candidates if isinstance(text, str) and COMMIT.fullmatch(text)), "")


def _number(environ: Environ, name: str) -> int:
    text = environ.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0
