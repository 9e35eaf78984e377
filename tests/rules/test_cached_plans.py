"""Rules judge a plan made with a cache as they judge one made without (docs/planning.md 2.8)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from syncengine.plan.model import Plan
from tests.applying.bench import Bench, Sandbox
from tests.planning.test_cached_plans import beginning, new_bench, sandbox, settle

__all__ = ["sandbox"]

RULES = """\
rules:
  - {name: every, for: tag, warn: "action != 'create'", message: "{{ before.keywords }} → {{ after.keywords }}"}
  - {name: bolt, for: tag, deny: "'Bolt' in after.keywords"}
  - {name: counts, for: plan, warn: true, message: "{{ plan.summary.unchanged }} {{ plan.summary.update }}"}
  - {name: none, for: plan, deny: plan.summary.create + plan.summary.update == 0}
"""


@pytest.fixture
def bench(sandbox: Sandbox) -> Iterator[Bench]:
    with new_bench(sandbox) as made:
        yield made


def judge(bench: Bench) -> None:
    """Give the project its rules."""
    (bench.folder / "policies").mkdir(exist_ok=True)
    (bench.folder / "policies" / "all.yaml").write_text(RULES, encoding="utf-8")


def findings(planned: object) -> list[str]:
    assert isinstance(planned, Plan)
    return [d.message.partition(" (rule")[0] for d in planned.diagnostics if d.rule]


def test_new_rules_judge_a_plan_without_changes(bench: Bench) -> None:
    """Rules for the plan see the counts of all resources, although no manifest changed."""
    twice = settle(bench, beginning())
    judge(bench)
    planned = twice.same()
    assert isinstance(planned, Plan)
    assert findings(planned) == [f"{planned.summary.unchanged} 0", "this plan as a whole"]
    assert planned.summary.unchanged > 3
