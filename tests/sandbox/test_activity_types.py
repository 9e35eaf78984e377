"""The sandbox keeps the service's rules for activity types and sync sessions."""

from __future__ import annotations

from typing import Any

import pytest

from syncengine.sandbox.rules import expire

from .conftest import Asking


def upload(service: Asking, *codes: str, session: str | None = None, **more: Any) -> Any:
    items = [{"code": code, "label": f"L {code}", **more} for code in codes]
    return service.told("uploadActivityTypes", activityTypes=items, syncSessionId=session)


def start(service: Asking) -> str:
    session: str = service.told("startSyncSession")["syncSessionId"]
    return session


def complete(service: Asking, session: str) -> None:
    assert service.told("completeSyncSession", syncSessionId=session) == {"syncSessionId": session}


@pytest.mark.parametrize(
    ("flag", "enabled"), [({}, False), ({"enableIfNew": False}, False), ({"enableIfNew": True}, True)]
)
def test_a_new_type_is_offered_only_if_asked_for(service: Asking, flag: dict[str, Any], enabled: bool) -> None:
    """docs/service.md §2: without enableIfNew, a new activity type is created but not offered to users."""
    assert upload(service, "A", **flag) == {"errors": []}
    known = service.activity_types()["A"]
    assert (known["label"], known["enabled"], known["deleted"]) == ("L A", enabled, False)


def test_label_and_enable_if_new_count_only_on_creation(service: Asking) -> None:
    """docs/service.md §2: later uploads change only the description: an empty one clears it, a missing one keeps it."""
    upload(service, "A", description="one")
    service.told("uploadActivityTypes", activityTypes=[{"code": "A", "label": "other", "enableIfNew": True}])
    known = service.activity_types()["A"]
    assert (known["label"], known["enabled"], known["description"]) == ("L A", False, "one")
    upload(service, "A", description="two")
    assert service.activity_types()["A"]["description"] == "two"
    upload(service, "A", description="")
    assert service.activity_types()["A"]["description"] == ""


def test_completing_deletes_what_was_last_uploaded_before_the_session(service: Asking) -> None:
    """docs/interface.md 3: types uploaded since the session's start stay, in the session or outside it."""
    upload(service, "A", "B", "C")
    session = start(service)
    upload(service, "A", session=session)
    upload(service, "B")
    upload(service, "D", session=session)
    upload(service, "E")
    complete(service, session)
    assert service.alive() == {"A", "B", "D", "E"}


def test_an_upload_in_the_instant_of_the_start_is_before_or_after_it(service: Asking) -> None:
    """With equal timestamps, the order of requests decides which uploads came before the session's start."""
    service.clock.step = 0
    upload(service, "A", "B")
    session = start(service)
    upload(service, "A", session=session)
    complete(service, session)
    assert service.alive() == {"A"}


def test_completing_an_empty_session_deletes_all(service: Asking) -> None:
    """docs/service.md §2: completing a session in which nothing was uploaded deletes all activity types."""
    upload(service, "A", "B")
    complete(service, start(service))
    assert service.alive() == set()
    assert set(service.activity_types()) == {"A", "B"}


def test_completing_deletes_what_failed_with_an_item_error(service: Asking) -> None:
    """docs/service.md §2: a type whose upload failed counts as not uploaded; known connectors make this mistake."""
    upload(service, "A", "B")
    session = start(service)
    answer = service.told(
        "uploadActivityTypes", activityTypes=[{"code": "A", "label": "A"}, {"code": "B"}], syncSessionId=session
    )
    assert answer == {"errors": [{"index": 1, "errorDescription": "label is missing"}]}
    complete(service, session)
    assert service.alive() == {"A"}


def test_cancelling_has_no_effect_on_activity_types(service: Asking) -> None:
    """docs/interface.md 3: a cancelled session deletes nothing, and what was uploaded in it stays."""
    upload(service, "A")
    session = start(service)
    upload(service, "B", session=session)
    assert service.told("cancelSyncSession", syncSessionId=session) == {"syncSessionId": session}
    assert service.alive() == {"A", "B"}


def test_of_several_open_sessions_each_has_its_own_start(service: Asking) -> None:
    """An upload counts for every session that was open at the time."""
    first = start(service)
    upload(service, "A", session=first)
    second = start(service)
    upload(service, "B", session=first)
    complete(service, first)
    assert service.alive() == {"A", "B"}
    complete(service, second)
    assert service.alive() == {"B"}


def test_a_deleted_type_is_acknowledged_but_stays_deleted(service: Asking) -> None:
    """docs/service.md §2: without reenableIfArchived, uploading a deleted type succeeds and does not revive it."""
    upload(service, "A", enableIfNew=True)
    complete(service, start(service))
    session = start(service)
    assert upload(service, "A", session=session, enableIfNew=True) == {"errors": []}
    complete(service, session)
    assert service.alive() == set()
    assert service.activity_types()["A"]["enabled"] is False


def test_a_deleted_type_is_revived_with_its_old_label_and_offered(service: Asking) -> None:
    """docs/service.md §2: reenableIfArchived wins over enableIfNew, and the label counts on creation only."""
    upload(service, "A")
    complete(service, start(service))
    item = {"code": "A", "label": "new", "reenableIfArchived": True, "enableIfNew": False}
    service.told("uploadActivityTypes", activityTypes=[item])
    known = service.activity_types()["A"]
    assert (known["deleted"], known["enabled"], known["label"]) == (False, True, "L A")


def test_reviving_does_not_offer_what_was_never_deleted(service: Asking) -> None:
    """reenableIfArchived has no effect on a type that is not deleted."""
    upload(service, "A", reenableIfArchived=True)
    upload(service, "A", reenableIfArchived=True)
    assert service.activity_types()["A"]["enabled"] is False


@pytest.mark.parametrize("closing", ["completeSyncSession", "cancelSyncSession"])
@pytest.mark.parametrize(
    ("operation", "status"), [("completeSyncSession", 404), ("cancelSyncSession", 404), ("uploadActivityTypes", 400)]
)
def test_a_closed_session_is_unusable(service: Asking, closing: str, operation: str, status: int) -> None:
    """docs/interface.md 3, docs/service.md §1: a completed or cancelled session is refused, and nothing changes."""
    upload(service, "A")
    session = start(service)
    upload(service, "A", session=session)
    service.told(closing, syncSessionId=session)
    answer = service.ask(operation, syncSessionId=session, activityTypes=[{"code": "B", "label": "B"}])
    assert answer == (status, {"message": "the sync session is unknown or closed"})
    assert service.alive() == {"A"}


@pytest.mark.parametrize(
    ("operation", "session", "status"),
    [
        ("completeSyncSession", "no", 404),
        ("cancelSyncSession", "no", 404),
        ("completeSyncSession", "", 404),
        ("uploadActivityTypes", "no", 400),
        ("uploadActivityTypes", "", 400),
        ("uploadActivityTypes", 7, 400),
        ("completeSyncSession", None, 404),
        ("cancelSyncSession", 7, 400),
    ],
)
def test_an_unknown_session_is_refused(service: Asking, operation: str, session: Any, status: int) -> None:
    """docs/service.md §1."""
    upload(service, "A")
    assert service.ask(operation, syncSessionId=session, activityTypes=[])[0] == status
    assert service.alive() == {"A"}


def test_an_expired_session_looks_like_an_unknown_one(service: Asking) -> None:
    """docs/service.md §2: the lifetime of a session is unknown, so a test can end one session or all of them."""
    first, second, third = start(service), start(service), start(service)
    service.sandbox.do(expire, {"syncSessionId": first})
    assert service.ask("completeSyncSession", syncSessionId=first)[0] == 404
    service.told("cancelSyncSession", syncSessionId=second)
    service.sandbox.do(expire, {})
    assert service.ask("completeSyncSession", syncSessionId=third)[0] == 404
    states = [session["state"] for session in service.state()["sessions"]]
    assert states == ["expired", "cancelled", "expired"]


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ({"label": "A"}, "code is missing"),
        ({"code": "", "label": "A"}, "code is missing"),
        ({"code": "X"}, "label is missing"),
        ({"code": "X", "label": " "}, "label is missing"),
        ({"code": 101, "label": "A"}, "code must be a string"),
        ({"code": "X", "label": "A", "enableIfNew": "yes"}, "enableIfNew must be true or false"),
    ],
)
def test_a_wrong_item_fails_alone(service: Asking, item: dict[str, Any], words: str) -> None:
    """docs/interface.md 7.1: an invalid item is reported, and the other items of the batch are applied."""
    answer = service.told("uploadActivityTypes", activityTypes=[item, {"code": "B", "label": "B"}])
    assert answer == {"errors": [{"index": 0, "errorDescription": words}]}
    assert service.alive() == {"B"}
