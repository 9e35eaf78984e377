"""A plan parses and renders a manifest with data once, however often it is needed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from syncengine.plan.planner import make_plan
from syncengine.plan.request import PlanRequest, Runtime
from syncengine.project.load import load_project
from tests.manifest.loading import write
from tests.support.quiet import QuietHTTPServer

ROWS = '[{"name": "Alpha"}, {"name": "Beta"}]'
PROJECT = "version: 1\nservice: {baseUrl: https://service.invalid}\n"


class _Matters(BaseHTTPRequestHandler):
    """A service with rows that records its requests."""

    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(200)
        self.send_header("Content-Length", str(len(ROWS)))
        self.end_headers()
        self.wfile.write(ROWS.encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def matters() -> Iterator[tuple[str, list[str]]]:
    """The URL of a service, and the list of its requests."""
    asked: list[str] = []
    server = QuietHTTPServer(("127.0.0.1", 0), type("Handler", (_Matters,), {"asked": asked}))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", asked
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_service_is_asked_once_by_a_cold_plan(tmp_path: Path, matters: tuple[str, list[str]]) -> None:
    """This holds beside a large manifest, too."""
    url, asked = matters
    large = "tags:\n" + "".join(f"  - {{name: Matter {n:06}, description: {'x' * 100}}}\n" for n in range(10_000))
    settings = f"{PROJECT}sources: {{crm: {{http: {{url: '{url}'}}}}}}\n"
    block = "generate:\n  - forEach: {http: {source: crm, path: matters}}\n    tags: [{name: '{{ row.name }}'}]\n"
    write(tmp_path, {"syncengine.yaml": settings, "manifests/large.yaml": large, "manifests/m.yaml": block})
    project = load_project(folder=tmp_path, environ={})
    planned = make_plan(project, PlanRequest("plan"), Runtime({}))
    assert (planned.summary.create, asked) == (10_002, ["/matters"])
