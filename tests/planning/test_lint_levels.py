"""Each warning has the level that the project sets for it, in plans with a cache and without."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from syncengine.errors import Problems
from syncengine.plan.model import Plan
from syncengine.plan.request import Scope
from syncengine.sandbox.app import running_sandbox
from tests.applying.bench import Bench, Sandbox
from tests.manifest.test_lints import SUSPICIOUS
from tests.support import loopback

from .twice import Planned, Twice

pytestmark = pytest.mark.slow

COMMA = "tags:\n  - name: Alpha\n    metadata: {Client: Smith, Jones & Co}\n"
OTHER = "# generate\ntags:\n  - {name: Omega One, description: %s, visibility: PUBLIC}\n"
"""The word `generate` in it makes the planner use the cache."""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with running_sandbox() as running, loopback.client(base_url=running.control_url) as control:
        yield Sandbox(running.url, control, running.api_key)


@pytest.fixture
def bench(sandbox: Sandbox, tmp_path: Path) -> Bench:
    sandbox.reset()
    return Bench(tmp_path, sandbox)


def write(bench: Bench, file: str, text: str) -> None:
    (bench.folder / "manifests").mkdir(exist_ok=True)
    (bench.folder / "manifests" / file).write_text(text, encoding="utf-8")


def set_to(bench: Bench, code: str, level: str, url: str | None = None) -> None:
    bench.settings("policy:", "  tagRemoval: retire", f"  diagnostics: {{{code}: {level}}}", url=url)


def levels(planned: Planned) -> list[tuple[str, str]]:
    """Return the code and severity of each diagnostic."""
    found = planned.diagnostics if isinstance(planned, Plan) else planned
    return [(d.code, d.severity.value) for d in found]


@pytest.mark.parametrize("code", SUSPICIOUS)
def test_a_cached_plan_has_the_same_warnings(bench: Bench, code: str) -> None:
    """The same holds with and without a warning, after a change of a tag, and after a change of the level."""
    write(bench, "a.yaml", SUSPICIOUS[code][0])
    for version, level in enumerate(("warning", "off", "warning")):
        expected = [] if level == "off" else [(code, "warning")]
        set_to(bench, code, level)
        write(bench, "b.yaml", OTHER % f"v{version}")
        assert bench.apply().exit_code == 0
        twice = Twice(bench.project)
        assert levels(twice.same()) == expected
        write(bench, "b.yaml", OTHER % f"v{version} changed")
        changed = twice.same()
        assert (levels(changed), isinstance(changed, Plan) and len(changed.changes)) == (expected, 1)
    set_to(bench, code, "error")
    assert levels(Twice(bench.project).same()) == [(code, "error")]


@pytest.mark.parametrize(("level", "extra"), [("off", []), ("warning", ["warning"]), ("error", ["error"])])
def test_a_comma_in_text_is_reported_at_its_level(bench: Bench, level: str, extra: list[str]) -> None:
    write(bench, "a.yaml", COMMA)
    set_to(bench, "comma-in-text", level)
    expected = [("null-value", "error"), *(("comma-in-text", severity) for severity in extra)]
    assert sorted(levels(Twice(bench.project).same())) == sorted(expected)


LEVELS = [("off", []), ("warning", ["warning"]), ("error", ["error"])]


@pytest.mark.parametrize(("level", "severities"), LEVELS)
def test_a_suspected_rename_is_reported_at_its_level(bench: Bench, level: str, severities: list[str]) -> None:
    write(bench, "b.yaml", OTHER % "v1" + "  - {name: Alpha, externalId: '1', visibility: PUBLIC}\n")
    set_to(bench, "rename-suspected", level)
    assert bench.apply().exit_code == 0
    write(bench, "b.yaml", OTHER % "v1" + "  - {name: Beta, externalId: '1', visibility: PUBLIC}\n")
    assert levels(Twice(bench.project).same()) == [("rename-suspected", severity) for severity in severities]


@pytest.mark.parametrize(("level", "severities"), LEVELS)
def test_a_line_that_removes_nothing_is_reported_at_its_level(bench: Bench, level: str, severities: list[str]) -> None:
    write(bench, "a.yaml", "removed: [{tag: Alpah, as: retire}]\n")
    write(bench, "b.yaml", OTHER % "v1" + "  - {name: Alpha, visibility: PUBLIC}\n")
    set_to(bench, "removed-unknown", "off")
    assert bench.apply().exit_code == 0
    set_to(bench, "removed-unknown", level)
    for version in ("v2", "v3"):
        write(bench, "b.yaml", OTHER % version + "  - {name: Alpha, visibility: PUBLIC}\n")
        assert levels(Twice(bench.project).same()) == [("removed-unknown", severity) for severity in severities]
        if level == "warning":
            assert bench.apply().exit_code == 0


@pytest.mark.parametrize(("level", "severities"), LEVELS)
def test_an_empty_selection_is_reported_at_its_level(bench: Bench, level: str, severities: list[str]) -> None:
    write(bench, "b.yaml", OTHER % "v1")
    set_to(bench, "nothing-selected", level)
    planned = Twice(bench.project).same(scope=Scope(paths=("nowhere",)))
    assert [each for each in levels(planned) if each[0] != "no-state"] == [
        ("nothing-selected", severity) for severity in severities
    ]


@pytest.mark.parametrize(("level", "severities"), LEVELS)
def test_an_insecure_url_is_reported_at_its_level(bench: Bench, level: str, severities: list[str]) -> None:
    set_to(bench, "insecure-url", level, url="http://service.example.com")
    try:
        found = bench.project().warnings
    except Problems as problems:
        found = problems.found
    assert levels(found) == [("insecure-url", severity) for severity in severities]
