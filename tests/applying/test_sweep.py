"""The sweep: a sync session that completes only when every remaining item was acknowledged (docs/planning.md 3)."""

from typing import Any

import pytest

from syncengine.project.runner import Holder
from syncengine.sandbox.store import SESSIONS
from syncengine.state.history import Run
from syncengine.state.store import open_state
from tests.cli.service import KEY
from tests.support import loopback
from tests.support.world import world

from .bench import AT_ONCE, Bench, Json, activity_type, tag
from .picky import Picky, refusing

pytestmark = pytest.mark.slow

STAYING = [activity_type("A100"), activity_type("A200")]
GOING = activity_type("A900")
SESSION = ["startSyncSession", "uploadActivityTypes", "completeSyncSession"]


@pytest.fixture
def swept(bench: Bench) -> Bench:
    """Set up a team whose activity types belong to this project, and a manifest that removes one."""
    bench.settle(activityTypes=[*STAYING, GOING, activity_type("A800")])
    bench.settle(activityTypes=[*STAYING, GOING])
    bench.wants(activityTypes=STAYING)
    return bench


def test_a_sweep_is_start_upload_of_all_that_stays_and_completion(swept: Bench) -> None:
    """The calls form one contiguous stage, after which the removed code is deleted.

    The start has no body in the published contract, and a validating proxy refuses an empty object.
    """
    ended = swept.apply()
    assert ended.sent("startSyncSession")[0]["body"] is None
    assert (ended.exit_code, ended.session, ended.order()) == (0, "completed", SESSION)
    assert ended.names("uploadActivityTypes") == [["A100", "A200"]]
    assert len({request["session"] for request in ended.sent() if request["session"]}) == 1
    assert ended.outcomes == {"activity-type/A900": "applied"}
    assert swept.sandbox.types() == {"A100", "A200"}
    swept.assert_at_rest()


# --- whose list it is (3.3, 3.6)


def test_types_made_by_others_are_swept_only_under_an_approved_gate(bench: Bench) -> None:
    """Nothing is sent without an approval of the first sweep, or of one that deletes all types of the team."""
    bench.settle(activityTypes=[*STAYING, GOING])
    bench.sandbox.say("/activity-types", {"activityTypes": [{"code": "THEIRS", "label": "Theirs"}]})
    refused = bench.apply(activityTypes=STAYING, approve=False)
    assert (refused.exit_code, refused.status, refused.requests) == (4, "refused", [])
    assert bench.apply(approve=True).exit_code == 0
    assert bench.sandbox.types() == {"A100", "A200"}
    refused = bench.apply(tags=[], approve=False)
    assert (refused.exit_code, refused.requests) == (4, [])
    assert bench.apply().order() == ["startSyncSession", "completeSyncSession"]
    assert bench.sandbox.types() == set()


def test_a_sweep_that_did_not_complete_is_no_ownership(bench: Bench) -> None:
    """The approval covers the rest of the sweep until it is settled, and ownership begins only then."""
    others = [activity_type(f"B{number}") for number in range(10)]
    bench.settle(activityTypes=[*STAYING, GOING, *others])
    bench.wants(activityTypes=[*STAYING, *others])
    bench.sandbox.fault("completeSyncSession", status=403)
    for is_settled in (False, True):
        assert bench.apply(approve=not is_settled).exit_code == (0 if is_settled else 3)
        with bench.state() as state:
            assert state.facts().owns_activity_types is is_settled


# --- what keeps it from completing (3.4)


@pytest.mark.parametrize("status", [200, 400])
def test_an_item_error_in_the_session_cancels_it_and_names_the_item(swept: Bench, status: int) -> None:
    """Completing the session would delete the type that failed; the rows stay, and the next run sweeps again."""
    errors = [{"index": 1, "errorDescription": "not today"}]
    fault: dict[str, Any] = {"itemErrors": errors} if status == 200 else {"status": 400, "body": {"errors": errors}}
    swept.sandbox.fault("uploadActivityTypes", **fault)
    ended = swept.apply()
    assert (ended.exit_code, ended.session) == (3, "cancelled")
    assert ended.order() == ["startSyncSession", "uploadActivityTypes", "cancelSyncSession"]
    assert "activity-type/A200 was rejected: not today" in (ended.applied.report.session.reason or "")
    (failed,) = [result.error for result in ended.applied.report.results if str(result.key) == "activity-type/A200"]
    assert failed is not None
    assert (failed.index, failed.status) == (1, status)
    assert swept.sandbox.types() == {"A100", "A200", "A900"}
    assert (swept.row("activity-type/A900").status, swept.row("activity-type/A900").doubtful) == ("active", False)
    swept.assert_converges()
    assert swept.sandbox.types() == {"A100", "A200"}


NOT_YOU = {"status": 403, "body": {"message": "not you"}}
ENDS: dict[str, tuple[str, Json, str, str]] = {
    "not started": ("startSyncSession", NOT_YOU, "skipped", "not you"),
    "without an id (docs/planning.md 4.9)": ("startSyncSession", {"status": 200, "body": {}}, "skipped", ""),
    "an upload of unknown outcome": (
        "uploadActivityTypes",
        {"status": 503, "headers": AT_ONCE, "times": 6, "apply": True},
        "skipped",
        "",
    ),
    "not completed": ("completeSyncSession", NOT_YOU, "failed", "not you"),
    "dying again and again": ("completeSyncSession", {"expireSession": True, "times": None}, "unknown", ""),
}


@pytest.mark.parametrize(("operation", "fault", "outcome", "words"), ENDS.values(), ids=ENDS)
def test_a_session_that_cannot_complete_deletes_nothing(
    swept: Bench, operation: str, fault: Json, outcome: str, words: str
) -> None:
    """It does not stay open, and the next run does what is left. A dead session is repeated at most twice."""
    swept.sandbox.fault(operation, **fault)
    ended = swept.apply()
    assert (ended.exit_code, ended.not_applied()) == (3, {"activity-type/A900": outcome})
    assert (words in ended.words("activity-type/A900"), swept.sandbox.sessions().count("open")) == (True, 0)
    assert len(ended.sent("startSyncSession")) == (3 if outcome == "unknown" else 1)
    assert ("activity-type/A900" in swept.doubtful()) is (outcome != "skipped")
    assert swept.sandbox.types() == {"A100", "A200", "A900"}
    swept.assert_converges()


def test_a_tag_that_still_carries_the_code_keeps_the_session_from_starting(bench: Bench) -> None:
    """Otherwise its time would be booked on a deleted activity type."""
    bench.settle(activityTypes=[*STAYING, GOING], tags=[tag("CARRIES-1", defaultActivityTypeCode="A900")])
    bench.sandbox.fault("upsertTags", itemErrors=[{"index": 0, "errorDescription": "not today"}])
    ended = bench.apply(activityTypes=STAYING, tags=[tag("CARRIES-1", defaultActivityTypeCode="A100")])
    assert ended.exit_code == 3
    assert ended.sent("startSyncSession") == []
    assert "tag/CARRIES-1" in ended.words("activity-type/A900")
    bench.assert_converges()


@pytest.mark.parametrize("operation", ["startSyncSession", "uploadActivityTypes", "completeSyncSession"])
def test_a_session_refused_with_the_key_stops_the_run(swept: Bench, operation: str) -> None:
    """A 403 is about the key if `teamInfo` is refused as well (docs/planning.md 4.6)."""
    swept.sandbox.fault(operation, status=403)
    swept.sandbox.fault("teamInfo", status=403, after=1)
    assert swept.apply().exit_code == 7
    swept.assert_converges()


def test_a_key_refused_among_the_parts_of_an_upload_stops_the_run(swept: Bench) -> None:
    """No part is sent after it, and no activity type counts as refused."""
    swept.sandbox.fault("uploadActivityTypes", status=413)
    swept.sandbox.fault("uploadActivityTypes", status=401, times=None)
    ended = swept.apply()
    assert (ended.exit_code, ended.names("uploadActivityTypes")) == (7, [["A100", "A200"], ["A100"]])
    assert ended.outcomes == {"activity-type/A900": "skipped"}
    swept.assert_converges()


# --- sessions that die (3.5)


EXPIRED = {"expireSession": True}
DEAD: dict[str, tuple[str, Json]] = {
    "400 on upload": ("uploadActivityTypes", EXPIRED),
    "404 on completion": ("completeSyncSession", EXPIRED),
    "404 on a completion whose answer was lost": (
        "completeSyncSession",
        {"status": 503, "headers": AT_ONCE, "apply": True},
    ),
}


@pytest.mark.parametrize(("operation", "fault"), DEAD.values(), ids=DEAD)
def test_a_dead_session_is_done_again_from_the_start(swept: Bench, operation: str, fault: Json) -> None:
    """Such an answer says that the session no longer exists, and proves nothing else."""
    swept.sandbox.fault(operation, **fault)
    ended = swept.apply()
    assert (ended.exit_code, ended.session, len(ended.sent("startSyncSession"))) == (0, "completed", 2)
    assert swept.sandbox.types() == {"A100", "A200"}
    swept.assert_at_rest()


@pytest.mark.parametrize("processed", [True, False])
def test_a_completion_without_any_answer_is_doubtful(swept: Bench, processed: bool) -> None:
    """The run exits with 3; the next run cancels the session if it is still open, and completes one of its own."""
    swept.sandbox.unavailable("completeSyncSession", processed=processed)
    if processed:
        swept.sandbox.unavailable("completeSyncSession", times=None)
    ended = swept.apply()
    assert (ended.exit_code, ended.not_applied()) == (3, {"activity-type/A900": "unknown"})
    assert "activity-type/A900" in swept.doubtful()
    healed = swept.assert_converges()
    assert healed.order() == ["cancelSyncSession", *SESSION]
    assert "only-404" not in healed.codes, "a session that is over is no mistyped path"
    assert swept.sandbox.types() == {"A100", "A200"}
    assert swept.sandbox.sessions().count("open") == 0


def test_the_first_upload_of_a_fresh_session_is_halved(bench: Bench, picky: Picky) -> None:
    """A second refusal concerns the content, not the session: the item is named and the session cancelled."""
    codes = [activity_type(f"A{number}") for number in range(8)]
    bench.settle(activityTypes=[*codes, GOING])
    picky.refuses = refusing("uploadActivityTypes", "A3", 400)
    ended = bench.apply(activityTypes=codes)
    assert (ended.exit_code, ended.session) == (3, "cancelled")
    assert ended.not_applied()["activity-type/A3"] == "failed"
    assert "activity-type/A3 was rejected: something in it is wrong" in (ended.applied.report.session.reason or "")
    assert all(session["state"] != "open" for session in picky.rules.store.rows(SESSIONS))
    assert not world(picky.rules.store).activity_types["A900"].deleted
    picky.refuses = lambda operation, body: None
    assert bench.apply().exit_code == 0
    assert world(picky.rules.store).activity_types["A900"].deleted


def test_uploads_that_are_too_large_for_the_service_are_halved_and_completed(swept: Bench) -> None:
    """413 means that the batch is too large."""
    swept.sandbox.fault("uploadActivityTypes", status=413)
    ended = swept.apply()
    assert (ended.exit_code, ended.session) == (0, "completed")
    assert [request["items"] for request in ended.sent("uploadActivityTypes")] == [2, 1, 1]
    assert swept.sandbox.types() == {"A100", "A200"}


# --- sessions of dead runs (3.6)


def leave_open(bench: Bench) -> str:
    """Leave what a run leaves that was killed in its session."""
    service, key = bench.sandbox.url, {"x-api-key": KEY}
    session: str = loopback.post(f"{service}/activitytype/sync/start", headers=key).json()["syncSessionId"]
    with open_state(bench.project().state, write=True) as state:
        state.lock(Holder.here("apply", {}), wait=5, request_timeout=0)
        state.begin_run(Run("dead", 1.0, "apply", "plan", "h", "u", None, None, None))
        state.session_opened(session)
    return session


def test_a_session_left_open_by_a_dead_run_is_cancelled_first(bench: Bench) -> None:
    """The cancellation is sent once, before the other calls of the next run that sends something."""
    bench.settle(activityTypes=STAYING)
    session = leave_open(bench)
    assert bench.apply().requests == []
    ended = bench.apply(activityTypes=[*STAYING, activity_type("A300")])
    assert (ended.exit_code, ended.order()) == (0, ["cancelSyncSession", "uploadActivityTypes"])
    assert ended.sent()[0]["session"] == session
    assert bench.sandbox.sessions() == ["cancelled"]
    bench.wants(activityTypes=[*STAYING, activity_type("A300"), activity_type("A400")])
    assert bench.apply().order() == ["uploadActivityTypes"]


@pytest.mark.parametrize("status", [400, 403, 503])
def test_a_cancel_that_fails_blocks_nothing(bench: Bench, status: int) -> None:
    """The session expires sooner or later."""
    bench.settle(activityTypes=STAYING)
    leave_open(bench)
    bench.sandbox.fault("cancelSyncSession", status=status, headers=AT_ONCE, times=6)
    bench.settle(activityTypes=[*STAYING, activity_type("A300")])
