"""`state diff`: what one state records and another one does not."""

from __future__ import annotations

import json

import pytest

from .program import Project, tag


@pytest.fixture
def two(project: Project) -> Project:
    """Environments `test` and `live` of one service, each with its state."""
    project.settings("environments:", "  test: {state: test.db}", "  live: {state: live.db}")
    project.wants(tags=[tag("SAME-1"), tag("GONE-1"), tag("OTHER-1", description="old", keywords=["first words"])])
    assert project.run("--env", "test", "apply", "-y").code == 0
    project.wants(tags=[tag("SAME-1"), tag("OTHER-1", description="new", keywords=["second words"]), tag("NEW-1")])
    assert project.run("--env", "live", "apply", "-y").code == 0
    return project


DIFFERENT = [
    {
        "address": "tag/OTHER-1",
        "changes": [
            {"path": ["fields", "description"], "before": "old", "after": "new"},
            {"path": ["keywords"], "before": "first words", "after": None},
            {"path": ["keywords"], "before": None, "after": "second words"},
        ],
    }
]


def test_two_environments_are_compared(two: Project) -> None:
    """From the other to this one."""
    compared = json.loads(two.run("--env", "live", "state", "diff", "test", "--format", "json").out)
    assert (compared["new"], compared["gone"], compared["same"]) == (["tag/NEW-1"], ["tag/GONE-1"], 1)
    assert compared["different"] == DIFFERENT
    text = two.run("--env", "live", "state", "diff", "test").out
    assert "~ tag/OTHER-1  fields.description: old → new" in text
    assert "1 only here, 1 only in test, 1 different (test → here), 1 the same." in text


def test_a_state_is_compared_with_an_export(two: Project) -> None:
    """Which brings doubts, and those are no differences."""
    assert two.run("--env", "test", "state", "export", "--out", "test.jsonl").code == 0
    compared = json.loads(two.run("--env", "live", "state", "diff", "test.jsonl", "--format", "json").out)
    assert compared["different"] == DIFFERENT
    equal = two.run("--env", "test", "state", "diff", "test.jsonl")
    assert (equal.code, equal.out) == (0, "Both states record the same 3 resources.\n")


def test_what_is_neither_is_refused(two: Project) -> None:
    """In a sentence."""
    assert two.run("--env", "live", "state", "diff", "nowhere").code == 64
    (two.folder / "bad.jsonl").write_text("{}")
    assert two.run("--env", "live", "state", "diff", "bad.jsonl").code == 8
