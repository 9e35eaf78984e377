"""The inbox stores each offer before anything else, checks its lease at each write, and has one schema on all
databases."""

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from syncengine.errors import LockHeld, SyncengineError
from syncengine.state.database import LockLost
from syncengine.state.inbox_model import DeliveryStatus, GroupState, InboxEntry, Offer, PostedTimeStatus
from syncengine.state.store import open_state
from tests.support.inbox import InboxByHand, open_inbox

from .estate import HERE

pytestmark = pytest.mark.slow

OFFER = Offer("g1", "digest-1", '{"groupId":"g1"}', "fetch", "Jo Doe", ("Jo Doe", "jo@example.com"), "ACME-0042")
OTHER = replace(OFFER, digest="digest-2", body='{"x":1}')
SUCCESS, REFUSED, TROUBLE = PostedTimeStatus


def entry_of(inbox: InboxByHand, id: str = "g1") -> InboxEntry:
    entry = inbox.entry(id)
    assert entry is not None
    return entry


def delivered(inbox: InboxByHand, offer: Offer = OFFER, *sinks: str, outcome: PostedTimeStatus = SUCCESS) -> None:
    """Store a group that goes all the way to a verdict."""
    entry = inbox.receive(offer)
    for sink in sinks:
        inbox.begin(entry, sink)
        inbox.ended(entry, sink, DeliveryStatus.ACCEPTED, external_id=f"{sink}-1")
    inbox.decide(entry, outcome, "why" if outcome is not SUCCESS else None, waits=offer.mechanism == "fetch")


def test_an_offer_is_stored_as_it_came(url: str) -> None:
    """Another process reads it unchanged, and concurrent writers lose none. Only `revise` replaces the content. There
    is a row for each group, revision and sink, which counts its attempts and keeps its memo."""
    with open_inbox(url, write=True, now=lambda: 5.0) as inbox:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(inbox.receive, [OFFER] * 8))
        with open_inbox(url, write=False) as reader:
            entry = entry_of(reader)
        assert (entry.state, entry.revision, entry.digest) == ("received", 1, "digest-1")
        assert (entry.received, entry.offers) == (5.0, 8)
        assert (entry.raw(), entry.user_keys) == ({"groupId": "g1"}, ("Jo Doe", "jo@example.com"))
        assert entry.tag == "ACME-0042"
        for _ in range(2):
            inbox.begin(entry_of(inbox), "ledger")
            inbox.ended(entry, "ledger", DeliveryStatus.REFUSED, message="no")
        entry = inbox.receive(OTHER)
        assert (entry.digest, entry.offers, inbox.story("g1")[-1].detail) == ("digest-1", 9, '{"x":1}')
        entry = inbox.revise(OTHER)
        assert (entry.digest, entry.revision, entry.raw()) == ("digest-2", 2, {"x": 1})
        inbox.begin(entry, "ledger")
        inbox.remember(entry, "ledger", "memo")
        found = entry_of(inbox)
    assert [(d.revision, d.status, d.attempts, d.memo) for d in found.deliveries] == [
        (1, DeliveryStatus.REFUSED, 2, None),
        (2, DeliveryStatus.ATTEMPTING, 1, "memo"),
    ]
    assert found.state == "delivering"


def test_a_group_that_was_given_up_can_be_answered_again(url: str) -> None:
    """It stays visible until then. An offer by webhook settles it, as the answer is the verdict; after an offer by
    fetch its verdict waits again."""
    with open_inbox(url, write=True) as inbox:
        for id, waits in (("answered", False), ("waiting", True)):
            delivered(inbox, replace(OFFER, group_id=id), "ledger")
            inbox.given_up(id, "unknown")
            (entry,) = inbox.entries(states=["given-up"])
            assert (entry.note, entry.is_settled, list(inbox.waiting())) == ("unknown", False, [])
            inbox.answer_again(inbox.receive(replace(OFFER, group_id=id)), waits=waits)
        inbox.acknowledged("nobody", SUCCESS)
        inbox.given_up("nobody", "x")
        found = {entry.group_id: (entry.state, entry.note, entry.waiting) for entry in inbox.entries()}
        assert found == {"answered": ("acknowledged", None, False), "waiting": ("accepted", None, True)}
        assert [entry.group_id for entry in inbox.entries(unsettled=True)] == ["waiting"]


def test_an_attempt_that_died_is_in_the_story_after_the_next(url: str) -> None:
    """It has its own time and an unknown outcome. Once the group was refused twice with different messages, an
    acceptance of the older verdict does not end the wait of the newer, as the user must get the last one."""
    now = 1.0
    with open_inbox(url, write=True, now=lambda: now) as inbox:
        inbox.begin(inbox.receive(OFFER), "ledger")
        now = 2.0
        entry = inbox.receive(OFFER)
        inbox.begin(entry, "ledger")
        inbox.ended(entry, "ledger", DeliveryStatus.REFUSED)
        attempts = [(event.at, event.sink, event.outcome) for event in inbox.story("g1") if event.kind == "attempt"]
        assert attempts == [(1.0, "ledger", "unknown"), (2.0, "ledger", "refused")]
        assert entry_of(inbox).deliveries[0].attempts == 2
        for words in ("Assign a tag.", "Matter X is closed."):
            inbox.decide(inbox.receive(OFFER), REFUSED, words, waits=True)
            now += 1
        inbox.acknowledged("g1", REFUSED, decided=2.0)
        (waiting,) = inbox.waiting()
        assert (waiting.message, waiting.decided) == ("Matter X is closed.", 3.0)
        inbox.acknowledged("g1", REFUSED, decided=waiting.decided)
        assert list(inbox.waiting()) == []


def test_a_failed_group_keeps_the_body_of_its_last_offer(url: str) -> None:
    """Equal digests can have different bodies, such as a new external id of a tag. A delivered group keeps its body. If
    a person settles its conflict, the content in the sinks counts as right, so SUCCESS waits for the service."""
    newer = replace(OFFER, body='{"groupId":"g1","new":1}', user_name="Jo Roe", user_keys=("Jo Roe",))
    with open_inbox(url, write=True) as inbox:
        delivered(inbox, OFFER, "ledger", outcome=REFUSED)
        entry = inbox.receive(newer)
        assert (entry.raw(), entry.user_name, entry.user_keys) == ({"groupId": "g1", "new": 1}, "Jo Roe", ("Jo Roe",))
        inbox.decide(entry, SUCCESS, waits=True)
        entry = inbox.receive(OFFER)
        assert entry.raw() == {"groupId": "g1", "new": 1}
        inbox.decide(entry, REFUSED, "other content", waits=True, note="conflict", is_conflict=True)
        inbox.acknowledged("g1", REFUSED)
        assert [e.state for e in inbox.entries()] == ["conflict"]
        inbox.write(lambda tx: tx.settle(["g1", "nobody"]))
        assert [(w.status, w.external_id) for w in inbox.waiting()] == [(SUCCESS, "ledger-1")]


def test_groups_are_found_by_state_user_tag_and_time(url: str) -> None:
    """A user is found by each of their keys."""
    now = 0.0
    with open_inbox(url, write=True, now=lambda: now) as inbox:
        for number, tag in enumerate(["a", "b", None]):
            now += 1
            inbox.receive(replace(OFFER, group_id=f"g{number}", tag=tag, user_keys=(f"u{number}", f"U{number}@X")))
        asked: list[tuple[dict[str, Any], list[str]]] = [
            ({}, ["g2", "g1", "g0"]),
            ({"tag": "b"}, ["g1"]),
            ({"user": "u1@x"}, ["g1"]),
            ({"since": 2.0}, ["g2", "g1"]),
            ({"states": ["accepted"]}, []),
        ]
        for given, ids in asked:
            assert [entry.group_id for entry in inbox.entries(**given)] == ids
        assert inbox.counts() == {"received": 3}


def test_receipts_are_found_by_sink_and_time(url: str) -> None:
    """Including those of reduced groups."""
    now = 10.0
    with open_inbox(url, write=True, now=lambda: now) as inbox:
        delivered(inbox, OFFER, "ledger", "archive")
        now = 20.0
        delivered(inbox, replace(OFFER, group_id="g2"), "ledger")
        for id in ("g1", "g2"):
            inbox.acknowledged(id, SUCCESS)
        assert inbox.write(lambda tx: tx.reduce(15.0)) == 1
        assert [(r.group_id, r.at, r.external_id) for r in inbox.receipts("ledger", 0)] == [
            ("g1", 10.0, "ledger-1"),
            ("g2", 20.0, "ledger-1"),
        ]
        assert [r.group_id for r in inbox.receipts("ledger", 15)] == ["g2"]
        entry = entry_of(inbox)
        assert (entry.body, entry.user_name, entry.tag, entry.digest) == (None, None, None, "digest-1")
        assert inbox.write(lambda tx: tx.reduce(15.0)) == 0


def test_one_process_holds_the_inbox_and_another_waits(url: str) -> None:
    """Without a wait, the error names the holder; a standby takes over after the release. The lock of the state is
    independent."""
    with (
        open_inbox(url, write=True) as first,
        open_inbox(url, write=True) as second,
        open_state(url, write=True) as state,
        ThreadPoolExecutor(1) as pool,
    ):
        lease = first.lease(HERE)
        with pytest.raises(LockHeld, match=r"the inbox is locked by .*apply"):
            second.lease(HERE, wait=0)
        with state.lock(HERE, wait=0, request_timeout=0):
            taken = pool.submit(second.lease, HERE)
            first.receive(OFFER)
            assert not taken.done()
            lease.release()
            taken.result(20).release()


FROZEN = """
import os, signal, sys
from tests.support.inbox import open_inbox
from tests.store.estate import HERE
with open_inbox(sys.argv[1], write=True) as inbox:
    inbox.lease(HERE, seconds=0.5)
    with inbox.database.alone():
        print("writing", flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)
"""


def test_a_process_stopped_during_a_write_is_named(path: Path) -> None:
    """Its file lock cannot be taken over: the wait ends with the command that resumes it."""

    def impatient(connection: sqlite3.Connection, *_: object) -> None:
        connection.execute("PRAGMA busy_timeout = 500")

    with subprocess.Popen([sys.executable, "-c", FROZEN, str(path)], stdout=subprocess.PIPE, text=True) as frozen:
        try:
            assert frozen.stdout is not None
            assert frozen.stdout.readline() == "writing\n"
            words = rf"another process has been writing .* locked by .*resume it with `kill -CONT {frozen.pid}`"
            with open_inbox(str(path), write=True) as inbox:
                event.listen(inbox.database.engine, "checkout", impatient)
                with pytest.raises(LockHeld, match=words):
                    inbox.lease(HERE, seconds=60, wait=30)
                frozen.send_signal(signal.SIGCONT)
                assert frozen.wait(60) == 0
                assert inbox.lease(HERE, wait=30).remaining() > 0
        finally:
            frozen.kill()


def test_a_process_that_lost_its_lease_writes_nothing(url: str) -> None:
    """Another process took over meanwhile."""
    with open_inbox(url, write=True) as first, open_inbox(url, write=True) as second:
        lease = first.lease(HERE)
        entry = first.receive(OFFER)
        lease.release()
        with second.lease(HERE):
            for write in (
                lambda: first.receive(replace(OFFER, group_id="g2")),
                lambda: first.begin(entry, "ledger"),
                lambda: first.acknowledged("g1", SUCCESS),
            ):
                with pytest.raises(LockLost):
                    write()
            assert [e.group_id for e in second.entries()] == ["g1"]


def test_a_damaged_inbox_is_an_error_that_names_the_file(path: Path) -> None:
    """Without a table, or with an unknown state after an edit by hand; a missing one is empty, and is not created."""
    with open_inbox(str(path), write=False) as inbox:
        assert inbox.entries() == []
    assert not path.exists()
    with open_inbox(str(path), write=True) as inbox:
        inbox.receive(OFFER)
        with inbox.database.engine.begin() as connection:
            connection.exec_driver_sql("DROP TABLE inbox_events")
        with pytest.raises(SyncengineError, match="there is no such table") as refusal:
            inbox.receive(OFFER)
        assert str(path) in refusal.value.message
        with inbox.database.engine.begin() as connection:
            connection.exec_driver_sql("UPDATE inbox_groups SET state = 'paused'")
        with pytest.raises(SyncengineError, match="damaged: found 'paused' instead of one of received, delivering"):
            inbox.entries()


def test_unsettled_lists_the_groups_that_need_attention(url: str) -> None:
    """Those that wait, failed, were given up, or are queued for redelivery; not those delivered and acknowledged."""
    with open_inbox(url, write=True) as inbox:
        for id in ("settled", "waiting", "asked", "failed", "lost"):
            outcome = REFUSED if id == "failed" else SUCCESS
            delivered(inbox, replace(OFFER, group_id=id), "ledger", outcome=outcome)
            if id != "waiting":
                inbox.acknowledged(id, outcome)
        inbox.write(lambda tx: tx.ask(["asked"], "ledger"))
        inbox.given_up("lost", "unknown")
        entry = inbox.receive(replace(OFFER, group_id="revised"))
        for status in (DeliveryStatus.REFUSED, DeliveryStatus.ACCEPTED):
            inbox.begin(entry, "ledger")
            inbox.ended(entry, "ledger", status)
            inbox.decide(entry, SUCCESS, waits=True)
            inbox.acknowledged("revised", SUCCESS)
            entry = inbox.revise(replace(OTHER, group_id="revised")) if entry.revision == 1 else entry
        found = {entry.group_id for entry in inbox.entries(unsettled=True)}
    assert found == {"waiting", "asked", "failed", "lost"}


S = GroupState

Act = Callable[[InboxByHand, InboxEntry, PostedTimeStatus], object]


def _decide(*, waits: bool, is_conflict: bool = False) -> Act:
    return lambda inbox, entry, outcome: inbox.decide(entry, outcome, waits=waits, is_conflict=is_conflict)


def _settle(mechanism: str) -> Act:
    def settle(inbox: InboxByHand, entry: InboxEntry, outcome: PostedTimeStatus) -> None:
        inbox.receive(replace(OFFER, digest="digest-3", mechanism=mechanism))
        inbox.write(lambda tx: tx.settle([entry.group_id]))

    return settle


def _waiting(state: GroupState, outcome: PostedTimeStatus) -> GroupState:
    return {SUCCESS: S.ACCEPTED, REFUSED: S.REFUSED, TROUBLE: S.TROUBLED}[outcome]


def _answered(state: GroupState, outcome: PostedTimeStatus) -> GroupState:
    return S.TROUBLED if outcome is TROUBLE else S.ACKNOWLEDGED


ACTS: Mapping[str, tuple[Act, Callable[[GroupState, PostedTimeStatus], GroupState]]] = {
    "offer": (
        lambda inbox, entry, _: inbox.receive(replace(OFFER, digest=entry.digest)),
        lambda state, outcome: state if outcome is SUCCESS else S.RECEIVED,
    ),
    "offer other content": (lambda inbox, *_: inbox.receive(replace(OFFER, digest="digest-3")), lambda state, _: state),
    "revise": (lambda inbox, *_: inbox.revise(OTHER), lambda *_: S.RECEIVED),
    "begin": (lambda inbox, entry, _: inbox.begin(replace(entry, outcome=None), "ledger"), lambda *_: S.DELIVERING),
    "decide": (_decide(waits=True), _waiting),
    "decide at once": (_decide(waits=False), _answered),
    "find a conflict": (_decide(waits=True, is_conflict=True), lambda *_: S.CONFLICT),
    "repeat": (
        lambda inbox, entry, _: inbox.answer_again(entry, waits=True),
        lambda state, outcome: _waiting(state, outcome) if state is S.GIVEN_UP else state,
    ),
    "repeat at once": (lambda inbox, entry, _: inbox.answer_again(entry, waits=False), _answered),
    "acknowledge": (
        lambda inbox, entry, outcome: inbox.acknowledged(entry.group_id, outcome),
        lambda state, outcome: state if state is S.CONFLICT else _answered(state, outcome),
    ),
    "give up": (lambda inbox, entry, _: inbox.given_up(entry.group_id, "unknown"), lambda *_: S.GIVEN_UP),
    "settle": (_settle("fetch"), lambda state, _: S.ACCEPTED if state is S.CONFLICT else state),
    "settle at once": (_settle("webhook"), lambda state, _: S.ACKNOWLEDGED if state is S.CONFLICT else state),
}
"""Each write of the inbox, and the state that follows."""

WAYS: Mapping[GroupState, tuple[str, ...]] = {
    S.RECEIVED: ("decide", "revise"),
    S.DELIVERING: ("decide", "begin"),
    S.ACCEPTED: ("decide",),
    S.REFUSED: ("decide",),
    S.TROUBLED: ("decide",),
    S.ACKNOWLEDGED: ("decide at once",),
    S.GIVEN_UP: ("decide", "give up"),
    S.CONFLICT: ("find a conflict",),
}
"""The writes that bring a group into each state."""

VERDICTS = {S.ACCEPTED: SUCCESS, S.REFUSED: REFUSED, S.TROUBLED: TROUBLE}
NO_VERDICT = {(S.RECEIVED, act) for act in ("repeat", "repeat at once", "acknowledge")}
"""A new revision has no verdict to send yet."""


@pytest.mark.parametrize("name", ACTS)
def test_every_write_leads_from_every_state_to_the_expected_one(name: str, path: Path) -> None:
    """With every verdict; no write fails in any state."""
    act, follows = ACTS[name]
    with open_inbox(str(path), write=True) as inbox:
        for state, outcome in product(GroupState, PostedTimeStatus):
            if (state, name) in NO_VERDICT or (state, outcome) == (S.ACKNOWLEDGED, TROUBLE):
                continue
            known = VERDICTS.get(state, outcome)
            inbox.receive(OFFER)
            for step in WAYS[state]:
                ACTS[step][0](inbox, entry_of(inbox), known)
            before = entry_of(inbox)
            assert before.state is state
            verdict = before.outcome or outcome
            act(inbox, before, verdict)
            assert entry_of(inbox).state is follows(state, verdict)
