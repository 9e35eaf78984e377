"""Rules judge a plan made with a cache as they judge one made without (docs/planning.md 2.8)."""

from __future__ import annotations

from syncengine.plan.model import Plan
from tests.applying.bench import Bench
from tests.manifest.loading import write
from tests.planning.test_cached_plans import beginning, bench, sandbox, settle

__all__ = ["bench", "sandbox"]

RULES = """\
rules:
  - {name: counts, for: plan, warn: true, message: "{{ plan.summary.unchanged }} {{ plan.summary.update }}"}
  - {name: none, for: plan, deny: plan.summary.create + plan.summary.update == 0}
"""


def test_new_rules_judge_a_plan_without_changes(bench: Bench) -> None:
    """Rules for the plan see the counts of all resources, although no manifest changed."""
    twice = settle(bench, beginning())
    write(bench.folder, {"policies/all.yaml": RULES})
    planned = twice.same()
    assert isinstance(planned, Plan)
    found = [d.message.partition(" (rule")[0] for d in planned.diagnostics if d.rule]
    assert found == [f"{planned.summary.unchanged} 0", "this plan as a whole"]
    assert planned.summary.unchanged > 3
