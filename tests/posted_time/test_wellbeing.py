"""Which sinks count as down, from what they answered and what probes found."""

from __future__ import annotations

from syncengine.posted_time.sinks.contract import Failed
from syncengine.posted_time.verdict import TroubleKind
from syncengine.posted_time.wellbeing import Wellbeing

SILENT = Failed(TroubleKind.UNREACHABLE, "pms cannot be reached.")


def test_a_sink_that_answers_probes_and_no_group_is_down_until_it_takes_one() -> None:
    """One lost answer is nobody's business; the second is reported, though every probe is well."""
    sinks = Wellbeing(lambda: 0.0)
    sinks.failed("pms", SILENT)
    sinks.probed("pms", None, is_proof=False)
    assert not sinks.down
    sinks.failed("pms", SILENT)
    sinks.probed("pms", None, is_proof=False)
    assert [trouble.sink for trouble in sinks.down] == ["pms"]
    assert not sinks.closed
    sinks.worked("pms")
    assert not sinks.down
