"""A sink that failed is blocked until a probe or a group succeeds; after a rest, one group may try it.

One failure blocks it; a second one in a row, or half a minute without a success, is reported.
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


def test_a_new_sink_is_up() -> None:
    well = SinkHealth(Clock())
    well.probed("pms", None)
    assert (well.down, well.blocking) == ((), ())


def test_an_unreachable_sink_is_up_after_a_good_probe() -> None:
    """The probe tests exactly what failed."""
    well = SinkHealth(Clock())
    well.failed("pms", UNREACHED)
    assert (names(well.down), names(well.blocking), well.is_in_doubt) == ([], ["pms"], True)
    well.probed("pms", None)
    assert (well.down, well.blocking, well.is_in_doubt) == ((), (), False)


@pytest.mark.parametrize("seconds", [0.0, IN_DOUBT - 0.1])
def test_one_failure_is_not_reported_and_nothing_is_fetched(seconds: float) -> None:
    """The next attempt may succeed."""
    clock = Clock()
    well = SinkHealth(clock)
    well.failed("pms", ANSWERED)
    clock.now = seconds
    assert (names(well.down), names(well.blocking)) == ([], ["pms"])
    well.worked("pms")
    assert (well.down, well.blocking) == ((), ())


def test_a_second_failure_in_a_row_is_reported() -> None:
    """Whether it is a delivery or a probe that fails."""
    for fails_again in (lambda well: well.failed("pms", ANSWERED), lambda well: well.probed("pms", PROBED)):
        well = SinkHealth(Clock())
        well.failed("pms", ANSWERED)
        fails_again(well)
        assert names(well.down) == ["pms"]


def test_failures_of_concurrent_groups_count_as_one() -> None:
    """A sink that restarts answers 503 to every open request; only an attempt that begins later counts as a second
    failure."""
    clock = Clock()
    well = SinkHealth(clock)
    clock.now = 2.0
    for began in (1.0, 1.5, 1.9):
        well.failed("pms", RESTARTING, began)
    assert (names(well.down), names(well.blocking)) == ([], ["pms"])
    well.failed("pms", RESTARTING, 2.0)
    assert names(well.down) == ["pms"]


def test_a_single_503_is_not_reported_after_a_good_probe() -> None:
    """Even if no group is posted for a long time afterwards."""
    clock = Clock()
    well = SinkHealth(clock)
    well.failed("pms", RESTARTING)
    clock.now = FIRST_REST
    well.probed("pms", None)
    clock.now = LONG_ENOUGH - 1
    assert well.down == ()
    well.failed("pms", RESTARTING)
    assert names(well.down) == ["pms"]


def test_a_single_503_is_reported_after_half_a_minute_without_a_good_probe() -> None:
    clock = Clock()
    well = SinkHealth(clock)
    well.failed("pms", RESTARTING)
    clock.now = IN_DOUBT
    assert names(well.down) == ["pms"]


def test_a_failure_is_reported_if_no_group_succeeds_in_half_a_minute() -> None:
    """Even if the probes succeed."""
    clock = Clock()
    well = SinkHealth(clock)
    well.failed("pms", ANSWERED)
    clock.now = IN_DOUBT
    well.probed("pms", None)
    assert names(well.down) == ["pms"]


def test_a_failure_of_an_earlier_process_counts_as_one_failure() -> None:
    """The new process tries the sink with one group, and reports it only after another failure."""
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


def test_a_reported_sink_is_tried_with_a_group_and_stays_reported() -> None:
    """Until it takes or refuses a group; another failure blocks it again."""
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


def test_attempts_that_fail_become_rarer() -> None:
    """If probes succeed but groups fail, it is tried after 5, 10, 20 and 40 s, and then once a minute."""
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


def test_a_good_probe_clears_a_trouble_that_the_probe_had_found() -> None:
    """Its health path had failed as well, so its success concerns the same trouble."""
    well = SinkHealth(Clock())
    well.failed("pms", ANSWERED)
    well.probed("pms", PROBED)
    well.probed("pms", None)
    assert well.down == ()


def test_a_reported_sink_without_groups_is_up_after_a_long_time() -> None:
    """Otherwise the reported message would keep users from posting the group that could clear it."""
    clock = Clock()
    well = SinkHealth(clock)
    well.failed("pms", ANSWERED)
    clock.now = LONG_ENOUGH - 1
    well.probed("pms", None)
    assert names(well.down) == ["pms"]
    clock.now = LONG_ENOUGH
    well.probed("pms", None)
    assert well.down == ()


def test_trouble_of_a_single_group_does_not_affect_the_sink() -> None:
    """For example a deadlock, or a template that met odd data."""
    well = SinkHealth(Clock())
    well.failed("pms", Failed(TroubleKind.UNKNOWN, "x", is_down=False))
    assert well.down == ()


@pytest.mark.parametrize("before", [UNREACHED, ANSWERED])
def test_a_failed_probe_replaces_the_trouble_known_before(before: Failed) -> None:
    well = SinkHealth(Clock())
    well.failed("pms", before)
    well.probed("pms", PROBED)
    assert (well.down, well.blocking) == ((PROBED,), (PROBED,))


def test_a_sink_that_answers_only_probes_is_down_until_it_takes_a_group() -> None:
    """The second lost answer is reported, although every probe succeeds."""
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
