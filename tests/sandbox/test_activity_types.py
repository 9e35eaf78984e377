"""The sandbox keeps the service's rules for activity types and sync sessions."""

from __future__ import annotations

from typing import Any

import pytest

from syncengine.sandbox.rules import expire

from .conftest import Asking

ITEM_OF_B = {"code": "B", "label": "B"}


def upload(service: Asking, *codes: str, session: str | None = None, label: str = "L", **more: Any) -> Any:
    items = [{"code": code, "label": label, **more} for code in codes]
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
    assert (known["label"], known["enabled"], known["deleted"]) == ("L", enabled, False)


def test_label_and_enable_if_new_count_only_on_creation(service: Asking) -> None:
    """docs/service.md §2: later uploads change only the description: an empty one clears it, a missing one keeps it."""
    upload(service, "A", description="one")
    upload(service, "A", label="other", enableIfNew=True)
    known = service.activity_types()["A"]
    assert (known["label"], known["enabled"], known["description"]) == ("L", False, "one")
    for description in ("two", ""):
        upload(service, "A", description=description)
        assert service.activity_types()["A"]["description"] == description


@pytest.mark.parametrize("step", [1, 0], ids=["the clock goes on", "all in one instant"])
def test_completing_deletes_what_was_last_uploaded_before_the_session(service: Asking, step: int) -> None:
    """docs/interface.md 3: types uploaded since the session's start stay, in the session or outside it.

    With equal timestamps, the order of requests decides.
    """
    service.clock.step = step
    upload(service, "A", "B", "C")
    session = start(service)
    upload(service, "A", "D", session=session)
    upload(service, "B", "E")
    complete(service, session)
    assert service.alive() == {"A", "B", "D", "E"}


def test_completing_deletes_what_failed_with_an_item_error(service: Asking) -> None:
    """docs/service.md §2: a type whose upload failed counts as not uploaded; known connectors make this mistake."""
    upload(service, "A", "B")
    session = start(service)
    items = [{"code": "A", "label": "A"}, {"code": "B"}]
    answer = service.told("uploadActivityTypes", activityTypes=items, syncSessionId=session)
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


def test_a_deleted_type_is_revived_only_if_asked_for(service: Asking) -> None:
    """docs/service.md §2: an upload without reenableIfArchived is acknowledged but revives nothing.

    A revived type is offered, whatever enableIfNew says, and has its old label. A type that was never deleted is not
    offered by reenableIfArchived.
    """
    upload(service, "A", reenableIfArchived=True)
    upload(service, "A", reenableIfArchived=True)
    assert service.activity_types()["A"]["enabled"] is False
    complete(service, start(service))
    assert service.alive() == set()
    session = start(service)
    assert upload(service, "A", session=session, enableIfNew=True) == {"errors": []}
    complete(service, session)
    known = service.activity_types()["A"]
    assert (known["deleted"], known["enabled"]) == (True, False)
    upload(service, "A", label="new", reenableIfArchived=True, enableIfNew=False)
    known = service.activity_types()["A"]
    assert (known["deleted"], known["enabled"], known["label"]) == (False, True, "L")


@pytest.mark.parametrize("end", ["completeSyncSession", "cancelSyncSession", "expired"])
def test_an_ended_session_is_unusable(service: Asking, end: str) -> None:
    """docs/interface.md 3, docs/service.md §1: it is refused like an unknown one, and nothing changes."""
    upload(service, "A")
    session, other = start(service), start(service)
    upload(service, "A", session=session)
    if end == "expired":
        service.sandbox.do(expire, {"syncSessionId": session})
    else:
        service.told(end, syncSessionId=session)
    for operation, status in (("completeSyncSession", 404), ("cancelSyncSession", 404), ("uploadActivityTypes", 400)):
        answer = service.ask(operation, syncSessionId=session, activityTypes=[ITEM_OF_B])
        assert answer == (status, {"message": "the sync session is unknown or closed"})
    assert service.alive() == {"A"}
    complete(service, other)


def test_all_open_sessions_can_expire_at_once(service: Asking) -> None:
    """docs/service.md §2: the lifetime of a session is unknown, so a test ends one session or all of them."""
    first = start(service)
    service.told("cancelSyncSession", syncSessionId=first)
    start(service)
    service.sandbox.do(expire, {})
    assert [session["state"] for session in service.state()["sessions"]] == ["cancelled", "expired"]


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
    answer = service.told("uploadActivityTypes", activityTypes=[item, ITEM_OF_B])
    assert answer == {"errors": [{"index": 0, "errorDescription": words}]}
    assert service.alive() == {"B"}
