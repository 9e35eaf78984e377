"""A sink that failed is blocked until it succeeds, and reported after a second failure or half a minute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from syncengine.errors import TroubleKind
from syncengine.posted_time.delivery import Delivery
from syncengine.posted_time.events import SinkTrouble
from syncengine.posted_time.sink_health import FIRST_REST, IN_DOUBT, LONG_ENOUGH, SinkHealth
from syncengine.posted_time.sinks.contract import Failed
from tests.posted_time.desk import SUCCESS, TROUBLE, at_work
from tests.posted_time.forgetful import finding_sink, forgetting
from tests.posted_time.projects import delivering, http_sink
from tests.posted_time.receiver import Receiver
from tests.posted_time.samples import raw

UNREACHED = Failed(TroubleKind.UNREACHABLE, "pms cannot be reached.")
ANSWERED = Failed(TroubleKind.UNKNOWN, "pms does not work as expected (500).", has_answered=True)
RESTARTING = Failed(TroubleKind.UNREACHABLE, "pms cannot be reached (503).", has_answered=True)
PROBED = SinkTrouble("pms", TroubleKind.UNREACHABLE, "pms cannot be reached.")

Act = Callable[[SinkHealth], None]
UP, DOUBTED, DOWN, TRIED, HALF_OPEN = "up", "doubted", "down", "tried", "half-open"
STATES = {(False, True): DOUBTED, (True, True): DOWN, (True, False): TRIED}


def state(health: SinkHealth) -> str:
    """The state of the only sink, by whether it is reported, and whether it stops fetching."""
    is_known = (bool(health.down), bool(health.blocking))
    return STATES.get(is_known, HALF_OPEN if health.is_half_open else DOUBTED if health.is_in_doubt else UP)


def fails(failure: Failed, began: float | None = None) -> Act:
    return lambda health: health.failed("pms", failure) if began is None else health.failed("pms", failure, began)


def good(health: SinkHealth) -> None:
    health.probed("pms", None)


def bad(health: SinkHealth) -> None:
    health.probed("pms", PROBED)


def works(health: SinkHealth) -> None:
    health.worked("pms")


def nothing(health: SinkHealth) -> None:
    """Let time pass."""


Story = Sequence[tuple[float, Act, str]]
STORIES: dict[str, Story] = {
    "a new sink is up": [(0, good, UP)],
    "one failure is not reported": [
        (0, fails(ANSWERED), DOUBTED),
        (IN_DOUBT - 0.1, nothing, DOUBTED),
        (IN_DOUBT - 0.1, works, UP),
    ],
    "failures of concurrent groups count as one": [
        (2, fails(RESTARTING, 1.0), DOUBTED),
        (2, fails(RESTARTING, 1.9), DOUBTED),
        (2, fails(RESTARTING, 2.0), DOWN),
    ],
    "a single 503 is not reported after a good probe, however late the next group is": [
        (0, fails(RESTARTING), DOUBTED),
        (FIRST_REST, good, HALF_OPEN),
        (LONG_ENOUGH - 1, nothing, HALF_OPEN),
        (LONG_ENOUGH - 1, fails(RESTARTING), DOWN),
    ],
    "a single 503 is reported after half a minute": [(0, fails(RESTARTING), DOUBTED), (IN_DOUBT, nothing, DOWN)],
    "a 500 is reported after half a minute even if probes succeed": [
        (0, fails(ANSWERED), DOUBTED),
        (IN_DOUBT, good, TRIED),
    ],
    "a failure of an earlier process counts as one": [
        (3600, lambda health: health.failed_before("pms", 1), DOUBTED),
        (3600, good, DOUBTED),
        (3600 + FIRST_REST, good, HALF_OPEN),
        (3600 + FIRST_REST + IN_DOUBT, nothing, HALF_OPEN),
        (3600 + FIRST_REST + IN_DOUBT, fails(ANSWERED), DOWN),
    ],
    "a reported sink is tried with a group, and stays reported until that succeeds": [
        (0, fails(ANSWERED), DOUBTED),
        (0, fails(ANSWERED), DOWN),
        (FIRST_REST, good, TRIED),
        (FIRST_REST, fails(ANSWERED), DOWN),
        (FIRST_REST, good, DOWN),
        (FIRST_REST, works, UP),
    ],
    "a good probe clears a trouble that the probe had found": [
        (0, fails(ANSWERED), DOUBTED),
        (0, bad, DOWN),
        (0, good, UP),
    ],
    # Otherwise the reported message would keep users from posting the group that could clear it.
    "a reported sink without groups is up after a long time": [
        (0, fails(ANSWERED), DOUBTED),
        (LONG_ENOUGH - 1, good, TRIED),
        (LONG_ENOUGH, good, UP),
    ],
    "trouble of a single group, such as a deadlock, does not count": [
        (0, fails(Failed(TroubleKind.UNKNOWN, "x", is_down=False)), UP)
    ],
    "a sink that asked for a rest is tried after it, whatever probes say": [
        (0, lambda health: health.leave("pms", 60), DOUBTED),
        (FIRST_REST, good, DOUBTED),
        (59, good, DOUBTED),
        (60, good, HALF_OPEN),
    ],
    "a sink that answers only probes is down until it takes a group": [
        (0, fails(UNREACHED), DOUBTED),
        (0, good, UP),
        (0, fails(UNREACHED), DOWN),
        (0, good, DOWN),
        (FIRST_REST, good, TRIED),
        (FIRST_REST, works, UP),
    ],
}


@pytest.mark.parametrize("story", STORIES.values(), ids=list(STORIES))
def test_the_breaker_of_a_sink_by_its_answers_and_probes(story: Story) -> None:
    """Each step is an instant (s), what happens then, and the state after it."""
    now = 0.0
    health = SinkHealth(lambda: now)
    found = []
    for at, act, _ in story:
        now = at
        act(health)
        found.append(state(health))
    assert found == [expected for _, _, expected in story]


def test_attempts_that_fail_become_rarer() -> None:
    """If probes succeed but groups fail, it is tried after 5, 10, 20 and 40 s, and then once a minute."""
    now, tried = 0.0, []
    health = SinkHealth(lambda: now)
    health.failed("pms", ANSWERED)
    for second in range(300):
        now = float(second)
        health.probed("pms", None)
        if not health.blocking:
            tried.append(second)
            health.failed("pms", ANSWERED)
    assert tried == [5, 15, 35, 75, 135, 195, 255]


def test_a_reload_makes_no_sink_well_and_wakes_none_that_rests() -> None:
    before, after = (SinkHealth(lambda: 0.0) for _ in range(2))
    before.leave("pms", 60)
    after.inherit(before, ["pms"])
    assert (state(after), after.resting("pms") is not None) == (DOUBTED, True)


@pytest.mark.parametrize("before", [UNREACHED, ANSWERED])
def test_a_failed_probe_replaces_the_trouble_known_before(before: Failed) -> None:
    health = SinkHealth(lambda: 0.0)
    health.failed("pms", before)
    health.probed("pms", PROBED)
    assert (health.down, health.blocking) == ((PROBED,), (PROBED,))


# --- the date of the machine is set meanwhile


set_by = pytest.mark.parametrize("step", [-604_800.0, 86_400.0], ids=["back a week", "forward a day"])


@dataclass
class Machine:
    """A machine with a date and a clock, in seconds."""

    date: float = 1_714_000_000.0
    clock: float = 1_000.0

    def delivering(self, folder: Path, deliver: str) -> Delivery:
        return delivering(folder, deliver, "", now=lambda: self.date, clock=lambda: self.clock)

    def waits(self, seconds: float) -> None:
        self.date += seconds
        self.clock += seconds


@set_by
def test_a_failing_sink_is_tried_after_its_usual_rest(step: float, tmp_path: Path, receiver: Receiver) -> None:
    machine = Machine()
    receiver.answer = lambda got: (503, {}) if got.method == "POST" else (404, {})
    with at_work(machine.delivering(tmp_path, http_sink(receiver.url))) as desk:
        assert desk.take(raw()).outcome is TROUBLE
        machine.date += step
        desk.check_sinks()
        assert desk.troubles
        machine.waits(FIRST_REST)
        desk.check_sinks()
        assert (desk.troubles, desk.is_cautious) == ((), True)


@set_by
def test_a_receiver_that_asked_for_a_rest_has_it(step: float, tmp_path: Path, receiver: Receiver) -> None:
    """So does one that asked an earlier process, unless the date was set forward: by it alone the next one counts."""
    machine = Machine()
    receiver.answer, receiver.headers = lambda got: (429, {}), {"Retry-After": "100"}
    with at_work(machine.delivering(tmp_path, http_sink(receiver.url))) as desk:
        assert desk.take(raw()).outcome is TROUBLE
        machine.date += step
        machine.waits(99)
        assert desk.take(raw()).outcome is TROUBLE
        assert len(receiver.got) == 1
    with at_work(machine.delivering(tmp_path, http_sink(receiver.url))) as desk:
        machine.waits(86_401)
        receiver.answer = lambda got: (201, {})
        assert desk.take(raw()).outcome is SUCCESS


@set_by
def test_an_attempt_of_unknown_end_is_asked_for_after_its_usual_wait(step: float, tmp_path: Path) -> None:
    """Earlier, what the receiver executes late would not be seen, and the group be sent twice."""
    machine = Machine()
    with (
        forgetting(lambda: machine.clock) as pms,
        at_work(machine.delivering(tmp_path, finding_sink(pms.receiver.url))) as desk,
    ):
        pms.moods.append("lost")
        assert desk.take(raw()).outcome is TROUBLE
        machine.date += step
        machine.waits(59)
        assert (desk.take(raw()).outcome, pms.questions) == (TROUBLE, [])
        machine.waits(2)
        assert (desk.take(raw()).outcome, len(pms.questions), len(pms.has("g1"))) == (SUCCESS, 1, 1)
