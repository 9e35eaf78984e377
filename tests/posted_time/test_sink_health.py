"""A sink that failed is blocked until it succeeds, and reported after a second failure or half a minute."""

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

ACTS: dict[str, Callable[[SinkHealth], None]] = {
    "nothing": lambda health: None,
    "good probe": lambda health: health.probed("pms", None),
    "bad probe": lambda health: health.probed("pms", PROBED),
    "success": lambda health: health.worked("pms"),
    "no answer": lambda health: health.failed("pms", UNREACHED),
    "500": lambda health: health.failed("pms", ANSWERED),
    "503": lambda health: health.failed("pms", RESTARTING),
    "503 begun at 1": lambda health: health.failed("pms", RESTARTING, 1.0),
    "503 begun at 2": lambda health: health.failed("pms", RESTARTING, 2.0),
    "deadlock": lambda health: health.failed("pms", Failed(TroubleKind.UNKNOWN, "x", is_down=False)),
    "failed before": lambda health: health.failed_before("pms", 1),
    "rest of 60 s": lambda health: health.leave("pms", 60),
}
UP, DOUBTED, DOWN, TRIED, HALF_OPEN = "up", "doubted", "down", "tried", "half-open"
STATES = {(False, True): DOUBTED, (True, True): DOWN, (True, False): TRIED}


def state(health: SinkHealth) -> str:
    """The state of the only sink, by whether it is reported, and whether it stops fetching."""
    is_known = (bool(health.down), bool(health.blocking))
    return STATES.get(is_known, HALF_OPEN if health.is_half_open else DOUBTED if health.is_in_doubt else UP)


Story = Sequence[tuple[float, str, str]]
LATER = 3600 + FIRST_REST
STORIES: dict[str, Story] = {
    "a new sink is up": [(0, "good probe", UP)],
    "one failure is not reported": [(0, "500", DOUBTED), (29, "nothing", DOUBTED), (29, "success", UP)],
    "failures of concurrent groups count as one": [*[(2, "503 begun at 1", DOUBTED)] * 2, (2, "503 begun at 2", DOWN)],
    "a single 503 is not reported after a good probe, however late the next group is": [
        *((0, "503", DOUBTED), (FIRST_REST, "good probe", HALF_OPEN)),
        *((LONG_ENOUGH - 1, "nothing", HALF_OPEN), (LONG_ENOUGH - 1, "503", DOWN)),
    ],
    "a single 503 is reported after half a minute": [(0, "503", DOUBTED), (IN_DOUBT, "nothing", DOWN)],
    "a 500 is reported then even if probes succeed": [(0, "500", DOUBTED), (IN_DOUBT, "good probe", TRIED)],
    "a failure of an earlier process counts as one": [
        *((3600, "failed before", DOUBTED), (3600, "good probe", DOUBTED), (LATER, "good probe", HALF_OPEN)),
        *((LATER + IN_DOUBT, "nothing", HALF_OPEN), (LATER + IN_DOUBT, "500", DOWN)),
    ],
    "a reported sink is tried with a group, and stays reported until that succeeds": [
        *((0, "500", DOUBTED), (0, "500", DOWN), (FIRST_REST, "good probe", TRIED), (FIRST_REST, "500", DOWN)),
        *((FIRST_REST, "good probe", DOWN), (FIRST_REST, "success", UP)),
    ],
    "a good probe clears a trouble of a probe": [(0, "500", DOUBTED), (0, "bad probe", DOWN), (0, "good probe", UP)],
    # Otherwise the reported message would keep users from posting the group that could clear it.
    "a reported sink without groups is up after a long time": [
        *((0, "500", DOUBTED), (LONG_ENOUGH - 1, "good probe", TRIED), (LONG_ENOUGH, "good probe", UP)),
    ],
    "trouble of a single group does not count": [(0, "deadlock", UP)],
    "a sink that asked for a rest is tried after it, whatever probes say": [
        *((0, "rest of 60 s", DOUBTED), (FIRST_REST, "good probe", DOUBTED)),
        *((59, "good probe", DOUBTED), (60, "good probe", HALF_OPEN)),
    ],
    "a sink that answers only probes is down until it takes a group": [
        *((0, "no answer", DOUBTED), (0, "good probe", UP), (0, "no answer", DOWN), (0, "good probe", DOWN)),
        *((FIRST_REST, "good probe", TRIED), (FIRST_REST, "success", UP)),
    ],
}


@pytest.mark.parametrize("story", STORIES.values(), ids=list(STORIES))
def test_the_breaker_of_a_sink_by_its_answers_and_probes(story: Story) -> None:
    """Each step is an instant (s), what happens then, and the state after it."""
    now = 0.0
    health = SinkHealth(lambda: now)
    found: list[tuple[float, str, str]] = []
    for now, act, _ in story:
        ACTS[act](health)
        found.append((now, act, state(health)))
    assert found == [*story]


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
