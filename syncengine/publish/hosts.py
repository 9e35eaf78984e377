"""Read and write comments of a pull request on GitHub and GitLab, find its author and the pull request of a commit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple
from urllib.parse import quote

from syncengine.errors import SyncengineError
from syncengine.publish.api import HostApi, NotAllowed, NotThere, Transient
from syncengine.publish.place import CommentPlace, Environ, github_place, gitlab_place

ACTIONS_BOT = "github-actions[bot]"
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
        """Return the login of the token's user in lower case. For an app's token, only GraphQL returns a login."""
        try:
            return str(self.api.get("/user").data["login"]).lower()
        except (NotAllowed, NotThere, KeyError, TypeError):
            return self._viewer()

    def _viewer(self) -> str:
        api = self._place.api
        url = f"{api.removesuffix('/api/v3')}/api/graphql" if api.endswith("/api/v3") else f"{api}/graphql"
        try:
            data = self.api.persist(lambda: self.api.write("POST", url, {"query": "{viewer{login}}"}))
            return str(data["data"]["viewer"]["login"]).lower()
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


class HostKind(NamedTuple):
    """A host's place, headers, client class, and the path and number field of a commit's pull requests."""

    place: Callable[[Environ], CommentPlace]
    headers: Callable[[str], Mapping[str, str]]
    client: type[Host]
    pulls: str
    numbers: str
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
        "/repos/{project}/commits/{commit}/pulls",
        "number",
        {"GITHUB_API_URL": "https://api.github.com", "GITHUB_REPOSITORY": "owner/name"},
    ),
    "gitlab": HostKind(
        gitlab_place,
        lambda token: {"private-token": token},
        GitLab,
        "/projects/{project}/repository/commits/{commit}/merge_requests",
        "iid",
        {"CI_API_V4_URL": "https://gitlab.com/api/v4", "CI_PROJECT_ID": "0"},
    ),
}


def number_of_commit(kind: HostKind, api: HostApi, place: CommentPlace) -> int | None:
    """Return the number of the pull request that a merged commit came from, or `None` when there is none."""
    project = quote(place.project, safe="/" if kind.client is GitHub else "")
    try:
        items = list(api.pages(kind.pulls.format(project=project, commit=place.head))) if place.head else []
    except NotThere:
        return None
    numbers = [
        item[kind.numbers] for item in items if isinstance(item, dict) and isinstance(item.get(kind.numbers), int)
    ]
    return numbers[0] if numbers else None


__all__ = ["HOSTS", "Comment", "Host", "HostKind", "NotAllowed", "Transient", "number_of_commit"]
