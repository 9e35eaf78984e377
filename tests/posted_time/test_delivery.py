"""A group is stored, delivered once to each sink, and its status told; a sink that is down is left alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from syncengine.errors import TroubleKind
from syncengine.posted_time.delivery import Delivery
from syncengine.posted_time.events import SinkTrouble, Verdict
from syncengine.posted_time.sink_health import FIRST_REST, IN_DOUBT, LONG_ENOUGH, SinkHealth
from syncengine.posted_time.sinks.contract import Failed
from syncengine.tools.posted_time import preview
from tests.posted_time.desk import REFUSED, SUCCESS, TROUBLE, at_work, outcomes, taking
from tests.posted_time.forgetful import finding_sink, forgetting
from tests.posted_time.projects import BARE_SINK, JSONL, LOOKUPS, SQL_SINK, delivering, http_sink, ids, lines, rows
from tests.posted_time.receiver import Receiver, receiving
from tests.posted_time.samples import raw, row

REFUSE = 'refuse:\n  - {when: not tag, message: "Assign a tag, {{ user.name }}."}\n'
UNTAGGED = raw("g2", tags=[])


def test_a_refuse_rule_refuses_a_group_with_its_message(tmp_path: Path) -> None:
    """No lookup or sink sees the group, and the next group is delivered. One without an id is refused, too."""
    refused, nameless, taken = taking(delivering(tmp_path, more=REFUSE + LOOKUPS), UNTAGGED, {"tags": []}, raw())
    assert (refused, taken) == (Verdict(REFUSED, "Assign a tag, Jo Doe."), Verdict(SUCCESS, None, "L-g1"))
    assert nameless.outcome is REFUSED


def test_a_lookup_refuses_what_it_does_not_find_exactly_once(tmp_path: Path) -> None:
    """With its message. A lookup whose `when` is false is skipped, and its value is none."""
    two = LOOKUPS.replace("WHERE no = :no", "WHERE no <> :no")
    none = raw(tags=[{"name": "NO-1"}])
    assert taking(delivering(tmp_path), none)[0] == Verdict(REFUSED, "Matter NO-1 is not in the ledger.")
    assert taking(delivering(tmp_path, more=two), none)[0] == Verdict(REFUSED, "matter was found more than once.")
    sink = SQL_SINK.replace("{{ lookup.matter.id }}", "{{ lookup.matter.id or 8 }}")
    taking(delivering(tmp_path, sink, LOOKUPS + "    when: tag\n"), raw(), UNTAGGED)
    assert rows(tmp_path) == [("g1", 7, 3600), ("g2", 8, 3600)]


@pytest.mark.parametrize("value", ["user.name.no_such()", "start | local(user.name)", "rows", "[tag.name]"])
def test_a_mistake_in_a_template_is_trouble_of_its_group_only(value: str, tmp_path: Path) -> None:
    """No sink gets the group or counts as down, and no user is refused: a note for the operator names the place."""
    with at_work(delivering(tmp_path, JSONL + SQL_SINK.replace("narrative", value))) as desk:
        verdict = desk.take(raw())
        assert (verdict.outcome, "no_such" in (verdict.message or "")) == (TROUBLE, False)
        assert (desk.entry().state, bool(desk.entry().note)) == ("troubled", True)
        assert not (tmp_path / "out").exists()
        assert (desk.troubles, desk.check_sinks()) == ((), ())
    assert rows(tmp_path) == []


def test_each_sink_takes_the_groups_that_match_its_when(tmp_path: Path) -> None:
    """`unmatched` decides on a group that no sink takes."""
    deliver = BARE_SINK + "  when: tag\n" + "- {name: archive, when: not tag and user, jsonl: {path: out/time.jsonl}}\n"
    groups = (raw(), UNTAGGED, raw("g3", tags=[], user=None))
    assert outcomes(taking(delivering(tmp_path, deliver, ""), *groups)) == [SUCCESS, SUCCESS, REFUSED]
    assert taking(delivering(tmp_path, deliver, "unmatched: accept\n"), groups[2])[0].outcome is SUCCESS
    assert (ids(tmp_path), [line["groupId"] for line in lines(tmp_path)]) == (["g1"], ["g2"])


def test_verdicts_of_fetch_wait_until_the_service_accepted_them(tmp_path: Path) -> None:
    """They survive a restart. A verdict on a webhook call does not wait: it was the answer to the call."""
    with at_work(delivering(tmp_path)) as desk:
        for group, mechanism in ((raw("g1"), "fetch"), (UNTAGGED, "fetch"), (raw("g3"), "webhook")):
            desk.take(group, mechanism)
    with at_work(delivering(tmp_path)) as desk:
        waiting = [(w.group_id, w.status, w.external_id) for w in desk.inbox.waiting()]
        assert waiting == [("g1", "SUCCESS", "L-g1"), ("g2", "FAILURE", None)]
        desk.acknowledge("g1")
        desk.inbox.write(lambda tx: tx.give_up("g2", "the service does not know it"))
        states = {entry.group_id: entry.state for entry in desk.inbox.entries()}
        assert (list(desk.inbox.waiting()), states["g2"]) == ([], "given-up")
        desk.take(raw("g1"))
        assert [w.group_id for w in desk.inbox.waiting()] == ["g1"]


def test_a_template_file_is_read_only_at_the_start(tmp_path: Path) -> None:
    """A template that changes or disappears later does not affect groups until the project is loaded again."""
    narrative = tmp_path / "narrative.j2"
    narrative.write_text("As it was: {{ tag.name }}.")
    with at_work(delivering(tmp_path, more=LOOKUPS + "narrative: {template: narrative.j2}\n")) as desk:
        narrative.write_text("{{ broken")
        desk.take(raw("g1"))
        narrative.unlink()
        desk.take(raw("g2"))
    assert rows(tmp_path, "SELECT note FROM time") == [("As it was: ACME-0042.",)] * 2


# --- offered again


def test_changed_content_after_a_delivery_is_a_conflict(tmp_path: Path) -> None:
    """The sink keeps the first content, whose offer is still answered with SUCCESS, also after the inbox was lost."""
    with at_work(delivering(tmp_path)) as desk:
        desk.take(raw())
        changed = desk.take(raw(totalDurationSecs=1))
        assert (changed.outcome, "ledger took it" in (changed.message or "")) == (REFUSED, True)
        entry = desk.entry()
        assert (entry.state, entry.revision, entry.raw()["totalDurationSecs"]) == ("conflict", 1, 3600)
        assert desk.take(raw(totalDurationSecs=1)) == changed
        assert desk.take(raw()).outcome is SUCCESS
    (tmp_path / ".syncengine/state.db").unlink()
    with at_work(delivering(tmp_path)) as desk:
        assert desk.take(raw(totalDurationSecs=1)).outcome is REFUSED
        assert desk.entry().state == "conflict"
    assert rows(tmp_path) == [("g1", 7, 3600)]


@pytest.mark.parametrize("status", [503, 422])
def test_a_conflict_names_only_the_sinks_that_have_the_group(status: int, tmp_path: Path, receiver: Receiver) -> None:
    """A change can no longer reach the first sink; a sink that was in trouble or refused the group is not named."""
    receiver.answer = lambda got: (status, {})
    with at_work(delivering(tmp_path, JSONL + http_sink(receiver.url), "")) as desk:
        desk.take(raw())
        verdict = desk.take(raw(totalDurationSecs=1))
        assert (verdict.outcome, "archive took it in that form" in (verdict.message or "")) == (REFUSED, True)
        assert desk.entry().note == "offered again with different content; archive took it as revision 1"
    assert len(lines(tmp_path)) == 1
    receiver.says(None)
    _, verdict = taking(delivering(tmp_path, http_sink(receiver.url), ""), raw("g2"), raw("g2", totalDurationSecs=1))
    assert "pms may have it in that form" in (verdict.message or ""), "after a lost answer"


def test_content_that_a_person_accepted_is_no_conflict_again(tmp_path: Path) -> None:
    """That is the delivered content and the last one offered before; any other content is a conflict."""
    changed, third = raw(totalDurationSecs=1), raw(totalDurationSecs=2)
    with at_work(delivering(tmp_path)) as desk:
        desk.take(raw())
        desk.take(third)
        assert desk.take(changed).outcome is REFUSED
        desk.inbox.write(lambda tx: tx.settle(["g1"]))
        again = [desk.take(offered) for offered in (changed, raw(), changed, third)]
    assert again[:3] == [Verdict(SUCCESS, None, "L-g1")] * 3
    assert again[3].outcome is REFUSED
    assert rows(tmp_path) == [("g1", 7, 3600)]


def test_only_the_sink_that_lacks_a_group_gets_it_again(tmp_path: Path, receiver: Receiver) -> None:
    statuses = iter([503, 503, 201])
    receiver.answer = lambda got: (next(statuses), {"id": 5})
    delivery = delivering(tmp_path, SQL_SINK + http_sink(receiver.url))
    verdicts = taking(delivery, raw(), raw(), raw())
    assert outcomes(verdicts) == [TROUBLE, TROUBLE, SUCCESS]
    assert (len(rows(tmp_path)), len(receiver.got), verdicts[2].external_id) == (1, 3, "L-g1")


@pytest.mark.parametrize(("keep", "days"), [("keep: 30d\n", 30), ("", 60)], ids=["set", "default"])
def test_old_groups_are_reduced_to_id_and_receipts(keep: str, days: int, tmp_path: Path) -> None:
    """So a later offer is recognized. Groups that are not acknowledged stay whole."""
    now = 1_000_000.0
    with at_work(delivering(tmp_path, more=LOOKUPS + keep, now=lambda: now)) as desk:
        desk.take(raw(description="a secret matter"))
        desk.acknowledge("g1")
        desk.take(raw("g2"))
        now += (days - 1) * 86400
        desk.catch_up()
        assert desk.entry("g1").body is not None
        now += 2 * 86400
        desk.take(raw("g3"))
        desk.acknowledge("g3")
        desk.catch_up()
        bodies = {entry.group_id: (entry.body is None, entry.user_name) for entry in desk.inbox.entries()}
        assert bodies == {"g1": (True, None), "g2": (False, "Jo Doe"), "g3": (False, "Jo Doe")}
        assert [r.group_id for r in desk.inbox.receipts("ledger", 0)] == ["g1", "g2", "g3"]
        assert desk.inbox.story("g1") == []
        assert desk.take(raw(description="a secret matter")) == Verdict(SUCCESS, None, "L-g1")
        assert desk.take(raw(description="changed")).outcome is REFUSED
    assert len(rows(tmp_path)) == 3


def test_a_failed_redelivery_keeps_the_status_success(tmp_path: Path) -> None:
    with receiving() as receiver, at_work(delivering(tmp_path, http_sink(receiver.url), "")) as desk:
        desk.take(raw())
        desk.acknowledge("g1")
        receiver.answer = lambda got: (503, {})
        desk.ask(["g1"], "pms")
        desk.catch_up()
        entry = desk.entry("g1")
        assert (entry.outcome, entry.state, entry.is_settled) == ("SUCCESS", "acknowledged", False)


def test_the_duration_settings_decide_the_seconds_that_a_sink_gets(tmp_path: Path) -> None:
    """What is not positive is refused and never rounded up: six minutes would bill time that was never worked."""
    more = "duration: {from: rows, weighting: always, roundUpTo: 6m}\n"
    sent = raw(totalDurationSecs=9999, timeRows=[row(durationSecs=1000)], user={"experienceWeightingPercent": 50})
    taking(delivering(tmp_path, BARE_SINK, more), sent)
    by_filter = BARE_SINK.replace("{{ duration.seconds }}", "{{ group.totalDurationSecs | round_up('6m') }}")
    for sink, more in ((BARE_SINK, "duration: {roundUpTo: 6m}\n"), (by_filter, "")):
        for seconds, word in ((-5, "negative"), (0, "0 seconds")):
            (verdict,) = taking(delivering(tmp_path, sink, more), raw("g2", totalDurationSecs=seconds, timeRows=[]))
            assert (verdict.outcome, word in (verdict.message or "")) == (REFUSED, True)
    assert rows(tmp_path) == [("g1", 7, 720)]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("{{ user.externalId | int }}", "'jd' is not a number"),
        ("{{ user.externalId | date }}", "'jd' is not an ISO 8601 date or time"),
        ("{{ [user.externalId] | sum }}", "'jd' is not a number"),
        ("{{ user.externalId.split('-')[1] | upper }}", "it lacks something that its delivery needs"),
        ("{{ (rows | selectattr('activity', 'equalto', 'no') | first).activity }}", "it lacks something"),
        ("{{ '%05d' | format(user.externalId) }}", "in another form"),
        ("{{ 1 // (duration.seconds - duration.seconds) }}", "in another form"),
    ],
)
def test_a_value_that_a_template_cannot_use_is_refused(value: str, why: str, tmp_path: Path) -> None:
    """Every attempt would fail alike: the user gets the reason, the operator the place in the template."""
    content = raw(user={**raw()["user"], "externalId": "jd", "experienceWeightingPercent": None})
    with at_work(delivering(tmp_path, SQL_SINK.replace("{{ narrative }}", value))) as desk:
        verdict = desk.take(content)
        assert (verdict.outcome, why in (verdict.message or "")) == (REFUSED, True), verdict
        assert "syncengine.yaml:" in (verdict.detail or "")
    assert rows(tmp_path) == []


def test_a_narrative_that_no_sink_uses_cannot_fail_a_delivery(tmp_path: Path) -> None:
    """The narrative is rendered only for a sink that uses it, and for previews."""
    (tmp_path / "n.j2").write_text("{{ 1 // (rows | length) }}")
    more = LOOKUPS + "narrative: {template: n.j2}\n"
    with at_work(delivering(tmp_path, SQL_SINK.replace("{{ narrative }}", "{{ tag.name }}"), more)) as desk:
        assert desk.wait(preview(desk.delivery.route, raw(timeRows=[])))["narrative"] is None
        assert desk.wait(preview(desk.delivery.route, raw()))["narrative"] == "1"
        assert desk.take(raw(timeRows=[])).outcome is SUCCESS
    (verdict,) = taking(delivering(tmp_path, SQL_SINK, more), raw("g2", timeRows=[]))
    assert verdict.outcome is REFUSED
    assert rows(tmp_path, "SELECT id, note FROM time") == [("g1", "ACME-0042")]


# --- sinks that are down


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
