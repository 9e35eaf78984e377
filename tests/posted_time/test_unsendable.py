"""Values are encoded if they can be sent; a value that can never be sent is an error at start or refuses its group."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncengine.posted_time.events import Verdict
from syncengine.posted_time.sinks.contract import CONTROL, MAX_MESSAGE, MAX_REFERENCE, NO_TEXT, TOO_LARGE, TOO_LONG
from tests.posted_time.desk import SUCCESS, at_work, refused, taking
from tests.posted_time.projects import (
    JSONL,
    LOOKUPS,
    SQL_SINK,
    delivering,
    delivering_with,
    http_sink,
    lines,
    problems,
    rows,
)
from tests.posted_time.receiver import receiving
from tests.posted_time.samples import raw

HALF = "{{ '%c' | format(55296) }}"
"""Half of a surrogate pair, which cannot be encoded. The service never sends one, but a template can make one."""


# --- headers


@pytest.mark.parametrize("name", ["Jürgen", "Łukasz Żółć", "山田 太郎", "Zoë\u00a0😀", "a\u2028b"])
def test_a_header_that_is_not_ascii_is_sent_as_utf_8(name: str, tmp_path: Path) -> None:
    """The receiver of this test decodes headers as Latin-1, as many do."""
    with receiving() as receiver:
        sink = http_sink(receiver.url, ", headers: {X-User: '{{ user.name }}', X-Firm: Müller}")
        (verdict,) = taking(delivering_with(tmp_path, sink), raw(user={"name": name}))
    assert verdict.outcome is SUCCESS
    (got,) = receiver.got
    sent = {header: got.headers[header].encode("latin-1").decode() for header in ("x-user", "x-firm")}
    assert sent == {"x-user": name, "x-firm": "Müller"}


@pytest.mark.parametrize(
    ("name", "why"),
    [("a\r\nX-Evil: 1", CONTROL), ("a\nb", CONTROL), ("a\x07b", CONTROL), ("a\x85b", CONTROL), ("x" * 9000, TOO_LONG)],
    ids=["header injection", "line feed", "bell", "next line", "too long"],
)
def test_a_header_that_cannot_be_sent_refuses_the_group(name: str, why: str, tmp_path: Path) -> None:
    """The note names the header, and no request is sent."""
    with receiving() as receiver:
        sink = http_sink(receiver.url, ", headers: {X-User: '{{ user.name }}'}")
        told, note = refused(delivering_with(tmp_path, sink), raw(user={"name": name}))
    assert (why in told, "the header X-User of pms" in note, receiver.got) == (True, True, [])


@pytest.mark.parametrize("value", ['"a\\nb"', '"a\\tb"', "x" * 8001], ids=["line feed", "tab", "too long"])
def test_a_configured_header_that_cannot_be_sent_is_an_error_at_start(value: str, tmp_path: Path) -> None:
    """With its line."""
    found = problems(
        tmp_path, f"deliver:\n  - name: pms\n    http: {{url: 'http://127.0.0.1:9', headers: {{X-A: {value}}}}}\n"
    )
    assert [(problem.code, problem.line) for problem in found] == [("bad-value", 7)]


@pytest.mark.parametrize("id", ["g" * 100_000, "ü" * 2000], ids=["long", "long once encoded"])
def test_an_id_too_long_for_the_idempotency_key_refuses_the_group(id: str, tmp_path: Path) -> None:
    """The next group is delivered."""
    with receiving() as receiver:
        told, note = refused(delivering_with(tmp_path, http_sink(receiver.url)), raw(id))
        assert (TOO_LONG in told, "Idempotency-Key" in note, receiver.got) == (True, True, [])
        assert taking(delivering_with(tmp_path, http_sink(receiver.url)), raw()) == [Verdict(SUCCESS, None, "4711")]


def test_a_path_that_is_too_long_refuses_the_group(tmp_path: Path) -> None:
    """Its encoded length counts."""
    with receiving() as receiver:
        told, note = refused(delivering_with(tmp_path, http_sink(receiver.url)), raw(tags=[{"name": "ü" * 2000}]))
    assert (TOO_LONG in told, "the path of pms" in note, receiver.got) == (True, True, [])


# --- parameters, bodies, lines


PARAMETERS = {
    "half a surrogate pair": (HALF, NO_TEXT),
    "a NUL": ("{{ '%c' | format(0) }}", NO_TEXT),
    "more than 64 bits": ("{{ tag.externalId | int }}", TOO_LARGE),
}


@pytest.mark.parametrize(("value", "why"), PARAMETERS.values(), ids=PARAMETERS.keys())
@pytest.mark.parametrize("place", ["statement", "lookup"])
def test_a_parameter_that_no_database_takes_refuses_the_group(place: str, value: str, why: str, tmp_path: Path) -> None:
    """A parameter of a statement or of a lookup."""
    sink, lookups = SQL_SINK, LOOKUPS
    if place == "statement":
        sink = sink.replace("{{ narrative }}", value)
    else:
        lookups = lookups.replace('{{ tag.name }}"}', value + '"}')
    told, note = refused(delivering(tmp_path, sink, lookups), raw(tags=[{"name": "ACME-0042", "externalId": "9" * 30}]))
    assert (why in told, "a parameter" in note, rows(tmp_path)) == (True, True, [])


def test_half_a_surrogate_pair_in_json_refuses_the_group(tmp_path: Path) -> None:
    """In a request body and in a line. In text of the service it is replaced when the group is read."""
    with receiving() as receiver:
        body = http_sink(receiver.url).replace("flag: true", f'flag: "{HALF}"')
        assert NO_TEXT in refused(delivering_with(tmp_path, body), raw())[0]
        assert receiver.got == []
    line = f'- {{name: archive, jsonl: {{path: out/time.jsonl, json: {{x: "{HALF}"}}}}}}\n'
    assert NO_TEXT in refused(delivering(tmp_path, line, ""), raw("g2"))[0]
    assert taking(delivering(tmp_path, JSONL, ""), raw("g3", description="\ud800\x00"))[0].outcome is SUCCESS
    assert [found["description"] for found in lines(tmp_path)] == ["\ufffd\ufffd"]


# --- what the service gets


LONG = "x" * (MAX_REFERENCE + 1)


def test_a_reference_that_is_too_long_is_not_sent(tmp_path: Path) -> None:
    """An HTTP receiver has the group, so it is a success without a reference; a statement is not run, and the group is
    refused."""
    with receiving() as receiver:
        receiver.answer = lambda got: (201, {"id": LONG})
        assert taking(delivering_with(tmp_path, http_sink(receiver.url)), raw()) == [Verdict(SUCCESS)]
    sink = SQL_SINK.replace("L-{{ group.groupId }}", LONG)
    assert TOO_LONG in refused(delivering(tmp_path, sink), raw("g2"))[0]
    assert rows(tmp_path) == []


@pytest.mark.parametrize("name", ["N" * 100_000, "NO\r\n\x07-1"])
def test_a_message_is_shortened_and_has_no_control_characters(name: str, tmp_path: Path) -> None:
    """Otherwise the service would never accept the status."""
    with at_work(delivering(tmp_path)) as desk:
        told = desk.take(raw(tags=[{"name": name}])).message or ""
        (waiting,) = desk.inbox.waiting()
    assert waiting.message == told
    assert told.startswith("Matter N")
    assert len(told) <= MAX_MESSAGE
    assert "\x07" not in told
