"""A group with several tags: nothing of it is lost in silence, and its duration is divided between its tags exactly."""

from __future__ import annotations

import asyncio
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from syncengine.posted_time.delivery import Delivery, PostedTimeStatus, Verdict
from syncengine.posted_time.durations import DIVIDE, SAME_NAME, WHOLE, duration_of, shares, suffixes, tag_of
from syncengine.project.delivery_schema import DurationSection
from syncengine.state.inbox import open_inbox
from tests.posted_time.projects import LOOKUPS, SQL_SINK, delivering, problems, rows
from tests.posted_time.receiver import receiving
from tests.posted_time.samples import group, raw
from tests.posted_time.test_commands import program
from tests.posted_time.test_delivery import rows_of_matter
from tests.posted_time.test_sinks import JSONL, http_sink, lines, run, taking
from tests.settings.test_schema import judge

pytestmark = pytest.mark.slow

A, B, C = ({"name": f"ACME-004{number}"} for number in (2, 3, 4))
EACH = "  each: tag\n"
CAME_OR_WENT = "`each: tag` was added or removed after the group was delivered"
SECOND = suffixes(["ACME-0042", "ACME-0043"])["ACME-0043"]


def several(*tags: dict[str, Any], **given: Any) -> dict[str, Any]:
    return raw(tags=list(tags or (A, B)), **given)


def seconds(tags: int, total: int, strategy: str | None = DIVIDE) -> list[int]:
    """What each tag gets, in the order of the names."""
    names = [{"name": f"T{number:03}"} for number in range(tags)]
    random.Random(tags).shuffle(names)
    found = group(tags=names, totalDurationSecs=total, durationSplitStrategy=strategy)
    made = shares(found, duration_of(found, DurationSection()))
    assert not isinstance(made, str)
    assert [share.tag.name for share in made] == sorted(name["name"] for name in names)
    return [share.duration.seconds for share in made]


# --- shares


@pytest.mark.parametrize("tags", [2, 3, 7, 60])
@pytest.mark.parametrize("total", [0, 1, 59, 100, 3600, 3601, 86399])
def test_shares_are_whole_seconds_and_add_up_to_the_whole(tags: int, total: int) -> None:
    """None differs from another by more than a second; what is left over goes to the first, by name."""
    found = seconds(tags, total)
    assert (sum(found), max(found) - min(found) <= 1, found) == (total, True, sorted(found, reverse=True))


def test_a_group_that_names_no_strategy_is_divided_and_the_old_one_gives_each_the_whole() -> None:
    """Nobody is billed twice unless the service says so."""
    assert seconds(2, 3601, None) == [1801, 1800]
    assert seconds(2, 3601, WHOLE) == [3601, 3601]


def test_keys_of_tags_follow_their_names_and_are_never_a_sinks_name() -> None:
    """The first tag and an only one have the sink's own; the order in which tags come does not matter."""
    assert (suffixes(["x"]), suffixes([None])) == ({"x": ""}, {"": ""})
    assert suffixes(["b", "a", "a"]) == suffixes(["a", "b"])
    found = suffixes([f"tag {number}" for number in range(1000)] + ["", "a/b", "A/B"])
    assert len(set(found.values())) == 1003
    assert all(len(suffix) == 25 and suffix[0] == "/" for suffix in found.values() if suffix)
    assert (tag_of("ledger" + found["a/b"], "ledger", found), tag_of("ledger", "ledger", ["x"])) == ("a/b", None)


# --- a sink that runs for each tag


def test_each_tag_is_delivered_with_its_share_lookup_and_narrative(tmp_path: Path) -> None:
    """Once each, in a transaction with a receipt each; hours are of the share, too."""
    (tmp_path / "n.j2").write_text("{{ tag.name }} of {{ tags | length }}: {{ duration.hours }}")
    more = LOOKUPS + "narrative: {template: n.j2}\n"
    (verdict,) = taking(delivering(tmp_path, SQL_SINK + EACH, more), several(B, A, totalDurationSecs=3601))
    assert verdict == Verdict(PostedTimeStatus.SUCCESS, None, "L-g1")
    found = rows(tmp_path, "SELECT id, matter, secs, note FROM time ORDER BY matter")
    assert found == [("g1", 7, 1801, "ACME-0042 of 2: 0.5003"), ("g1", 8, 1800, "ACME-0043 of 2: 0.5")]
    signed = rows(tmp_path, "SELECT group_id, sink, revision FROM syncengine_receipts ORDER BY sink")
    assert signed == [("g1", "ledger", 1), ("g1", "ledger" + SECOND, 1)]


def test_rounding_and_weighting_come_before_the_duration_is_divided(tmp_path: Path) -> None:
    """Six minutes are begun once for the group, and the shares add up to what it comes to."""
    more = LOOKUPS + "duration: {roundUpTo: 6m}\n"
    taking(delivering(tmp_path, SQL_SINK + EACH, more), several(totalDurationSecs=361))
    assert [secs for _, _, secs in rows(tmp_path)] == [360, 360]


@pytest.mark.parametrize("tags", [[A], []], ids=["one tag", "no tag"])
def test_a_group_with_one_tag_or_none_is_delivered_as_ever(tags: list[dict[str, Any]], tmp_path: Path) -> None:
    """Under the same key and with the same content: who took it before `each: tag` came has it."""
    sink = SQL_SINK.replace("lookup.matter.id", "7")
    before = taking(delivering(tmp_path, sink, ""), raw(tags=tags))
    (tmp_path / ".syncengine/state.db").unlink()
    assert taking(delivering(tmp_path, sink + EACH, ""), raw(tags=tags)) == before
    assert rows(tmp_path) == [("g1", 7, 3600)]


def test_requests_for_each_tag_have_keys_of_their_own(tmp_path: Path) -> None:
    """The first, by name, has the key of a group with one tag; a later revision ends in its number."""
    with receiving() as receiver:
        statuses = iter([422, 201, 201])
        receiver.answer = lambda got: (next(statuses), {"id": got.path[-1]})
        delivery = delivering(tmp_path, http_sink(receiver.url) + EACH, "")
        _, verdict = taking(delivery, several(), several(B, A, totalDurationSecs=100))
    keys = [(got.headers["idempotency-key"], got.path, got.body["secs"]) for got in receiver.got]
    assert keys == [
        (f"g1/pms{SECOND}", "/api/time/ACME-0043", 1800),
        (f"g1/pms{SECOND}/2", "/api/time/ACME-0043", 50),
        ("g1/pms/2", "/api/time/ACME-0042", 50),
    ]
    assert verdict == Verdict(PostedTimeStatus.SUCCESS, None, "2")


def test_lines_for_each_tag_say_which(tmp_path: Path) -> None:
    """The group stands whole in each of them, as it came."""
    taking(delivering(tmp_path, JSONL.replace("{name: archive,", "{name: archive, each: tag,"), ""), several())
    assert [(line["tag"]["name"], line["seconds"], len(line["tags"])) for line in lines(tmp_path)] == [
        ("ACME-0043", 1800, 2),
        ("ACME-0042", 1800, 2),
    ]


def test_a_lookup_that_misses_for_one_tag_refuses_the_group(tmp_path: Path) -> None:
    """Before anything is delivered for the others; and the sentence names the tag."""
    (verdict,) = taking(delivering(tmp_path, SQL_SINK + EACH), several(A, C))
    assert verdict == Verdict(PostedTimeStatus.REFUSED, "Matter ACME-0044 is not in the ledger.")
    assert rows(tmp_path) == []


def test_a_rule_holds_for_each_tag(tmp_path: Path) -> None:
    """Whichever comes first; the duration that it sees is the group's."""
    more = LOOKUPS + "refuse:\n  - {when: tag.name == 'ACME-0043' and duration.seconds == 3600, message: Closed.}\n"
    for tags in ((A, B), (B, A)):
        (verdict,) = taking(delivering(tmp_path, SQL_SINK + EACH, more), several(*tags))
        assert verdict == Verdict(PostedTimeStatus.REFUSED, "Closed.")


def test_an_unknown_strategy_is_refused_where_it_would_have_to_be_followed(tmp_path: Path) -> None:
    """Guessing is billing; a sink that is given the whole needs none."""
    sent = several(durationSplitStrategy="BY_WEIGHT")
    (verdict,) = taking(delivering(tmp_path, SQL_SINK + EACH), sent)
    assert (verdict.outcome, "BY_WEIGHT" in (verdict.message or "")) == (PostedTimeStatus.REFUSED, True)
    assert taking(delivering(tmp_path, JSONL, ""), sent | {"groupId": "g2"})[0].outcome is PostedTimeStatus.SUCCESS
    assert rows(tmp_path) == []


def test_two_tags_of_one_name_are_one_or_none_can_be_chosen(tmp_path: Path) -> None:
    """The same twice is once; two that differ in all but the name cannot be told apart by their keys."""
    twice, other = raw(tags=[A, A]), several(A, {**A, "externalId": "9"}, B)
    verdicts = taking(delivering(tmp_path, SQL_SINK + EACH), twice, other | {"groupId": "g2"})
    assert [verdict.outcome for verdict in verdicts] == [PostedTimeStatus.SUCCESS, PostedTimeStatus.REFUSED]
    assert verdicts[1].message == SAME_NAME.format(name="ACME-0042")
    assert rows(tmp_path) == [("g1", 7, 3600)]


# --- nothing is left behind


def test_a_sink_of_one_tag_refuses_a_group_with_several(tmp_path: Path) -> None:
    """The first would get all, and the others nothing: its tag stands behind the lookup."""
    (verdict,) = taking(delivering(tmp_path), several())
    assert (verdict.outcome, "ledger takes time with one tag only" in (verdict.message or "")) == (
        PostedTimeStatus.REFUSED,
        True,
    )
    assert rows(tmp_path) == []


WHOLES = {
    "all tags in a value": "{{ tags | map(attribute='name') | join(', ') }}",
    "all tags of the group": "{% for t in group.tags %}{{ t.name }}{% if not loop.last %}, {% endif %}{% endfor %}",
    "one tag and all": "{{ tag.name and tags | map(attribute='name') | join(', ') }}",
}


@pytest.mark.parametrize("value", WHOLES.values(), ids=WHOLES.keys())
def test_a_sink_that_uses_tags_is_given_the_whole_group(value: str, tmp_path: Path) -> None:
    """Once, with the whole duration, under its own key."""
    sink = SQL_SINK.replace("{{ lookup.matter.id }}", "7").replace("{{ narrative }}", value)
    (verdict,) = taking(delivering(tmp_path, sink, ""), several())
    assert verdict.outcome is PostedTimeStatus.SUCCESS
    assert rows(tmp_path, "SELECT id, secs, note FROM time") == [("g1", 3600, "ACME-0042, ACME-0043")]


def test_a_sink_that_says_no_tag_is_given_the_whole_group(tmp_path: Path) -> None:
    """It tells nobody's tag, so that none is lost."""
    sink = SQL_SINK.replace("{{ lookup.matter.id }}", "7")
    assert taking(delivering(tmp_path, sink, ""), several())[0].outcome is PostedTimeStatus.SUCCESS
    assert rows(tmp_path) == [("g1", 7, 3600)]


@pytest.mark.parametrize(
    ("unmatched", "outcome"), [("refuse", PostedTimeStatus.REFUSED), ("accept", PostedTimeStatus.SUCCESS)]
)
def test_a_tag_that_no_sink_takes(unmatched: str, outcome: PostedTimeStatus, tmp_path: Path) -> None:
    """`when` is asked for each tag: one that goes nowhere is named, unless `unmatched` says otherwise."""
    sink = SQL_SINK + EACH + "  when: tag.name == 'ACME-0043'\n"
    (verdict,) = taking(delivering(tmp_path, sink, LOOKUPS + f"unmatched: {unmatched}\n"), several())
    assert verdict.outcome is outcome
    assert rows(tmp_path) == ([("g1", 8, 3600)] if unmatched == "accept" else [])
    assert unmatched == "accept" or "ACME-0042" in (verdict.message or "")


@pytest.mark.parametrize(
    ("strategy", "seconds"), [("DIVIDE_BETWEEN_TAGS", [1801, 1800]), ("WHOLE_DURATION_TO_EACH_TAG", [3601, 3601])]
)
def test_no_part_of_the_time_is_lost_with_a_tag_that_no_sink_takes(
    strategy: str, seconds: list[int], tmp_path: Path
) -> None:
    """It is left out before the time is divided, also beside a sink that takes the whole; narratives say the same."""
    sink = SQL_SINK.replace("{{ lookup.matter.id }}", "7") + EACH + "  when: tag.path == '/law/'\n"
    tags = [{"name": name, "path": "/law/"} for name in "ac"] + [{"name": "b", "path": "/internal/"}]
    group = raw(tags=tags, totalDurationSecs=3601, timeRows=[], durationSplitStrategy=strategy)
    for deliver, more in ((sink, "unmatched: accept\n"), (sink + JSONL, "")):
        for old in (tmp_path / ".syncengine", tmp_path / "ledger.db"):
            shutil.rmtree(old, ignore_errors=True) if old.is_dir() else old.unlink(missing_ok=True)
        more += "narrative: {summary: true}\n"
        assert taking(delivering(tmp_path, deliver, more), group)[0].outcome is PostedTimeStatus.SUCCESS
        assert sorted((secs for _, _, secs in rows(tmp_path)), reverse=True) == seconds
        charged = {"Charged: 30m 1s", "Charged: 30m"} if strategy.startswith("D") else set()
        notes = [note for (note,) in rows(tmp_path, "SELECT note FROM time")]
        assert {line for note in notes for line in note.splitlines() if line.startswith("Charged")} == charged
    assert [line["seconds"] for line in lines(tmp_path)] == [3601]


def test_tags_can_go_to_sinks_of_their_own(tmp_path: Path) -> None:
    """Together they have all of it; a third is given the whole."""
    one = SQL_SINK + EACH + "  when: tag.name == 'ACME-0042'\n"
    two = one.replace("name: ledger", "name: other").replace("== 'ACME-0042'", "!= 'ACME-0042'")
    assert taking(delivering(tmp_path, one + two + JSONL), several())[0].outcome is PostedTimeStatus.SUCCESS
    assert sorted(rows(tmp_path)) == [("g1", 7, 1800), ("g1", 8, 1800)]
    assert [line["seconds"] for line in lines(tmp_path)] == [3600]


# --- again


def test_offered_again_in_another_order_each_tag_is_delivered_once(tmp_path: Path) -> None:
    """The second was in trouble; who has its part is not given it again, also by the next process."""
    with receiving() as receiver:
        statuses = iter([201, 503, 201])
        receiver.answer = lambda got: (next(statuses), {"id": 1})
        sink = http_sink(receiver.url) + EACH
        verdicts = [
            taking(delivering(tmp_path, sink, ""), several(*tags, totalDurationSecs=101))[0].outcome
            for tags in ((A, B), (B, A), (A, B))
        ]
    assert verdicts == [PostedTimeStatus.TROUBLE, PostedTimeStatus.SUCCESS, PostedTimeStatus.SUCCESS]
    sent = [(got.headers["idempotency-key"], got.body["secs"]) for got in receiver.got]
    assert sent == [(f"g1/pms{SECOND}", 50), ("g1/pms", 51), ("g1/pms", 51)]


def test_another_set_of_tags_after_a_part_was_taken_is_a_conflict(tmp_path: Path) -> None:
    """For a person, who is told the sink's name; none of the parts is delivered again."""
    with receiving() as receiver:
        statuses = iter([201, 503])
        receiver.answer = lambda got: (next(statuses), {"id": 1})
        delivery = delivering(tmp_path, http_sink(receiver.url) + EACH, "")
        verdicts = taking(delivery, several(A, B), several(A, C))
    assert [verdict.outcome for verdict in verdicts] == [PostedTimeStatus.TROUBLE, PostedTimeStatus.REFUSED]
    assert "pms took it in that form" in (verdicts[1].message or "")
    assert len(receiver.got) == 2


@pytest.mark.parametrize("lost", [False, True], ids=["the inbox knows", "the inbox was lost"])
@pytest.mark.parametrize("first", ["", EACH], ids=["tag by tag after the whole", "the whole after tag by tag"])
def test_what_was_given_in_other_parts_is_a_conflict(first: str, lost: bool, tmp_path: Path) -> None:
    """`each: tag` came or went while a group was under way: a person looks at it, and nobody pays twice."""
    sink = SQL_SINK.replace("{{ lookup.matter.id }}", "7").replace("{{ narrative }}", "{{ tags | length }}")
    stuck = http_sink("http://127.0.0.1:9").replace("json: {", "json: {all: '{{ tags | length }}', ")

    async def state(opened: Delivery) -> str | None:
        await opened.take(several(), mechanism="fetch")
        entry = opened.inbox.entry("g1")
        return entry.state if entry else None

    assert run(delivering(tmp_path, sink + first + stuck, ""), state) == "troubled"
    before = rows(tmp_path)
    if lost:
        (tmp_path / ".syncengine/state.db").unlink()
    then = EACH if not first else ""
    assert run(delivering(tmp_path, sink + then, ""), state) == "conflict"
    with open_inbox(str(tmp_path / ".syncengine/state.db"), write=False) as inbox:
        entry = inbox.entry("g1")
    assert entry is not None
    if not lost:
        assert (rows(tmp_path), entry.note) == (before, f"{CAME_OR_WENT}; ledger took it as revision 1")


def test_redelivery_gives_each_tag_what_the_sink_lost(tmp_path: Path) -> None:
    """One part is gone from the target; the other is not given again."""
    delivery = delivering(tmp_path, SQL_SINK + EACH)

    async def story(opened: Delivery) -> None:
        await opened.take(several(), mechanism="fetch")
        opened.inbox.write(lambda tx: tx.acknowledge("g1", "SUCCESS"))
        rows_of_matter(tmp_path, "DELETE FROM time WHERE matter = 8")
        rows_of_matter(tmp_path, f"DELETE FROM syncengine_receipts WHERE sink = 'ledger{SECOND}'")
        assert [receipt.key for receipt in opened.inbox.receipts("ledger", 0)] == ["ledger" + SECOND, "ledger"]
        opened.inbox.write(lambda tx: tx.ask(["g1"], "ledger"))
        await opened.catch_up(asyncio.Event())
        assert all(entry.is_settled for entry in opened.inbox.entries())

    run(delivery, story)
    assert sorted(rows(tmp_path)) == [("g1", 7, 1800), ("g1", 8, 1800)]


# --- what people see


def test_each_tag_is_shown_with_the_sink_that_took_it(tmp_path: Path) -> None:
    """In the rehearsal, in a group's story and where groups are searched; machines get the key too."""
    more = LOOKUPS + "narrative: {maxLength: 0}\n"
    with receiving() as receiver:
        receiver.answer = lambda got: (201 if "0043" in got.path else 422, {"id": 9})
        delivery = delivering(tmp_path, http_sink(receiver.url) + EACH + JSONL, more)
        taking(delivery, several(B, A))
    rehearsed = program(tmp_path, "preview", "g1", "--format", "json").document
    judge("preview.schema.json").validate(rehearsed)
    assert [(made["sink"], made["tag"], made["seconds"]) for made in rehearsed["sinks"]] == [
        ("pms", "ACME-0043", 1800),
        ("pms", "ACME-0042", 1800),
        ("archive", None, 3600),
    ]
    assert "pms [ACME-0043, 1800 s]:" in program(tmp_path, "preview", "g1").out
    shown = program(tmp_path, "show", "g1", "--format", "json").document
    judge("group.schema.json").validate(shown)
    assert [(made["sink"], made["key"], made["tag"], made["status"]) for made in shown["sinks"]] == [
        ("pms", "pms" + SECOND, "ACME-0043", "accepted"),
        ("pms", "pms", "ACME-0042", "refused"),
    ]
    assert [event["tag"] for event in shown["story"] if event["sink"]] == ["ACME-0043", "ACME-0042"]
    text = program(tmp_path, "show", "g1").out
    assert "pms [ACME-0043]  revision 1  accepted" in text
    assert "sent to pms [ACME-0042]: refused" in text
    for tag in ("ACME-0042", "ACME-0043"):
        found = program(tmp_path, "inbox", "--tag", tag, "--format", "json").document
        assert [(entry["groupId"], entry["tag"]) for entry in found["groups"]] == [("g1", "ACME-0043, ACME-0042")]
    assert program(tmp_path, "inbox", "--tag", "ACME", "--format", "json").document["groups"] == []


# --- the project file


def test_a_name_too_long_for_a_receipt_of_one_tag_is_an_error_at_start(tmp_path: Path) -> None:
    """Only with `each: tag`, which is the only thing to write there."""
    sink = "deliver:\n  - {name: NAME, each: tag, jsonl: {path: x.jsonl}}\n"
    for name, each, found in (("n" * 38, "tag", []), ("n" * 39, "tag", ["bad-value"]), ("n", "row", ["bad-value"])):
        text = sink.replace("NAME", name).replace("each: tag", f"each: {each}")
        assert [problem.code for problem in _of_file(tmp_path, text)] == found


def _of_file(folder: Path, text: str) -> list[Any]:
    from syncengine.errors import Problems

    try:
        return problems(folder, text)
    except Problems as refused:
        return list(refused.found)
