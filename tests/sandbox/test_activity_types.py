"""The sandbox keeps the service's rules for activity types and sync sessions."""

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
    """docs/service.md §2: without enableIfNew, a new activity type is created but not offered to users. Later uploads
    change only the description: an empty one clears it, a missing one keeps it."""
    assert upload(service, "A", description="one", **flag) == {"errors": []}
    upload(service, "A", label="other", enableIfNew=True)
    known = service.activity_types()["A"]
    assert (known["label"], known["enabled"], known["deleted"]) == ("L", enabled, False)
    assert known["description"] == "one"
    for description in ("two", ""):
        upload(service, "A", description=description)
        assert service.activity_types()["A"]["description"] == description


@pytest.mark.parametrize("step", [1, 0], ids=["the clock goes on", "all in one instant"])
def test_completing_deletes_what_was_last_uploaded_before_the_session(service: Asking, step: int) -> None:
    """docs/interface.md 3: types uploaded since the session's start stay, in the session or outside it. With equal
    timestamps, the order of requests decides. A type whose upload failed counts as not uploaded (docs/service.md §2);
    known connectors make this mistake."""
    service.clock.step = step
    upload(service, "A", "B", "C")
    session = start(service)
    upload(service, "A", "D", session=session)
    assert upload(service, "C", label="") == {"errors": [{"index": 0, "errorDescription": "label is missing"}]}
    upload(service, "B", "E")
    complete(service, session)
    assert service.alive() == {"A", "B", "D", "E"}


def test_of_several_open_sessions_each_has_its_own_start(service: Asking) -> None:
    """docs/interface.md 3: an upload counts for every session that was open at the time; cancelling deletes nothing."""
    first = start(service)
    upload(service, "A", session=first)
    second, third = start(service), start(service)
    upload(service, "B", session=third)
    assert service.told("cancelSyncSession", syncSessionId=third) == {"syncSessionId": third}
    complete(service, first)
    assert service.alive() == {"A", "B"}
    complete(service, second)
    assert service.alive() == {"B"}


def test_a_deleted_type_is_revived_only_if_asked_for(service: Asking) -> None:
    """docs/service.md §2: an upload without reenableIfArchived is acknowledged but revives nothing. A revived type is
    offered, whatever enableIfNew says, and has its old label. A type that was never deleted is not offered by
    reenableIfArchived."""
    for _ in range(2):
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
    start(service)
    service.sandbox.do(expire, {})  # the lifetime of a session is unknown, so a test ends one session or all of them
    ended = {"completeSyncSession": "completed", "cancelSyncSession": "cancelled"}.get(end, "expired")
    assert [each["state"] for each in service.state()["sessions"]] == [ended, "completed", "expired"]


@pytest.mark.parametrize("session", ["no", "", None, 7])
def test_an_unknown_session_is_refused(service: Asking, session: Any) -> None:
    """docs/service.md §1; an upload needs none."""
    status = 400 if session == 7 else 404
    for operation in ("completeSyncSession", "cancelSyncSession"):
        assert service.ask(operation, syncSessionId=session)[0] == status
    uploaded, _ = service.ask("uploadActivityTypes", syncSessionId=session, activityTypes=[ITEM_OF_B])
    assert (uploaded, service.alive()) == ((200, {"B"}) if session is None else (400, set()))


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
