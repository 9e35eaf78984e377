"""What stops a run, which answers count, and what the run reports (docs/planning.md 4.5, 4.9 to 4.11)."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from syncengine.apply.report import ItemEnded, Retrying, SessionOpened
from tests.cli.service import KEY

from .bench import AT_ONCE, Bench, activity_type, category, numbered, tag

pytestmark = pytest.mark.slow


def test_trouble_that_passes_is_repeated_and_counted(bench: Bench) -> None:
    """After three 503 answers the run is complete, with three retries in the report."""
    bench.sandbox.unavailable("upsertTags", times=3)
    bench.wants(tags=[tag("T-0001")])
    told: list[object] = []
    ended = bench.apply(tell=told.append)
    totals = ended.applied.report.totals
    assert (ended.exit_code, totals.requests, totals.retries) == (0, 4, 3)
    assert [event.operation for event in told if isinstance(event, Retrying)] == ["upsertTags"] * 3


@pytest.mark.parametrize("body", ['["errors"]', '"fine"', "17"])
def test_an_answer_that_is_not_what_the_interface_says_is_no_success(bench: Bench, body: str) -> None:
    """JSON of another shape leaves the outcome unknown, as a gateway's page does (test_stages.py)."""
    bench.sandbox.fault("upsertTags", status=200, body=body)
    ended = bench.apply(tags=[tag("T-0001")])
    assert (ended.exit_code, ended.outcomes) == (3, {"tag/T-0001": "unknown"})
    bench.assert_converges()


@pytest.mark.parametrize(("status", "body"), [(200, {}), (204, "")])
def test_success_without_words_is_success(bench: Bench, status: int, body: object) -> None:
    """An empty object and nothing at all count as success for a batch of tags (docs/service.md §1)."""
    bench.sandbox.fault("upsertTags", status=status, body=body, apply=True)
    bench.settle(tags=[tag("T-0001")])


def test_a_service_that_is_down_is_noticed_once_and_not_per_batch(bench: Bench) -> None:
    """Hundreds of keyword deletes do not retry six times each: what is not yet sent is skipped."""
    names = numbered("TAG", 300)
    bench.settle(tags=[tag(name, keywords=[f"{name} words"]) for name in names])
    bench.sandbox.fault("*", status=503, headers=AT_ONCE, after=1, times=None)
    ended = bench.apply(tags=[tag(name) for name in names])
    assert (ended.exit_code, {*ended.outcomes.values()}) == (3, {"unknown", "skipped"})
    assert len(ended.requests) <= 8 * 6 + 2
    bench.assert_converges()


# --- --max-errors (4.10)


NO = [{"index": index, "errorDescription": "no"} for index in range(2)]


def test_max_errors_stops_once_so_many_items_have_failed(bench: Bench) -> None:
    """Items that were not sent are skipped with this reason, and no sweep follows; fewer failures stop nothing."""
    bench.settle(activityTypes=[activity_type("A100"), activity_type("A900")])
    bench.sandbox.fault("uploadActivityTypes", itemErrors=NO, times=2)
    bench.wants(activityTypes=[activity_type("A200"), activity_type("A300"), activity_type("A400")], tags=[tag("T-1")])
    ended = bench.apply(max_errors=2)
    assert (ended.exit_code, ended.order()) == (3, ["uploadActivityTypes"])
    assert (ended.outcomes["tag/T-1"], "max-errors" in ended.words("tag/T-1")) == ("skipped", True)
    assert bench.sandbox.types() >= {"A100", "A900", "A400"}
    assert bench.apply(max_errors=3).outcomes["tag/T-1"] == "applied"
    bench.assert_converges()


# --- interrupts (4.10)


def test_an_interrupt_awaits_answers_in_flight_and_sends_nothing_new(bench: Bench) -> None:
    """After Ctrl-C, answers in flight count, the rest is skipped, the run exits with 130, and the lock is free."""
    bench.settings(service=("concurrency: 1",))
    bench.wants(tags=[tag(name) for name in numbered("TAG", 4100)])

    def interrupt(event: object) -> None:
        if isinstance(event, ItemEnded) and event.key.name == "TAG-0001":
            signal.raise_signal(signal.SIGINT)

    ended = bench.apply(tell=interrupt)
    assert ended.exit_code == 130
    sent = len(ended.sent())
    assert sent in (1, 2), "the loop hears of a signal when the next request is on its way, at the latest"
    assert sorted(ended.outcomes.values()) == ["applied"] * 2000 * sent + ["skipped"] * (4100 - 2000 * sent)
    assert {ended.words(address) for address in ended.not_applied()} == {"interrupted"}
    healed = bench.assert_converges()
    assert sum(map(len, healed.names("upsertTags"))) == 4100 - 2000 * sent


def test_an_interrupt_in_a_session_cancels_it(bench: Bench) -> None:
    """After the interrupt, the run sends only the cancellation of the session."""
    bench.settle(activityTypes=[activity_type("A100"), activity_type("A900")])
    bench.wants(activityTypes=[activity_type("A100")])

    def interrupt(event: object) -> None:
        if isinstance(event, SessionOpened):
            signal.raise_signal(signal.SIGINT)

    ended = bench.apply(tell=interrupt)
    assert (ended.exit_code, ended.session) == (130, "cancelled")
    assert ended.order()[-1] == "cancelSyncSession"
    assert ended.sent("completeSyncSession") == []
    assert bench.sandbox.types() == {"A100", "A900"}
    bench.assert_converges()


def test_a_signal_s_old_handler_is_back_after_an_apply(bench: Bench) -> None:
    """An apply inside `serve` must not swallow the next Ctrl-C."""
    before = signal.getsignal(signal.SIGINT)
    bench.settle(tags=[tag("T-1")])
    assert signal.getsignal(signal.SIGINT) is before


# --- reports


def test_the_report_holds_every_change_in_the_plan_s_order_with_its_line(bench: Bench) -> None:
    """A failed category, the tags that waited for it, and applied changes each have the line of their file."""
    bench.sandbox.fault("upsertTagCategories", status=400, body={"message": "no more clients"}, times=None)
    bench.program.wants("clients.yaml", tagCategories=[category("acme")])
    bench.program.wants("matters.yaml", tags=[tag("GOES-1"), tag("WAITS-1", category="acme")])
    ended = bench.apply()
    told = [(str(r.source), str(r.key), r.outcome.value) for r in ended.applied.report.results]
    assert told == [
        ("manifests/clients.yaml:2", "category/acme", "failed"),
        ("manifests/matters.yaml:2", "tag/GOES-1", "applied"),
        ("manifests/matters.yaml:3", "tag/WAITS-1", "skipped"),
    ]
    totals = ended.applied.report.totals
    assert (totals.applied, totals.failed, totals.skipped, totals.unknown) == (1, 1, 1, 0)


@pytest.mark.parametrize(("status", "words"), [(422, "rejected with 422 and no message"), (503, "503: no message")])
def test_an_error_that_says_nothing_is_not_shown_as_braces(bench: Bench, status: int, words: str) -> None:
    bench.sandbox.fault("upsertTags", status=status, body={}, headers=AT_ONCE, times=6)
    assert bench.apply(tags=[tag("T-1")]).words("tag/T-1") == words


SAID = f"key {KEY} may not do this"
ECHOES: dict[str, tuple[int, object]] = {
    "an item": (200, {"errors": [{"index": 0, "errorDescription": SAID}]}),
    "another answer": (200, [SAID]),
}


@pytest.mark.parametrize(("status", "body"), ECHOES.values(), ids=ECHOES)
def test_the_key_is_in_no_report_state_or_event(status: int, body: Any, bench: Bench, tmp_path: Path) -> None:
    """The API key is hidden even when the service repeats it in an error."""
    bench.sandbox.fault("upsertTags", status=status, body=body, times=None)
    bench.wants(tags=[tag("T-1")])
    told: list[object] = []
    ended = bench.apply(tell=told.append)
    assert "key *** may not do this" in ended.words("tag/T-1")
    assert KEY not in repr(told) + repr(ended.applied.report)
    assert all(KEY.encode() not in path.read_bytes() for path in tmp_path.rglob("*.db*"))
