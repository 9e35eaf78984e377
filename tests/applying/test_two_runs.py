"""Two applies of one state at the same time, as real processes (docs/planning.md 1.5)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from .bench import Bench, Json, category, numbered, tag

REPOSITORY = Path(__file__).parents[2]


def start(bench: Bench, *arguments: str) -> subprocess.Popen[str]:
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(REPOSITORY), **bench.environ}
    command = [sys.executable, "-m", "syncengine", "apply", "-y", "--format", "json", *arguments]
    return subprocess.Popen(command, cwd=bench.folder, env=environ, stdout=subprocess.PIPE, encoding="utf-8")


def ended(process: subprocess.Popen[str]) -> tuple[int, Json]:
    out, _ = process.communicate(timeout=60)
    return process.returncode, json.loads(out)


def test_of_two_applies_the_second_waits_and_finds_nothing_to_do(bench: Bench) -> None:
    """The lock is taken before planning, so that the second run does not repeat the work of the first."""
    names = numbered("TAG", 20)
    bench.wants(tagCategories=[category("acme")], tags=[tag(name, category="acme") for name in names])
    bench.sandbox.fault("upsertTagCategories", delay=0.3)
    first, second = (ended(process) for process in [start(bench), start(bench)])
    assert (first[0], second[0]) == (0, 0)
    assert sorted(document["summary"]["requests"] for _, document in (first, second)) == [0, 2]
    asked = [request["operation"] for request in bench.sandbox.requests()]
    assert (asked.count("upsertTagCategories"), asked.count("upsertTags")) == (1, 1)
    bench.assert_at_rest()
