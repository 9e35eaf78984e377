"""A plan parses and renders a manifest with data once, however often it is needed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from syncengine.plan.planner import make_plan
from syncengine.plan.request import PlanRequest, Runtime
from syncengine.project.load import load_project
from tests.manifest.loading import write
from tests.support.quiet import QuietHandler, listening

ROWS = b'[{"name": "Alpha"}, {"name": "Beta"}]'
PROJECT = "version: 1\nservice: {baseUrl: https://service.invalid}\n"


@pytest.fixture
def matters() -> Iterator[tuple[str, list[str]]]:
    """The URL of a service with rows, and the list of its requests."""
    asked: list[str] = []

    class Handler(QuietHandler):
        def answer(self) -> None:
            asked.append(self.path)
            self.say(200, ROWS)

    with listening(Handler) as url:
        yield url, asked


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
