"""Only a 2xx proves that an HTTP receiver took a group, and only a 4xx to the first attempt proves that it did not."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from syncengine.posted_time.delivery import Delivery
from syncengine.state.inbox import open_inbox
from syncengine.state.inbox_model import PostedTimeStatus
from tests.dripping import BODY, dripping
from tests.posted_time.desk import REFUSED, SUCCESS, TROUBLE, at_work, outcomes, taking
from tests.posted_time.projects import delivering, http_sink, problems
from tests.posted_time.receiver import receiving
from tests.posted_time.samples import raw, some


def sink(folder: Path, url: str, more: str = "", settings: str = "", **given: Any) -> Delivery:
    return delivering(folder, http_sink(url, more, settings), "", **given)


UNREADABLE: dict[str, tuple[bytes, dict[str, str]]] = {
    "an encoding that was not requested": (b"\x8b\x01\x80{}\x03", {"Content-Encoding": "br"}),
    "damaged compression": (b"no gzip", {"Content-Encoding": "gzip"}),
    "compression that was cut": (b"\x1f\x8b\x08", {"Content-Encoding": "gzip"}),
    "a body that ends early": (b"{", {"Content-Length": "100", "Connection": "close"}),
}


@pytest.mark.parametrize(("body", "headers"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_group_is_taken_by_a_2xx_whose_body_cannot_be_read(
    body: bytes, headers: dict[str, str], tmp_path: Path
) -> None:
    """The body matters only to `externalId`; a repeat would book the time twice."""
    with receiving() as receiver:
        receiver.answer, receiver.headers = lambda got: (201, body), headers
        delivery = sink(tmp_path, receiver.url)
        verdicts = taking(delivery, raw(), raw())
    assert [(each.outcome, each.external_id) for each in verdicts] == [(SUCCESS, None)] * 2
    assert (len(receiver.got), delivery.troubles) == (1, ())


def test_an_answer_that_is_not_http_proves_nothing(tmp_path: Path) -> None:
    """The receiver was reached, and perhaps took the time. Its 201 has no length that anybody could read."""
    with receiving() as receiver:
        receiver.headers = {"Content-Length": "2, or so"}
        (verdict,) = taking(sink(tmp_path, receiver.url), raw())
    assert (verdict.outcome, verdict.message) == (TROUBLE, "pms does not work as expected.")
    assert verdict.detail == "the answer is not valid HTTP"
    with open_inbox(str(tmp_path / ".syncengine/state.db"), write=False) as inbox:
        assert [found.status for entry in inbox.entries() for found in entry.deliveries] == ["unknown"]


def test_a_group_is_taken_by_a_2xx_whose_body_never_ends(tmp_path: Path) -> None:
    """The body arrives byte by byte until the sink's timeout."""
    with dripping(BODY) as server:
        (verdict,) = taking(sink(tmp_path, server.url, ", timeout: 0.3s"), raw())
    assert verdict.outcome is SUCCESS


def test_a_group_is_refused_by_a_4xx_whose_body_cannot_be_read(tmp_path: Path) -> None:
    """The receiver's message is lost, so the message is the default one."""
    with receiving() as receiver:
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
def test_a_refusal_of_a_repeat_proves_nothing(first: int | None, repeat: int, settings: str, tmp_path: Path) -> None:
    """The receiver may refuse the repeat because it took the first request: the verdict is trouble, not FAILURE."""
    with receiving() as receiver:
        receiver.says((first, {}) if first else None, (repeat, {}), (repeat, {}), (201, {"id": 9}))
        verdicts = taking(sink(tmp_path, receiver.url, settings=settings), *[raw()] * 4)
    assert outcomes(verdicts) == [TROUBLE] * 3 + [SUCCESS]
    assert verdicts[3].external_id == "9"


def test_a_refusal_after_a_401_is_a_refusal(tmp_path: Path) -> None:
    """The receiver rejected the credentials of the first attempt, so it cannot have the group."""
    with receiving() as receiver:
        receiver.says((401, {}), (422, {}))
        verdicts = taking(sink(tmp_path, receiver.url), raw(), raw())
    assert outcomes(verdicts) == [TROUBLE, REFUSED]


CAUSES = {
    "nothing listens": ("http://127.0.0.1:1", "nothing is listening at the address"),
    "unknown host": ("http://no-such-host.invalid", "the host name cannot be resolved"),
}


@pytest.mark.parametrize(("url", "cause"), CAUSES.values(), ids=CAUSES.keys())
def test_the_operator_sees_why_a_receiver_cannot_be_reached(url: str, cause: str, tmp_path: Path) -> None:
    """From a delivery and from a probe; the message for users only says that it cannot be reached."""
    with at_work(sink(tmp_path, url)) as desk:
        desk.check_sinks()
        (by_probe,) = desk.troubles
        verdict = desk.take(raw())
        assert by_probe.detail is not None
        assert verdict.detail is not None
        assert by_probe.detail.startswith(cause)
        assert verdict.detail.startswith(cause)
        assert verdict.message == by_probe.message == "pms cannot be reached."


def test_troubleon_makes_a_status_trouble(tmp_path: Path) -> None:
    """For example the 404 of an ingress while its service is being deployed."""
    with receiving() as receiver:
        receiver.says((404, {}), (422, {}))
        delivery = sink(tmp_path, receiver.url, settings="  troubleOn: [404]\n")
        verdicts = taking(delivery, raw(), raw())
    assert outcomes(verdicts) == [TROUBLE, REFUSED]


def test_a_status_in_both_refuseon_and_troubleon_is_an_error_at_start(tmp_path: Path) -> None:
    text = "deliver:\n  - {name: pms, http: {url: 'http://127.0.0.1:1'}, refuseOn: [404, 503], troubleOn: [404]}\n"
    (found,) = problems(tmp_path, text)
    assert (found.code, "404" in found.message, "503" in found.message) == ("bad-value", True, False)


class _Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_pauses_deliveries_and_probes(status: int, tmp_path: Path) -> None:
    """Until the time is over the receiver gets neither groups nor probes."""
    clock = _Clock()
    with receiving() as receiver:
        receiver.answer, receiver.headers = lambda got: (status, {}), {"Retry-After": "1000"}
        with at_work(sink(tmp_path, receiver.url, now=clock)) as desk:
            desk.take(raw())
            for _ in range(20):
                clock.now += 45
                desk.check_sinks()
                assert desk.troubles
                verdict = desk.take(raw("g2"), "webhook")
                assert verdict.outcome is TROUBLE
            assert [got.method for got in receiver.got] == ["POST"]
            clock.now += 101
            receiver.answer = lambda got: (200, {})
            desk.check_sinks()
            assert not desk.troubles


def test_retry_after_holds_for_later_processes(tmp_path: Path) -> None:
    """For example each `time pull`. It does not hold for a sink that moved to another address."""
    clock = _Clock()
    with receiving() as receiver, receiving() as other:
        receiver.answer, receiver.headers = lambda got: (429, {}), {"Retry-After": "1000"}

        def offered() -> tuple[bool, PostedTimeStatus]:
            with at_work(sink(tmp_path, receiver.url, now=clock)) as desk:
                desk.remember_troubles()
                desk.check_sinks()
                return bool(desk.troubles), desk.take(raw(), "webhook").outcome

        offered()
        sent = len(receiver.got)
        clock.now += 900
        found = [offered(), offered()]
        (by_hand,) = taking(sink(tmp_path, receiver.url, now=clock), raw())
        assert (found, by_hand.outcome) == ([(True, TROUBLE)] * 2, TROUBLE)
        assert len(receiver.got) == sent
        clock.now += 101
        receiver.answer = lambda got: (201, {})
        assert offered() == (False, SUCCESS)
        receiver.answer, clock.now = lambda got: (429, {}), clock.now + 1
        taking(sink(tmp_path, receiver.url, now=clock), raw("g2"))
        (moved,) = taking(sink(tmp_path, other.url, now=clock), raw("g2"))
        assert moved.outcome is SUCCESS


def test_retry_after_stops_requests_that_are_queued(tmp_path: Path) -> None:
    """Of 64 groups at once, only the eight requests that were already open reach the receiver."""
    with receiving() as receiver:
        receiver.answer, receiver.headers = lambda got: (429, {}), {"Retry-After": "1000"}
        with at_work(sink(tmp_path, receiver.url)) as desk:
            desk.together(*some(64))
        assert len(receiver.got) <= 8


def test_a_receiver_is_tried_again_after_its_retry_after(tmp_path: Path) -> None:
    with receiving() as receiver:
        receiver.says((429, {}), (201, {"id": 1}))
        receiver.headers = {"Retry-After": "1"}
        with at_work(sink(tmp_path, receiver.url)) as desk:
            assert [desk.take(raw(), "webhook").outcome for _ in range(2)] == [TROUBLE, TROUBLE]
            time.sleep(1.1)
            assert desk.take(raw(), "webhook").outcome is SUCCESS
    assert len(receiver.got) == 2
