"""Run the sweep: one sync session, completed only when every remaining item was acknowledged (docs/planning.md 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from syncengine.apply.answers import Accepted, ItemsRefused, RefusedCall, Unclear, judge, unnamed
from syncengine.apply.report import CallError, Outcome, Session, SessionOpened
from syncengine.apply.run import ApplyRun, effects_of, removal_by
from syncengine.apply.send import MAX_OFFENDERS, spell
from syncengine.plan.calls import Item, Sweep
from syncengine.service.operations import (
    CANCEL_SYNC_SESSION,
    COMPLETE_SYNC_SESSION,
    START_SYNC_SESSION,
    UPLOAD_ACTIVITY_TYPES,
)

TRIES = 3
"""The number of sessions to try for one sweep: the first, and two more if a session is lost."""

LOST = frozenset({400, 404})
"""Status codes with which a dead session answers (docs/service.md §2)."""


class End(Enum):
    """The end of one session; OPEN means that it goes on."""

    OPEN = "open"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    GONE = "gone"
    UNKNOWN = "unknown"


@dataclass(slots=True)
class _Session:
    """One session of a sweep.

    `reason` is why it did not complete, `removals` the outcome for the codes to delete. `halving`: content was
    rejected.
    """

    id: str
    number: int
    uploaded: bool = False
    halving: bool = False
    offenders: int = 0
    reason: str = ""
    removals: Outcome = Outcome.SKIPPED

    def end(self, end: End, reason: str) -> End:
        self.reason = reason
        return end


async def cancel_left_open(run: ApplyRun) -> None:
    """Cancel sessions of runs that died; a failed cancellation blocks nothing (docs/planning.md 3.6)."""
    for session in run.ledger.open_sessions():
        await _cancel(run, session)


async def perform(run: ApplyRun, sweep: Sweep) -> None:
    """Upload everything that stays and complete the session, or cancel it, keep the rows and report the reason."""
    obstacle = run.halted
    if not obstacle and (waiting := next((key for key in sweep.needs if key in run.blocked), None)):
        obstacle = f"not started: {waiting} may still upload an activity type that the sweep would delete"
    if obstacle:
        run.skipped(sweep.complete.items, obstacle)
        run.tell(Session(reason=obstacle))
        return
    session = _Session("", 0)
    removals = Outcome.SKIPPED
    for number in range(1, TRIES + 1):
        session = _Session("", number)
        end = await _one_session(run, session, sweep)
        removals = session.removals if removals is Outcome.SKIPPED else removals
        if end is End.COMPLETED:
            run.ledger.set_facts(owns_activity_types=True)
            return
        if end is not End.GONE or run.halted:
            break
    run.blocked_items(sweep.complete.items, removals, CallError(session.reason, COMPLETE_SYNC_SESSION.id))


async def _one_session(run: ApplyRun, session: _Session, sweep: Sweep) -> End:
    match judge(START_SYNC_SESSION, 0, await run.service.call(START_SYNC_SESSION)):
        case Accepted(data=data):
            id_ = data.get("syncSessionId")
            session.id = id_ if isinstance(id_, str) else ""
            message = "the answer has no session id"
        case ItemsRefused():
            raise AssertionError("the start of a session has no items")
        case RefusedCall(message, status):
            await run.stops_for_key(status, message)
        case Unclear(message):
            pass
    if not session.id:
        session.reason = f"no session was started: {message}"
        run.tell(Session(reason=session.reason))
        return End.CANCELLED
    run.ledger.session_opened(session.id)
    run.tell(SessionOpened(session.id))
    end = End.OPEN
    for upload in sweep.uploads:
        if reason := run.halted:
            end = session.end(End.CANCELLED, reason)
        if end is End.OPEN:
            call = f"{upload.id}.{session.number}"  # each session's calls have names of their own in the journal
            run.intend(UPLOAD_ACTIVITY_TYPES, [(call, upload.items)])
            end = await _send(run, session, call, upload.items)
            run.journal.end(call)
    if end is End.OPEN:
        end = await _complete(run, session, sweep)
    if end is End.CANCELLED:
        await _cancel(run, session.id)
    elif end is not End.UNKNOWN:
        run.ledger.session_closed(session.id)
    outcome = end.value if end in (End.COMPLETED, End.CANCELLED) else "none"
    run.tell(Session(session.id, outcome, session.reason or None))
    return end


async def _send(run: ApplyRun, session: _Session, call: str, items: Sequence[Item]) -> End:
    """Send intended items in the session. Return OPEN only when all of them were acknowledged."""
    if reason := run.halted:
        run.journal.fail(call, items, reason)
        return session.end(End.CANCELLED, reason)
    body = {**spell(run, UPLOAD_ACTIVITY_TYPES, items), "syncSessionId": session.id}
    verdict = judge(UPLOAD_ACTIVITY_TYPES, len(items), await run.send(UPLOAD_ACTIVITY_TYPES, call, body))
    match verdict:
        case Accepted(errors) | ItemsRefused(errors):
            others = unnamed(items, errors)
            if isinstance(verdict, Accepted):
                run.journal.settle(call, others)
            else:
                run.journal.fail(call, others, "rejected along with other items")
            if not errors:
                session.uploaded = True
                return End.OPEN
            status = verdict.status if isinstance(verdict, ItemsRefused) else 200
            for index, words in errors.items():
                run.failed(call, [items[index]], CallError(words, UPLOAD_ACTIVITY_TYPES.id, index, status))
            index, words = next(iter(errors.items()))
            return session.end(End.CANCELLED, f"{items[index].key} was rejected: {words}")
        case RefusedCall(message, status):
            return await _refused(run, session, call, items, message, status)
        case Unclear(message):
            run.journal.fail(call, items, message)
            return session.end(End.CANCELLED, f"the outcome of an upload is unknown: {message}")


async def _refused(
    run: ApplyRun, session: _Session, call: str, items: Sequence[Item], message: str, status: int
) -> End:
    """Handle a rejection without item errors: a dead session, unless a second session's first upload fails as well."""
    fresh = session.number > 1 and not session.uploaded
    is_about_key = await run.stops_for_key(status, message)
    if not is_about_key and (session.halving or status == 413 or (status == 400 and fresh)):
        session.halving = True
        if len(items) == 1 or session.offenders >= MAX_OFFENDERS:
            session.offenders += 1
            run.failed(call, items, CallError(message, UPLOAD_ACTIVITY_TYPES.id, status=status))
            return session.end(End.CANCELLED, f"{items[0].key} was rejected: {message}")
        middle = len(items) // 2
        ends = [await _send(run, session, call, part) for part in (items[:middle], items[middle:])]
        return next((end for end in ends if end is not End.OPEN), End.OPEN)
    run.journal.fail(call, items, message)
    if status in LOST:
        if status == 400:  # or the content is at fault, and the session is still open
            await _cancel(run, session.id)
        return session.end(End.GONE, f"the session no longer exists: {message}")
    return session.end(End.CANCELLED, message)


async def _complete(run: ApplyRun, session: _Session, sweep: Sweep) -> End:
    """Complete the session. A 400 or 404 proves only that the session is gone (docs/planning.md 3.5)."""
    if reason := run.halted:
        return session.end(End.CANCELLED, reason)
    call, items = f"{sweep.complete.id}.{session.number}", sweep.complete.items
    survivors = tuple(item.key.name for upload in sweep.uploads for item in upload.items)
    run.intend(COMPLETE_SYNC_SESSION, [(call, items)], survivors)
    answer = await run.send(COMPLETE_SYNC_SESSION, call, {"syncSessionId": session.id})
    run.journal.end(call)
    match judge(COMPLETE_SYNC_SESSION, 0, answer):
        case Accepted():
            run.acknowledge(call, items)
            return End.COMPLETED
        case RefusedCall(message, status) if status in LOST:
            run.journal.fail(call, items, message)
            session.removals = Outcome.UNKNOWN
            return session.end(End.GONE, f"the session no longer exists: {message}")
        case RefusedCall(message, status):
            await run.stops_for_key(status, message)
            effects = () if run.unauthorized else effects_of(items)
            run.journal.fail(call, items, message, {effect.key: removal_by(effect) for effect in effects})
            session.removals = Outcome.FAILED
            return session.end(End.CANCELLED, message)
        case verdict:
            message = getattr(verdict, "message", "no answer")
            run.journal.fail(call, items, message)
            session.removals = Outcome.UNKNOWN
            return session.end(End.UNKNOWN, f"it is unknown whether the session was completed: {message}")


async def _cancel(run: ApplyRun, session: str) -> None:
    answer = await run.service.call(CANCEL_SYNC_SESSION, {"syncSessionId": session})
    if answer.ok or answer.status in LOST:
        run.ledger.session_closed(session)
