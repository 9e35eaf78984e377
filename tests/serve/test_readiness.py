"""When a connector is not ready: where posted time cannot be served, or, without it, nothing is reconciled."""

from __future__ import annotations

import pytest

from syncengine.database.trouble import TroubleKind
from syncengine.posted_time.verdict import SinkTrouble
from syncengine.serve.readiness import DOWN_SECONDS, NOT_RECONCILED, Readiness
from syncengine.serve.reconcile import OUTCOMES

DOWN = SinkTrouble("pms", TroubleKind.UNREACHABLE, "pms cannot be reached.")


def working(**given: object) -> Readiness:
    return Readiness(phase=None, **given)  # type: ignore[arg-type]


def test_a_sink_that_is_down_counts_after_a_minute() -> None:
    """A restart of its service takes less; until then no other process would do better."""
    readiness = working(has_posted_time=True)
    readiness.note_sinks((DOWN,))
    assert readiness.reasons() == []
    readiness.down_since["pms"] -= DOWN_SECONDS
    readiness.note_sinks((DOWN,))
    assert readiness.reasons() == ["sink pms: pms cannot be reached."]
    readiness.note_sinks(())
    readiness.note_sinks((DOWN,))
    assert readiness.reasons() == []


@pytest.mark.parametrize("outcome", OUTCOMES.values())
def test_invalid_manifests_count_where_there_is_nothing_but_manifests(outcome: str) -> None:
    """With posted time the process is needed all the same: a typo must not keep webhooks from it."""
    assert bool(working(reconciled=outcome).reasons()) == (outcome in NOT_RECONCILED)
    assert working(reconciled=outcome, has_posted_time=True).reasons() == []
