"""Delivery stores a group, renders it for all sinks, delivers it once to each, and tells the service its status."""

from pathlib import Path

import pytest

from syncengine.posted_time.events import Verdict
from syncengine.tools.posted_time import preview
from tests.posted_time.desk import REFUSED, SUCCESS, TROUBLE, at_work, outcomes, taking
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
