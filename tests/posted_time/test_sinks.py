"""Each sink takes a group once, tells refusals from trouble, and shows no text of a driver and no secret."""

from __future__ import annotations

import gzip
import sqlite3
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from syncengine.connector.registration import failure_of
from syncengine.errors import TroubleKind
from syncengine.posted_time.delivery import HOLD
from syncengine.posted_time.events import Verdict
from syncengine.posted_time.sink_health import FIRST_REST, IN_DOUBT, LONGEST_REST
from syncengine.state.inbox_model import PostedTimeStatus
from tests.dripping import BODY, HEADERS, dripping
from tests.posted_time.desk import REFUSED, SUCCESS, TROUBLE, at_work, outcomes, refused, taking
from tests.posted_time.projects import (
    JSONL,
    LOOKUPS,
    SQL_SINK,
    delivering,
    delivering_with,
    http_sink,
    in_ledger,
    ledger,
    lines,
    locked_ledger,
    problems,
    rows,
)
from tests.posted_time.receiver import Got, Receiver, receiving
from tests.posted_time.samples import raw, row
from tests.support.ports import unused_port

pytestmark = pytest.mark.slow

# --- SQL


def test_a_row_and_its_receipt_are_written_together(tmp_path: Path) -> None:
    """The verdict has the sink's reference."""
    (verdict,) = taking(delivering(tmp_path), raw())
    assert verdict == Verdict(SUCCESS, None, "L-g1")
    assert rows(tmp_path) == [("g1", 7, 3600)]
    assert rows(tmp_path, "SELECT group_id, sink, revision, external_id FROM syncengine_receipts") == [
        ("g1", "ledger", 1, "L-g1")
    ]


def test_without_receipts_a_lost_inbox_repeats_a_delivery(tmp_path: Path) -> None:
    """With `receipts: false` no receipts table is created."""
    sink = SQL_SINK.replace("source: ledger", "source: ledger\n    receipts: false")
    taking(delivering(tmp_path, sink), raw())
    (tmp_path / ".syncengine/state.db").unlink()
    taking(delivering(tmp_path, sink), raw())
    assert len(rows(tmp_path)) == 2
    assert rows(tmp_path, "SELECT name FROM sqlite_master WHERE name LIKE 'syncengine%'") == []


def test_posted_text_is_bound_as_a_parameter_and_never_run_as_sql(tmp_path: Path) -> None:
    bobby = "x'); DROP TABLE time; --"
    taking(delivering(tmp_path), raw(bobby, description=bobby))
    assert rows(tmp_path) == [(bobby, 7, 3600)]


@pytest.mark.parametrize(
    "change", [{"totalDurationSecs": 0, "timeRows": []}, {"timeRows": [row(durationSecs=0)], "totalDurationSecs": 0}]
)
def test_a_violated_constraint_refuses_the_group(change: dict[str, Any], tmp_path: Path) -> None:
    """With a message of our own, or the project's; neither row nor receipt is stored."""
    (verdict,) = taking(delivering(tmp_path), raw(**change))
    assert verdict == Verdict(REFUSED, "ledger rejected the time: something in it does not fit there.")
    sink = SQL_SINK + "  refused: Nothing is booked on {{ tag.name }} for free.\n"
    (told,) = taking(delivering(tmp_path, sink), raw("g2", **change))
    assert told.message == "Nothing is booked on ACME-0042 for free."
    assert verdict.detail == "a constraint is violated (SQLITE_CONSTRAINT_CHECK)"
    assert rows(tmp_path) == []
    assert rows(tmp_path, "SELECT count(*) FROM syncengine_receipts") == [(0,)]


def test_a_violated_foreign_key_refuses_the_group(tmp_path: Path) -> None:
    """Foreign keys are enforced in SQLite, too."""
    sink = SQL_SINK.replace("{{ lookup.matter.id }}", "99")
    (verdict,) = taking(delivering(tmp_path, sink, ""), raw())
    assert verdict.outcome is REFUSED


def test_a_busy_database_is_trouble_until_it_is_free(tmp_path: Path) -> None:
    """The group is retriable, and the sink is down until a probe succeeds."""
    with at_work(delivering(tmp_path, sources="ledger: {sql: 'sqlite:///ledger.db?timeout=0.05'}")) as desk:
        with locked_ledger(tmp_path):
            verdict = desk.take(raw())
            assert (verdict.outcome, verdict.message) == (TROUBLE, "ledger cannot be reached.")
            assert [(t.sink, t.kind) for t in desk.troubles] == [("ledger", TroubleKind.UNREACHABLE)]
            assert desk.check_sinks() == desk.troubles
        assert desk.check_sinks() == ()
        assert desk.troubles == ()
        assert desk.take(raw()).outcome is SUCCESS
    assert rows(tmp_path) == [("g1", 7, 3600)]


@pytest.mark.parametrize(
    ("database", "told"),
    [
        ("source: ledger", "time cannot be reached."),
        ("source: register", "register cannot be reached. time cannot be reached."),
        ("url: 'sqlite:///other.db?timeout=0.05'", "The database where matter is looked up cannot be reached. {}"),
    ],
    ids=["source of a sink", "another source", "own url"],
)
def test_an_outage_is_reported_once_under_a_name_that_users_know(database: str, told: str, tmp_path: Path) -> None:
    """The database of a lookup is named after the sink that uses it, or after its source."""
    sources = "ledger: {sql: 'sqlite:///ledger.db?timeout=0.05'}\nregister: {sql: 'sqlite:///other.db?timeout=0.05'}"
    sink = SQL_SINK.replace("name: ledger", "name: time")
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE matter (id INTEGER PRIMARY KEY, no TEXT UNIQUE)")
    with at_work(delivering(tmp_path, sink, LOOKUPS.replace("source: ledger", database), sources=sources)) as desk:
        with ExitStack() as busy:
            for name in ("ledger.db", "other.db"):
                other = busy.enter_context(closing(sqlite3.connect(tmp_path / name, isolation_level=None)))
                other.execute("BEGIN EXCLUSIVE")
            verdict = desk.take(raw())
            first = desk.troubles
            desk.check_sinks()
            found = desk.check_sinks()
            words = failure_of(found).message or ""
            assert words == told.format("time cannot be reached.")
            assert verdict.message in words
            assert len(found) == len(first) + (database != "source: ledger")
            assert len({trouble.sink for trouble in found}) == len(found)
        assert desk.check_sinks() == ()


def test_a_missing_table_is_trouble_until_a_delivery_succeeds(tmp_path: Path) -> None:
    """A good probe of the database is not enough: one group tries the sink, which stays reported until then."""
    now = 1e9
    with at_work(delivering(tmp_path, now=lambda: now)) as desk:
        in_ledger(tmp_path, "ALTER TABLE time RENAME TO hours")
        verdict = desk.take(raw())
        assert (verdict.outcome, verdict.message) == (TROUBLE, "ledger does not work as expected.")
        assert (bool(desk.troubles), desk.check_sinks()) == (True, ())
        now += IN_DOUBT
        assert [t.kind for t in desk.check_sinks()] == [TroubleKind.UNKNOWN]
        assert desk.troubles == ()
        in_ledger(tmp_path, "ALTER TABLE hours RENAME TO time")
        assert desk.take(raw()).outcome is SUCCESS
        assert desk.check_sinks() == ()


@pytest.mark.parametrize("tag", ["ACME-0043", "ACME-0042", "NO"])
def test_a_lookup_is_up_again_once_it_answers_for_a_group(tag: str, tmp_path: Path) -> None:
    """A group that skips the lookup proves nothing; a group that the lookup does not find proves that it answers."""
    lookups = LOOKUPS.replace("- name: matter", "- name: matter\n    when: tag.name != 'ACME-0043'")
    with at_work(delivering(tmp_path, SQL_SINK.replace("{{ lookup.matter.id }}", "7"), lookups)) as desk:
        in_ledger(tmp_path, "ALTER TABLE matter RENAME TO away")
        assert desk.take(raw("g1")).outcome is TROUBLE
        in_ledger(tmp_path, "ALTER TABLE away RENAME TO matter")
        desk.take(raw("g2", tags=[{"name": tag}]))
        assert desk.is_cautious is (tag == "ACME-0043")


# --- HTTP


def test_a_request_carries_key_body_and_headers(tmp_path: Path) -> None:
    """Numbers stay numbers, and secrets are written to no file."""
    with receiving() as receiver:
        sink = http_sink(receiver.url, ", headers: {Authorization: {env: TOKEN}, X-Tag: 'T {{ tag.name }}'}")
        (tmp_path / "x").mkdir()
        delivery = delivering_with(tmp_path, sink, TOKEN="Bearer s3cr3t")
        assert taking(delivery, raw()) == [Verdict(SUCCESS, None, "4711")]
    (got,) = receiver.got
    assert (got.method, got.path) == ("POST", "/api/time/ACME-0042")
    assert got.body == {"id": "g1", "secs": 3600, "flag": True, "tags": ["a", 1]}
    assert got.headers["idempotency-key"] == "g1/pms"
    assert (got.headers["authorization"], got.headers["x-tag"]) == ("Bearer s3cr3t", "T ACME-0042")
    assert got.headers["content-type"] == "application/json"
    assert got.headers["user-agent"].startswith("syncengine/")
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or b"s3cr3t" not in file.read_bytes()


@pytest.mark.parametrize("key", ["mine", "{env: TOKEN}"])
def test_a_header_is_sent_once_however_its_name_is_written(key: str, tmp_path: Path) -> None:
    """The project may replace Content-Type, but not Idempotency-Key."""
    with receiving() as receiver:
        sink = http_sink(receiver.url, f", headers: {{content-type: application/x.time+json, idempotency-key: {key}}}")
        assert taking(delivering_with(tmp_path, sink, TOKEN="mine"), raw()) == [Verdict(SUCCESS, None, "4711")]
    (got,) = receiver.got
    assert (got.lines.count("content-type"), got.lines.count("idempotency-key")) == (1, 1)
    assert got.headers["content-type"] == "application/x.time+json"
    assert got.headers["idempotency-key"] == "g1/pms"


Kind = TroubleKind
STATUSES: dict[int | None, tuple[PostedTimeStatus, TroubleKind | None, PostedTimeStatus]] = {
    **dict.fromkeys((200, 204), (SUCCESS, None, REFUSED)),
    **dict.fromkeys((400, 404, 409, 418, 422), (REFUSED, None, SUCCESS)),
    401: (TROUBLE, Kind.AUTHENTICATION, SUCCESS),
    402: (TROUBLE, Kind.SUBSCRIPTION, SUCCESS),
    403: (TROUBLE, Kind.PERMISSIONS, SUCCESS),
    **dict.fromkeys((302, 303, 500), (TROUBLE, Kind.UNKNOWN, REFUSED)),
    **dict.fromkeys((None, 408, 425, 429, 503, 524), (TROUBLE, Kind.UNREACHABLE, REFUSED)),
}
"""Status, or None for no answer → outcome, the kind of trouble, and the outcome of changed content afterwards."""


@pytest.mark.parametrize(("status", "outcome", "kind", "changed"), [(s, *then) for s, then in STATUSES.items()])
def test_each_status_is_a_success_a_refusal_or_trouble(
    status: int | None, outcome: PostedTimeStatus, kind: TroubleKind | None, changed: PostedTimeStatus, tmp_path: Path
) -> None:
    """The text of the receiver is not shown to the user.

    Changed content is sent only if the status proves that the first was not taken: a sink never holds two contents.
    """
    with receiving() as receiver:
        receiver.says((status, {"error": "java.lang.NullPointerException"}) if status else None, (201, {"id": 1}))
        with at_work(delivering_with(tmp_path, http_sink(receiver.url))) as desk:
            verdict = desk.take(raw())
            assert (verdict.outcome, [trouble.kind for trouble in desk.troubles]) == (outcome, [kind] if kind else [])
            assert "java" not in (verdict.message or "")
            assert desk.take(raw(totalDurationSecs=1)).outcome is changed


def test_refuseon_makes_a_status_a_refusal(tmp_path: Path) -> None:
    """Its message can use the receiver's answer."""
    with receiving() as receiver:
        receiver.answer = lambda got: (503, {"why": "closed"})
        sink = http_sink(receiver.url, settings="  refuseOn: [503]\n  refused: The period is {{ response.why }}.\n")
        (verdict,) = taking(delivering_with(tmp_path, sink), raw())
    assert verdict == Verdict(REFUSED, "The period is closed.")


def test_response_headers_that_never_end_are_trouble(tmp_path: Path) -> None:
    """The answer arrives byte by byte; the timeout ends the wait."""
    with dripping(HEADERS) as server:
        delivery = delivering_with(tmp_path, http_sink(server.url, ", timeout: 0.2s"))
        (verdict,) = taking(delivery, raw())
    assert (verdict.outcome, delivery.troubles[0].kind) == (TROUBLE, TroubleKind.UNREACHABLE)


@pytest.mark.parametrize("answer", [b"no JSON", {}, {"id": None}, []])
def test_no_reference_is_made_of_what_an_answer_lacks(answer: Any, tmp_path: Path) -> None:
    with receiving() as receiver:
        receiver.answer = lambda got: (201, answer)
        sink = http_sink(receiver.url).replace("'{{ response.id }}'", "'E{{ response.id }}'")
        assert taking(delivering(tmp_path, sink, ""), raw()) == [Verdict(SUCCESS)]


def test_an_answer_that_is_too_large_is_still_a_success(tmp_path: Path) -> None:
    """It is not unpacked, so no template can read it; the group was taken."""
    packed = gzip.compress(b'{"id": 4711, "more": "' + bytes(128 * 1024 * 1024) + b'"}', 1)
    head = b"HTTP/1.1 201 Created\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n"
    with dripping(BODY, {b"/api/time/ACME-0042": head % len(packed) + packed}) as server:
        (verdict,) = taking(delivering_with(tmp_path, http_sink(server.url)), raw())
    assert verdict == Verdict(SUCCESS, None, None)


def test_a_request_without_an_answer_is_repeated_with_the_same_key(tmp_path: Path) -> None:
    """The receiver recognizes the group by the key."""
    with receiving() as receiver:
        receiver.says(None, (201, {"id": 9}))
        delivery = delivering_with(tmp_path, http_sink(receiver.url))
        verdicts = taking(delivery, raw(), raw())
    assert outcomes(verdicts) == [TROUBLE, SUCCESS]
    assert verdicts[1].external_id == "9"
    assert [got.headers["idempotency-key"] for got in receiver.got] == ["g1/pms", "g1/pms"]


def test_a_receiver_that_does_not_listen_is_trouble_until_it_does(tmp_path: Path) -> None:
    """A probe finds both the trouble and its end."""
    port = unused_port()
    with at_work(delivering_with(tmp_path, http_sink(f"http://127.0.0.1:{port}"))) as desk:
        assert desk.check_sinks() == ()
        assert desk.troubles
        (down,) = desk.check_sinks()
        assert (down.sink, down.kind, down.message) == ("pms", TroubleKind.UNREACHABLE, "pms cannot be reached.")
        assert desk.take(raw()).outcome is TROUBLE
        with receiving(port):
            assert desk.check_sinks() == ()
            assert desk.take(raw()).outcome is SUCCESS


@pytest.mark.parametrize(
    ("health", "status"),
    [("", 500), (", health: /health", 401), (", health: /health", 403)],
    ids=["no health path", "health path", "no permission"],
)
def test_a_receiver_that_answers_only_probes_is_down_until_it_takes_a_group(
    health: str, status: int, tmp_path: Path
) -> None:
    """A good health path only proves that it can be reached; one group may try it after a rest."""
    now = 1e9
    with receiving() as receiver:
        ill = True

        def answer(got: Got) -> tuple[int, Any]:
            return (status, {}) if ill and got.method == "POST" else (200, {"id": 1})

        receiver.answer = answer
        with at_work(delivering(tmp_path, http_sink(receiver.url, health), "", now=lambda: now)) as desk:
            desk.take(raw())
            assert (desk.check_sinks(), bool(desk.troubles)) == ((), True)
            now += FIRST_REST
            assert (desk.check_sinks(), desk.troubles, desk.is_cautious) == ((), (), True)
            desk.take(raw())
            assert [trouble.sink for trouble in desk.check_sinks()] == ["pms"]
            assert desk.troubles
            ill = False
            desk.take(raw())
            assert desk.check_sinks() == ()


def test_a_group_that_tries_a_failing_sink_is_held_for_a_while(tmp_path: Path) -> None:
    """Its verdict is not sent and it tries the sink again; after `HOLD` its trouble is final and sent."""
    now = 1e9
    with receiving() as receiver:
        receiver.answer = lambda got: (503, {}) if got.method == "POST" else (404, {})

        with at_work(delivering(tmp_path, http_sink(receiver.url), "", now=lambda: now)) as desk:

            def tried_again(id: str) -> Verdict:
                nonlocal now
                now += LONGEST_REST
                desk.check_sinks()
                assert desk.troubles == ()
                (verdict,) = desk.resume()
                assert verdict is not None
                return verdict

            assert desk.take(raw("a")).is_final
            now += FIRST_REST
            desk.check_sinks()
            assert not desk.take(raw("b")).is_final
            assert not tried_again("b").is_final
            assert [waiting.group_id for waiting in desk.inbox.waiting()] == ["a"]
            now += HOLD
            last = tried_again("b")
            assert (last.is_final, last.outcome) == (True, TROUBLE)
            assert [waiting.group_id for waiting in desk.inbox.waiting()] == ["a", "b"]


def test_a_new_process_is_cautious_with_a_sink_that_failed_last(tmp_path: Path) -> None:
    """It tries that sink with one group first; a sink that took its last group is up."""
    with receiving() as receiver:
        receiver.answer = lambda got: (503, {}) if got.method == "POST" else (404, {})
        sinks = JSONL + http_sink(receiver.url)
        with at_work(delivering(tmp_path, sinks, "")) as desk:
            assert desk.take(raw()).outcome is TROUBLE
        with at_work(delivering(tmp_path, sinks, "")) as desk:
            desk.remember_troubles()
            assert ([trouble.sink for trouble in desk.troubles], desk.is_cautious) == (["pms"], True)
            receiver.answer = lambda got: (201, {"id": 1})
            assert desk.take(raw()).outcome is SUCCESS
            assert not desk.is_cautious
        with at_work(delivering(tmp_path, sinks, "")) as desk:
            desk.remember_troubles()
            assert not desk.is_cautious


@pytest.mark.parametrize(("status", "kind"), [(401, TroubleKind.AUTHENTICATION), (500, TroubleKind.UNREACHABLE)])
def test_a_failing_health_path_is_trouble_before_any_delivery(status: int, kind: TroubleKind, tmp_path: Path) -> None:
    with receiving() as receiver:
        receiver.answer = lambda got: (status, {})
        with at_work(delivering_with(tmp_path, http_sink(receiver.url, ", health: /health"))) as desk:
            desk.check_sinks()
            assert [t.kind for t in desk.troubles] == [kind]
            assert [t.kind for t in desk.check_sinks()] == [kind]
    assert receiver.got[0].path == "/api/health"


NO_NAMES = [".", "..", "../../admin", "x/../y", "./x", "..\\admin", "..;x"]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        *(("/time/{{ tag.name }}", name) for name in NO_NAMES),
        ("/time/{{ tag.name }}/rows", ".."),
        ("{{ tag.name }}", "../../admin"),
    ],
)
def test_a_tag_cannot_change_the_path_of_a_request(path: str, name: str, tmp_path: Path) -> None:
    """A tag such as `..` refuses the group: its user gets a message, and the note names the path."""
    with receiving() as receiver:
        sink = http_sink(receiver.url).replace("/time/{{ tag.name }}", path)
        told, note = refused(delivering_with(tmp_path, sink), raw(tags=[{"name": name}]))
    assert ("pms cannot take this time" in told, "the path of pms would be" in note, receiver.got) == (True, True, [])


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("A/B", "A%2FB"),
        ("%2e%2e", "%252e%252e"),
        ("..%2f", "..%252f"),
        ("100%", "100%25"),
        ("A B", "A%20B"),
        ("Müller & Söhne", "M%C3%BCller%20%26%20S%C3%B6hne"),
        ("a+b=c@d:e;f,g", "a%2Bb%3Dc%40d%3Ae%3Bf%2Cg"),
        ("...", "..."),
        ("a~b-c_d.e", "a~b-c_d.e"),
        ("a\r\nX: 1", "a%0D%0AX%3A%201"),
    ],
)
def test_a_value_in_a_path_is_encoded_as_one_segment(name: str, sent: str, tmp_path: Path) -> None:
    """The receiver gets exactly this path: no client decodes or normalizes it."""
    with receiving() as receiver:
        sink = http_sink(receiver.url).replace("{{ tag.name }}", "{{ tag.name }}/time")
        (verdict,) = taking(delivering_with(tmp_path, sink), raw(tags=[{"name": name}]))
    assert (verdict.outcome, [got.path for got in receiver.got]) == (SUCCESS, [f"/api/time/{sent}/time"])


PATHS = {
    "a value": ("/time/{{ tag.name }}/rows", "/api/time/A%3Fb%23c%26d%2Fe/rows"),
    "a value as the whole path": ("{{ tag.name }}", "/api/A%3Fb%23c%26d%2Fe"),
    "encoded by hand": ("/time/{{ tag.name | urlencode }}", "/api/time/A%3Fb%23c%26d%2Fe"),
    "in a query": ("/time?tag={{ tag.name | urlencode }}&x={{ 1 }}", "/api/time?tag=A%3Fb%23c%26d%2Fe&x=1"),
    "a query of its own": ("/time?{{ {'tag': tag.name} | urlencode }}", "/api/time?tag=A%3Fb%23c%26d%2Fe"),
    "an expression as the whole path": ("{{ '/time?draft=1' if tag else '' }}", "/api/time?draft=1"),
    "concatenated": ("{{ '/time/' ~ tag.name ~ '/rows' }}", "/api/time/A%3Fb%23c%26d%2Fe/rows"),
    "in a loop": ("/time{% for t in group.tags %}/{{ t.name }}{% endfor %}", "/api/time/A%3Fb%23c%26d%2Fe"),
    "an included file": ("/time/{% include 'part.j2' %}", "/api/time/A%3Fb%23c%26d%2Fe"),
    "missing values": ("/time{{ tag.externalId }}/{{ 'x' if not tag }}", "/api/time/"),
}


@pytest.mark.parametrize(("path", "sent"), PATHS.values(), ids=PATHS.keys())
def test_only_the_values_in_a_path_are_encoded(path: str, sent: str, tmp_path: Path) -> None:
    """Each value is encoded once, wherever it stands."""
    (tmp_path / "part.j2").write_text("{{ tag.name }}")
    with receiving() as receiver:
        sink = http_sink(receiver.url).replace("'/time/{{ tag.name }}'", f'"{path}"')
        (verdict,) = taking(delivering_with(tmp_path, sink), raw(tags=[{"name": "A?b#c&d/e"}]))
    assert (verdict.outcome, [got.path for got in receiver.got]) == (SUCCESS, [sent])


@pytest.mark.parametrize(
    "path", ["/../admin", "/a/%2e%2e/{{ tag.name }}", "..", "/x/./{{ tag.name }}", '"/a\\nb/{{ tag.name }}"']
)
def test_a_configured_path_that_no_request_can_have_is_an_error_at_start(path: str, tmp_path: Path) -> None:
    """It holds a dot segment or a line break."""
    path = path if path.startswith('"') else f"'{path}'"
    found = problems(tmp_path, f"deliver:\n  - {{name: pms, http: {{url: 'http://127.0.0.1:9', path: {path}}}}}\n")
    assert [(problem.code, problem.line) for problem in found] == [("bad-path", 6)]


def test_a_secret_file_is_read_again_for_each_request(tmp_path: Path) -> None:
    """A rotated token is used without a restart."""
    (tmp_path / "token").write_text("one")
    with receiving() as receiver:
        sink = http_sink(receiver.url, ", headers: {Authorization: {file: token}}")
        with at_work(delivering_with(tmp_path, sink)) as desk:
            desk.take(raw("g1"))
            (tmp_path / "token").write_text("two")
            desk.take(raw("g2"))
    assert [got.headers["authorization"] for got in receiver.got] == ["one", "two"]


def test_a_missing_secret_file_is_trouble_with_authentication(tmp_path: Path) -> None:
    """No group is sent, and the sink is up once the file is back."""
    (tmp_path / "token").write_text("one")
    with receiving() as receiver:
        sink = http_sink(receiver.url, ", headers: {Authorization: {file: token}}")
        with at_work(delivering_with(tmp_path, sink)) as desk:
            (tmp_path / "token").unlink()
            assert desk.take(raw()).outcome is TROUBLE
            assert [t.kind for t in desk.check_sinks()] == [TroubleKind.AUTHENTICATION]
            (tmp_path / "token").write_text("two")
            assert desk.check_sinks() == ()
            assert desk.take(raw()).outcome is SUCCESS
    assert [got.headers["authorization"] for got in receiver.got if got.method == "POST"] == ["two"]


# --- JSONL


def test_a_line_holds_the_group_its_seconds_and_its_narrative(tmp_path: Path) -> None:
    """Fields have the names of the API, the caller key is left out, and only the owner can read the file."""
    taking(delivering(tmp_path, JSONL, ""), raw("g1"), raw("g2"))
    first, second = lines(tmp_path)
    assert (first["groupId"], second["groupId"]) == ("g1", "g2")
    assert (first["seconds"], first["timeRows"][0]["activity"], "callerKey" in first) == (3600, "Word", False)
    assert first["narrative"].startswith("09:05 Word: Reply.docx (1h)")
    assert (tmp_path / "out/time.jsonl").stat().st_mode & 0o777 == 0o600


def test_json_sets_the_content_of_a_line(tmp_path: Path) -> None:
    sink = "- {name: archive, jsonl: {path: out/time.jsonl, json: {id: '{{ group.groupId }}', n: [1, null]}}}\n"
    taking(delivering(tmp_path, sink, ""), raw())
    assert lines(tmp_path) == [{"id": "g1", "n": [1, None]}]


TAILS: dict[str, tuple[str, list[Any]]] = {
    "torn": ('{"id": "x"}\n{"id": "to', [{"id": "x"}]),
    "torn first line": ('{"id', []),
    "complete without a line end": ('{"id": "x"}\n{"id": "y"}', [{"id": "x"}, {"id": "y"}]),
    "torn within a character": ('{"id": "x"}\n{"id": "\udcc3', [{"id": "x"}]),
    "a number, which may be incomplete": ('{"id": "x"}\n12', [{"id": "x"}]),
    "a number as the first line": ("12.5", []),
    "an incomplete string": ('{"id": "x"}\n"ab', [{"id": "x"}]),
    "a complete string": ('"ab"', ["ab"]),
    "long and torn": ('{"id": "' + "x" * 3_000_000, []),
}


@pytest.mark.parametrize(("tail", "before"), TAILS.values(), ids=TAILS.keys())
def test_a_torn_line_is_repaired_before_the_next_is_written(tail: str, before: list[Any], tmp_path: Path) -> None:
    """As after a power failure during a write."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out/time.jsonl").write_bytes(tail.encode("utf-8", "surrogateescape"))
    taking(delivering(tmp_path, JSONL, ""), raw())
    found = lines(tmp_path)
    assert (found[:-1], found[-1]["groupId"]) == (before, "g1")


@pytest.mark.parametrize("tail", ["My notes", "version: 1\nbaseUrl: x", "[\n {}\n]", "2026-11-29 started", "- one"])
def test_nothing_is_cut_off_a_file_that_is_not_ours(tail: str, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/time.jsonl").write_text(tail)
    with at_work(delivering(tmp_path, JSONL, "")) as desk:
        assert desk.take(raw()).outcome is TROUBLE
        (trouble,) = desk.check_sinks()
    assert trouble.detail is not None
    assert trouble.detail.endswith("is not JSON: move the file away, or end that line")
    assert (tmp_path / "out/time.jsonl").read_text() == tail


def test_a_folder_that_cannot_be_created_is_trouble(tmp_path: Path) -> None:
    """A file has the name of the folder."""
    (tmp_path / "out").write_text("")
    with at_work(delivering(tmp_path, JSONL, "")) as desk:
        assert desk.take(raw()).outcome is TROUBLE
        assert [t.message for t in desk.check_sinks()] == ["archive cannot be written."]
        (tmp_path / "out").unlink()
        assert desk.check_sinks() == ()
        assert desk.take(raw()).outcome is SUCCESS


def test_a_full_disk_is_trouble_until_a_line_is_written(tmp_path: Path) -> None:
    """Opening the file proves nothing. It is reported from the second failure on."""
    with at_work(delivering(tmp_path, JSONL, "")) as desk:
        (tmp_path / "out").mkdir()
        (tmp_path / "out/time.jsonl").symlink_to("/dev/full")
        for reported in ([], ["archive cannot be written."]):
            assert desk.take(raw()).outcome is TROUBLE
            assert [t.message for t in desk.troubles] == ["archive cannot be written."]
            assert [t.message for t in desk.check_sinks()] == reported
        assert desk.troubles
        (tmp_path / "out/time.jsonl").unlink()
        assert desk.take(raw()).outcome is SUCCESS
        assert desk.check_sinks() == ()


def test_a_delivery_to_all_kinds_of_sinks(tmp_path: Path) -> None:
    """They take the group in order, and the service gets the first reference."""
    ledger(tmp_path)
    with receiving() as receiver:
        keep(receiver)
        deliver = JSONL + http_sink(receiver.url) + SQL_SINK
        assert taking(delivering(tmp_path, deliver, LOOKUPS), raw()) == [Verdict(SUCCESS, None, "4711")]
        assert (len(lines(tmp_path)), len(receiver.kept), len(rows(tmp_path))) == (1, 1, 1)


def keep(receiver: Receiver) -> None:
    """Answer every request with the same reference."""
    receiver.answer = lambda got: (201, {"id": 4711})
