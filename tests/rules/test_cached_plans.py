"""Rules judge a plan made with a cache as they judge one made without (docs/planning.md 2.8)."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from syncengine.plan.model import Plan
from tests.applying.bench import Bench, Sandbox
from tests.planning.editing import edit, first
from tests.planning.test_cached_plans import beginning, new_bench, sandbox, settle
from tests.support.profiles import tried

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


@settings(max_examples=tried(6), deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32))
def test_any_edit_is_judged_alike(sandbox: Sandbox, seed: int) -> None:
    """With the cache and without."""
    random = Random(seed)
    estate = first(random)
    with new_bench(sandbox) as bench:
        twice = settle(bench, estate)
        judge(bench)
        for _ in range(4):
            before = estate.copy()
            edit(estate, random)
            estate.write(bench.folder / "manifests")
            if not isinstance(twice.same(), Plan):
                estate = before
