"""Recent commits → the plans reviewed in their pull requests, from the artifacts of CI jobs.

Artifacts of forks are never read, since their authors may have written anything into them.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from syncengine.errors import SyncengineError
from syncengine.publish.api import HostApi, NotAllowed, NotThere
from syncengine.publish.hosts import GitHub, GitLab, Host, Pull
from syncengine.publish.place import CommentPlace

NEEDS = "`permissions: {actions: read, pull-requests: read}`, or the scope `read_api`"
"""The rights that a token needs to read plans."""
DEPTH = 2
"""How deep GitLab nests child pipelines."""
LARGEST = 256 * 1024 * 1024
"""The maximum number of bytes of an unpacked plan."""


class ReviewedFile(NamedTuple):
    """The plan of a pull request, from its last job that kept one."""

    number: int
    content: bytes


class Wanted(NamedTuple):
    """The name of the artifact (on GitLab, of its job), and the file in the artifact."""

    artifact: str
    file: str


def reviewed_files(kind: type[Host], place: CommentPlace, commits: Iterable[str], wanted: Wanted) -> list[ReviewedFile]:
    """Return the plan of each pull request of `commits`, and skip pull requests without a plan."""
    files: dict[int, ReviewedFile] = {}
    with kind.at(place, NEEDS) as host:
        try:
            for commit in commits:
                for pull in host.merged_pulls(commit):
                    content = None if pull.is_foreign or pull.number in files else _plan_of(host, pull, wanted)
                    if content is not None:
                        files[pull.number] = ReviewedFile(pull.number, content)
        except (NotAllowed, NotThere) as refusal:
            message = f"the token may not read artifacts ({refusal}): it needs {NEEDS}"
            raise SyncengineError(message, code="publish-place") from None
    return list(files.values())


def _plan_of(host: Host, pull: Pull, wanted: Wanted) -> bytes | None:
    match host:
        case GitHub():
            return _of_github(host.api, host.place, pull, wanted)
        case GitLab():
            return _of_gitlab(host.api, host.project, pull, wanted)
    raise AssertionError(host)


def _of_github(api: HostApi, place: CommentPlace, pull: Pull, wanted: Wanted) -> bytes | None:
    """Return the plan of the newest run at the head. Other workflows count only if no run of this one has a plan."""
    actions = f"/repos/{place.project}/actions"
    own = pull.repository or place.project.casefold()
    found = api.pages(f"{actions}/runs?head_sha={quote(pull.head)}&event=pull_request", "workflow_runs")
    runs = [run for run in found if _repository_of(run) == own and run.get("head_sha", pull.head) == pull.head]
    for run in sorted(runs, key=lambda run: (_is_ours(run, place), int(run["id"])), reverse=True):
        made = api.pages(f"{actions}/runs/{int(run['id'])}/artifacts?name={quote(wanted.artifact)}", "artifacts")
        ids = [int(a["id"]) for a in made if a["name"] == wanted.artifact and not a.get("expired")]
        for id in sorted(ids, reverse=True):
            content = _unpack(_file(api, f"{actions}/artifacts/{id}/zip"), wanted.file)
            if content is not None:
                return content
    return None


def _repository_of(run: Mapping[str, Any]) -> str:
    """Return the repository of a run's commit: a fork may have the same commit, and run what it likes."""
    return str((run.get("head_repository") or {}).get("full_name", "")).casefold()


def _is_ours(run: Mapping[str, Any], place: CommentPlace) -> bool:
    """Return whether a run is of the workflow that asks."""
    return place.workflow in (str(run.get("path") or "").partition("@")[0], run.get("name"))


def _of_gitlab(api: HostApi, project: str, pull: Pull, wanted: Wanted) -> bytes | None:
    """Return the plan of the newest pipeline that has one, without those of a merge train, which no person reviewed."""
    pipelines = [
        int(pipeline["id"])
        for pipeline in api.pages(f"{project}/merge_requests/{pull.number}/pipelines")
        if not str(pipeline.get("ref")).endswith("/train")
    ]
    plans = (_of_pipeline(api, project, id, wanted) for id in sorted(pipelines, reverse=True))
    return next((plan for plan in plans if plan is not None), None)


def _of_pipeline(api: HostApi, project: str, id: int, wanted: Wanted, depth: int = 0) -> bytes | None:
    """Return the plan of a pipeline's newest job that has one, or of a child pipeline of the same project."""
    jobs = [int(job["id"]) for job in api.pages(f"{project}/pipelines/{id}/jobs") if job["name"] == wanted.artifact]
    for job in sorted(jobs, reverse=True):
        content = _file(api, f"{project}/jobs/{job}/artifacts/{quote(wanted.file)}")
        if content is None:
            content = _unpack(_file(api, f"{project}/jobs/{job}/artifacts"), wanted.file)
        if content is not None:
            return content
    if depth == DEPTH:
        return None
    children = (child for bridge in _bridges(api, project, id) if (child := bridge.get("downstream_pipeline")))
    ids = [int(child["id"]) for child in children if project.endswith(f"/{child.get('project_id')}")]
    plans = (_of_pipeline(api, project, child, wanted, depth + 1) for child in sorted(ids, reverse=True))
    return next((plan for plan in plans if plan is not None), None)


def _bridges(api: HostApi, project: str, id: int) -> list[Any]:
    """Return the jobs that start child pipelines, or none on a host without them."""
    try:
        return list(api.pages(f"{project}/pipelines/{id}/bridges"))
    except NotThere:
        return []


def _file(api: HostApi, path: str) -> bytes | None:
    """Return the content of an artifact, or `None` if there is none any more."""
    try:
        return api.download(path)
    except NotThere:
        return None


def _unpack(packed: bytes | None, file: str) -> bytes | None:
    """Return the only file of this name in a zip archive, in whatever folder; `None` if there is none.

    Raise `SyncengineError` for a file larger than any plan.
    """
    if packed is None:
        return None
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            names = archive.namelist()
            found = [name for name in names if name == file] or [name for name in names if name.endswith(f"/{file}")]
            if len(found) != 1:
                return None
            with archive.open(found[0]) as member:
                content = member.read(LARGEST + 1)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError):  # damaged, encrypted, foreign
        return None
    if len(content) > LARGEST:
        raise SyncengineError(f"{file} in the artifact is larger than any plan", code="publish-host")
    return content
