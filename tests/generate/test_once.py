"""A plan parses and renders a manifest with data once, however often it is needed."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import FrameType

import pytest

from syncengine.document import reader
from syncengine.manifest.cache import ManifestCache
from syncengine.manifest.context import LoadContext
from syncengine.manifest.desired import digests_of, read_all
from syncengine.manifest.files import ManifestFile
from syncengine.manifest.read_file import NO_DEFAULTS
from syncengine.plan.planner import make_plan
from syncengine.plan.request import PlanRequest, Runtime
from syncengine.project.load import load_project
from syncengine.templating.bounds import Allowance
from tests.manifest.loading import write
from tests.support.quiet import QuietHTTPServer

BLOCK = "generate:\n  - forEach: {json: ../rows.json}\n    tags: [{name: '{{ row.name }}'}]\n"
COMPUTED = (
    "{% set name = 'rows' %}tags:\n{% for row in data('../' ~ name ~ '.json') %}- name: {{ row.name }}\n{% endfor %}"
)
BOTH = (
    "{% set path = '../rows.json' %}generate:\n  - forEach: {json: {{ path }}}\n"
    "    tags: [{name: '{{ '{{ row.name }}' }}'}]\n"
)
ROWS = '[{"name": "Alpha"}, {"name": "Beta"}]'
PROJECT = "version: 1\nservice: {baseUrl: https://service.invalid}\n"


def parses(work: Callable[[], object]) -> int:
    """How often `work` parses a whole document."""
    times = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal times
        times += event == "call" and frame.f_code is reader.read.__code__

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return times


class Counting(Allowance):
    """An allowance that counts how often templates were run."""

    runs = 0

    @contextmanager
    def spend(self, rows: int = 0) -> Iterator[None]:
        self.runs += 1
        with super().spend(rows):
            yield


def a_cold_plan(folder: Path, name: str, text: str) -> Callable[[], object]:
    write(folder, {"syncengine.yaml": PROJECT, name: text, "rows.json": ROWS})
    project = load_project(folder=folder, environ={})
    return lambda: make_plan(project, PlanRequest("plan"), Runtime({}))


@pytest.mark.parametrize(("name", "text"), [("m.yaml", BLOCK), ("m.yaml.j2", BOTH), ("m.yaml.j2", COMPUTED)])
def test_a_cold_plan_parses_it_once(tmp_path: Path, name: str, text: str) -> None:
    """The digest and the reading share one parsed document."""
    assert parses(a_cold_plan(tmp_path, f"manifests/{name}", text)) == 1


@pytest.mark.parametrize("is_known", [False, True], ids=["no cache", "a cache with an older entry"])
@pytest.mark.parametrize(("text", "runs"), [(COMPUTED, 1), (BOTH, 2)], ids=["rows", "blocks"])
def test_a_computed_template_is_run_once(tmp_path: Path, text: str, runs: int, is_known: bool) -> None:
    """A block in the result is one more run for all of its rows."""
    write(tmp_path, {"syncengine.yaml": PROJECT, "manifests/m.yaml.j2": text, "rows.json": ROWS})
    with ManifestCache(tmp_path / "cache", NO_DEFAULTS) as cache:
        for rows in ("[]", ROWS) if is_known else (ROWS,):
            (tmp_path / "rows.json").write_text(rows)
            context = LoadContext(tmp_path, allowance=(allowance := Counting()))
            file = ManifestFile(tmp_path / "manifests/m.yaml.j2", "manifests/m.yaml.j2", context=context)
            (read,) = read_all([file], NO_DEFAULTS, cache, digests_of([file], cache))
    assert (allowance.runs, [resource.key.name for resource in read.reading.resources]) == (runs, ["Alpha", "Beta"])


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
