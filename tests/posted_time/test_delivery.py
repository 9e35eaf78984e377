"""Delivery stores a group, renders it for all sinks, delivers it once to each, and reports its status to the
service."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from syncengine.posted_time.delivery import Delivery
from syncengine.posted_time.events import Verdict
from syncengine.posted_time.preview import preview
from syncengine.state.inbox_model import PostedTimeStatus
from tests.posted_time.projects import LOOKUPS, SQL_SINK, delivering, rows
from tests.posted_time.receiver import Got, receiving
from tests.posted_time.samples import raw, row
from tests.posted_time.test_sinks import JSONL, http_sink, lines, run, taking

REFUSE = 'refuse:\n  - {when: not tag, message: "Assign a tag, {{ user.name }}."}\n'
UNTAGGED = raw("g2", tags=[])


# --- before anything is delivered


def test_a_refuse_rule_refuses_a_group_with_its_message(tmp_path: Path) -> None:
    """No lookup or sink sees the group, and the next group is delivered."""
    verdicts = taking(delivering(tmp_path, more=REFUSE + LOOKUPS), UNTAGGED, raw())
    assert verdicts == [
        Verdict(PostedTimeStatus.REFUSED, "Assign a tag, Jo Doe."),
        Verdict(PostedTimeStatus.SUCCESS, None, "L-g1"),
    ]


def test_a_lookup_that_finds_nothing_refuses_with_its_message(tmp_path: Path) -> None:
    """A missing row is for the user to correct."""
    verdicts = taking(delivering(tmp_path), raw(tags=[{"name": "NO-1"}]), UNTAGGED)
    assert [v.message for v in verdicts] == [
        "Matter NO-1 is not in the ledger.",
        "Matter without a tag is not in the ledger.",
    ]
    assert {v.outcome for v in verdicts} == {PostedTimeStatus.REFUSED}


def test_a_lookup_that_finds_two_refuses(tmp_path: Path) -> None:
    """An ambiguous lookup never picks a row."""
    more = LOOKUPS.replace("WHERE no = :no", "WHERE no <> :no")
    (verdict,) = taking(delivering(tmp_path, more=more), raw(tags=[{"name": "NO-1"}]))
    assert verdict == Verdict(PostedTimeStatus.REFUSED, "matter was found more than once.")


def test_a_lookup_whose_when_is_false_is_skipped(tmp_path: Path) -> None:
    """Its value is then none."""
    more = LOOKUPS + "    when: tag\n"
    sink = SQL_SINK.replace("{{ lookup.matter.id }}", "{{ lookup.matter.id or 8 }}")
    taking(delivering(tmp_path, sink, more), raw(), UNTAGGED)
    assert rows(tmp_path) == [("g1", 7, 3600), ("g2", 8, 3600)]


def test_every_sink_is_rendered_before_the_first_gets_anything(tmp_path: Path) -> None:
    """If a template of the last sink fails, the first sink does not get the group either."""
    deliver = JSONL + SQL_SINK.replace("{{ duration.seconds }}", "{{ user.name.no_such() }}")
    delivery = delivering(tmp_path, deliver)

    async def story(opened: Delivery) -> None:
        verdict = await opened.take(raw(), mechanism="fetch")
        assert (verdict.outcome, "no_such" in (verdict.message or "")) == (PostedTimeStatus.TROUBLE, False)
        entry = opened.inbox.entry("g1")
        assert entry is not None
        assert (entry.state, "syncengine.yaml:" in (entry.note or ""), opened.troubles) == ("troubled", True, ())

    run(delivery, story)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("unmatched", "outcome"), [("refuse", PostedTimeStatus.REFUSED), ("accept", PostedTimeStatus.SUCCESS)]
)
def test_unmatched_decides_on_a_group_that_no_sink_takes(
    unmatched: str, outcome: PostedTimeStatus, tmp_path: Path
) -> None:
    more = LOOKUPS + f"unmatched: {unmatched}\n"
    (verdict,) = taking(delivering(tmp_path, SQL_SINK + "  when: tag.name == 'x'\n", more), raw())
    assert (verdict.outcome, rows(tmp_path)) == (outcome, [])


def test_each_sink_takes_the_groups_that_match_its_when(tmp_path: Path) -> None:
    deliver = SQL_SINK + "  when: tag\n" + "- {name: archive, when: not tag, jsonl: {path: out/time.jsonl}}\n"
    taking(delivering(tmp_path, deliver, LOOKUPS + "    when: tag\n"), raw(), UNTAGGED)
    assert ([r[0] for r in rows(tmp_path)], [line["groupId"] for line in lines(tmp_path)]) == (["g1"], ["g2"])


def test_a_group_without_an_id_is_refused_and_the_next_is_taken(tmp_path: Path) -> None:
    """The inbox cannot store a group without an id."""
    verdicts = taking(delivering(tmp_path), {"tags": []}, raw())
    assert [v.outcome for v in verdicts] == [PostedTimeStatus.REFUSED, PostedTimeStatus.SUCCESS]


# --- offered again


def test_a_delivered_group_is_answered_again_and_not_delivered_again(tmp_path: Path) -> None:
    """The answer has the same reference, even if the service added fields to the group or another process answers."""
    again = raw(status="SUCCESS", submissionTime=99, callerKey="x")
    taking(delivering(tmp_path), raw(), again)
    assert taking(delivering(tmp_path), raw()) == [Verdict(PostedTimeStatus.SUCCESS, None, "L-g1")]
    assert len(rows(tmp_path)) == 1


def test_offers_at_the_same_time_are_one_delivery(tmp_path: Path) -> None:
    """The service may call again while its first call is in progress."""

    async def story(opened: Delivery) -> set[Verdict]:
        return set(await asyncio.gather(*(opened.take(raw(), mechanism="webhook") for _ in range(8))))

    assert run(delivering(tmp_path, JSONL + SQL_SINK), story) == {Verdict(PostedTimeStatus.SUCCESS, None, "L-g1")}
    assert (len(rows(tmp_path)), len(lines(tmp_path))) == (1, 1)


def test_a_refused_group_is_processed_again(tmp_path: Path) -> None:
    """The user posts it again after the matter is opened."""
    delivery = delivering(tmp_path)

    async def story(opened: Delivery) -> None:
        sent = raw(tags=[{"name": "NO-1"}])
        assert (await opened.take(sent, mechanism="fetch")).outcome is PostedTimeStatus.REFUSED
        rows_of_matter(tmp_path, "INSERT INTO matter VALUES (9, 'NO-1')")
        assert (await opened.take(sent, mechanism="fetch")).outcome is PostedTimeStatus.SUCCESS

    run(delivery, story)
    assert rows(tmp_path) == [("g1", 9, 3600)]


def rows_of_matter(folder: Path, statement: str) -> None:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(folder / "ledger.db")) as connection:
        connection.execute(statement)
        connection.commit()


def test_changed_content_after_a_refusal_is_the_next_revision(tmp_path: Path) -> None:
    """No sink has the first content. The Idempotency-Key of the second names its revision."""
    with receiving() as receiver:
        answers = iter([(422, {}), (201, {"id": 1})])
        receiver.answer = lambda got: next(answers)
        delivery = delivering(tmp_path, http_sink(receiver.url), "")
        verdicts = taking(delivery, raw(), raw(totalDurationSecs=1800))
    assert [v.outcome for v in verdicts] == [PostedTimeStatus.REFUSED, PostedTimeStatus.SUCCESS]
    assert [(g.headers["idempotency-key"], g.body["secs"]) for g in receiver.got] == [
        ("g1/pms", 3600),
        ("g1/pms/2", 1800),
    ]


def test_changed_content_after_a_delivery_is_a_conflict(tmp_path: Path) -> None:
    """The sink keeps the first content, and an offer of the first content is still answered with SUCCESS."""
    delivery = delivering(tmp_path)

    async def story(opened: Delivery) -> None:
        await opened.take(raw(), mechanism="fetch")
        changed = await opened.take(raw(totalDurationSecs=1), mechanism="fetch")
        assert (changed.outcome, "ledger took it" in (changed.message or "")) == (PostedTimeStatus.REFUSED, True)
        entry = opened.inbox.entry("g1")
        assert entry is not None
        assert (entry.state, entry.revision, entry.raw()["totalDurationSecs"]) == ("conflict", 1, 3600)
        assert await opened.take(raw(totalDurationSecs=1), mechanism="fetch") == changed
        assert (await opened.take(raw(), mechanism="fetch")).outcome is PostedTimeStatus.SUCCESS

    run(delivery, story)
    assert rows(tmp_path) == [("g1", 7, 3600)]


def test_a_conflict_is_found_by_the_receipt_if_the_inbox_is_lost(tmp_path: Path) -> None:
    taking(delivering(tmp_path), raw())
    (tmp_path / ".syncengine/state.db").unlink()
    delivery = delivering(tmp_path)

    async def story(opened: Delivery) -> str | None:
        verdict = await opened.take(raw(totalDurationSecs=1), mechanism="fetch")
        assert verdict.outcome is PostedTimeStatus.REFUSED
        entry = opened.inbox.entry("g1")
        return entry.state if entry else None

    assert run(delivery, story) == "conflict"
    assert rows(tmp_path) == [("g1", 7, 3600)]


def test_changed_content_after_a_partial_delivery_is_a_conflict(tmp_path: Path) -> None:
    """The first sink took the group and the second refused it: a change can no longer reach the first."""
    deliver = JSONL + SQL_SINK
    delivery = delivering(tmp_path, deliver)
    sent = raw(totalDurationSecs=0, timeRows=[])
    verdicts = taking(delivery, sent, raw())
    assert [v.outcome for v in verdicts] == [PostedTimeStatus.REFUSED, PostedTimeStatus.REFUSED]
    assert "archive took it" in (verdicts[1].message or "")
    assert (len(lines(tmp_path)), rows(tmp_path)) == (1, [])


def test_a_conflict_names_only_the_sinks_that_have_the_group(tmp_path: Path) -> None:
    """A sink that was in trouble at the first delivery is not named."""
    with receiving() as receiver:
        receiver.answer = lambda got: (503, {})
        delivery = delivering(tmp_path, JSONL + http_sink(receiver.url), "")

        async def story(opened: Delivery) -> tuple[str | None, str | None]:
            await opened.take(raw(), mechanism="fetch")
            verdict = await opened.take(raw(totalDurationSecs=1), mechanism="fetch")
            entry = opened.inbox.entry("g1")
            return verdict.message, entry.note if entry else None

        message, note = run(delivery, story)
    assert "archive took it in that form" in (message or "")
    assert note == "offered again with different content; archive took it as revision 1"


def test_a_conflict_after_a_lost_answer_says_that_the_sink_may_have_it(tmp_path: Path) -> None:
    with receiving() as receiver:
        receiver.answer = lambda got: None
        delivery = delivering(tmp_path, http_sink(receiver.url), "")
        _, verdict = taking(delivery, raw(), raw(totalDurationSecs=1))
    assert "pms may have it in that form" in (verdict.message or "")


def test_content_that_a_person_accepted_is_no_conflict_again(tmp_path: Path) -> None:
    """This holds for the delivered content and the last one offered before the decision; any other content is a
    conflict."""
    changed, third = raw(totalDurationSecs=1), raw(totalDurationSecs=2)

    async def story(opened: Delivery) -> list[PostedTimeStatus]:
        await opened.take(raw(), mechanism="fetch")
        await opened.take(third, mechanism="fetch")
        assert (await opened.take(changed, mechanism="fetch")).outcome is PostedTimeStatus.REFUSED
        opened.inbox.write(lambda tx: tx.settle(["g1"]))
        again = [await opened.take(offered, mechanism="fetch") for offered in (changed, raw(), changed, third)]
        assert again[0] == Verdict(PostedTimeStatus.SUCCESS, None, "L-g1")
        return [verdict.outcome for verdict in again]

    assert run(delivering(tmp_path), story) == [*[PostedTimeStatus.SUCCESS] * 3, PostedTimeStatus.REFUSED]
    assert rows(tmp_path) == [("g1", 7, 3600)]


def test_only_the_sink_that_lacks_a_group_gets_it_again(tmp_path: Path) -> None:
    """The second sink was in trouble; the first gets the group once."""
    with receiving() as receiver:
        statuses = iter([503, 503, 201])
        receiver.answer = lambda got: (next(statuses), {"id": 5})
        delivery = delivering(tmp_path, SQL_SINK + http_sink(receiver.url))
        verdicts = taking(delivery, raw(), raw(), raw())
    assert [v.outcome for v in verdicts] == [
        PostedTimeStatus.TROUBLE,
        PostedTimeStatus.TROUBLE,
        PostedTimeStatus.SUCCESS,
    ]
    assert (len(rows(tmp_path)), len(receiver.got), verdicts[2].external_id) == (1, 3, "L-g1")


LOST: dict[str, tuple[int | None, PostedTimeStatus]] = {
    "no answer": (None, PostedTimeStatus.REFUSED),
    "403 says that it was not taken": (403, PostedTimeStatus.SUCCESS),
    **{
        f"{status} leaves it open": (status, PostedTimeStatus.REFUSED) for status in (303, 408, 425, 429, 500, 503, 524)
    },
}


@pytest.mark.parametrize(("status", "outcome"), LOST.values(), ids=LOST.keys())
def test_changed_content_after_an_unclear_answer_is_refused(
    status: int | None, outcome: PostedTimeStatus, tmp_path: Path
) -> None:
    """A sink must never hold two contents of one group: a group that it may have taken counts as taken."""
    with receiving() as receiver:
        answers = iter([(status, {}) if status else None, (201, {"id": 1})])
        receiver.answer = lambda got: next(answers)  # type: ignore[assignment,return-value]
        delivery = delivering(tmp_path, http_sink(receiver.url), "")
        verdicts = taking(delivery, raw(), raw(totalDurationSecs=1))
    assert [v.outcome for v in verdicts] == [PostedTimeStatus.TROUBLE, outcome]


# --- the status that the service gets


def test_verdicts_of_fetch_wait_until_the_service_accepted_them(tmp_path: Path) -> None:
    """They survive a restart. A verdict on a webhook call does not wait: it was the answer to the call."""

    async def first(opened: Delivery) -> None:
        await opened.take(raw("g1"), mechanism="fetch")
        await opened.take(UNTAGGED, mechanism="fetch")
        await opened.take(raw("g3"), mechanism="webhook")

    run(delivering(tmp_path), first)

    async def second(opened: Delivery) -> None:
        waiting = list(opened.inbox.waiting())
        assert [(w.group_id, w.status, w.external_id) for w in waiting] == [
            ("g1", "SUCCESS", "L-g1"),
            ("g2", "FAILURE", None),
        ]
        opened.inbox.write(lambda tx: tx.acknowledge("g1", "SUCCESS"))
        opened.inbox.write(lambda tx: tx.give_up("g2", "the service does not know it"))
        assert list(opened.inbox.waiting()) == []
        states = {entry.group_id: entry.state for entry in opened.inbox.entries()}
        assert states == {"g1": "acknowledged", "g2": "given-up", "g3": "acknowledged"}
        await opened.take(raw("g1"), mechanism="fetch")
        assert [w.group_id for w in opened.inbox.waiting()] == ["g1"]

    run(delivering(tmp_path), second)


def test_an_acceptance_of_an_older_verdict_does_not_end_the_wait(tmp_path: Path) -> None:
    """FAILURE was on its way to the service when the group was offered again and delivered."""

    async def story(opened: Delivery) -> None:
        sent = raw(tags=[{"name": "NO-1"}])
        await opened.take(sent, mechanism="fetch")
        rows_of_matter(tmp_path, "INSERT INTO matter VALUES (9, 'NO-1')")
        await opened.take(sent, mechanism="fetch")
        opened.inbox.write(lambda tx: tx.acknowledge("g1", "FAILURE"))
        assert [w.status for w in opened.inbox.waiting()] == ["SUCCESS"]

    run(delivering(tmp_path), story)


def test_the_whole_story_of_a_group_is_kept(tmp_path: Path) -> None:
    """Every offer, every attempt with the sink's reference, and every status."""

    async def story(opened: Delivery) -> list[tuple[Any, ...]]:
        await opened.take(raw(), mechanism="fetch")
        opened.inbox.write(lambda tx: tx.acknowledge("g1", "SUCCESS"))
        return [(e.kind, e.sink, e.outcome, e.external_id) for e in opened.inbox.story("g1")]

    assert run(delivering(tmp_path), story) == [
        ("offered", None, None, None),
        ("attempt", "ledger", "accepted", "L-g1"),
        ("verdict", None, "SUCCESS", "L-g1"),
        ("status", None, "SUCCESS", "L-g1"),
    ]


def test_old_groups_are_reduced_to_id_and_receipts(tmp_path: Path) -> None:
    """After `keep`, a group keeps its id and receipts, so a later offer is recognized. Groups that are not acknowledged
    stay whole."""
    now = 1_000_000.0
    delivery = delivering(tmp_path, more=LOOKUPS + "keep: 30d\n", now=lambda: now)

    async def story(opened: Delivery) -> None:
        nonlocal now
        await opened.take(raw(description="a secret matter"), mechanism="fetch")
        opened.inbox.write(lambda tx: tx.acknowledge("g1", "SUCCESS"))
        await opened.take(raw("g2"), mechanism="fetch")
        now += 31 * 86400
        await opened.take(raw("g3"), mechanism="fetch")
        opened.inbox.write(lambda tx: tx.acknowledge("g3", "SUCCESS"))
        await opened.catch_up(asyncio.Event())
        bodies = {entry.group_id: (entry.body is None, entry.user_name) for entry in opened.inbox.entries()}
        assert bodies == {"g1": (True, None), "g2": (False, "Jo Doe"), "g3": (False, "Jo Doe")}
        assert [r.group_id for r in opened.inbox.receipts("ledger", 0)] == ["g1", "g2", "g3"]
        assert opened.inbox.story("g1") == []
        assert await opened.take(raw(description="a secret matter"), mechanism="fetch") == Verdict(
            PostedTimeStatus.SUCCESS, None, "L-g1"
        )
        assert (await opened.take(raw(description="changed"), mechanism="fetch")).outcome is PostedTimeStatus.REFUSED

    run(delivery, story)
    assert len(rows(tmp_path)) == 3


def test_redelivery_gives_a_sink_what_it_lost_and_nothing_twice(tmp_path: Path) -> None:
    """The ledger was restored from a backup that lacks the row and the receipt of one group."""
    delivery = delivering(tmp_path, JSONL + SQL_SINK)

    async def story(opened: Delivery) -> None:
        for id in ("g1", "g2"):
            await opened.take(raw(id), mechanism="fetch")
            opened.inbox.write(lambda tx: tx.acknowledge(id, "SUCCESS"))  # noqa: B023 - called at once
        rows_of_matter(tmp_path, "DELETE FROM time WHERE id = 'g1'")
        rows_of_matter(tmp_path, "DELETE FROM syncengine_receipts WHERE group_id = 'g1'")
        opened.inbox.write(lambda tx: tx.ask(["g1", "g2"], "ledger"))
        opened.inbox.write(lambda tx: tx.ask(["g1", "g2"], "archive"))
        assert await opened.catch_up(asyncio.Event()) == 2
        assert await opened.catch_up(asyncio.Event()) == 0
        assert list(opened.inbox.waiting()) == []
        assert all(entry.is_settled for entry in opened.inbox.entries())

    run(delivery, story)
    assert sorted(r[0] for r in rows(tmp_path)) == ["g1", "g2"]
    assert [line["groupId"] for line in lines(tmp_path)] == ["g1", "g2"]


def test_redelivery_to_one_sink_gives_nothing_to_a_sink_added_later(tmp_path: Path) -> None:
    async def first(opened: Delivery) -> None:
        await opened.take(raw(), mechanism="fetch")
        opened.inbox.write(lambda tx: tx.acknowledge("g1", "SUCCESS"))

    async def second(opened: Delivery) -> None:
        opened.inbox.write(lambda tx: tx.ask(["g1"], "archive"))
        assert await opened.catch_up(asyncio.Event()) == 1
        await opened.take(raw("g2"), mechanism="fetch")

    run(delivering(tmp_path, JSONL), first)
    (tmp_path / "out/time.jsonl").unlink()
    run(delivering(tmp_path, JSONL + SQL_SINK), second)
    assert [line["groupId"] for line in lines(tmp_path)] == ["g1", "g2"]
    assert [r[0] for r in rows(tmp_path)] == ["g2"]


def test_a_failed_redelivery_keeps_the_status_success(tmp_path: Path) -> None:
    """The status stays acknowledged, and the group stays unsettled."""
    with receiving() as receiver:
        delivery = delivering(tmp_path, http_sink(receiver.url), "")

        async def story(opened: Delivery) -> None:
            await opened.take(raw(), mechanism="fetch")
            opened.inbox.write(lambda tx: tx.acknowledge("g1", "SUCCESS"))
            receiver.answer = lambda got: (503, {})
            opened.inbox.write(lambda tx: tx.ask(["g1"], "pms"))
            await opened.catch_up(asyncio.Event())
            entry = opened.inbox.entry("g1")
            assert entry is not None
            assert (entry.outcome, entry.state, entry.is_settled) == ("SUCCESS", "acknowledged", False)

        run(delivery, story)


def test_different_groups_are_delivered_concurrently(tmp_path: Path) -> None:
    with receiving() as receiver:
        import threading

        both = threading.Barrier(2, timeout=20)

        def answer(got: Got) -> tuple[int, Any]:
            both.wait()
            return 201, {"id": 1}

        receiver.answer = answer

        async def story(opened: Delivery) -> list[Verdict]:
            return await asyncio.gather(*(opened.take(raw(id), mechanism="webhook") for id in ("g1", "g2")))

        verdicts = run(delivering(tmp_path, http_sink(receiver.url), ""), story)
    assert [v.outcome for v in verdicts] == [PostedTimeStatus.SUCCESS] * 2


def test_the_duration_settings_decide_the_seconds_that_a_sink_gets(tmp_path: Path) -> None:
    more = LOOKUPS + "duration: {from: rows, weighting: always, roundUpTo: 6m}\n"
    sent = raw(totalDurationSecs=9999, timeRows=[row(durationSecs=1000)], user={"experienceWeightingPercent": 50})
    taking(delivering(tmp_path, more=more), sent)
    assert rows(tmp_path) == [("g1", 7, 720)]


ROUNDED = {
    "setting": ("{{ duration.seconds }}", "duration: {roundUpTo: 6m}\n"),
    "filter": ("{{ group.totalDurationSecs | round_up('6m') }}", ""),
}


@pytest.mark.parametrize(("value", "more"), ROUNDED.values(), ids=ROUNDED.keys())
@pytest.mark.parametrize(("seconds", "word"), [(-5, "negative"), (0, "0 seconds")])
def test_a_duration_that_is_not_positive_is_refused_and_not_rounded_up(
    seconds: int, word: str, value: str, more: str, tmp_path: Path
) -> None:
    """Rounding -5 s up to 6 minutes would bill time that was never worked."""
    sink = SQL_SINK.replace("{{ duration.seconds }}", value)
    (verdict,) = taking(delivering(tmp_path, sink, LOOKUPS + more), raw(totalDurationSecs=seconds, timeRows=[]))
    assert (verdict.outcome, word in (verdict.message or ""), rows(tmp_path)) == (PostedTimeStatus.REFUSED, True, [])


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("{{ user.externalId | int }}", "'jd' is not a number"),
        ("{{ user.externalId | float }}", "'jd' is not a number"),
        ("{{ user.externalId | hours }}", "'jd' is not a number"),
        ("{{ user.externalId | date }}", "'jd' is not an ISO 8601 date or time"),
        ("{{ user.externalId | abs }}", "'jd' is not a number"),
        ("{{ 'x' | abs }}", "'x' is not a number"),
        ("{{ [user.externalId] | sum }}", "'jd' is not a number"),
        ("{{ user.externalId.split('-')[1] }}", "it lacks something that its delivery needs"),
        ("{{ user.externalId.split('-')[1] | upper }}", "it lacks something that its delivery needs"),
        ("{{ 'abc'[9] }}", "it lacks something that its delivery needs"),
        ("M-{{ user.externalId[9] }}", "it lacks something that its delivery needs"),
        ("{{ (rows | selectattr('activity', 'equalto', 'no') | first).activity }}", "it lacks something"),
        ("{{ '%05d' | format(user.externalId) }}", "in another form"),
        ("{{ user.experienceWeightingPercent * 36 }}", "in another form"),
        ("{{ 1 // (duration.seconds - duration.seconds) }}", "in another form"),
    ],
)
def test_a_value_that_a_template_cannot_use_is_refused(value: str, why: str, tmp_path: Path) -> None:
    """Every attempt would fail alike: the user gets the reason, the operator the place in the template."""
    content = raw(user={**raw()["user"], "externalId": "jd", "experienceWeightingPercent": None})

    async def story(opened: Delivery) -> None:
        verdict = await opened.take(content, mechanism="fetch")
        assert (verdict.outcome, why in (verdict.message or "")) == (PostedTimeStatus.REFUSED, True), verdict
        assert "syncengine.yaml:" in (verdict.detail or "")

    run(delivering(tmp_path, SQL_SINK.replace("{{ narrative }}", value)), story)
    assert rows(tmp_path) == []


@pytest.mark.parametrize(
    "value", ["{{ user.name.no_such }}", "{{ user.name.no_such() }}", "{{ start | local(user.name) }}"]
)
def test_a_mistake_in_a_template_is_trouble_and_no_refusal(value: str, tmp_path: Path) -> None:
    """The user's time is right; only the operator can correct the template."""
    (verdict,) = taking(delivering(tmp_path, SQL_SINK.replace("{{ narrative }}", value)), raw())
    assert verdict.outcome is PostedTimeStatus.TROUBLE


def test_a_narrative_that_no_sink_uses_cannot_fail_a_delivery(tmp_path: Path) -> None:
    """The narrative is rendered only for a sink that uses it, and for previews."""
    (tmp_path / "n.j2").write_text("{{ 1 // (rows | length) }}")
    more = LOOKUPS + "narrative: {template: n.j2}\n"

    async def story(opened: Delivery) -> None:
        assert (await preview(opened.route, raw(timeRows=[])))["narrative"] is None
        assert (await preview(opened.route, raw()))["narrative"] == "1"
        assert (await opened.take(raw(timeRows=[]), mechanism="fetch")).outcome is PostedTimeStatus.SUCCESS

    run(delivering(tmp_path, SQL_SINK.replace("{{ narrative }}", "{{ tag.name }}"), more), story)
    (verdict,) = taking(delivering(tmp_path, SQL_SINK, more), raw("g2", timeRows=[]))
    assert verdict.outcome is PostedTimeStatus.REFUSED
    assert rows(tmp_path, "SELECT id, note FROM time") == [("g1", "ACME-0042")]


def test_the_connectors_configuration_reaches_templates(tmp_path: Path) -> None:
    """It is the service's answer to the registration; a missing entry is none."""
    sink = SQL_SINK.replace("{{ narrative }}", "{{ connectorConfiguration.ADD }}/{{ connectorConfiguration.OTHER }}")

    async def story(opened: Delivery) -> None:
        opened.configure({"ADD": True})
        await opened.take(raw(), mechanism="fetch")

    run(delivering(tmp_path, sink), story)
    assert rows(tmp_path, "SELECT note FROM time") == [("True/",)]


@pytest.mark.parametrize("value", ["{{ rows }}", "{{ tag }}", "{{ [tag.name] }}", "{{ user.name.no_such }}"])
def test_a_value_that_no_sink_can_take_affects_only_its_group(value: str, tmp_path: Path) -> None:
    """The group is in trouble with a note that says why, and the sink is not reported as down."""
    deliver = SQL_SINK.replace("{{ narrative }}", value) + "  when: tag\n"

    async def story(opened: Delivery) -> None:
        assert (await opened.take(raw(), mechanism="fetch")).outcome is PostedTimeStatus.TROUBLE
        entry = opened.inbox.entry("g1")
        assert entry is not None
        assert (bool(entry.note), opened.troubles, await opened.check_sinks()) == (True, (), ())

    run(delivering(tmp_path, deliver), story)
    assert rows(tmp_path) == []
