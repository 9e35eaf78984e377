"""Imitations of GitHub and GitLab on loopback: comments of one pull request, and the failures of real hosts.

They keep to what the hosts document: pages with links, authors, limits counted in characters, 403 for a token that may
only read, 404 for what it may not see. Both list comments oldest first.
"""

import io
import json
import re
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.support.quiet import QuietHandler, listening

Json = dict[str, Any]
Query = dict[str, list[str]]
Answer = tuple[int, object, dict[str, str]]
"""Status, data and headers."""
TOKEN = "token-never-to-be-seen"
BOT, PERSON = 41, 7
LOGINS = {BOT: "github-actions[bot]", PERSON: "jane"}


@dataclass
class Trouble:
    """An answer that replaces the next matching ones, a number of times; with `executed`, the host still acts."""

    status: int
    method: str = ""
    times: int = 1
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b'{"message": "trouble"}'
    executed: bool = False


@dataclass
class Imitation:
    """A host with one pull request. `most`: the longest comment in characters; `page`: items of a page."""

    kind: str
    most: int
    url: str = ""
    page: int = 100
    paging: str = "link"
    """How the next page is announced: `link` (absent for one page), `keyset`, `number`, or not at all.

    With `other link` there is a link to something else; `deaf` hosts answer with the first page whatever is asked.
    """
    comments: dict[int, Json] = field(default_factory=dict)
    troubles: list[Trouble] = field(default_factory=list)
    requests: list[tuple[str, str]] = field(default_factory=list)
    reads_only: bool = False
    knows_user: bool = False
    author: int = BOT
    number: int = 12
    pulls: dict[str, list[int]] = field(default_factory=dict)
    """Numbers of the merged pull requests of each commit; `*` is any commit."""
    heads: dict[int, str] = field(default_factory=dict)
    parents: Query = field(default_factory=dict)
    """The parents of merge commits."""
    forks: set[int] = field(default_factory=set)
    about: dict[int, Json] = field(default_factory=dict)
    """Further fields of pull requests in lists, by their number."""
    crowd: int = 0
    """How many irrelevant items come first in lists: open pull requests, and runs and jobs without a plan."""
    moved: bool = False
    """Whether the repository was renamed, so that requests for its old name are redirected."""
    kept: dict[int, Json] = field(default_factory=dict)
    """Further runs or pipelines by their id, with the pull request (`of`) and the `file` of their artifact; the usual
    one has the number of its pull request."""
    artifacts: dict[int, bytes] = field(default_factory=dict)
    """The plan of each pull request, as its last job stored it."""
    expired: bool = False
    anonymous: list[bool] = field(default_factory=list)
    """For each request for an archive, whether it had no token."""
    hold: dict[str, float] = field(default_factory=dict)
    """Seconds to wait before a request is executed, by its method."""
    next_host: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, body: str, author: int) -> int:
        with self.lock:
            id = max(self.comments, default=100) + 1
            user = {"id": author, "login": LOGINS.get(author, str(author)), "type": "Bot" if author == BOT else "User"}
            url = f"https://host.example/pull/{self.number}#{id}"
            self.comments[id] = {"id": id, "body": body, "user": user, "author": user, "html_url": url, "system": False}
            return id

    def bodies(self, author: int = BOT) -> list[str]:
        return [comment["body"] for comment in self.comments.values() if comment["user"]["id"] == author]

    @property
    def path(self) -> str:
        if self.kind == "github":
            return f"/repos/acme/tags/issues/{self.number}/comments"
        return f"/projects/77/merge_requests/{self.number}/notes"

    def repository(self, number: int) -> Json:
        return {"full_name": "stranger/tags" if number in self.forks else "acme/tags"}

    def pull(self, number: int) -> Json:
        """A merged pull request, with the fields of both hosts."""
        head = {"sha": self.heads.get(number, ""), "repo": self.repository(number)}
        base = {"ref": "main", "repo": {"full_name": "acme/tags"}}
        source = 8 if number in self.forks else 77
        projects = {"source_project_id": source, "target_project_id": 77, "state": "merged", "target_branch": "main"}
        usual = {"number": number, "iid": number, "head": head, "base": base, "merged_at": "2026-01-01T00:00:00Z"}
        return {**usual, **projects, "sha": head["sha"], **self.about.get(number, {})}

    def packed(self, id: int) -> bytes:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            archive.writestr(self.kept.get(id, {}).get("file", "plan.json"), self.artifacts[id])
        return stream.getvalue()

    def crowded(self, items: list[Json], **other: object) -> list[Json]:
        return [{"id": -n, "name": f"test {n}", **other} for n in range(self.crowd)] + items

    def environ(self, run: int = 1, **more: str) -> dict[str, str]:
        """Return the environment variables of a job."""
        if self.kind == "github":
            place = {"API_URL": self.url, "SERVER_URL": "https://host.example", "REPOSITORY": "acme/tags"}
            event = {"REF": f"refs/pull/{self.number}/merge", "SHA": f"{run:040x}", "TOKEN": TOKEN}
            count = {"RUN_ID": str(9000 + run), "RUN_NUMBER": str(run), "RUN_ATTEMPT": "1"}
            return {**{f"GITHUB_{name}": value for name, value in (place | event | count).items()}, **more}
        page = "https://host.example/acme/tags"
        place = {"CI_API_V4_URL": self.url, "CI_PROJECT_ID": "77", "CI_PROJECT_URL": page, "GITLAB_TOKEN": TOKEN}
        event = {"CI_MERGE_REQUEST_IID": str(self.number), "CI_COMMIT_SHA": f"{run:040x}"}
        count = {"CI_PIPELINE_ID": str(9000 + run), "CI_PIPELINE_IID": str(run), "CI_JOB_ID": str(100 * run)}
        return {**place, **event, **count, "CI_JOB_URL": f"{page}/-/jobs/{run}", **more}


class _Handler(QuietHandler):
    protocol_version = "HTTP/1.1"
    host: Imitation

    def answer(self) -> None:
        host, method = self.host, self.command
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"null")
        host.requests.append((method, self.path))
        time.sleep(host.hold.get(method, 0))
        with host.lock:
            trouble = next((t for t in host.troubles if t.times and t.method in ("", method)), None)
            if trouble:
                trouble.times -= 1
        if trouble is None or trouble.executed:
            status, data, headers = self._judged(method, body)
        if trouble is not None:
            status, data, headers = trouble.status, trouble.body, trouble.headers
        content = data if isinstance(data, bytes) else b"" if data is None else json.dumps(data).encode()
        self.say(status, content, {"content-type": "application/json", **headers})

    def _judged(self, method: str, body: Any) -> Answer:
        """The status, data and headers of the answer to a request, of a list those of one page."""
        parts = urlsplit(self.path)
        path, query = parts.path, parse_qs(parts.query)
        if self.host.moved and path.startswith("/repos/acme/tags"):
            return 301 if method == "GET" else 307, None, {"location": f"/repositories/5{self.path[16:]}"}
        path = path.replace("/repositories/5", "/repos/acme/tags")
        status, data, headers = self._executed(method, path, query, body)
        return (status, *self._paged(data, headers, query)) if method == "GET" else (status, data, headers)

    def _executed(self, method: str, path: str, query: Query, body: Any) -> Answer:
        host = self.host
        if path.startswith("/storage/"):
            self.host.anonymous.append(not self.headers.get("authorization"))
            return 200, host.packed(int(path.rpartition("/")[2])), {}
        token = self.headers.get("authorization" if host.kind == "github" else "private-token", "")
        if token.removeprefix("Bearer ") != TOKEN:
            return 401, {"message": f"Bad credentials {token}"}, {}
        if (method, path) == ("GET", "/user"):
            if host.kind == "github" and not host.knows_user:
                return 403, {"message": "Resource not accessible by integration"}, {}
            return 200, {"id": host.author, "login": LOGINS[host.author]}, {}
        if (method, path) == ("GET", "/repos/acme/tags"):
            return 200, {"id": 5, "full_name": "acme/labels" if host.moved else "acme/tags"}, {}
        if method == "GET" and (answer := self._reviewed(path, query)):
            return answer
        if method == "GET" and path == host.path:
            with host.lock:
                return 200, list(host.comments.values()), {}
        return self._write(method, path, body)

    def _reviewed(self, path: str, query: Query) -> Answer | None:
        """Answer requests for commits, their pull requests, and the jobs and artifacts of these."""
        host = self.host
        if commit := re.search(r"/commits/(\w+)/(pulls|merge_requests)$", path):
            numbers = host.pulls.get(commit[1], host.pulls.get("*", []))
            opened = {"number": 1, "iid": 1, "state": "open" if host.kind == "github" else "opened"}
            return 200, host.crowded([host.pull(number) for number in numbers], **opened), {}
        if commit := re.search(r"/repository/commits/(\w+)$", path):
            known = host.parents.get(commit[1])
            return (200, {"parent_ids": known}, {}) if known else (404, {"message": "404 Commit Not Found"}, {})
        if path.endswith("/actions/runs"):
            heads = [n for n, head in host.heads.items() if head == query["head_sha"][0]]
            return 200, {"workflow_runs": host.crowded(self._runs(heads), head_repository=host.repository(0))}, {}
        if run := re.search(r"/actions/runs/(\d+)/artifacts$", path):
            named = [{"id": id, "name": "plan", "expired": host.expired} for id in host.artifacts if str(id) == run[1]]
            return 200, {"artifacts": host.crowded(named)}, {}
        if artifact := re.search(r"/actions/artifacts/(\d+)/zip$", path):
            elsewhere = host.url.replace("127.0.0.1", "localhost")
            return 302, None, {"location": f"{elsewhere}/storage/{artifact[1]}"}
        if pipelines := re.search(r"/merge_requests/(\d+)/pipelines$", path):
            return 200, [run for run in self._runs([int(pipelines[1])]) if "parent" not in run], {}
        if bridges := re.search(r"/pipelines/(\d+)/bridges$", path):
            children = [id for id, run in host.kept.items() if run.get("parent") == int(bridges[1])]
            return 200, [{"id": id, "downstream_pipeline": {"id": id, "project_id": 77}} for id in children], {}
        if jobs := re.search(r"/pipelines/(\d+)/jobs$", path):
            return 200, host.crowded([{"id": int(jobs[1]), "name": "plan"}, {"id": 9999, "name": "publish"}]), {}
        if file := re.search(r"/jobs/(\d+)/artifacts(/plan.json)?$", path):
            id = int(file[1])
            has_it = id in host.artifacts and not host.expired
            is_named = has_it and host.kept.get(id, {}).get("file", "plan.json") == "plan.json"
            if file[2] and is_named:
                return 200, host.artifacts[id], {}
            return (404, {"message": "Not Found"}, {}) if file[2] or not has_it else (200, host.packed(id), {})
        return None

    def _runs(self, numbers: list[int]) -> list[Json]:
        """Return the runs of pull requests, newest first, an order that no host guarantees."""
        host = self.host
        kept = [(id, run) for id, run in host.kept.items() if run["of"] in numbers]
        return [
            {"id": id, "sha": host.heads.get(run["of"], ""), "head_repository": host.repository(run["of"]), **run}
            for id, run in (*kept, *((number, {"of": number}) for number in numbers))
        ]

    def _paged(self, data: Any, headers: dict[str, str], query: Query) -> tuple[object, dict[str, str]]:
        """Answer with one page of a list, which may be a member of an object."""
        host = self.host
        name = next((name for name in ("workflow_runs", "artifacts") if isinstance(data, dict) and name in data), None)
        items = data[name] if name else data
        if not isinstance(items, list):
            return data, headers
        size = min(int(query.get("per_page", ["30"])[0]), host.page)
        page = 1 if host.paging == "deaf" else int(query.get("cursor" if "cursor" in query else "page", ["1"])[0])
        part, more = items[(page - 1) * size : page * size], len(items) > page * size
        asked = {name: values[0] for name, values in query.items() if name not in ("page", "cursor", "per_page")}
        base = f"{host.next_host or host.url}{urlsplit(self.path).path}?{urlencode(asked)}&per_page={size}"
        match host.paging:
            case "number":
                headers["x-next-page"] = str(page + 1) if more else ""
            case "other link":
                headers["link"] = f'<{host.url}/docs>; rel="deprecation"'
            case "link" | "keyset" if more:
                link = f'<{base}&page={page + 1}>; rel="next", <{base}>; rel="first"'
                headers["link"] = link if host.paging == "link" else f'<{base}&cursor={page + 1}>; rel="next"'
        return {name: part, "total_count": len(items)} if name else part, headers

    def _write(self, method: str, path: str, body: Any) -> Answer:
        """Answer a request to write a comment. The path of one comment ends with its id."""
        host = self.host
        of_one = "/repos/acme/tags/issues/comments" if host.kind == "github" else host.path
        folder, _, last = path.rpartition("/")
        id = int(last) if folder == of_one and last.isdigit() else None
        if path != host.path and id is None:
            return 404, {"message": "Not Found"}, {}
        if host.reads_only:
            return 403, {"message": "Resource not accessible by integration"}, {}
        if method != "DELETE" and len(body["body"]) > host.most:
            return 422, {"message": "body is too long"}, {}
        if method == "POST" and path == host.path:
            return 201, host.comments[host.add(body["body"], host.author)], {}
        with host.lock:
            if id not in host.comments:
                return 404, {"message": "Not Found"}, {}
            if method == "DELETE":
                del host.comments[id]
                return 204, None, {}
            host.comments[id]["body"] = body["body"]
            return 200, host.comments[id], {}


@contextmanager
def imitation(kind: str) -> Iterator[Imitation]:
    """Run a host until the block ends."""
    host = Imitation(kind, most=65_536 if kind == "github" else 1_000_000)
    with listening(type("Handler", (_Handler,), {"host": host})) as host.url:
        yield host
