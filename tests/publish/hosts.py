"""Imitations of GitHub and GitLab on loopback: comments of one pull request, and the trouble that real hosts make.

They keep to what the hosts document: pages with links, authors, limits counted in characters, 403 for a token that may
only read, 404 for what it may not see. Both list comments oldest first.
"""

from __future__ import annotations

import io
import json
import re
import threading
import time
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Json = dict[str, Any]
TOKEN = "token-never-to-be-seen"
BOT, PERSON = 41, 7
LOGINS = {BOT: "github-actions[bot]", PERSON: "jane"}


@dataclass
class Trouble:
    """An answer in the place of the next one that fits, so many times; `executed`: the host does it all the same."""

    status: int
    method: str = ""
    times: int = 1
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b'{"message": "trouble"}'
    executed: bool = False


@dataclass
class Imitation:
    """A host with one pull request. `most`: the characters of a comment; `page`: the items of a page."""

    kind: str
    most: int
    url: str = ""
    page: int = 100
    comments: dict[int, Json] = field(default_factory=dict)
    troubles: list[Trouble] = field(default_factory=list)
    requests: list[tuple[str, str]] = field(default_factory=list)
    reads_only: bool = False
    knows_user: bool = False
    author: int = BOT
    number: int = 12
    pulls: dict[str, list[int]] = field(default_factory=dict)
    """Numbers of the merged pull requests that a commit came with; `*` is any commit."""
    heads: dict[int, str] = field(default_factory=dict)
    forks: set[int] = field(default_factory=set)
    artifacts: dict[int, bytes] = field(default_factory=dict)
    """The plan of each pull request, as its last job left it."""
    expired: bool = False
    anonymous: list[bool] = field(default_factory=list)
    """Whether each request for a packed file came without a token."""
    hold: dict[str, float] = field(default_factory=dict)
    """Seconds that a request of a method takes, before it is executed."""
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

    def counts(self) -> Counter[str]:
        return Counter(method for method, _ in self.requests)

    @property
    def path(self) -> str:
        if self.kind == "github":
            return f"/repos/acme/tags/issues/{self.number}/comments"
        return f"/projects/77/merge_requests/{self.number}/notes"

    def repository(self, number: int) -> Json:
        return {"full_name": "stranger/tags" if number in self.forks else "acme/tags"}

    def pull(self, number: int) -> Json:
        """A merged pull request, in the words of both hosts."""
        head = {"sha": self.heads.get(number, ""), "repo": self.repository(number)}
        source = 8 if number in self.forks else 77
        projects = {"source_project_id": source, "target_project_id": 77, "state": "merged"}
        return {"number": number, "iid": number, "head": head, "merged_at": "2026-01-01T00:00:00Z", **projects}

    def packed(self, number: int) -> bytes:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            archive.writestr("plan.json", self.artifacts[number])
        return stream.getvalue()

    def one(self, path: str) -> int | None:
        """The id of the comment that a path names."""
        base = "/repos/acme/tags/issues/comments/" if self.kind == "github" else f"{self.path}/"
        rest = path.removeprefix(base)
        return int(rest) if path.startswith(base) and rest.isdigit() else None

    def environ(self, run: int = 1, **more: str) -> dict[str, str]:
        """The variables of a job."""
        if self.kind == "github":
            usual = {
                "GITHUB_API_URL": self.url,
                "GITHUB_SERVER_URL": "https://host.example",
                "GITHUB_REPOSITORY": "acme/tags",
                "GITHUB_REF": f"refs/pull/{self.number}/merge",
                "GITHUB_SHA": f"{run:040x}",
                "GITHUB_RUN_ID": str(9000 + run),
                "GITHUB_RUN_NUMBER": str(run),
                "GITHUB_RUN_ATTEMPT": "1",
                "GITHUB_TOKEN": TOKEN,
            }
        else:
            usual = {
                "CI_API_V4_URL": self.url,
                "CI_PROJECT_ID": "77",
                "CI_PROJECT_URL": "https://host.example/acme/tags",
                "CI_MERGE_REQUEST_IID": str(self.number),
                "CI_COMMIT_SHA": f"{run:040x}",
                "CI_PIPELINE_ID": str(9000 + run),
                "CI_PIPELINE_IID": str(run),
                "CI_JOB_ID": str(100 * run),
                "CI_JOB_URL": f"https://host.example/acme/tags/-/jobs/{run}",
                "GITLAB_TOKEN": TOKEN,
            }
        return {**usual, **more}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    host: Imitation

    def log_message(self, *_: object) -> None:
        pass

    def _answer(
        self, status: int, data: object = None, headers: dict[str, str] | None = None, raw: bytes = b""
    ) -> None:
        content = raw or (data if isinstance(data, bytes) else b"" if data is None else json.dumps(data).encode())
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _handle(self) -> None:
        host, method = self.host, self.command
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"null")
        parts = urlsplit(self.path)
        host.requests.append((method, self.path))
        time.sleep(host.hold.get(method, 0))
        with host.lock:
            trouble = next((t for t in host.troubles if t.times and t.method in ("", method)), None)
            if trouble:
                trouble.times -= 1
        if trouble and not trouble.executed:
            self._answer(trouble.status, headers=trouble.headers, raw=trouble.body)
            return
        status, data, headers = self._executed(method, parts.path, parse_qs(parts.query), body)
        if trouble:
            self._answer(trouble.status, headers=trouble.headers, raw=trouble.body)
        else:
            self._answer(status, data, headers)

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _handle  # noqa: N815 - as http.server has them

    def _executed(
        self, method: str, path: str, query: dict[str, list[str]], body: Any
    ) -> tuple[int, object, dict[str, str]]:
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
        if method == "GET" and (answer := self._reviewed(path, query)):
            return answer
        if method == "GET" and path == host.path:
            return self._list(int(query.get("page", ["1"])[0]), int(query.get("per_page", ["30"])[0]))
        return self._write(method, path, body)

    def _reviewed(self, path: str, query: dict[str, list[str]]) -> tuple[int, object, dict[str, str]] | None:
        """Commits, their pull requests, those's jobs and artifacts."""
        host = self.host
        if commit := re.search(r"/commits/(\w+)/(pulls|merge_requests)$", path):
            numbers = host.pulls.get(commit[1], host.pulls.get("*", []))
            return 200, [host.pull(number) for number in numbers], {}
        if path.endswith("/actions/runs"):
            heads = [n for n, head in host.heads.items() if head == query["head_sha"][0]]
            return 200, {"workflow_runs": [{"id": n, "head_repository": host.repository(n)} for n in heads]}, {}
        if run := re.search(r"/actions/runs/(\d+)/artifacts$", path):
            named = (
                [{"id": int(run[1]), "name": "plan", "expired": host.expired}] if int(run[1]) in host.artifacts else []
            )
            return 200, {"artifacts": named}, {}
        if artifact := re.search(r"/actions/artifacts/(\d+)/zip$", path):
            return 302, None, {"location": f"{host.url}/storage/{artifact[1]}"}
        if pipelines := re.search(r"/merge_requests/(\d+)/pipelines$", path):
            return 200, [{"id": int(pipelines[1])}], {}
        if jobs := re.search(r"/pipelines/(\d+)/jobs$", path):
            return 200, [{"id": int(jobs[1]), "name": "plan"}, {"id": 9999, "name": "publish"}], {}
        if file := re.search(r"/jobs/(\d+)/artifacts/plan.json$", path):
            content = host.artifacts.get(int(file[1]))
            return (404, {"message": "Not Found"}, {}) if content is None or host.expired else (200, content, {})
        return None

    def _list(self, page: int, per_page: int) -> tuple[int, object, dict[str, str]]:
        host = self.host
        size = min(per_page, host.page)
        with host.lock:
            items = list(host.comments.values())
        more = len(items) > page * size
        base = host.next_host or host.url
        link = f'<{base}{host.path}?per_page={size}&page={page + 1}>; rel="next", <{base}{host.path}>; rel="first"'
        return 200, items[(page - 1) * size : page * size], {"link": link} if more else {}

    def _write(self, method: str, path: str, body: Any) -> tuple[int, object, dict[str, str]]:
        host, id = self.host, self.host.one(path)
        if path != host.path and id is None:
            return 404, {"message": "Not Found"}, {}
        if host.reads_only:
            return 403, {"message": "Resource not accessible by integration"}, {}
        if method == "POST" and path == host.path:
            if len(body["body"]) > host.most:
                return 422, {"message": "body is too long"}, {}
            return 201, host.comments[host.add(body["body"], host.author)], {}
        with host.lock:
            if id not in host.comments:
                return 404, {"message": "Not Found"}, {}
            if method == "DELETE":
                del host.comments[id]
                return 204, None, {}
            if len(body["body"]) > host.most:
                return 422, {"message": "body is too long"}, {}
            host.comments[id]["body"] = body["body"]
            return 200, host.comments[id], {}


@contextmanager
def imitation(kind: str) -> Iterator[Imitation]:
    """A host that runs while it is needed."""
    host = Imitation(kind, most=65_536 if kind == "github" else 1_000_000)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"host": host}))
    host.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield host
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
