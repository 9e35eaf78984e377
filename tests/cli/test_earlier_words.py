"""A plan that an earlier version saved says some things in other words, and is applied as it was reviewed."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from syncengine.plan.model import Plan
from syncengine.plan.saved import save
from syncengine.render.json import SHOWN

from .program import Project, tag

GENERATE = "generate:\n  - forEach: {csv: ../rows.csv}\n    tags: [{name: '{{ row.name }}'}]\n"
SHRUNK = "rows.csv shrank: 9 of 10 "
WORDS = {
    f"{SHRUNK}resources made from it are removed": f"{SHRUNK}resources that were made of it go",
    f"{SHRUNK}resources made from it at manifests/m.yaml:2 are removed": (
        f"{SHRUNK}resources that manifests/m.yaml:2 made of it go"
    ),
    "it is not known whether the service has it": "whether the service holds it so is not known",
    "keeps the old value": "keeps what it has",
}
"""Today's words, and those of before."""


def rows(project: Project, count: int) -> None:
    text = "name\n" + "".join(f"ROW-{number}\n" for number in range(count))
    (project.folder / "rows.csv").write_text(text, encoding="utf-8")


@pytest.fixture
def shrunk(project: Project) -> Project:
    """An imported state, from which a plan removes nine rows of ten and a description that cannot be cleared."""
    project.wants(tags=[tag("DESCRIBED", description="Text")])
    (project.folder / "manifests" / "m.yaml").write_text(GENERATE, encoding="utf-8")
    rows(project, 10)
    assert project.apply().code == 0
    assert project.run("state", "export", "-o", "rows.jsonl").code == 0
    assert project.run("state", "import", "rows.jsonl", "-y").code == 0
    project.wants(tags=[tag("DESCRIBED", description="")])
    rows(project, 1)
    return project


def in_earlier_words(plan: Plan) -> tuple[Plan, set[str]]:
    """The same plan, and the words of today that it had."""
    replaced: set[str] = set()

    def earlier(sentence: str) -> str:
        for today, before in WORDS.items():
            if today in sentence:
                replaced.add(today)
                sentence = sentence.replace(today, before)
        return sentence

    changes = tuple(replace(c, reason=earlier(c.reason)) if c.reason else c for c in plan.changes)
    notes = tuple(replace(note, message=earlier(note.message)) for note in plan.notes)
    gate = replace(plan.gate, reasons=tuple(map(earlier, plan.gate.reasons)))
    return replace(plan, changes=changes, notes=notes, gate=gate), replaced


@pytest.mark.parametrize("is_earlier", [True, False])
def test_a_plan_in_earlier_words_is_applied(shrunk: Project, is_earlier: bool) -> None:
    """As one in today's words is."""
    made = shrunk.plan()
    plan, replaced = in_earlier_words(made)
    assert len(replaced) == 3
    save(plan if is_earlier else made, SHOWN, shrunk.folder / "saved.plan")
    done = shrunk.run("apply", "saved.plan", "--format", "json", "--approve-deletes", str(made.gate.approve))
    assert (done.code, done.document["status"]) == (0, "complete"), done.out
