"""A group is stored first, prepared whole, delivered once to each sink, and the service is told what became of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from syncengine.posted_time.delivery import Delivery, PostedTimeStatus, Verdict
from syncengine.posted_time.preview import preview
from tests.posted_time.projects import LOOKUPS, SQL_SINK, delivering, rows
from tests.posted_time.receiver import Got, receiving
from tests.posted_time.samples import raw, row
from tests.posted_time.test_sinks import JSONL, http_sink, lines, run, taking

REFUSE = 'refuse:\n  - {when: not tag, message: "Assign a tag, {{ user.name }}."}\n'
UNTAGGED = raw("g2", tags=[])


# --- before anything is delivered


def test_a_rule_refuses_with_its_sentence(tmp_path: Path) -> None:
    """Before lookups and sinks; the next group is delivered."""
    verdicts = taking(delivering(tmp_path, more=REFUSE + LOOKUPS), UNTAGGED, raw())
    assert verdicts == [
        Verdict(PostedTimeStatus.REFUSED, "Assign a tag, Jo Doe."),
        Verdict(PostedTimeStatus.SUCCESS, None, "L-g1"),
    ]


def test_a_lookup_that_finds_nothing_refuses_with_its_sentence(tmp_path: Path) -> None:
    """A miss is the user's matter."""
    verdicts = taking(delivering(tmp_path), raw(tags=[{"name": "NO-1"}]), UNTAGGED)
    assert [v.message for v in verdicts] == [
        "Matter NO-1 is not in the ledger.",
        "Matter without a tag is not in the ledger.",
    ]
    assert {v.outcome for v in verdicts} == {PostedTimeStatus.REFUSED}


def test_a_lookup_that_finds_two_refuses(tmp_path: Path) -> None:
    """Neither of them is surely the one."""
    more = LOOKUPS.replace("WHERE no = :no", "WHERE no <> :no")
    (verdict,) = taking(delivering(tmp_path, more=more), raw(tags=[{"name": "NO-1"}]))
    assert verdict == Verdict(PostedTimeStatus.REFUSED, "matter was found more than once.")


def test_a_lookup_can_be_left_out(tmp_path: Path) -> None:
    """Then it is none."""
    more = LOOKUPS + "    when: tag\n"
    sink = SQL_SINK.replace("{{ lookup.matter.id }}", "{{ lookup.matter.id or 8 }}")
    taking(delivering(tmp_path, sink, more), raw(), UNTAGGED)
    assert rows(tmp_path) == [("g1", 7, 3600), ("g2", 8, 3600)]


def test_every_sink_is_rendered_before_the_first_gets_anything(tmp_path: Path) -> None:
    """A template of the last that fails leaves the first without the group."""
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
def test_a_group_that_no_sink_takes(unmatched: str, outcome: PostedTimeStatus, tmp_path: Path) -> None:
    """`unmatched`."""
    more = LOOKUPS + f"unmatched: {unmatched}\n"
    (verdict,) = taking(delivering(tmp_path, SQL_SINK + "  when: tag.name == 'x'\n", more), raw())
    assert (verdict.outcome, rows(tmp_path)) == (outcome, [])


def test_each_sink_takes_what_is_for_it(tmp_path: Path) -> None:
    """`when`."""
    deliver = SQL_SINK + "  when: tag\n" + "- {name: archive, when: not tag, jsonl: {path: out/time.jsonl}}\n"
    taking(delivering(tmp_path, deliver, LOOKUPS + "    when: tag\n"), raw(), UNTAGGED)
    assert ([r[0] for r in rows(tmp_path)], [line["groupId"] for line in lines(tmp_path)]) == (["g1"], ["g2"])


def test_a_group_without_an_id_is_refused_and_the_next_is_taken(tmp_path: Path) -> None:
    """There is nothing to keep it under."""
    verdicts = taking(delivering(tmp_path), {"tags": []}, raw())
    assert [v.outcome for v in verdicts] == [PostedTimeStatus.REFUSED, PostedTimeStatus.SUCCESS]


# --- offered again


def test_a_delivered_group_is_answered_again_and_not_delivered_again(tmp_path: Path) -> None:
    """With the same reference, whatever the service added meanwhile, in this process and the next."""
    again = raw(status="SUCCESS", submissionTime=99, callerKey="x")
    taking(delivering(tmp_path), raw(), again)
    assert taking(delivering(tmp_path), raw()) == [Verdict(PostedTimeStatus.SUCCESS, None, "L-g1")]
    assert len(rows(tmp_path)) == 1


def test_offers_at_the_same_time_are_one_delivery(tmp_path: Path) -> None:
    """The service calls again while the first call is under way."""

    async def story(opened: Delivery) -> set[Verdict]:
        return set(await asyncio.gather(*(opened.take(raw(), mechanism="webhook") for _ in range(8))))

    assert run(delivering(tmp_path, JSONL + SQL_SINK), story) == {Verdict(PostedTimeStatus.SUCCESS, None, "L-g1")}
    assert (len(rows(tmp_path)), len(lines(tmp_path))) == (1, 1)


def test_a_refused_group_is_processed_again(tmp_path: Path) -> None:
    """The user posted it again, after the matter was opened."""
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


def test_another_content_after_a_refusal_is_the_next_revision(tmp_path: Path) -> None:
    """Nobody has the first; an HTTP receiver can tell the two apart by their keys."""
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


def test_another_content_after_a_sink_took_it_is_a_conflict(tmp_path: Path) -> None:
    """For a person; the sink keeps what it has, and the first content offered again is a success as before."""
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


def test_a_conflict_is_found_in_the_target_too(tmp_path: Path) -> None:
    """The inbox was lost, the receipt was not."""
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


def test_half_a_delivery_and_another_content_is_a_conflict(tmp_path: Path) -> None:
    """The first sink has it, the second refused: a change cannot reach the first any more."""
    deliver = JSONL + SQL_SINK
    delivery = delivering(tmp_path, deliver)
    sent = raw(totalDurationSecs=0, timeRows=[])
    verdicts = taking(delivery, sent, raw())
    assert [v.outcome for v in verdicts] == [PostedTimeStatus.REFUSED, PostedTimeStatus.REFUSED]
    assert "archive took it" in (verdicts[1].message or "")
    assert (len(lines(tmp_path)), rows(tmp_path)) == (1, [])


def test_a_conflict_names_the_sinks_that_have_it_and_no_other(tmp_path: Path) -> None:
    """Not the one that was in trouble when the first took it."""
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


def test_a_conflict_after_a_lost_answer_says_what_is_known(tmp_path: Path) -> None:
    """That the sink may have it."""
    with receiving() as receiver:
        receiver.answer = lambda got: None
        delivery = delivering(tmp_path, http_sink(receiver.url), "")
        _, verdict = taking(delivery, raw(), raw(totalDurationSecs=1))
    assert "pms may have it in that form" in (verdict.message or "")


def test_what_a_person_accepted_is_no_conflict_again(tmp_path: Path) -> None:
    """Neither content that was offered till then; a third is one."""
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


def test_only_the_sink_that_lacks_it_is_given_it_again(tmp_path: Path) -> None:
    """The second was in trouble; the first is not asked twice."""
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
    "nobody can tell": (None, PostedTimeStatus.REFUSED),
    "the receiver said that it has it not": (403, PostedTimeStatus.SUCCESS),
    **{f"{status} says nothing": (status, PostedTimeStatus.REFUSED) for status in (303, 408, 425, 429, 500, 503, 524)},
}


@pytest.mark.parametrize(("status", "outcome"), LOST.values(), ids=LOST.keys())
def test_another_content_after_a_lost_answer(status: int | None, outcome: PostedTimeStatus, tmp_path: Path) -> None:
    """Two contents of one group must not both be in a sink: what may have been taken counts as taken."""
    with receiving() as receiver:
        answers = iter([(status, {}) if status else None, (201, {"id": 1})])
        receiver.answer = lambda got: next(answers)  # type: ignore[assignment,return-value]
        delivery = delivering(tmp_path, http_sink(receiver.url), "")
        verdicts = taking(delivery, raw(), raw(totalDurationSecs=1))
    assert [v.outcome for v in verdicts] == [PostedTimeStatus.TROUBLE, outcome]


# --- what the service is told


def test_verdicts_of_fetch_wait_until_the_service_accepted_them(tmp_path: Path) -> None:
    """Across a restart; those of the webhook were the answer itself."""

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
    """FAILURE was under way when the group came again and was delivered."""

    async def story(opened: Delivery) -> None:
        sent = raw(tags=[{"name": "NO-1"}])
        await opened.take(sent, mechanism="fetch")
        rows_of_matter(tmp_path, "INSERT INTO matter VALUES (9, 'NO-1')")
        await opened.take(sent, mechanism="fetch")
        opened.inbox.write(lambda tx: tx.acknowledge("g1", "FAILURE"))
        assert [w.status for w in opened.inbox.waiting()] == ["SUCCESS"]

    run(delivering(tmp_path), story)


def test_the_whole_story_of_a_group_is_kept(tmp_path: Path) -> None:
    """Each offer, each attempt with the sink's reference, each status."""

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
    """After `keep`; and are still known when they are offered again. What failed stays whole."""
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
    """A backup was restored: rows and receipts of one group are gone."""
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


def test_redelivery_gives_nothing_to_a_sink_that_came_later(tmp_path: Path) -> None:
    """Who asks for one sink does not ask for another to be filled with what is old."""

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


def test_redelivery_that_fails_does_not_take_a_success_back(tmp_path: Path) -> None:
    """The service was told the truth; what is missing stays visible."""
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


def test_a_receiver_that_answers_is_asked_one_group_at_a_time_only_for_the_same_group(tmp_path: Path) -> None:
    """Different groups are delivered concurrently."""
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


def test_rows_and_weights_reach_the_sink(tmp_path: Path) -> None:
    """`duration` of the project file."""
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
def test_what_is_not_positive_is_refused_instead_of_rounded_up(
    seconds: int, word: str, value: str, more: str, tmp_path: Path
) -> None:
    """-5 s were once delivered as 360: its user is told, nothing is delivered, and it is not tried for ever."""
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
    """It would be so at each attempt: its user is told what is wrong, the operator where."""
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
def test_a_mistake_in_a_template_waits_until_it_is_mended(value: str, tmp_path: Path) -> None:
    """The time is right, and its user cannot correct what the project names in vain."""
    (verdict,) = taking(delivering(tmp_path, SQL_SINK.replace("{{ narrative }}", value)), raw())
    assert verdict.outcome is PostedTimeStatus.TROUBLE


def test_a_narrative_that_nothing_has_cannot_fail(tmp_path: Path) -> None:
    """It is rendered where something is delivered with it, and for whoever looks at a preview."""
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
    """What the service answered to the registration; what it did not say is none."""
    sink = SQL_SINK.replace("{{ narrative }}", "{{ connectorConfiguration.ADD }}/{{ connectorConfiguration.OTHER }}")

    async def story(opened: Delivery) -> None:
        opened.configure({"ADD": True})
        await opened.take(raw(), mechanism="fetch")

    run(delivering(tmp_path, sink), story)
    assert rows(tmp_path, "SELECT note FROM time") == [("True/",)]


@pytest.mark.parametrize("value", ["{{ rows }}", "{{ tag }}", "{{ [tag.name] }}", "{{ user.name.no_such }}"])
def test_a_value_that_no_sink_can_take_holds_up_nobody_else(value: str, tmp_path: Path) -> None:
    """Its group is in trouble, and its note says why; the sink is not down."""
    deliver = SQL_SINK.replace("{{ narrative }}", value) + "  when: tag\n"

    async def story(opened: Delivery) -> None:
        assert (await opened.take(raw(), mechanism="fetch")).outcome is PostedTimeStatus.TROUBLE
        entry = opened.inbox.entry("g1")
        assert entry is not None
        assert (bool(entry.note), opened.troubles, await opened.check_sinks()) == (True, (), ())

    run(delivering(tmp_path, deliver), story)
    assert rows(tmp_path) == []
