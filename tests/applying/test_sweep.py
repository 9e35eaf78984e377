"""The sweep: a sync session that completes only when every remaining item was acknowledged (docs/planning.md 3)."""

from __future__ import annotations

from typing import Any

import pytest

from syncengine.sandbox.store import SESSIONS
from syncengine.state.history import Run
from syncengine.state.holder import Holder
from syncengine.state.store import open_state
from tests.support import loopback
from tests.support.world import world

from .bench import AT_ONCE, Bench, activity_type, tag
from .picky import Picky, Refusal

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
    """The calls form one contiguous stage, after which the removed code is deleted."""
    ended = swept.apply()
    assert (ended.exit_code, ended.session, ended.order()) == (0, "completed", SESSION)
    assert ended.names("uploadActivityTypes") == [["A100", "A200"]]
    assert len({request["session"] for request in ended.sent() if request["session"]}) == 1
    assert ended.outcomes == {"activity-type/A900": "applied"}
    assert swept.sandbox.types() == {"A100", "A200"}
    swept.assert_at_rest()


def test_a_session_is_started_without_a_body(swept: Bench) -> None:
    """The published contract has no body, and a validating proxy refuses an empty object."""
    (start,) = swept.apply().sent("startSyncSession")
    assert start["body"] is None


def test_what_changes_otherwise_is_uploaded_before_the_session(swept: Bench) -> None:
    """If the session is cancelled, the recorded changes are still true."""
    swept.wants(activityTypes=[activity_type("A100", description="new"), activity_type("A300"), STAYING[1]])
    ended = swept.apply()
    uploads = ended.sent("uploadActivityTypes")
    assert [upload["session"] is None for upload in uploads] == [True, False]
    assert ended.names("uploadActivityTypes") == [["A100", "A300"], ["A100", "A300", "A200"]]


# --- whose list it is (3.3, 3.6)


def test_types_made_by_others_are_swept_only_under_an_approved_gate(bench: Bench) -> None:
    """The first sweep deletes types that this project does not know, so that it sends nothing without an approval."""
    bench.settle(activityTypes=[*STAYING, GOING])
    bench.sandbox.say("/activity-types", {"activityTypes": [{"code": "THEIRS", "label": "Theirs"}]})
    bench.wants(activityTypes=STAYING)
    refused = bench.apply(approve=False)
    assert (refused.exit_code, refused.status, refused.requests) == (4, "refused", [])
    assert "THEIRS" in bench.sandbox.types()
    assert bench.apply(approve=True).exit_code == 0
    assert bench.sandbox.types() == {"A100", "A200"}


def test_the_first_sweep_s_approval_is_remembered_as_ownership(swept: Bench) -> None:
    """The next sweep needs no approval for the same reason."""
    swept.wants(activityTypes=[*STAYING, GOING, *(activity_type(f"B{number}") for number in range(10))])
    assert swept.apply().exit_code == 0
    swept.wants(activityTypes=[*STAYING, *(activity_type(f"B{number}") for number in range(10))])
    assert swept.apply(approve=False).exit_code == 0


def test_a_sweep_that_did_not_complete_is_no_ownership(bench: Bench) -> None:
    """The approval covers the rest of the sweep until it is settled, and ownership begins only then."""
    bench.settle(activityTypes=[*STAYING, GOING, *(activity_type(f"B{number}") for number in range(10))])
    bench.wants(activityTypes=[*STAYING, *(activity_type(f"B{number}") for number in range(10))])
    bench.sandbox.fault("completeSyncSession", status=403)
    assert bench.apply().exit_code == 3
    with bench.state() as state:
        assert not state.facts().owns_activity_types
    assert bench.apply(approve=False).exit_code == 0
    with bench.state() as state:
        assert state.facts().owns_activity_types


def test_an_empty_desired_set_completes_only_under_an_approved_gate(swept: Bench) -> None:
    """Completing an empty session deletes all activity types of the team."""
    swept.wants(tags=[])
    refused = swept.apply(approve=False)
    assert (refused.exit_code, refused.requests) == (4, [])
    ended = swept.apply()
    assert (ended.exit_code, ended.order()) == (0, ["startSyncSession", "completeSyncSession"])
    assert swept.sandbox.types() == set()


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
    assert "activity-type/A900" in swept.active() - swept.doubtful()
    swept.assert_converges()
    assert swept.sandbox.types() == {"A100", "A200"}


def test_an_upload_without_a_known_outcome_cancels_the_session(swept: Bench) -> None:
    """It is unknown whether every remaining type was acknowledged."""
    swept.sandbox.unavailable("uploadActivityTypes", processed=True)
    ended = swept.apply()
    assert (ended.exit_code, ended.session, ended.not_applied()) == (3, "cancelled", {"activity-type/A900": "skipped"})
    assert swept.sandbox.types() == {"A100", "A200", "A900"}
    swept.assert_converges()


def test_a_tag_that_still_carries_the_code_keeps_the_session_from_starting(bench: Bench) -> None:
    """Otherwise its time would be booked on a deleted activity type."""
    bench.settle(activityTypes=[*STAYING, GOING], tags=[tag("CARRIES-1", defaultActivityTypeCode="A900")])
    bench.wants(activityTypes=STAYING, tags=[tag("CARRIES-1", defaultActivityTypeCode="A100")])
    bench.sandbox.fault("upsertTags", itemErrors=[{"index": 0, "errorDescription": "not today"}])
    ended = bench.apply()
    assert ended.exit_code == 3
    assert ended.sent("startSyncSession") == []
    assert "tag/CARRIES-1" in ended.words("activity-type/A900")
    bench.assert_converges()


@pytest.mark.parametrize("operation", ["startSyncSession", "completeSyncSession"])
def test_a_refusal_of_the_session_s_own_calls_ends_without_a_deletion(swept: Bench, operation: str) -> None:
    """The report shows the removals as failed or skipped, and the next run does them."""
    swept.sandbox.fault(operation, status=403, body={"message": "not you"})
    ended = swept.apply()
    assert (ended.exit_code, ended.status) == (3, "incomplete")
    assert "not you" in ended.words("activity-type/A900")
    assert swept.sandbox.sessions()["open"] == 0
    assert swept.sandbox.types() == {"A100", "A200", "A900"}
    swept.assert_converges()


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


def test_a_session_without_an_id_is_no_session(swept: Bench) -> None:
    """An empty id does not count as success (docs/planning.md 4.9)."""
    swept.sandbox.fault("startSyncSession", status=200, body={})
    ended = swept.apply()
    assert (ended.exit_code, ended.order()) == (3, ["startSyncSession"])
    swept.assert_converges()


# --- sessions that die (3.5)


@pytest.mark.parametrize("operation", ["uploadActivityTypes", "completeSyncSession"])
def test_a_dead_session_is_done_again_from_the_start(swept: Bench, operation: str) -> None:
    """400 on upload and 404 on completion both mean that the session no longer exists."""
    swept.sandbox.fault(operation, expireSession=True)
    ended = swept.apply()
    assert (ended.exit_code, ended.session, len(ended.sent("startSyncSession"))) == (0, "completed", 2)
    assert swept.sandbox.types() == {"A100", "A200"}
    swept.assert_at_rest()


def test_a_session_that_keeps_dying_is_done_again_at_most_twice(swept: Bench) -> None:
    """After three sessions the outcome is unknown, and the run exits with 3."""
    swept.sandbox.fault("completeSyncSession", expireSession=True, times=None)
    ended = swept.apply()
    assert (ended.exit_code, len(ended.sent("startSyncSession"))) == (3, 3)
    assert ended.not_applied() == {"activity-type/A900": "unknown"}
    assert "activity-type/A900" in swept.doubtful()
    swept.assert_converges()


def test_a_completion_whose_answer_was_lost_is_done_again(swept: Bench) -> None:
    """The repeated completion answers 404, which proves nothing."""
    swept.sandbox.unavailable("completeSyncSession", times=1, processed=True)
    ended = swept.apply()
    assert (ended.exit_code, ended.session) == (0, "completed")
    assert [request["status"] for request in ended.sent("completeSyncSession")] == [503, 404, 200]
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
    assert swept.sandbox.sessions()["open"] == 0


def test_the_first_upload_of_a_fresh_session_is_halved(bench: Bench, picky: Picky) -> None:
    """A second refusal concerns the content, not the session: the item is named and the session cancelled."""
    codes = [activity_type(f"A{number}") for number in range(8)]
    bench.settle(activityTypes=[*codes, GOING])

    def refuses(operation: str, body: Any) -> Refusal | None:
        bad = operation == "uploadActivityTypes" and any(item["code"] == "A3" for item in body["activityTypes"])
        return (400, {"message": "too bad"}) if bad else None

    picky.refuses = refuses
    bench.wants(activityTypes=codes)
    ended = bench.apply()
    assert (ended.exit_code, ended.session) == (3, "cancelled")
    assert ended.not_applied()["activity-type/A3"] == "failed"
    assert "activity-type/A3 was rejected: too bad" in (ended.applied.report.session.reason or "")
    assert all(session["state"] != "open" for session in picky.rules.store.rows(SESSIONS))
    assert not world(picky.rules.store).activity_types["A900"].deleted
    picky.refuses = lambda operation, body: None
    assert bench.apply().exit_code == 0
    assert world(picky.rules.store).activity_types["A900"].deleted


def test_uploads_that_are_too_large_for_the_service_are_halved_and_completed(swept: Bench) -> None:
    """413 means that the batch is too large."""
    codes = [activity_type(f"B{number}") for number in range(8)]
    swept.settle(activityTypes=[*STAYING, *codes, GOING])
    swept.sandbox.fault("uploadActivityTypes", status=413)
    swept.wants(activityTypes=[*STAYING, *codes])
    ended = swept.apply()
    assert (ended.exit_code, ended.session) == (0, "completed")
    assert [request["items"] for request in ended.sent("uploadActivityTypes")] == [10, 5, 5]
    assert swept.sandbox.types() == {"A100", "A200", *(f"B{number}" for number in range(8))}


# --- sessions of dead runs (3.6)


def leave_open(bench: Bench) -> str:
    """Leave what a run leaves that was killed in its session."""
    service, key = bench.sandbox.url, {"x-api-key": bench.sandbox.api_key}
    session: str = loopback.post(f"{service}/activitytype/sync/start", headers=key).json()["syncSessionId"]
    with open_state(bench.project().state, write=True) as state:
        state.lock(Holder.here("apply", {}), wait=5, request_timeout=0)
        state.begin_run(Run("dead", 1.0, "apply", "plan", "h", "u", None, None, None))
        state.session_opened(session)
    return session


def test_a_session_left_open_by_a_dead_run_is_cancelled_first(bench: Bench) -> None:
    """The cancellation is sent once, before any other call."""
    bench.settle(activityTypes=STAYING)
    session = leave_open(bench)
    bench.wants(activityTypes=[*STAYING, activity_type("A300")])
    ended = bench.apply()
    assert (ended.exit_code, ended.order()) == (0, ["cancelSyncSession", "uploadActivityTypes"])
    assert ended.sent()[0]["session"] == session
    assert bench.sandbox.sessions() == {"cancelled": 1}
    bench.wants(activityTypes=[*STAYING, activity_type("A300"), activity_type("A400")])
    assert bench.apply().order() == ["uploadActivityTypes"]


@pytest.mark.parametrize("status", [400, 403, 503])
def test_a_cancel_that_fails_blocks_nothing(bench: Bench, status: int) -> None:
    """The session expires sooner or later."""
    bench.settle(activityTypes=STAYING)
    leave_open(bench)
    bench.sandbox.fault("cancelSyncSession", status=status, headers=AT_ONCE, times=6)
    bench.wants(activityTypes=[*STAYING, activity_type("A300")])
    ended = bench.apply()
    assert (ended.exit_code, ended.not_applied()) == (0, {})


def test_a_plan_that_sends_nothing_cancels_nothing(bench: Bench) -> None:
    """The run opens no connection; the next run that sends something cancels the session."""
    bench.settle(activityTypes=STAYING)
    leave_open(bench)
    assert bench.apply().requests == []
