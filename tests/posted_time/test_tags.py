"""Groups with several tags: no part of their time is lost silently, and the duration is divided exactly."""

import random
from pathlib import Path
from typing import Any

import pytest

from syncengine.posted_time.durations import DIVIDE, SAME_NAME, WHOLE, duration_of, shares, suffixes, tag_of
from syncengine.posted_time.events import Verdict
from syncengine.project.delivery_schema import DurationSection
from tests.posted_time.desk import REFUSED, SUCCESS, TROUBLE, at_work, outcomes, taking
from tests.posted_time.projects import (
    BARE_SINK,
    JSONL,
    LOOKUPS,
    SQL_SINK,
    delivering,
    http_sink,
    in_ledger,
    lines,
    rows,
)
from tests.posted_time.receiver import Receiver
from tests.posted_time.samples import group, raw
from tests.posted_time.test_commands import program, shown

pytestmark = pytest.mark.slow

A, B, C = ({"name": f"ACME-004{number}"} for number in (2, 3, 4))
EACH = "  each: tag\n"
TWIN = {**A, "externalId": "9"}
CAME_OR_WENT = "`each: tag` was added or removed after the group was delivered"
SECOND = suffixes(["ACME-0042", "ACME-0043"])["ACME-0043"]


def several(*tags: dict[str, Any], **given: Any) -> dict[str, Any]:
    return raw(tags=list(tags or (A, B)), **given)


def seconds(tags: int, total: int, strategy: str | None = DIVIDE) -> list[int]:
    """The seconds of each tag, in the order of their names."""
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
    """They differ by at most one second; the first tags by name get the remaining seconds."""
    found = seconds(tags, total)
    assert (sum(found), max(found) - min(found) <= 1, found) == (total, True, sorted(found, reverse=True))


def test_the_duration_is_divided_unless_the_group_gives_each_tag_the_whole() -> None:
    """No time is billed twice unless the service says so."""
    assert seconds(2, 3601, None) == [1801, 1800]
    assert seconds(2, 3601, WHOLE) == [3601, 3601]


def test_keys_of_tags_depend_only_on_their_names() -> None:
    """The first or only tag has the key of the sink, and the other keys are different from the names of sinks."""
    assert (suffixes(["x"]), suffixes([None])) == ({"x": ""}, {"": ""})
    assert suffixes(["b", "a", "a"]) == suffixes(["a", "b"])
    found = suffixes([f"tag {number}" for number in range(1000)] + ["", "a/b", "A/B"])
    assert len(set(found.values())) == 1003
    assert all(len(suffix) == 25 and suffix[0] == "/" for suffix in found.values() if suffix)
    assert (tag_of("ledger" + found["a/b"], "ledger", found), tag_of("ledger", "ledger", ["x"])) == ("a/b", None)


# --- a sink with `each: tag`


def test_each_tag_is_delivered_with_its_share_lookup_and_narrative(tmp_path: Path) -> None:
    """Each tag is delivered once and has its own receipt. The total is rounded before it is divided."""
    (tmp_path / "n.j2").write_text("{{ tag.name }} of {{ tags | length }}: {{ duration.hours }}")
    more = LOOKUPS + "narrative: {template: n.j2}\nduration: {roundUpTo: 61s}\n"
    (verdict,) = taking(delivering(tmp_path, SQL_SINK + EACH, more), several(B, A, totalDurationSecs=3590))
    assert verdict == Verdict(SUCCESS, None, "L-g1")
    found = rows(tmp_path, "SELECT id, matter, secs, note FROM time ORDER BY matter")
    assert found == [("g1", 7, 1800, "ACME-0042 of 2: 0.5"), ("g1", 8, 1799, "ACME-0043 of 2: 0.4997")]
    signed = rows(tmp_path, "SELECT group_id, sink, revision FROM syncengine_receipts ORDER BY sink")
    assert signed == [("g1", "ledger", 1), ("g1", "ledger" + SECOND, 1)]


@pytest.mark.parametrize("tags", [[A], []], ids=["one tag", "no tag"])
def test_each_tag_changes_nothing_for_a_group_with_one_tag_or_none(tags: list[dict[str, Any]], tmp_path: Path) -> None:
    """Its key and content stay the same, so a delivery from before `each: tag` is recognized."""
    sink = SQL_SINK.replace("lookup.matter.id", "7")
    before = taking(delivering(tmp_path, sink, ""), raw(tags=tags))
    (tmp_path / ".syncengine/state.db").unlink()
    assert taking(delivering(tmp_path, sink + EACH, ""), raw(tags=tags)) == before
    assert rows(tmp_path) == [("g1", 7, 3600)]


@pytest.mark.parametrize(("known", "told"), [("ACME-0042", "L-ACME-0042"), ("ACME-0043", "L-ACME-0043"), ("", None)])
def test_the_external_id_is_that_of_the_first_tag_that_has_one(known: str, told: str | None, tmp_path: Path) -> None:
    sink = SQL_SINK.replace("L-{{ group.groupId }}", f"{{{{ 'L-' ~ tag.name if tag.name == '{known}' }}}}")
    assert taking(delivering(tmp_path, sink + EACH), several())[0] == Verdict(SUCCESS, None, told)


def test_the_request_of_each_tag_has_its_own_key(tmp_path: Path, receiver: Receiver) -> None:
    """The first tag by name has the key of the group; a later revision appends its number."""
    receiver.says((422, {}), (201, {"id": 3}), (201, {"id": 2}))
    delivery = delivering(tmp_path, http_sink(receiver.url) + EACH, "")
    _, verdict = taking(delivery, several(), several(B, A, totalDurationSecs=100))
    keys = [(got.headers["idempotency-key"], got.path, got.body["secs"]) for got in receiver.got]
    assert keys == [
        (f"g1/pms{SECOND}", "/api/time/ACME-0043", 1800),
        (f"g1/pms{SECOND}/2", "/api/time/ACME-0043", 50),
        ("g1/pms/2", "/api/time/ACME-0042", 50),
    ]
    assert verdict == Verdict(SUCCESS, None, "2")


SPLIT = SQL_SINK + EACH
CLOSED = LOOKUPS + "refuse:\n  - {when: tag.name == 'ACME-0043' and duration.seconds == 3600, message: Closed.}\n"
REFUSED_FOR: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "a tag that is not in the ledger": (SPLIT, LOOKUPS, several(A, C), "Matter ACME-0044 is not in the ledger."),
    "a rule about the second tag": (SPLIT, CLOSED, several(A, B), "Closed."),
    "a rule about the first tag": (SPLIT, CLOSED, several(B, A), "Closed."),
    "an unknown split strategy": (SPLIT, LOOKUPS, several(durationSplitStrategy="BY_WEIGHT"), "BY_WEIGHT"),
    # They would have the same key.
    "different tags of one name": (SPLIT, LOOKUPS, several(TWIN, A, B), SAME_NAME.format(name="ACME-0042")),
    # The first tag would get all the time, and the others none.
    "a sink for one tag": (SQL_SINK, LOOKUPS, several(), "ledger takes time with one tag only"),
    "a tag that no sink takes": (SPLIT + "  when: tag.name == 'ACME-0043'\n", LOOKUPS, several(), "ACME-0042"),
}


@pytest.mark.parametrize(("sink", "more", "sent", "why"), REFUSED_FOR.values(), ids=REFUSED_FOR)
def test_one_tag_refuses_the_whole_group(sink: str, more: str, sent: dict[str, Any], why: str, tmp_path: Path) -> None:
    (verdict,) = taking(delivering(tmp_path, sink, more), sent)
    assert (verdict.outcome, why in (verdict.message or ""), rows(tmp_path)) == (REFUSED, True, []), verdict


def test_identical_tags_are_one_and_a_sink_of_whole_groups_needs_no_strategy(tmp_path: Path) -> None:
    """`unmatched: accept` accepts a tag that no sink takes."""
    taking(delivering(tmp_path, SPLIT), raw("g0", tags=[A, A]))
    assert rows(tmp_path) == [("g0", 7, 3600)]
    assert taking(delivering(tmp_path, JSONL, ""), several(durationSplitStrategy="BY_WEIGHT"))[0].outcome is SUCCESS
    one = delivering(tmp_path, SPLIT + "  when: tag.name == 'ACME-0043'\n", LOOKUPS + "unmatched: accept\n")
    assert taking(one, several(group_id="g2"))[0].outcome is SUCCESS
    assert rows(tmp_path)[1:] == [("g2", 8, 3600)]


# --- no tag is lost


BOTH = "ACME-0042, ACME-0043"
WHOLES = {
    "{{ tags | map(attribute='name') | join(', ') }}": BOTH,
    "{% for t in group.tags %}{{ t.name }}{% if not loop.last %}, {% endif %}{% endfor %}": BOTH,
    "{{ tag.name and tags | map(attribute='name') | join(', ') }}": BOTH,
    "{{ user.externalId }}": "jd",
}


@pytest.mark.parametrize(("value", "note"), WHOLES.items())
def test_a_sink_that_uses_all_tags_or_none_takes_the_whole_group(value: str, note: str, tmp_path: Path) -> None:
    """Once, with the whole duration and the key of the sink."""
    sink = BARE_SINK.replace("{{ narrative }}", value)
    assert taking(delivering(tmp_path, sink, ""), several())[0].outcome is SUCCESS
    assert rows(tmp_path, "SELECT id, secs, note FROM time") == [("g1", 3600, note)]


@pytest.mark.parametrize(
    ("strategy", "seconds", "charged"),
    [(DIVIDE, [1801, 1800], {"Charged: 30m 1s", "Charged: 30m"}), (WHOLE, [3601, 3601], set())],
)
def test_a_tag_without_sink_has_no_share(strategy: str, seconds: list[int], charged: set[str], tmp_path: Path) -> None:
    """The duration is divided between the other tags only, and narratives show the same shares."""
    sink = BARE_SINK + EACH + "  when: tag.path == '/law/'\n"
    tags = [{"name": name, "path": "/law/"} for name in "ac"] + [{"name": "b", "path": "/internal/"}]
    sent = raw(tags=tags, totalDurationSecs=3601, timeRows=[], durationSplitStrategy=strategy)
    taking(delivering(tmp_path, sink + JSONL, "narrative: {summary: true}\n"), sent)
    assert sorted((secs for _, _, secs in rows(tmp_path)), reverse=True) == seconds
    notes = "\n".join(note for (note,) in rows(tmp_path, "SELECT note FROM time"))
    assert {line for line in notes.splitlines() if line.startswith("Charged")} == charged
    assert [line["seconds"] for line in lines(tmp_path)] == [3601]


def test_tags_can_go_to_different_sinks(tmp_path: Path) -> None:
    """Their shares add up to the total; a sink for whole groups gets all of it."""
    one = SQL_SINK + EACH + "  when: tag.name == 'ACME-0042'\n"
    two = one.replace("name: ledger", "name: other").replace("== 'ACME-0042'", "!= 'ACME-0042'")
    assert taking(delivering(tmp_path, one + two + JSONL), several())[0].outcome is SUCCESS
    assert sorted(rows(tmp_path)) == [("g1", 7, 1800), ("g1", 8, 1800)]
    assert [line["seconds"] for line in lines(tmp_path)] == [3600]


# --- repeated offers


def test_each_tag_is_delivered_once_if_offers_have_another_order(tmp_path: Path, receiver: Receiver) -> None:
    """The second tag met trouble: only its request is repeated, also by another process."""
    receiver.says((201, {"id": 1}), (503, {}), (201, {"id": 1}))
    sink = http_sink(receiver.url) + EACH
    offers = [several(*tags, totalDurationSecs=101) for tags in ((A, B), (B, A), (A, B))]
    verdicts = [taking(delivering(tmp_path, sink, ""), offer)[0].outcome for offer in offers]
    assert verdicts == [TROUBLE, SUCCESS, SUCCESS]
    sent = [(got.headers["idempotency-key"], got.body["secs"]) for got in receiver.got]
    assert sent == [(f"g1/pms{SECOND}", 50), ("g1/pms", 51), ("g1/pms", 51)]


def test_other_tags_after_a_partial_delivery_are_a_conflict(tmp_path: Path, receiver: Receiver) -> None:
    """The message names the sink, and no part is delivered again."""
    receiver.says((201, {"id": 1}), (503, {}))
    verdicts = taking(delivering(tmp_path, http_sink(receiver.url) + EACH, ""), several(A, B), several(A, C))
    assert outcomes(verdicts) == [TROUBLE, REFUSED]
    assert "pms took it in that form" in (verdicts[1].message or "")


@pytest.mark.parametrize("lost", [False, True], ids=["inbox kept", "inbox lost"])
@pytest.mark.parametrize("first", ["", EACH], ids=["each tag after whole", "whole after each tag"])
def test_adding_or_removing_each_tag_between_attempts_is_a_conflict(first: str, lost: bool, tmp_path: Path) -> None:
    """A part of the group is already delivered, so a person has to decide."""
    sink = BARE_SINK.replace("{{ narrative }}", "{{ tags | length }}")
    stuck = http_sink("http://127.0.0.1:9").replace("json: {", "json: {all: '{{ tags | length }}', ")
    with at_work(delivering(tmp_path, sink + first + stuck, "")) as desk:
        assert desk.take(several()).outcome is TROUBLE
    before = rows(tmp_path)
    if lost:
        (tmp_path / ".syncengine/state.db").unlink()
    then = EACH if not first else ""
    with at_work(delivering(tmp_path, sink + then, "")) as desk:
        desk.take(several())
        assert desk.entry().state == "conflict"
        if not lost:
            assert desk.entry().note == f"{CAME_OR_WENT}; ledger took it as revision 1"
            assert rows(tmp_path) == before


def test_redelivery_repeats_only_the_tag_that_the_sink_lost(tmp_path: Path) -> None:
    with at_work(delivering(tmp_path, SQL_SINK + EACH)) as desk:
        desk.take(several())
        desk.acknowledge("g1")
        in_ledger(tmp_path, "DELETE FROM time WHERE matter = 8")
        in_ledger(tmp_path, f"DELETE FROM syncengine_receipts WHERE sink = 'ledger{SECOND}'")
        assert [receipt.key for receipt in desk.inbox.receipts("ledger", 0)] == ["ledger" + SECOND, "ledger"]
        desk.ask(["g1"], "ledger")
        desk.catch_up()
        assert all(entry.is_settled for entry in desk.inbox.entries())
    assert sorted(rows(tmp_path)) == [("g1", 7, 1800), ("g1", 8, 1800)]


def test_each_tag_is_shown_with_the_sink_that_took_it(tmp_path: Path, receiver: Receiver) -> None:
    """In `preview`, `show` and `inbox --tag`; the JSON of `show` also has the key."""
    receiver.answer = lambda got: (201 if "0043" in got.path else 422, {"id": 9})
    taking(delivering(tmp_path, http_sink(receiver.url) + EACH + JSONL), several(B, A))
    rehearsed = shown(tmp_path, "preview", "g1")["sinks"]
    parts = [("pms", "ACME-0043", 1800), ("pms", "ACME-0042", 1800), ("archive", None, 3600)]
    assert [(made["sink"], made["tag"], made["seconds"]) for made in rehearsed] == parts
    assert "pms [ACME-0043, 1800 s]:" in program(tmp_path, "preview", "g1").out
    document, text = shown(tmp_path, "show", "g1"), program(tmp_path, "show", "g1").out
    ends = [("pms" + SECOND, "ACME-0043", "accepted"), ("pms", "ACME-0042", "refused")]
    assert [(made["key"], made["tag"], made["status"]) for made in document["sinks"]] == ends
    assert [event["tag"] for event in document["story"] if event["sink"]] == ["ACME-0043", "ACME-0042"]
    assert "pms [ACME-0043]  revision 1  accepted" in text
    assert "sent to pms [ACME-0042]: refused" in text
    for tag, found in (("ACME-0042", ["ACME-0043, ACME-0042"]), ("ACME", [])):
        assert [entry["tag"] for entry in shown(tmp_path, "inbox", "--tag", tag)["groups"]] == found
