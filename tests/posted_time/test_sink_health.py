"""A sink is down until something proves that it is not; meanwhile one group may try it, and it stays reported.

One failure closes it; two in a row, or one that nothing disproves for half a minute, are reported.
"""

from __future__ import annotations

import pytest

from syncengine.errors import TroubleKind
from syncengine.posted_time.events import SinkTrouble
from syncengine.posted_time.sink_health import FIRST_REST, IN_DOUBT, LONG_ENOUGH, SinkHealth
from syncengine.posted_time.sinks.contract import Failed

UNREACHED = Failed(TroubleKind.UNREACHABLE, "pms cannot be reached.")
ANSWERED = Failed(TroubleKind.UNKNOWN, "pms does not work as expected (500).", has_answered=True)
RESTARTING = Failed(TroubleKind.UNREACHABLE, "pms cannot be reached (503).", has_answered=True)
PROBED = SinkTrouble("pms", TroubleKind.UNREACHABLE, "pms cannot be reached.")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def names(found: tuple[SinkTrouble, ...]) -> list[str]:
    return [trouble.sink for trouble in found]


def test_all_is_well_at_first() -> None:
    """And a probe that is well changes nothing."""
    well = SinkHealth(Clock())
    well.probed("pms", None)
    assert (well.down, well.blocking) == ((), ())


def test_what_could_not_be_reached_is_well_once_it_can() -> None:
    """The probe tried just that."""
    well = SinkHealth(Clock())
    well.failed("pms", UNREACHED)
    assert (names(well.down), names(well.blocking), well.is_in_doubt) == ([], ["pms"], True)
    well.probed("pms", None)
    assert (well.down, well.blocking, well.is_in_doubt) == ((), (), False)


@pytest.mark.parametrize("seconds", [0.0, IN_DOUBT - 0.1])
def test_one_failure_is_not_reported_and_nothing_is_fetched(seconds: float) -> None:
    """It may be over at the next try."""
    clock = Clock()
    well = SinkHealth(clock)
    well.failed("pms", ANSWERED)
    clock.now = seconds
    assert (names(well.down), names(well.blocking)) == ([], ["pms"])
    well.worked("pms")
    assert (well.down, well.blocking) == ((), ())


def test_a_second_failure_in_a_row_is_reported() -> None:
    """Of a delivery or of a probe, whichever comes first."""
    for fails_again in (lambda well: well.failed("pms", ANSWERED), lambda well: well.probed("pms", PROBED)):
        well = SinkHealth(Clock())
        well.failed("pms", ANSWERED)
        fails_again(well)
        assert names(well.down) == ["pms"]


def test_groups_side_by_side_meet_one_failure() -> None:
    """A sink that restarts answers 503 to all that are under way; a second failure in a row begins after that."""
    clock = Clock()
    well = SinkHealth(clock)
    clock.now = 2.0
    for began in (1.0, 1.5, 1.9):
        well.failed("pms", RESTARTING, began)
    assert (names(well.down), names(well.blocking)) == ([], ["pms"])
    well.failed("pms", RESTARTING, 2.0)
    assert names(well.down) == ["pms"]


def test_one_503_is_not_reported_once_the_sink_can_be_reached() -> None:
    """Though nobody posts for an hour: what went wrong is over."""
    clock = Clock()
    well = SinkHealth(clock)
    well.failed("pms", RESTARTING)
    clock.now = FIRST_REST
    well.probed("pms", None)
    clock.now = LONG_ENOUGH - 1
    assert well.down == ()
    well.failed("pms", RESTARTING)
    assert names(well.down) == ["pms"]


def test_one_503_is_reported_if_the_sink_cannot_be_reached_for_long() -> None:
    """Half a minute without a good probe."""
    clock = Clock()
    well = SinkHealth(clock)
    well.failed("pms", RESTARTING)
    clock.now = IN_DOUBT
    assert names(well.down) == ["pms"]


def test_a_failure_that_nothing_disproves_is_reported_in_the_end() -> None:
    """Half a minute, though every probe is well: nobody posted who could have tried it."""
    clock = Clock()
    well = SinkHealth(clock)
    well.failed("pms", ANSWERED)
    clock.now = IN_DOUBT
    well.probed("pms", None)
    assert names(well.down) == ["pms"]


def test_what_an_earlier_process_met_is_tried_first_and_counts_as_one_failure() -> None:
    """A new process makes no sink well; nor does it report what it does not know."""
    clock = Clock()
    well = SinkHealth(clock)
    clock.now = 3600.0
    well.failed_before("pms", clock.now - 1)
    well.probed("pms", None)
    assert (names(well.down), names(well.blocking)) == ([], ["pms"])
    clock.now += FIRST_REST
    well.probed("pms", None)
    assert (names(well.blocking), well.is_half_open) == ([], True)
    clock.now += IN_DOUBT
    assert names(well.down) == []
    well.failed("pms", ANSWERED)
    assert (names(well.down), names(well.blocking)) == (["pms"], ["pms"])


def test_what_answered_with_trouble_is_tried_and_stays_reported() -> None:
    """Until it took or refused a group; a failure of that group closes it again."""
    clock = Clock()
    well = SinkHealth(clock)
    well.failed("pms", ANSWERED)
    well.failed("pms", ANSWERED)
    clock.now = FIRST_REST
    well.probed("pms", None)
    assert (names(well.down), names(well.blocking)) == (["pms"], [])
    well.failed("pms", ANSWERED)
    assert names(well.blocking) == ["pms"]
    well.probed("pms", None)
    well.worked("pms")
    assert (well.down, well.blocking) == ((), ())


def test_tries_that_fail_become_rarer() -> None:
    """Its probe is well all the time, and every group fails: after 5, 10, 20, 40 s, then once a minute."""
    clock = Clock()
    well = SinkHealth(clock)
    well.failed("pms", ANSWERED)
    tried = []
    for second in range(300):
        clock.now = float(second)
        well.probed("pms", None)
        if not well.blocking:
            tried.append(second)
            well.failed("pms", ANSWERED)
    assert tried == [5, 15, 35, 75, 135, 195, 255]
    well.worked("pms")
    assert well.down == ()


def test_a_probe_that_knew_of_the_trouble_is_believed_when_it_is_over() -> None:
    """A health path that was not well either: what it says now is of the same matter."""
    well = SinkHealth(Clock())
    well.failed("pms", ANSWERED)
    well.probed("pms", PROBED)
    well.probed("pms", None)
    assert well.down == ()


def test_a_sink_that_nobody_posts_to_is_believed_in_the_end() -> None:
    """Else a message would frighten everybody off from posting what could prove it wrong."""
    clock = Clock()
    well = SinkHealth(clock)
    well.failed("pms", ANSWERED)
    clock.now = LONG_ENOUGH - 1
    well.probed("pms", None)
    assert names(well.down) == ["pms"]
    clock.now = LONG_ENOUGH
    well.probed("pms", None)
    assert well.down == ()


def test_trouble_of_one_group_is_not_the_sinks() -> None:
    """A deadlock, or a template that met odd data."""
    well = SinkHealth(Clock())
    well.failed("pms", Failed(TroubleKind.UNKNOWN, "x", is_down=False))
    assert well.down == ()


@pytest.mark.parametrize("before", [UNREACHED, ANSWERED])
def test_a_probe_that_fails_says_what_is_wrong_now(before: Failed) -> None:
    """Whatever was wrong before."""
    well = SinkHealth(Clock())
    well.failed("pms", before)
    well.probed("pms", PROBED)
    assert (well.down, well.blocking) == ((PROBED,), (PROBED,))


def test_a_sink_that_answers_probes_and_no_group_is_down_until_it_takes_one() -> None:
    """One lost answer is nobody's business; the second is reported, though every probe is well."""
    clock = Clock()
    sinks = SinkHealth(clock)
    sinks.failed("pms", UNREACHED)
    sinks.probed("pms", None)
    assert not sinks.down
    sinks.failed("pms", UNREACHED)
    sinks.probed("pms", None)
    assert [trouble.sink for trouble in sinks.down] == ["pms"]
    clock.now = FIRST_REST
    sinks.probed("pms", None)
    assert not sinks.blocking
    sinks.worked("pms")
    assert not sinks.down
