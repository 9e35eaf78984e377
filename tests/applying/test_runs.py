"""The order of stages, trouble at each, and what stops a run (docs/planning.md 4.1, 4.2, 4.5, 4.9 to 4.11)."""

import signal
from pathlib import Path
from typing import Any

import pytest

from syncengine.apply.report import ItemEnded, Retrying, SessionOpened
from tests.cli.estate import AFTER, BEFORE, DELETES_TAGS, WRITES
from tests.cli.service import KEY, Service

from .bench import AT_ONCE, Bench, Json, activity_type, category, numbered, tag

pytestmark = pytest.mark.slow


def test_stages_are_sent_in_the_order_in_which_nothing_breaks(bench: Bench) -> None:
    """Categories, activity types, upserts, keyword adds and deletes, metadata deletes, sweep, category deletes."""
    bench.settings(service=DELETES_TAGS)
    bench.settle(**BEFORE)
    ended = bench.settle(**AFTER)
    assert "tag/CASCADES-1" in ended.outcomes, "a deletion with the category, which the report names"
    assert "CASCADES-1" not in bench.sandbox.tags()
    assert ended.order() == [
        *("upsertTagCategories", "uploadActivityTypes", "upsertTags", "addKeywords"),
        *("deleteKeyword", "deleteTagMetadata", "deleteTag"),
        *("startSyncSession", "uploadActivityTypes", "completeSyncSession"),
        *("deleteTagCategory", "upsertTags"),  # of tags that people may have put into the deleted category
    ]
    bench.assert_at_rest()


def test_a_tag_waits_for_the_id_of_its_category_alone(bench: Bench) -> None:
    """Without the id the tag would be created outside its category; the new description of a known one is no reason."""
    bench.settle(tagCategories=[category("known")])
    bench.sandbox.unavailable("upsertTagCategories")
    inside = [tag("WAITS-1", category="late"), tag("GOES-1", category="known"), tag("GOES-2")]
    ended = bench.apply(tagCategories=[category("known", description="new"), category("late")], tags=inside)
    assert ended.exit_code == 3
    assert ended.not_applied() == {"category/known": "unknown", "category/late": "unknown", "tag/WAITS-1": "skipped"}
    assert "needs the id of category/late" in ended.words("tag/WAITS-1")
    assert ended.names("upsertTags") == [["GOES-1", "GOES-2"]]
    bench.assert_converges()
    assert bench.sandbox.tag("WAITS-1")["category"] == "late"


def test_deletes_of_a_tag_wait_for_its_own_upsert(bench: Bench) -> None:
    """A keyword is deleted only after its successor is added; when the upsert fails, nothing is deleted."""
    bench.settle(tags=[tag("EDITED-1", keywords=["before"], metadata={"Old": "1"}), tag("OTHER-1", keywords=["x-ray"])])
    bench.sandbox.fault("upsertTags", itemErrors=[{"index": 0, "errorDescription": "not today"}])
    ended = bench.apply(tags=[tag("EDITED-1", keywords=["after"], description="new"), tag("OTHER-1")])
    assert ended.outcomes == {"tag/EDITED-1": "failed", "tag/OTHER-1": "applied"}
    assert [request["body"]["tagName"] for request in ended.sent("deleteKeyword")] == ["OTHER-1"]
    assert ended.sent("deleteTagMetadata") == []
    assert "before" in bench.sandbox.tag("EDITED-1")["keywords"]
    bench.assert_converges()
    assert bench.sandbox.tag("EDITED-1")["keywords"] == ["EDITED-1", "after"]


def test_a_tag_stays_in_doubt_after_an_unknown_delete_of_another_spelling(bench: Bench) -> None:
    """The upsert waits for the delete: acknowledged, it would end the doubt whether the old spelling is still there."""
    bench.settle(tags=[tag("T-0001", keywords=["patent one"])])
    bench.sandbox.unavailable("deleteKeyword", processed=True)
    ended = bench.apply(tags=[tag("T-0001", keywords=["Patent One"])])
    assert (ended.exit_code, ended.sent("upsertTags"), bench.doubtful()) == (3, [], {"tag/T-0001"})
    bench.assert_converges()


KINDS: dict[str, Json] = {
    "unavailable": {"status": 503, "headers": AT_ONCE, "times": 6},
    "answer lost": {"status": 503, "headers": AT_ONCE, "times": 6, "apply": True},
    "gateway page": {"status": 200, "body": "<html>Welcome</html>"},
    "gateway page after all": {"status": 200, "body": "<html>Welcome</html>", "apply": True},
    "empty object": {"status": 200, "body": {}, "apply": True},
    "refused": {"status": 400, "body": {"message": "not today"}},
    "forbidden": {"status": 403},
    "key refused": {"status": 401},
    "cut after": {"drop": "after"},
    "expired": {"expireSession": True},
}
OPERATIONS = ("teamInfo", *WRITES)
FOR_ALL_ALIKE = ("forbidden", "key refused", "cut after")
SEARCHED = ("unavailable", "answer lost", "gateway page after all", "refused", "expired")
"""Trouble that all operations meet in the same way, or that the crash model brings to each: here, over HTTP, three of
them meet it."""
CASES = [
    (operation, kind)
    for operation in OPERATIONS
    for kind in KINDS
    if kind not in (*FOR_ALL_ALIKE, *SEARCHED) or operation in ("teamInfo", "upsertTags", "completeSyncSession")
]


def begun(bench: Bench) -> None:
    """Set up the state before the plan, with other people's data in every place that the plan touches."""
    bench.settings(service=DELETES_TAGS)
    bench.settle(**BEFORE)
    theirs = [{"name": "THEIRS-1", "tagCategoryId": bench.sandbox.category_ids()["named-before"]}, {"name": "THEIRS-2"}]
    bench.sandbox.say("/tags", {"tags": [*theirs, {"name": "LOSES-1", "additionalKeywords": ["theirs"]}]})
    bench.wants(**AFTER)


@pytest.fixture(scope="module")
def end(_started: Service, tmp_path_factory: pytest.TempPathFactory) -> Json:
    """What an undisturbed run leaves."""
    _started.reset()
    bench = Bench(tmp_path_factory.mktemp("undisturbed"), _started)
    begun(bench)
    asked = {request["operation"] for request in bench.settle().requests}
    assert set(OPERATIONS) <= asked, "faults would meet nothing"
    return _started.holds()


@pytest.mark.parametrize(("operation", "kind"), CASES)
def test_after_trouble_the_next_run_ends_as_an_undisturbed_one(
    end: Json, bench: Bench, operation: str, kind: str
) -> None:
    """The exit code shows whether something is left to do, and nothing of other people changes."""
    begun(bench)
    bench.sandbox.fault(operation, **KINDS[kind])
    ended = bench.apply()
    assert ended.exit_code in (0, 3, 7, 9)
    assert (ended.exit_code == 0) == (ended.status == "complete")
    bench.sandbox.heal()
    if ended.exit_code:
        assert bench.apply().exit_code == 0
    assert bench.sandbox.holds() == end
    bench.assert_at_rest()


# --- answers that count, and what stops a run


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
    """JSON of another shape leaves the outcome unknown, as a gateway's page does."""
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


# --- --max-errors and interrupts (4.10)


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
