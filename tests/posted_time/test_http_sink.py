"""Only a 2xx proves that an HTTP receiver took a group, and only a 4xx to the first attempt proves that it did not."""

import gzip
from pathlib import Path
from typing import Any

import pytest

from syncengine.errors import TroubleKind
from syncengine.posted_time.delivery import HOLD, Delivery
from syncengine.posted_time.events import Verdict
from syncengine.posted_time.sink_health import FIRST_REST, LONGEST_REST
from syncengine.posted_time.sinks.contract import CONTROL, TOO_LONG
from syncengine.posted_time.sinks.http import SIDE_BY_SIDE
from syncengine.state.inbox import open_inbox
from syncengine.state.inbox_model import PostedTimeStatus
from tests.dripping import BODY, HEADERS, dripping
from tests.posted_time.desk import REFUSED, SUCCESS, TROUBLE, at_work, outcomes, refused, taking
from tests.posted_time.projects import JSONL, delivering, files, http_sink
from tests.posted_time.receiver import Receiver, receiving
from tests.posted_time.samples import raw, some
from tests.support.quiet import unused_port

pytestmark = pytest.mark.slow


def sink(folder: Path, url: str, more: str = "", settings: str = "", **given: Any) -> Delivery:
    return delivering(folder, http_sink(url, more, settings), "", **given)


def test_a_request_carries_key_body_and_headers(tmp_path: Path, receiver: Receiver) -> None:
    """Secrets are in no file, and the project may replace Content-Type, but not Idempotency-Key."""
    given = "Authorization: {env: TOKEN}, X-Tag: 'T {{ tag.name }}', content-type: application/x.time+json"
    delivery = sink(tmp_path, receiver.url, f", headers: {{{given}, idempotency-key: mine}}", TOKEN="Bearer s3cr3t")
    assert taking(delivery, raw()) == [Verdict(SUCCESS, None, "4711")]
    taking(sink(tmp_path, receiver.url), raw("g2"))
    got, plain = receiver.got
    assert (got.method, got.path) == ("POST", "/api/time/ACME-0042")
    assert got.body == {"id": "g1", "secs": 3600, "flag": True, "tags": ["a", 1]}
    assert (got.headers["authorization"], got.headers["x-tag"]) == ("Bearer s3cr3t", "T ACME-0042")
    assert (got.headers["content-type"], got.headers["idempotency-key"]) == ("application/x.time+json", "g1/pms")
    assert (got.lines.count("content-type"), got.lines.count("idempotency-key")) == (1, 1)
    assert got.headers["user-agent"].startswith("syncengine/")
    assert plain.headers["content-type"] == "application/json"
    assert b"s3cr3t" not in files(tmp_path)


Then = tuple[PostedTimeStatus, TroubleKind | None, PostedTimeStatus]
STATUSES: dict[int | None, Then] = {
    **dict.fromkeys((200, 204), (SUCCESS, None, REFUSED)),
    **dict.fromkeys((400, 404, 409, 418, 422), (REFUSED, None, SUCCESS)),
    401: (TROUBLE, TroubleKind.AUTHENTICATION, SUCCESS),
    402: (TROUBLE, TroubleKind.SUBSCRIPTION, SUCCESS),
    403: (TROUBLE, TroubleKind.PERMISSIONS, SUCCESS),
    **dict.fromkeys((302, 303, 500), (TROUBLE, TroubleKind.UNKNOWN, REFUSED)),
    **dict.fromkeys((None, 408, 425, 429, 503, 524), (TROUBLE, TroubleKind.UNREACHABLE, REFUSED)),
}
"""Status, or None for no answer → outcome, the kind of trouble, and the outcome of changed content afterwards."""


@pytest.mark.parametrize(("status", "then"), STATUSES.items())
def test_each_status_is_a_success_a_refusal_or_trouble(
    status: int | None, then: Then, tmp_path: Path, receiver: Receiver
) -> None:
    """Changed content is sent only if the first was certainly not taken: a sink never holds two contents."""
    outcome, kind, changed = then
    receiver.says((status, {"error": "java.lang.NullPointerException"}) if status else None, (201, {"id": 1}))
    with at_work(sink(tmp_path, receiver.url)) as desk:
        verdict = desk.take(raw())
        assert (verdict.outcome, [trouble.kind for trouble in desk.troubles]) == (outcome, [kind] if kind else [])
        assert "java" not in (verdict.message or "")
        assert desk.take(raw(totalDurationSecs=1)).outcome is changed


def test_a_receiver_that_never_answers_is_trouble_of_few_groups(tmp_path: Path) -> None:
    """The answer arrives byte by byte until the timeout; groups that wait for a turn give up without a request."""
    with dripping(HEADERS) as server, at_work(sink(tmp_path, server.url, ", timeout: 0.5s")) as desk:
        assert set(outcomes(desk.together(*some(60)))) == {TROUBLE}
        assert desk.troubles[0].kind is TroubleKind.UNREACHABLE
        statuses = [entry.deliveries[0].status for entry in desk.inbox.entries()]
    assert statuses.count("unknown") <= 2 * SIDE_BY_SIDE


def test_a_group_is_taken_by_a_2xx_whose_body_is_too_large_or_never_ends(tmp_path: Path) -> None:
    """A large body is not unpacked, so no template can read it; the other arrives byte by byte until the timeout."""
    packed = gzip.compress(b'{"id": 4711, "more": "' + bytes(128 * 1024 * 1024) + b'"}', 1)
    head = b"HTTP/1.1 201 Created\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n"
    with dripping(BODY, {b"/api/time/LARGE": head % len(packed) + packed}) as server:
        groups = (raw(name, tags=[{"name": name}]) for name in ("LARGE", "ENDLESS"))
        assert taking(sink(tmp_path, server.url, ", timeout: 1s"), *groups) == [Verdict(SUCCESS)] * 2


def test_a_group_that_tries_a_failing_sink_is_held_for_a_while(tmp_path: Path, receiver: Receiver) -> None:
    """Its verdict is not sent and it tries the sink again; after `HOLD` its trouble is final and sent."""
    now = 1e9
    receiver.answer = lambda got: (503, {}) if got.method == "POST" else (404, {})
    with at_work(sink(tmp_path, receiver.url, now=lambda: now)) as desk:
        assert desk.take(raw("a")).is_final
        now += FIRST_REST
        desk.check_sinks()
        assert not desk.take(raw("b")).is_final
        for held, waiting in ((0.0, ["a"]), (HOLD, ["a", "b"])):
            now += LONGEST_REST + held
            desk.check_sinks()
            assert desk.troubles == ()
            (verdict,) = desk.resume()
            assert verdict is not None
            assert (verdict.outcome, verdict.is_final) == (TROUBLE, held > 0)
            assert [each.group_id for each in desk.inbox.waiting()] == waiting


def test_a_new_process_is_cautious_with_a_sink_that_failed_last(tmp_path: Path, receiver: Receiver) -> None:
    """It tries that sink with one group first; a sink that took its last group is up."""
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
def test_a_failing_health_path_is_trouble(status: int, kind: TroubleKind, tmp_path: Path, receiver: Receiver) -> None:
    receiver.answer = lambda got: (status, {})
    with at_work(sink(tmp_path, receiver.url, ", health: /health")) as desk:
        desk.check_sinks()
        assert [t.kind for t in desk.troubles] == [kind]
        assert [t.kind for t in desk.check_sinks()] == [kind]
    assert receiver.got[0].path == "/api/health"


# --- answers that are odd, late or missing


UNREADABLE: dict[str, tuple[bytes, dict[str, str]]] = {
    "an encoding that was not requested": (b"\x8b\x01\x80{}\x03", {"Content-Encoding": "br"}),
    "damaged compression": (b"no gzip", {"Content-Encoding": "gzip"}),
    "compression that was cut": (b"\x1f\x8b\x08", {"Content-Encoding": "gzip"}),
    "a body that ends early": (b"{", {"Content-Length": "100", "Connection": "close"}),
    **{text.decode(): (text, {}) for text in (b"no JSON", b"{}", b'{"id": null}', b"[]")},
}


@pytest.mark.parametrize(("body", "headers"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_group_is_taken_by_a_2xx_without_a_reference(
    body: bytes, headers: dict[str, str], tmp_path: Path, receiver: Receiver
) -> None:
    """The body matters only to `externalId`; a repeat would book the time twice."""
    receiver.answer, receiver.headers = lambda got: (201, body), headers
    text = http_sink(receiver.url).replace("'{{ response.id }}'", "'E{{ response.id }}'")
    delivery = delivering(tmp_path, text, "")
    assert taking(delivery, raw(), raw()) == [Verdict(SUCCESS)] * 2
    assert (len(receiver.got), delivery.troubles) == (1, ())


def test_an_answer_that_is_not_http_proves_nothing(tmp_path: Path, receiver: Receiver) -> None:
    """The receiver was reached, and perhaps took the time. Its 201 has no length that anybody could read."""
    receiver.headers = {"Content-Length": "2, or so"}
    (verdict,) = taking(sink(tmp_path, receiver.url), raw())
    assert (verdict.outcome, verdict.message) == (TROUBLE, "pms does not work as expected.")
    assert verdict.detail == "the answer is not valid HTTP"
    with open_inbox(str(tmp_path / ".syncengine/state.db"), write=False) as inbox:
        assert [found.status for entry in inbox.entries() for found in entry.deliveries] == ["unknown"]


def test_a_group_is_refused_by_a_4xx_whose_body_cannot_be_read(tmp_path: Path, receiver: Receiver) -> None:
    """The receiver's message is lost, so the message is the default one."""
    receiver.answer, receiver.headers = lambda got: (422, b"?"), {"Content-Encoding": "br"}
    (verdict,) = taking(sink(tmp_path, receiver.url, settings="  refused: '{{ response.why }}'\n"), raw())
    assert (verdict.outcome, verdict.message) == (REFUSED, "pms rejected the time (422).")


@pytest.mark.parametrize(
    ("first", "repeat", "settings"),
    [
        *((first, 409, "") for first in (None, 503, 303)),
        *((None, repeat, "") for repeat in (400, 404, 422)),
        *((503, repeat, "  refuseOn: [409, 422]\n") for repeat in (409, 422)),
    ],
)
def test_a_refusal_of_a_repeat_proves_nothing(
    first: int | None, repeat: int, settings: str, tmp_path: Path, receiver: Receiver
) -> None:
    """The receiver may refuse the repeat because it took the first request: the verdict is trouble, not FAILURE."""
    receiver.says((first, {}) if first else None, (repeat, {}), (repeat, {}), (201, {"id": 9}))
    verdicts = taking(sink(tmp_path, receiver.url, settings=settings), *[raw()] * 4)
    assert outcomes(verdicts) == [TROUBLE] * 3 + [SUCCESS]
    assert verdicts[3].external_id == "9"
    assert {got.headers["idempotency-key"] for got in receiver.got} == {"g1/pms"}


def test_settings_and_credentials_make_a_refusal_of_a_status_or_trouble(tmp_path: Path, receiver: Receiver) -> None:
    """A 401 proves that the receiver cannot have the group, so a refusal of the repeat is one."""
    settings = "  refuseOn: [503]\n  troubleOn: [404]\n  refused: The period is {{ response.why }}.\n"
    receiver.says((404, {}), (503, {"why": "closed"}), (401, {}), (422, {"why": "over"}))
    verdicts = taking(sink(tmp_path, receiver.url, settings=settings), raw("a"), raw("b"), raw("c"), raw("c"))
    assert outcomes(verdicts) == [TROUBLE, REFUSED, TROUBLE, REFUSED]
    assert [verdicts[1].message, verdicts[3].message] == ["The period is closed.", "The period is over."]


def test_the_operator_sees_why_a_receiver_cannot_be_reached(tmp_path: Path) -> None:
    """From a delivery and from a probe; the message for users only says that it cannot be reached."""
    with at_work(sink(tmp_path, f"http://127.0.0.1:{unused_port()}")) as desk:
        desk.check_sinks()
        (by_probe,) = desk.troubles
        verdict = desk.take(raw())
        for told in (by_probe, verdict):
            assert told.message == "pms cannot be reached."
            assert (told.detail or "").startswith("nothing is listening at the address")


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_pauses_deliveries_and_probes(status: int, tmp_path: Path, receiver: Receiver) -> None:
    """Until the time is over the receiver gets neither groups nor probes; of many at once, only what was open."""
    now = 1000.0
    receiver.answer, receiver.headers = lambda got: (status, {}), {"Retry-After": "1000"}
    with at_work(sink(tmp_path, receiver.url, now=lambda: now)) as desk:
        desk.together(*some(64))
        sent = len(receiver.got)
        assert 1 < sent <= SIDE_BY_SIDE
        for _ in range(20):
            now += 45
            desk.check_sinks()
            assert desk.troubles
            assert desk.take(raw("g2"), "webhook").outcome is TROUBLE
        assert len(receiver.got) == sent
        now += 101
        receiver.answer = lambda got: (200, {})
        desk.check_sinks()
        assert not desk.troubles


def test_retry_after_holds_for_later_processes(tmp_path: Path) -> None:
    """For example each `time pull`. It does not hold for a sink that moved to another address."""
    now = 1000.0
    with receiving() as receiver, receiving() as other:
        receiver.answer, receiver.headers = lambda got: (429, {}), {"Retry-After": "1000"}

        def offered() -> tuple[bool, PostedTimeStatus]:
            with at_work(sink(tmp_path, receiver.url, now=lambda: now)) as desk:
                desk.remember_troubles()
                desk.check_sinks()
                return bool(desk.troubles), desk.take(raw(), "webhook").outcome

        offered()
        sent = len(receiver.got)
        now += 900
        assert [offered(), offered()] == [(True, TROUBLE)] * 2
        assert outcomes(taking(sink(tmp_path, receiver.url, now=lambda: now), raw())) == [TROUBLE]
        assert len(receiver.got) == sent
        assert taking(sink(tmp_path, other.url, now=lambda: now), raw("g2"))[0].outcome is SUCCESS
        now += 101
        receiver.answer = lambda got: (201, {})
        assert offered() == (False, SUCCESS)


# --- paths


ASTRAY = [("/time/{{ tag.name }}/rows", ".."), ("{{ tag.name }}", "../../admin")]
ASTRAY += [("/time/{{ tag.name }}", name) for name in (".", "..", "../../admin", "x/../y", "./x", "..\\admin", "..;x")]


@pytest.mark.parametrize(("path", "name"), ASTRAY)
def test_a_tag_cannot_change_the_path_of_a_request(path: str, name: str, tmp_path: Path, receiver: Receiver) -> None:
    """A tag such as `..` refuses the group: its user gets a message, and the note names the path."""
    sink = http_sink(receiver.url).replace("/time/{{ tag.name }}", path)
    told, note = refused(delivering(tmp_path, sink, ""), raw(tags=[{"name": name}]))
    assert ("pms cannot take this time" in told, "the path of pms would be" in note, receiver.got) == (True, True, [])


ODD = "A?b#c&d/e"
PATHS: list[tuple[str, str, str]] = [
    ("/time/{{ tag.name }}/rows", ODD, "/time/A%3Fb%23c%26d%2Fe/rows"),
    ("/time/{{ tag.name }}/rows", "%2e%2e", "/time/%252e%252e/rows"),
    ("/time/{{ tag.name }}/rows", "Müller & Söhne", "/time/M%C3%BCller%20%26%20S%C3%B6hne/rows"),
    ("/time/{{ tag.name }}/rows", "a+b=c@d:e;f,g", "/time/a%2Bb%3Dc%40d%3Ae%3Bf%2Cg/rows"),
    ("/time/{{ tag.name }}/rows", "a~b-c_d.e", "/time/a~b-c_d.e/rows"),
    ("/time/{{ tag.name }}/rows", "a\r\nX: 1", "/time/a%0D%0AX%3A%201/rows"),
    ("{{ tag.name }}", ODD, "/A%3Fb%23c%26d%2Fe"),
    ("/time/{{ tag.name | urlencode }}", ODD, "/time/A%3Fb%23c%26d%2Fe"),
    ("/time?tag={{ tag.name | urlencode }}&x={{ 1 }}", ODD, "/time?tag=A%3Fb%23c%26d%2Fe&x=1"),
    ("/time?{{ {'tag': tag.name} | urlencode }}", ODD, "/time?tag=A%3Fb%23c%26d%2Fe"),
    ("{{ '/time?draft=1' if tag else '' }}", ODD, "/time?draft=1"),
    ("{{ '/time/' ~ tag.name ~ '/rows' }}", ODD, "/time/A%3Fb%23c%26d%2Fe/rows"),
    ("/time{% for t in group.tags %}/{{ t.name }}{% endfor %}", ODD, "/time/A%3Fb%23c%26d%2Fe"),
    ("/time/{% include 'part.j2' %}", ODD, "/time/A%3Fb%23c%26d%2Fe"),
    ("/time{{ tag.externalId }}/{{ 'x' if not tag }}", ODD, "/time/"),
]


@pytest.mark.parametrize(("path", "name", "sent"), PATHS)
def test_a_value_in_a_path_is_encoded_once(path: str, name: str, sent: str, tmp_path: Path, receiver: Receiver) -> None:
    """As one segment, wherever it stands; no client decodes or normalizes it."""
    (tmp_path / "part.j2").write_text("{{ tag.name }}")
    sink = http_sink(receiver.url).replace("'/time/{{ tag.name }}'", f'"{path}"')
    (verdict,) = taking(delivering(tmp_path, sink, ""), raw(tags=[{"name": name}]))
    assert (verdict.outcome, [got.path for got in receiver.got]) == (SUCCESS, [f"/api{sent}"])


# --- headers


def test_a_secret_file_is_read_again_for_each_request(tmp_path: Path, receiver: Receiver) -> None:
    """A rotated token is used without a restart; while its file is away, no group is sent."""
    token = tmp_path / "token"
    token.write_text("one")
    with at_work(sink(tmp_path, receiver.url, ", headers: {Authorization: {file: token}}")) as desk:
        desk.take(raw("g1"))
        token.unlink()
        assert desk.take(raw("g2")).outcome is TROUBLE
        assert [t.kind for t in desk.check_sinks()] == [TroubleKind.AUTHENTICATION]
        token.write_text("two")
        assert desk.check_sinks() == ()
        assert desk.take(raw("g2")).outcome is SUCCESS
    assert [got.headers["authorization"] for got in receiver.got if got.method == "POST"] == ["one", "two"]


@pytest.mark.parametrize("name", ["Jürgen", "Łukasz Żółć", "山田 太郎", "Zoë\u00a0😀", "a\u2028b"])
def test_a_header_that_is_not_ascii_is_sent_as_utf_8(name: str, tmp_path: Path, receiver: Receiver) -> None:
    """The receiver of this test decodes headers as Latin-1, as many do."""
    delivery = sink(tmp_path, receiver.url, ", headers: {X-User: '{{ user.name }}', X-Firm: Müller}")
    (verdict,) = taking(delivery, raw(user={"name": name}))
    assert verdict.outcome is SUCCESS
    (got,) = receiver.got
    sent = {header: got.headers[header].encode("latin-1").decode() for header in ("x-user", "x-firm")}
    assert sent == {"x-user": name, "x-firm": "Müller"}


UNSENDABLE: dict[str, tuple[dict[str, Any], str, str]] = {
    "header injection": ({"user": {"name": "a\r\nX-Evil: 1"}}, CONTROL, "the header X-User of pms"),
    "line feed": ({"user": {"name": "a\nb"}}, CONTROL, "the header X-User of pms"),
    "bell": ({"user": {"name": "a\x07b"}}, CONTROL, "the header X-User of pms"),
    "next line": ({"user": {"name": "a\x85b"}}, CONTROL, "the header X-User of pms"),
    "long header": ({"user": {"name": "x" * 9000}}, TOO_LONG, "the header X-User of pms"),
    "long id": ({"group_id": "g" * 100_000}, TOO_LONG, "Idempotency-Key"),
    "id that is long once encoded": ({"group_id": "ü" * 2000}, TOO_LONG, "Idempotency-Key"),
    "path that is long once encoded": ({"tags": [{"name": "ü" * 2000}]}, TOO_LONG, "the path of pms"),
}


@pytest.mark.parametrize(("given", "why", "where"), UNSENDABLE.values(), ids=UNSENDABLE)
def test_what_cannot_be_sent_refuses_the_group(
    given: dict[str, Any], why: str, where: str, tmp_path: Path, receiver: Receiver
) -> None:
    """The note names the place, and no request is sent."""
    delivery = sink(tmp_path, receiver.url, ", headers: {X-User: '{{ user.name }}'}")
    told, note = refused(delivery, raw(**given))
    assert (why in told, where in note, receiver.got) == (True, True, [])
