"""Read and write comments of a pull request on GitHub and GitLab, find its author and the pull requests of a commit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple
from urllib.parse import quote

from syncengine.errors import SyncengineError
from syncengine.publish.api import HostApi, NotAllowed, NotThere, Transient
from syncengine.publish.place import CommentPlace, Environ, PullState, github_place, gitlab_place

APP = "[bot]"
ACTIONS_BOT = f"github-actions{APP}"
"""The author of comments written with a job's own token, which may not ask for its own name."""


class Comment(NamedTuple):
    """A comment on the host. `author` is a login on GitHub, and a user id on GitLab."""

    id: int
    author: str
    body: str
    url: str


class Host(ABC):
    """The interface of one host to the comments of pull request `number`."""

    title: ClassVar[str]
    request: ClassVar[str]
    """The host's own term for a pull request."""
    needs: ClassVar[str]
    """The right that a token needs to write comments."""
    variable: ClassVar[str]

    def __init__(self, api: HostApi, place: CommentPlace, number: int) -> None:
        self.api = api
        self._place = place
        self._number = number

    @property
    @abstractmethod
    def _comments(self) -> str:
        """The path of the list of comments."""

    @abstractmethod
    def _one(self, id: int) -> str:
        """Return the path of the comment with this id."""

    @abstractmethod
    def author(self) -> str:
        """Return the author of comments that this token writes."""

    @abstractmethod
    def _comment(self, item: Mapping[str, Any]) -> Comment | None:
        """Return the comment in an item of the list, or `None` for a note that the host wrote itself."""

    update_method: ClassVar[str]

    def comments(self) -> Iterator[Comment]:
        """Yield all comments of the pull request, each once, even if it moves to another page meanwhile."""
        seen = set[int]()
        for item in self.api.pages(self._comments):
            comment = self._read(item)
            if comment is not None and comment.id not in seen:
                seen.add(comment.id)
                yield comment

    def create(self, body: str) -> Comment | None:
        return self._read(self.api.write("POST", self._comments, {"body": body}))

    def update(self, id: int, body: str) -> None:
        self.api.write(self.update_method, self._one(id), {"body": body})

    def delete(self, id: int) -> None:
        """Delete a comment of ours, unless another job has deleted it already."""
        try:
            self.api.write("DELETE", self._one(id))
        except NotThere:
            return

    def _read(self, item: Any) -> Comment | None:
        try:
            return self._comment(item)
        except (KeyError, TypeError, AttributeError):
            raise SyncengineError(f"{self.title} answered with a malformed comment", code="publish-host") from None


class GitHub(Host):
    title, request = "GitHub", "pull request"
    needs, variable = "`permissions: {pull-requests: write}`", "GITHUB_TOKEN"
    update_method = "PATCH"

    @property
    def _comments(self) -> str:
        return f"/repos/{self._place.project}/issues/{self._number}/comments"

    def _one(self, id: int) -> str:
        return f"/repos/{self._place.project}/issues/comments/{id}"

    def author(self) -> str:
        """Return the login of the token's user in lower case. For an app's token, only GraphQL returns a login.

        GraphQL may leave out the ending that the login of an app has in comments, and that of a person never has.
        """
        try:
            return str(self.api.get("/user").data["login"]).lower()
        except (NotAllowed, NotThere, KeyError, TypeError):
            return self._viewer()

    def _viewer(self) -> str:
        api = self._place.api
        url = f"{api.removesuffix('/api/v3')}/api/graphql" if api.endswith("/api/v3") else f"{api}/graphql"
        try:
            data = self.api.persist(lambda: self.api.write("POST", url, {"query": "{viewer{login}}"}))
            return f"{str(data['data']['viewer']['login']).lower().removesuffix(APP)}{APP}"
        except (NotAllowed, NotThere, KeyError, TypeError, SyncengineError):
            return ACTIONS_BOT

    def _comment(self, item: Mapping[str, Any]) -> Comment | None:
        user = item.get("user") or {}
        return Comment(
            int(item["id"]), str(user.get("login", "")).lower(), item.get("body") or "", _text(item, "html_url")
        )


class GitLab(Host):
    title, request = "GitLab", "merge request"
    needs, variable = "the scope `api` and the role Reporter", "GITLAB_TOKEN"
    update_method = "PUT"

    @property
    def _comments(self) -> str:
        return f"/projects/{quote(self._place.project, safe='')}/merge_requests/{self._number}/notes"

    def _one(self, id: int) -> str:
        return f"{self._comments}/{id}"

    def author(self) -> str:
        data = self.api.get("/user").data
        if not isinstance(data, dict) or "id" not in data:
            raise SyncengineError("GitLab did not answer with the id of the token's user", code="publish-host")
        return str(data["id"])

    def _comment(self, item: Mapping[str, Any]) -> Comment | None:
        if item.get("system"):
            return None
        id = int(item["id"])
        url = f"{self._place.page}/{self._number}#note_{id}" if "://" in self._place.page else ""
        return Comment(id, str((item.get("author") or {}).get("id", "")), item.get("body") or "", url)


def _text(item: Mapping[str, Any], name: str) -> str:
    value = item.get(name)
    return value if isinstance(value, str) else ""


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


def _github_pulls(api: HostApi, place: CommentPlace, commit: str) -> Iterator[Pull]:
    """Yield the pull requests into this repository, which may have another name by now. Forks have more."""
    items = list(api.pages(f"/repos/{place.project}/commits/{commit}/pulls"))
    names = {place.project.casefold()}
    if any(_repository(item, "base") not in {"", *names} for item in items):
        names.add(str(api.get(f"/repos/{place.project}").data["full_name"]).casefold())
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
            _text(item.get("base") or {}, "ref"),
            _text(item.get("head") or {}, "sha"),
            frozenset({_text(item, "merge_commit_sha")}),
            _text(item, "merged_at"),
        )


def _repository(item: Mapping[str, Any], side: str) -> str:
    """Return the full name of a side's repository, or `""` if it is unknown or was deleted."""
    return _text((item.get(side) or {}).get("repo") or {}, "full_name").casefold()


def _gitlab_pulls(api: HostApi, place: CommentPlace, commit: str) -> Iterator[Pull]:
    """Yield the merge requests into this project. Forks have more."""
    states = {"merged": PullState.MERGED, "opened": PullState.OPEN}
    for item in api.pages(f"/projects/{quote(place.project, safe='')}/repository/commits/{commit}/merge_requests"):
        source, target = item.get("source_project_id"), item.get("target_project_id")
        if target is not None and place.project.isdigit() and str(target) != place.project:
            continue
        yield Pull(
            int(item["iid"]),
            states.get(item.get("state")),
            source != target,
            "",
            _text(item, "target_branch"),
            _text(item, "sha"),
            frozenset(_text(item, name) for name in ("merge_commit_sha", "squash_commit_sha", "sha")),
            _text(item, "merged_at"),
        )


class HostKind(NamedTuple):
    """A host's place, headers and client class, and the pull requests of a commit."""

    place: Callable[[Environ], CommentPlace]
    headers: Callable[[str], Mapping[str, str]]
    client: type[Host]
    pulls: Callable[[HostApi, CommentPlace, str], Iterator[Pull]]
    stand_ins: Mapping[str, str]
    """Stand-ins for the variables of a CI job, for `--dry-run`."""


HOSTS: Mapping[str, HostKind] = {
    "github": HostKind(
        github_place,
        lambda token: {
            "authorization": f"Bearer {token}",
            "accept": "application/vnd.github+json",
            "x-github-api-version": "2022-11-28",
        },
        GitHub,
        _github_pulls,
        {"GITHUB_API_URL": "https://api.github.com", "GITHUB_REPOSITORY": "owner/name"},
    ),
    "gitlab": HostKind(
        gitlab_place,
        lambda token: {"private-token": token},
        GitLab,
        _gitlab_pulls,
        {"CI_API_V4_URL": "https://gitlab.com/api/v4", "CI_PROJECT_ID": "0"},
    ),
}


def merged_pulls(kind: HostKind, api: HostApi, place: CommentPlace, commit: str) -> list[Pull]:
    """Return the pull requests by which a commit came to the job's branch, the latest merge first."""
    found = [pull for pull in _pulls(kind, api, place, commit) if pull.state is PullState.MERGED]
    into = [pull for pull in found if not place.branch or pull.branch in ("", place.branch)]
    return sorted(into, key=lambda pull: (commit in pull.ends, pull.merged_at, pull.number), reverse=True)


def pull_of_commit(kind: HostKind, api: HostApi, place: CommentPlace) -> Pull | None:
    """Return the pull request of the commit of a job that belongs to none, or `None` if there is none or a choice."""
    if not place.head or place.searched is None:
        return None
    if place.searched is PullState.MERGED:
        return next(iter(merged_pulls(kind, api, place, place.head)), None)
    pulls = [pull for pull in _pulls(kind, api, place, place.head) if pull.head == place.head]
    still_open = [pull for pull in pulls if pull.state is PullState.OPEN]
    return still_open[0] if len(still_open) == 1 else None


def _pulls(kind: HostKind, api: HostApi, place: CommentPlace, commit: str) -> list[Pull]:
    """Return the pull requests of a commit, or none for a commit that is unknown to the host."""
    try:
        return list(kind.pulls(api, place, commit))
    except NotThere:
        return []
    except (KeyError, TypeError, ValueError, AttributeError):
        raise SyncengineError(f"{kind.client.title} answered in an undocumented form", code="publish-host") from None


__all__ = ["HOSTS", "Comment", "Host", "HostKind", "NotAllowed", "Pull", "Transient", "merged_pulls", "pull_of_commit"]
