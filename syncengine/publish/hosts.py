"""GitHub and GitLab: comments of a pull request and their author, the pull requests of a commit, and their plans."""

from __future__ import annotations

import io
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, ClassVar, NamedTuple, Self
from urllib.parse import quote

from syncengine.errors import SyncengineError
from syncengine.publish.api import HostApi, NotAllowed, NotThere
from syncengine.publish.place import CommentPlace, Environ, PullState, as_text, github_place, gitlab_place

APP = "[bot]"
ACTIONS_BOT = f"github-actions{APP}"
"""The author of comments written with a job's own token, which may not ask for its own name."""


DEPTH = 2
"""How deep GitLab nests child pipelines."""
LARGEST = 256 * 1024 * 1024
"""The maximum number of bytes of an unpacked plan."""
NEEDS_TO_READ = "`permissions: {actions: read, pull-requests: read}`, or the scope `read_api`"
"""The rights that a token needs to read plans."""


class ReviewedFile(NamedTuple):
    """The plan of a pull request, from its last job that kept one."""

    number: int
    content: bytes


class Wanted(NamedTuple):
    """The name of the artifact (on GitLab, of its job), and the file in the artifact."""

    artifact: str
    file: str


class Comment(NamedTuple):
    """A comment on the host. `author` is a login on GitHub, and a user id on GitLab."""

    id: int
    author: str
    body: str
    url: str


class Pull(NamedTuple):
    """A pull request of a commit. `is_foreign`: its head is in another repository, so that strangers may write to it.

    `repository` is the name of that repository, on GitHub; `head` is the last commit of its branch; `ends` are the
    commits with which it ended up in `branch`. Texts are empty where the host does not say.
    """

    number: int
    state: PullState | None
    is_foreign: bool
    repository: str
    branch: str
    head: str
    ends: frozenset[str]
    merged_at: str


class Host(ABC):
    """The interface of one host to one project. `close` ends its connections.

    `request` is the host's own term for a pull request, `needs` the right that a token needs to write comments,
    `variable` the one with the token. `stand_ins` replace the variables of a CI job for `--dry-run`.
    """

    title: ClassVar[str]
    request: ClassVar[str]
    needs: ClassVar[str]
    variable: ClassVar[str]
    stand_ins: ClassVar[Mapping[str, str]]
    update_method: ClassVar[str]

    def __init__(self, place: CommentPlace, token: str) -> None:
        self.api = HostApi(self.title, place.api, self.headers(token), token)
        self.place = place

    @classmethod
    @contextmanager
    def at(cls, place: CommentPlace, needs: str) -> Iterator[Self]:
        """Yield the host of a place, and close it. Raise `SyncengineError` without a token, which `needs` rights."""
        if place.token is None:
            raise SyncengineError(f"{cls.variable} is not set: pass it to this step; it needs {needs}", code="no-token")
        host = cls(place, place.token)
        try:
            yield host
        except (KeyError, TypeError, ValueError, AttributeError):  # from reading the host's JSON
            raise SyncengineError(f"{cls.title} answered in an undocumented form", code="publish-host") from None
        finally:
            host.api.close()

    @staticmethod
    @abstractmethod
    def place_in(environ: Environ) -> CommentPlace:
        """Return the place of a CI job. Raise `Usage`, with all missing variables, outside of one."""

    @staticmethod
    @abstractmethod
    def headers(token: str) -> Mapping[str, str]: ...

    @abstractmethod
    def author(self) -> str:
        """Return the author of comments that this token writes."""

    @abstractmethod
    def pulls(self, commit: str) -> Iterator[Pull]:
        """Yield the pull requests of a commit into this project. Forks have more. Raise `NotThere` if it is unknown."""

    @abstractmethod
    def path(self, number: int, comment: int | None = None) -> str:
        """Return the path of the comments of a pull request, or of one of them."""

    @abstractmethod
    def comment(self, number: int, item: Mapping[str, Any]) -> Comment | None:
        """Return the comment in an item of the list, or `None` for a note that the host wrote itself."""

    @abstractmethod
    def plan_of(self, pull: Pull, wanted: Wanted) -> bytes | None:
        """Return the plan of the newest job for a pull request's head that kept one, or `None`."""

    def comments(self, number: int) -> Iterator[Comment]:
        """Yield all comments of a pull request, each once, even if it moves to another page meanwhile."""
        found = (self.comment(number, item) for item in self.api.pages(self.path(number)))
        yield from {comment.id: comment for comment in found if comment is not None}.values()

    def create(self, number: int, body: str) -> Comment | None:
        return self.comment(number, self.api.write("POST", self.path(number), {"body": body}))

    def update(self, number: int, id: int, body: str) -> None:
        self.api.write(self.update_method, self.path(number, id), {"body": body})

    def delete(self, number: int, id: int) -> None:
        """Delete a comment of ours, unless another job has deleted it already."""
        with suppress(NotThere):
            self.api.write("DELETE", self.path(number, id))

    def merged_pulls(self, commit: str) -> list[Pull]:
        """Return the pull requests by which a commit came to the job's branch, the latest merge first."""
        found = [pull for pull in self._pulls(commit) if pull.state is PullState.MERGED]
        into = [pull for pull in found if not self.place.branch or pull.branch in ("", self.place.branch)]
        # A pull request that ended in this very commit comes before those that merely contain it.
        return sorted(into, key=lambda pull: (commit in pull.ends, pull.merged_at, pull.number), reverse=True)

    def pull_of_commit(self) -> Pull | None:
        """Return the pull request of the commit of a job that belongs to none; `None` if there is none or a choice."""
        head = self.place.head
        if not head or self.place.searched is None:
            return None
        if self.place.searched is PullState.MERGED:
            return next(iter(self.merged_pulls(head)), None)
        still_open = [pull for pull in self._pulls(head) if pull.head == head and pull.state is PullState.OPEN]
        return still_open[0] if len(still_open) == 1 else None

    def _pulls(self, commit: str) -> list[Pull]:
        try:
            return list(self.pulls(commit))
        except NotThere:
            return []

    def file(self, path: str) -> bytes | None:
        """Return the content of an artifact, or `None` if there is none any more."""
        try:
            return self.api.download(path)
        except NotThere:
            return None


class GitHub(Host):
    title, request = "GitHub", "pull request"
    needs, variable = "`permissions: {pull-requests: write}`", "GITHUB_TOKEN"
    stand_ins: ClassVar = {"GITHUB_API_URL": "https://api.github.com", "GITHUB_REPOSITORY": "owner/name"}
    update_method = "PATCH"
    place_in = staticmethod(github_place)

    @staticmethod
    def headers(token: str) -> Mapping[str, str]:
        return {
            "authorization": f"Bearer {token}",
            "accept": "application/vnd.github+json",
            "x-github-api-version": "2022-11-28",
        }

    def path(self, number: int, comment: int | None = None) -> str:
        where = f"{number}/comments" if comment is None else f"comments/{comment}"
        return f"/repos/{self.place.project}/issues/{where}"

    def author(self) -> str:
        """Return the login of the token's user in lower case. For an app's token, only GraphQL returns a login.

        GraphQL may leave out the ending that the login of an app has in comments, and that of a person never has.
        """
        try:
            return str(self.api.get("/user").data["login"]).lower()
        except (NotAllowed, NotThere, KeyError, TypeError):
            pass
        api = self.place.api
        url = f"{api.removesuffix('/api/v3')}/api/graphql" if api.endswith("/api/v3") else f"{api}/graphql"
        try:
            data = self.api.persist(lambda: self.api.write("POST", url, {"query": "{viewer{login}}"}))
            return f"{str(data['data']['viewer']['login']).lower().removesuffix(APP)}{APP}"
        except (NotAllowed, NotThere, KeyError, TypeError, SyncengineError):
            return ACTIONS_BOT

    def comment(self, number: int, item: Mapping[str, Any]) -> Comment | None:
        user = item.get("user") or {}
        url = as_text(item.get("html_url"))
        return Comment(int(item["id"]), str(user.get("login", "")).lower(), item.get("body") or "", url)

    def pulls(self, commit: str) -> Iterator[Pull]:
        items = list(self.api.pages(f"/repos/{self.place.project}/commits/{commit}/pulls"))
        names = {self.place.project.casefold()}
        if any(_repository(item, "base") not in {"", *names} for item in items):  # it may have another name by now
            names.add(str(self.api.get(f"/repos/{self.place.project}").data["full_name"]).casefold())
        for item in items:
            base, head = _repository(item, "base"), _repository(item, "head")
            if base and base not in names:
                continue
            is_merged, is_open = bool(item.get("merged_at")), item.get("state") == "open"
            yield Pull(
                int(item["number"]),
                PullState.MERGED if is_merged else PullState.OPEN if is_open else None,
                "repo" in (item.get("head") or {}) and head not in ({base} if base else names),
                head,
                as_text((item.get("base") or {}).get("ref")),
                as_text((item.get("head") or {}).get("sha")),
                frozenset({as_text(item.get("merge_commit_sha"))}),
                as_text(item.get("merged_at")),
            )

    def plan_of(self, pull: Pull, wanted: Wanted) -> bytes | None:
        """Return the plan of the newest run. Other workflows count only if no run of this one has a plan."""
        actions = f"/repos/{self.place.project}/actions"
        own = pull.repository or self.place.project.casefold()

        def is_own(run: Mapping[str, Any]) -> bool:
            """Return whether a run is of the commit: a fork may have the same one, and run what it likes."""
            repository = str((run.get("head_repository") or {}).get("full_name", "")).casefold()
            return repository == own and run.get("head_sha", pull.head) == pull.head

        def order(run: Mapping[str, Any]) -> tuple[bool, int]:
            path = str(run.get("path") or "").partition("@")[0]
            return self.place.workflow in (path, run.get("name")), int(run["id"])

        found = self.api.pages(f"{actions}/runs?head_sha={quote(pull.head)}&event=pull_request", "workflow_runs")
        for run in sorted(filter(is_own, found), key=order, reverse=True):
            listed = f"{actions}/runs/{int(run['id'])}/artifacts?name={quote(wanted.artifact)}"
            made = self.api.pages(listed, "artifacts")
            ids = [int(a["id"]) for a in made if a["name"] == wanted.artifact and not a.get("expired")]
            for id in sorted(ids, reverse=True):
                content = unpacked(self.file(f"{actions}/artifacts/{id}/zip"), wanted.file)
                if content is not None:
                    return content
        return None


def _repository(item: Mapping[str, Any], side: str) -> str:
    """Return the full name of a side's repository, or `""` if it is unknown or was deleted."""
    return as_text(((item.get(side) or {}).get("repo") or {}).get("full_name")).casefold()


class GitLab(Host):
    title, request = "GitLab", "merge request"
    needs, variable = "the scope `api` and the role Reporter", "GITLAB_TOKEN"
    stand_ins: ClassVar = {"CI_API_V4_URL": "https://gitlab.com/api/v4", "CI_PROJECT_ID": "0"}
    update_method = "PUT"
    place_in = staticmethod(gitlab_place)

    @staticmethod
    def headers(token: str) -> Mapping[str, str]:
        return {"private-token": token}

    @property
    def project(self) -> str:
        return f"/projects/{quote(self.place.project, safe='')}"

    def path(self, number: int, comment: int | None = None) -> str:
        notes = f"{self.project}/merge_requests/{number}/notes"
        return notes if comment is None else f"{notes}/{comment}"

    def author(self) -> str:
        return str(self.api.get("/user").data["id"])

    def comment(self, number: int, item: Mapping[str, Any]) -> Comment | None:
        if item.get("system"):
            return None
        id, page = int(item["id"]), self.place.page
        url = f"{page}/{number}#note_{id}" if "://" in page else ""
        return Comment(id, str((item.get("author") or {}).get("id", "")), item.get("body") or "", url)

    def pulls(self, commit: str) -> Iterator[Pull]:
        states = {"merged": PullState.MERGED, "opened": PullState.OPEN}
        for item in self.api.pages(f"{self.project}/repository/commits/{commit}/merge_requests"):
            source, target = item.get("source_project_id"), item.get("target_project_id")
            if target is not None and self.place.project.isdigit() and str(target) != self.place.project:
                continue
            yield Pull(
                int(item["iid"]),
                states.get(item.get("state")),
                source != target,
                "",
                as_text(item.get("target_branch")),
                as_text(item.get("sha")),
                frozenset(as_text(item.get(name)) for name in ("merge_commit_sha", "squash_commit_sha", "sha")),
                as_text(item.get("merged_at")),
            )

    def plan_of(self, pull: Pull, wanted: Wanted) -> bytes | None:
        """Return the plan of the newest pipeline, but for those of a merge train, which no person reviewed."""
        listed = list(self.api.pages(f"{self.project}/merge_requests/{pull.number}/pipelines"))
        for each in sorted(listed, key=lambda each: int(each["id"]), reverse=True):
            if self._is_of_head(each, pull) and (plan := self._newest_of([each], wanted)) is not None:
                return plan
        return None

    def _is_of_head(self, pipeline: Mapping[str, Any], pull: Pull) -> bool:
        """Return whether a pipeline is of a merge request's head, or of the merge of this head into the target."""
        commit = as_text(pipeline.get("sha"))
        if pipeline.get("ref") != f"refs/merge-requests/{pull.number}/merge":
            return commit == pull.head and not str(pipeline.get("ref")).endswith("/train")
        with suppress(NotThere):
            return pull.head in self.api.get(f"{self.project}/repository/commits/{quote(commit)}").data["parent_ids"]
        return False

    def _newest_of(self, pipelines: Iterable[Mapping[str, Any]], wanted: Wanted, depth: int = 0) -> bytes | None:
        """Return the plan of the newest job that has one, also of child pipelines of the same project."""
        project = self.project
        for id in sorted((int(each["id"]) for each in pipelines), reverse=True):
            jobs = [
                each for each in self.api.pages(f"{project}/pipelines/{id}/jobs") if each["name"] == wanted.artifact
            ]
            for job in sorted((int(each["id"]) for each in jobs), reverse=True):
                content = self.file(f"{project}/jobs/{job}/artifacts/{quote(wanted.file)}")
                if content is None:
                    # The job may keep it in a folder, which only the whole archive tells.
                    content = unpacked(self.file(f"{project}/jobs/{job}/artifacts"), wanted.file)
                if content is not None:
                    return content
            if depth == DEPTH:
                continue
            with suppress(NotThere):  # a host without child pipelines
                bridges = [
                    each.get("downstream_pipeline") for each in self.api.pages(f"{project}/pipelines/{id}/bridges")
                ]
                children = [each for each in bridges if each and project.endswith(f"/{each.get('project_id')}")]
                if (plan := self._newest_of(children, wanted, depth + 1)) is not None:
                    return plan
        return None


def reviewed_files(kind: type[Host], place: CommentPlace, commits: Iterable[str], wanted: Wanted) -> list[ReviewedFile]:
    """Return the plan of each pull request of `commits`, and skip pull requests without a plan.

    Artifacts of forks are never read, since their authors may have written anything into them.
    """
    files: dict[int, ReviewedFile] = {}
    with kind.at(place, NEEDS_TO_READ) as host:
        try:
            for commit in commits:
                for pull in host.merged_pulls(commit):
                    content = None if pull.is_foreign or pull.number in files else host.plan_of(pull, wanted)
                    if content is not None:
                        files[pull.number] = ReviewedFile(pull.number, content)
        except (NotAllowed, NotThere) as refusal:
            message = f"the token may not read artifacts ({refusal}): it needs {NEEDS_TO_READ}"
            raise SyncengineError(message, code="publish-place") from None
    return list(files.values())


def unpacked(packed: bytes | None, file: str) -> bytes | None:
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


HOSTS: Mapping[str, type[Host]] = {"github": GitHub, "gitlab": GitLab}
