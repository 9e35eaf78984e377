"""What can be sent is encoded; what never can is refused, at start or with a sentence, and not tried for ever."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from syncengine.posted_time.delivery import Delivery, PostedTimeStatus, Verdict
from syncengine.posted_time.sinks.contract import CONTROL, MAX_MESSAGE, MAX_REFERENCE, NO_TEXT, TOO_LARGE, TOO_LONG
from tests.posted_time.projects import LOOKUPS, SQL_SINK, delivering, problems, rows
from tests.posted_time.receiver import receiving
from tests.posted_time.samples import raw
from tests.posted_time.test_sinks import JSONL, delivering_with, http_sink, lines, run, taking

HALF = "{{ '%c' | format(55296) }}"
"""Half of a surrogate pair, which no encoding has: what comes from the service has none, a template can make one."""


def refused(delivery: Delivery, group: dict[str, Any]) -> tuple[str, str]:
    """What its user is told and what whoever runs this sees, of a group that is refused for good."""

    async def story(opened: Delivery) -> tuple[str, str]:
        verdict = await opened.take(group, mechanism="fetch")
        entry = opened.inbox.entry(group["groupId"])
        assert entry is not None
        assert (verdict.outcome, entry.state, opened.troubles) == (PostedTimeStatus.REFUSED, "refused", ())
        return verdict.message or "", entry.note or ""

    return run(delivery, story)


# --- headers


@pytest.mark.parametrize("name", ["Jürgen", "Łukasz Żółć", "山田 太郎", "Zoë\u00a0😀", "a\u2028b"])
def test_a_header_that_is_not_ascii_is_sent_as_utf_8(name: str, tmp_path: Path) -> None:
    """Byte for byte; the receiver here reads headers as Latin-1, as many do."""
    with receiving() as receiver:
        sink = http_sink(receiver.url, ", headers: {X-User: '{{ user.name }}', X-Firm: Müller}")
        (verdict,) = taking(delivering_with(tmp_path, sink), raw(user={"name": name}))
    assert verdict.outcome is PostedTimeStatus.SUCCESS
    (got,) = receiver.got
    sent = {header: got.headers[header].encode("latin-1").decode() for header in ("x-user", "x-firm")}
    assert sent == {"x-user": name, "x-firm": "Müller"}


@pytest.mark.parametrize(
    ("name", "why"),
    [("a\r\nX-Evil: 1", CONTROL), ("a\nb", CONTROL), ("a\x07b", CONTROL), ("a\x85b", CONTROL), ("x" * 9000, TOO_LONG)],
    ids=["a header", "a line", "a bell", "next line", "too long"],
)
def test_a_header_that_cannot_be_sent_refuses_the_group(name: str, why: str, tmp_path: Path) -> None:
    """With a sentence for its user and the header's name for whoever runs this; nothing is sent."""
    with receiving() as receiver:
        sink = http_sink(receiver.url, ", headers: {X-User: '{{ user.name }}'}")
        told, note = refused(delivering_with(tmp_path, sink), raw(user={"name": name}))
    assert (why in told, "the header X-User of pms" in note, receiver.got) == (True, True, [])


@pytest.mark.parametrize("value", ['"a\\nb"', '"a\\tb"', "x" * 8001], ids=["a line", "a tab", "too long"])
def test_a_header_of_the_project_that_cannot_be_sent_is_an_error_at_start(value: str, tmp_path: Path) -> None:
    """With its line; no group could ever be delivered."""
    found = problems(
        tmp_path, f"deliver:\n  - name: pms\n    http: {{url: 'http://127.0.0.1:9', headers: {{X-A: {value}}}}}\n"
    )
    assert [(problem.code, problem.line) for problem in found] == [("bad-value", 7)]


@pytest.mark.parametrize("id", ["g" * 100_000, "ü" * 2000], ids=["long", "long once it is quoted"])
def test_an_id_that_no_header_holds_refuses_the_group(id: str, tmp_path: Path) -> None:
    """The key by which a receiver tells that it has a group must be sent; the next group is delivered."""
    with receiving() as receiver:
        told, note = refused(delivering_with(tmp_path, http_sink(receiver.url)), raw(id))
        assert (TOO_LONG in told, "Idempotency-Key" in note, receiver.got) == (True, True, [])
        assert taking(delivering_with(tmp_path, http_sink(receiver.url)), raw()) == [
            Verdict(PostedTimeStatus.SUCCESS, None, "4711")
        ]


def test_a_path_that_no_request_holds_refuses_the_group(tmp_path: Path) -> None:
    """Counted as it is sent."""
    with receiving() as receiver:
        told, note = refused(delivering_with(tmp_path, http_sink(receiver.url)), raw(tags=[{"name": "ü" * 2000}]))
    assert (TOO_LONG in told, "the path of pms" in note, receiver.got) == (True, True, [])


# --- parameters, bodies, lines


PARAMETERS = {
    "half a character": (HALF, NO_TEXT),
    "a NUL": ("{{ '%c' | format(0) }}", NO_TEXT),
    "more than 64 bits": ("{{ tag.externalId | int }}", TOO_LARGE),
}


@pytest.mark.parametrize(("value", "why"), PARAMETERS.values(), ids=PARAMETERS.keys())
@pytest.mark.parametrize("place", ["statement", "lookup"])
def test_a_parameter_that_no_database_takes_refuses_the_group(place: str, value: str, why: str, tmp_path: Path) -> None:
    """Of a statement and of a lookup alike."""
    sink, lookups = SQL_SINK, LOOKUPS
    if place == "statement":
        sink = sink.replace("{{ narrative }}", value)
    else:
        lookups = lookups.replace('{{ tag.name }}"}', value + '"}')
    told, note = refused(delivering(tmp_path, sink, lookups), raw(tags=[{"name": "ACME-0042", "externalId": "9" * 30}]))
    assert (why in told, "a parameter" in note, rows(tmp_path)) == (True, True, [])


def test_what_is_no_text_is_no_json(tmp_path: Path) -> None:
    """In a body and in a line; what the service sends is mended when it comes."""
    with receiving() as receiver:
        body = http_sink(receiver.url).replace("flag: true", f'flag: "{HALF}"')
        assert NO_TEXT in refused(delivering_with(tmp_path, body), raw())[0]
        assert receiver.got == []
    line = f'- {{name: archive, jsonl: {{path: out/time.jsonl, json: {{x: "{HALF}"}}}}}}\n'
    assert NO_TEXT in refused(delivering(tmp_path, line, ""), raw("g2"))[0]
    assert (
        taking(delivering(tmp_path, JSONL, ""), raw("g3", description="\ud800\x00"))[0].outcome
        is PostedTimeStatus.SUCCESS
    )
    assert [found["description"] for found in lines(tmp_path)] == ["\ufffd\ufffd"]


# --- what the service is told


LONG = "x" * (MAX_REFERENCE + 1)


def test_a_reference_that_the_service_would_never_take_is_not_sent(tmp_path: Path) -> None:
    """The receiver has the group, so that it is a success without one; a database has nothing of it yet, and gets
    nothing."""
    with receiving() as receiver:
        receiver.answer = lambda got: (201, {"id": LONG})
        assert taking(delivering_with(tmp_path, http_sink(receiver.url)), raw()) == [Verdict(PostedTimeStatus.SUCCESS)]
    sink = SQL_SINK.replace("L-{{ group.groupId }}", LONG)
    assert TOO_LONG in refused(delivering(tmp_path, sink), raw("g2"))[0]
    assert rows(tmp_path) == []


@pytest.mark.parametrize("name", ["N" * 100_000, "NO\r\n\x07-1"])
def test_what_a_user_is_told_is_text_of_a_sane_length(name: str, tmp_path: Path) -> None:
    """Whatever a tag is called: a status that the service never accepts would be sent for ever."""

    async def story(opened: Delivery) -> str:
        verdict = await opened.take(raw(tags=[{"name": name}]), mechanism="fetch")
        (waiting,) = opened.inbox.waiting()
        assert waiting.message == verdict.message
        return verdict.message or ""

    told = run(delivering(tmp_path), story)
    assert told.startswith("Matter N")
    assert len(told) <= MAX_MESSAGE
    assert "\x07" not in told
