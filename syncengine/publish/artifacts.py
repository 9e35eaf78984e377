"""Recent commits → the plans reviewed in their pull requests, from the artifacts of CI jobs.

Artifacts of forks are never read, since their authors may have written anything into them.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

from syncengine.errors import SyncengineError
from syncengine.publish.api import HostApi, NotAllowed, NotThere
from syncengine.publish.hosts import HostKind
from syncengine.publish.place import CommentPlace

LARGEST = 256 * 1024 * 1024
"""The maximum number of bytes of an unpacked plan."""


class ReviewedFile(NamedTuple):
    """The plan of a pull request, from its last job with the artifact."""

    number: int
    content: bytes


class Wanted(NamedTuple):
    """The name of the artifact (on GitLab, of its job), and the file in the artifact."""

    artifact: str
    file: str


def reviewed_files(kind: HostKind, place: CommentPlace, commits: Iterable[str], wanted: Wanted) -> list[ReviewedFile]:
    """Return the plan of each pull request of `commits`, and skip pull requests without a plan."""
    if place.token is None:
        raise SyncengineError(f"{kind.client.variable} is not set: pass it to this step", code="no-token")
    find = _FINDERS[kind.client.title]
    with HostApi(kind.client.title, place.api, kind.headers(place.token), place.token) as api:
        try:
            files: dict[int, ReviewedFile] = {}
            for commit in commits:
                for each in find(api, place, commit, wanted):
                    files.setdefault(each.number, each)
            return list(files.values())
        except (NotAllowed, NotThere) as refusal:
            cure = "it needs `permissions: {actions: read, pull-requests: read}`, or the scope `read_api`"
            raise SyncengineError(
                f"the token may not read artifacts ({refusal}): {cure}", code="publish-place"
            ) from None
        except (KeyError, TypeError, AttributeError):
            message = f"{kind.client.title} answered in an undocumented form"
            raise SyncengineError(message, code="publish-host") from None


def _of_github(api: HostApi, place: CommentPlace, commit: str, wanted: Wanted) -> Iterator[ReviewedFile]:
    repository = f"/repos/{place.project}"
    for pull in _list(api, f"{repository}/commits/{commit}/pulls"):
        if (pull["head"].get("repo") or {}).get("full_name") != place.project or not pull.get("merged_at"):
            continue
        runs = api.get(f"{repository}/actions/runs?head_sha={pull['head']['sha']}&event=pull_request&per_page=100").data
        for run in sorted(runs["workflow_runs"], key=_newest_first):
            if (run.get("head_repository") or {}).get("full_name") != place.project:
                continue
            made = api.get(f"{repository}/actions/runs/{run['id']}/artifacts?name={quote(wanted.artifact)}").data
            ids = [a["id"] for a in made["artifacts"] if a["name"] == wanted.artifact and not a.get("expired")]
            if ids:
                packed = api.download(f"{repository}/actions/artifacts/{max(ids)}/zip")
                yield ReviewedFile(pull["number"], _unpacked(packed, wanted.file))
                break


def _of_gitlab(api: HostApi, place: CommentPlace, commit: str, wanted: Wanted) -> Iterator[ReviewedFile]:
    project = f"/projects/{quote(place.project, safe='')}"
    for request in _list(api, f"{project}/repository/commits/{commit}/merge_requests"):
        if request["source_project_id"] != request["target_project_id"] or request["state"] != "merged":
            continue
        pipelines = api.get(f"{project}/merge_requests/{request['iid']}/pipelines").data
        for pipeline in sorted(pipelines, key=_newest_first):
            jobs = api.get(f"{project}/pipelines/{pipeline['id']}/jobs?per_page=100").data
            ids = [job["id"] for job in jobs if job["name"] == wanted.artifact]
            content = _job_file(api, f"{project}/jobs/{max(ids)}/artifacts/{quote(wanted.file)}") if ids else None
            if content is not None:
                yield ReviewedFile(request["iid"], content)
                break


_FINDERS = {"GitHub": _of_github, "GitLab": _of_gitlab}


def _list(api: HostApi, path: str) -> list[Any]:
    """Return all items of a list, or none for a commit that is unknown to the host."""
    try:
        return list(api.pages(path))
    except NotThere:
        return []


def _job_file(api: HostApi, path: str) -> bytes | None:
    try:
        return api.download(path)
    except NotThere:
        return None


def _newest_first(item: Any) -> int:
    return -int(item["id"])


def _unpacked(packed: bytes, file: str) -> bytes:
    """Return a file of a zip archive. Raise `SyncengineError` for a damaged archive, or a file larger than any plan."""
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive, archive.open(file) as member:
            content = member.read(LARGEST + 1)
    except (zipfile.BadZipFile, KeyError, zlib.error, NotImplementedError, RuntimeError, EOFError):
        raise SyncengineError(f"the artifact is not a zip archive that contains {file}", code="publish-host") from None
    if len(content) > LARGEST:
        raise SyncengineError(f"{file} in the artifact is larger than any plan", code="publish-host")
    return content
