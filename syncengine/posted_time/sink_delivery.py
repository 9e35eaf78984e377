"""Deliver a group of the inbox to its sinks. Writes to the sinks, and records their answers in the inbox."""

from __future__ import annotations

import math
from asyncio import to_thread
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from syncengine.errors import SyncengineError, TroubleKind, as_bug
from syncengine.instants import instant
from syncengine.posted_time.group import Group, read_group
from syncengine.posted_time.route import NOT_PREPARED, Prepared, Route
from syncengine.posted_time.sink_health import SinkHealth
from syncengine.posted_time.sinks.contract import (
    LONGEST_REST,
    Answer,
    Differs,
    Failed,
    Lacks,
    Recalled,
    Refused,
    RenderedGroup,
    Sink,
    Took,
)
from syncengine.posted_time.sinks.find import unknown
from syncengine.posted_time.templates import RenderTrouble, Undeliverable, Variables
from syncengine.state.connector import remember_rest, rests_in
from syncengine.state.inbox import DIED, InboxWriter, Work
from syncengine.state.inbox_model import DOUBTFUL, TAKEN, Delivered, DeliveryKey, DeliveryStatus, InboxEntry, sink_of


class NextStep(Enum):
    """The next step for an offer. `ANSWER` repeats the verdict; `ASK` asks the sinks in doubt whether they have it."""

    ANSWER = 1
    DELIVER = 2
    REVISE = 3
    ASK = 4
    CONFLICT = 5


@dataclass(frozen=True, slots=True)
class SinkResult:
    """The sinks' answer to a group. `ending` is not written yet, so that it can be written with the verdict."""

    answer: Answer
    ending: Work[None] | None = None


class SinkDelivery:
    """The delivery of groups to the sinks of a route, which notes in `health` which sinks fail and which work.

    `now` is the date that later processes read (seconds since the epoch). What one process does alone it measures by
    the clock of `health`, so that nothing is sent early or held back when the machine's date is set.
    """

    def __init__(self, route: Route, inbox: InboxWriter, health: SinkHealth, now: Callable[[], float]) -> None:
        self._route, self._inbox, self._health, self._now = route, inbox, health, now
        self._askable: dict[DeliveryKey, float] = {}
        """When a sink can tell whether it has a delivery of unknown end, by the clock of `health`."""

    async def deliver(self, entry: InboxEntry, group: Group) -> SinkResult:
        """Deliver the group to its sinks in order, until one does not take it, and return the last sink's answer."""
        began = self._health.clock()
        try:
            prepared = await self._route.prepare(group, entry.revision, heard=self._health.worked)
        except Exception as error:  # an error in one group must not stop the others
            return SinkResult(_defect(error))
        if not isinstance(prepared, Prepared):
            if isinstance(prepared, Failed) and prepared.where:
                self._health.failed(prepared.where, prepared, began)
            return SinkResult(prepared)
        if any(is_divided_otherwise(entry, name, keys) for name, keys in prepared.keys().items()):
            return SinkResult(Differs(divided=True))
        references = dict[str, str | None]()
        last = SinkResult(Took())
        for sink, rendered in prepared.rendered_groups:
            if entry.is_delivered and entry.delivered(rendered.key) is None:
                continue  # a sink that was added after the group was delivered does not get old groups
            # Only the last end waits, to be written together with the verdict.
            await self.end(last)
            last = await self._deliver_to(entry, sink, rendered)
            if not isinstance(last.answer, Took):
                return last
            references[sink.name] = last.answer.external_id or references.get(sink.name)  # the first tag comes last
        return replace(last, answer=Took(next((reference for reference in references.values() if reference), None)))

    async def end(self, result: SinkResult) -> None:
        """Record the end of a delivery at once, for a result that is not followed by a verdict."""
        if result.ending is not None:
            await self._inbox.write(result.ending)

    async def _deliver_to(self, entry: InboxEntry, sink: Sink, rendered: RenderedGroup) -> SinkResult:
        """Return the sink's answer, without asking a sink again that took the group before."""
        earlier = entry.delivered(rendered.key)
        if earlier is not None and earlier.status is DeliveryStatus.ACCEPTED:
            return SinkResult(Took(earlier.external_id))
        same = earlier if earlier is not None and earlier.revision == entry.revision else None
        may_have_it = same is not None and same.status in DOUBTFUL
        if same is not None and sink.asked_after is not None and same.status in (*DOUBTFUL, DeliveryStatus.AGAIN):
            found = await self._recalled(entry, sink, same, rendered.variables)
            if found is not None and not isinstance(found, Lacks):
                return self._ended(entry, same, found)
        await self._inbox.write(lambda tx: tx.begin(entry, rendered.key))
        self._inbox.inbox.check_lease()  # a process that was suspended must not deliver beside its successor
        began, memo = self._health.clock(), same.memo if same else None
        resting = self._health.resting(sink.name)
        answer = resting or await self._answer(sink, rendered, memo)
        if not isinstance(answer, Failed):
            self._health.worked(sink.name)
        elif answer is not resting:
            await self._note(sink, answer, began)
        if may_have_it and isinstance(answer, Refused):
            # A sink may refuse a repeat just because it has the group already: what it has counts, if it can tell.
            has = await sink.recall(rendered.delivery, memo, self._inbox, rendered.variables)
            if isinstance(has, Failed):
                await self._note(sink, has)
            may_have_it = not isinstance(has, Lacks)
            if isinstance(has, Took | Differs | Failed):
                answer = has
            elif has is None:
                answer = Failed(
                    TroubleKind.UNKNOWN,
                    f"{sink.name} may already have this time. It is sent again until {sink.name} confirms it.",
                    is_sure=False,
                    is_down=False,
                    detail="perhaps taken: an earlier attempt has no known end, and a refusal of its repeat proves"
                    f" nothing: {answer.detail or answer.message}",
                )
        ending = _ending(answer, may_have_it)
        if sink.asked_after is not None and ending["status"] in DOUBTFUL:
            self._askable[rendered.delivery] = self._health.clock() + sink.asked_after
        return SinkResult(answer, lambda tx: tx.end(entry, rendered.key, **ending))

    async def _answer(self, sink: Sink, rendered: RenderedGroup, memo: str | None) -> Answer:
        try:
            return await sink.deliver(rendered, memo, self._inbox)
        except Undeliverable as error:
            return Refused(error.user_message, str(error))
        except RenderTrouble as error:
            return Failed(TroubleKind.UNKNOWN, NOT_PREPARED, is_down=False, detail=str(error))
        except SyncengineError:
            raise
        except Exception as error:  # an error in one group must not stop the others
            return _defect(error)

    async def _recalled(
        self, entry: InboxEntry, sink: Sink, earlier: Delivered, variables: Variables | None
    ) -> Recalled:
        """Ask a sink for a group that an earlier attempt brought to it, or perhaps did, once it can tell.

        Nothing is written while that is not known, so that `asked_after` still counts from the end of the attempt.
        """
        key = DeliveryKey(entry.group_id, earlier.revision, earlier.sink)
        if sink.asked_after is not None and earlier.status in DOUBTFUL:
            now, clock, ended = self._now(), self._health.clock(), earlier.last
            if earlier.status is DeliveryStatus.ATTEMPTING:
                # Only when it began is known of an attempt whose process died; that it has ended is known from now on.
                ended, attempt = now, replace(entry, revision=earlier.revision)
                await self._inbox.write(lambda tx: tx.end(attempt, earlier.sink, DeliveryStatus.UNKNOWN, DIED))
            # Of an attempt of an earlier process the date alone tells when it ended.
            since = min(max(now - ended, 0.0), sink.asked_after)
            wait = self._askable.setdefault(key, clock + sink.asked_after - since) - clock
            if wait > 0:
                return unknown(sink.name, f"it is asked for from {instant(round((now + wait) * 1000))}")
        if resting := self._health.resting(sink.name):
            return resting
        answer = await sink.recall(key, earlier.memo, self._inbox, variables)
        if isinstance(answer, Failed):
            await self._note(sink, answer)
        else:
            self._askable.pop(key, None)
        return answer

    def _ended(self, entry: InboxEntry, earlier: Delivered, found: Took | Differs | Failed) -> SinkResult:
        """Return the result for a group that was found at a sink, or that may be there."""
        if not isinstance(found, Took):
            return SinkResult(found)
        attempt, ending = replace(entry, revision=earlier.revision), _ending(found, True)
        return SinkResult(found, lambda tx: tx.end(attempt, earlier.sink, **ending))

    async def _note(self, sink: Sink, failed: Failed, began: float = math.inf) -> None:
        """Note a sink's failure, and leave it alone for as long as it asked, in later processes too."""
        self._health.failed(sink.name, failed, began)
        if failed.rest:
            self._health.leave(sink.name, failed.rest)
            until = self._now() + failed.rest
            await to_thread(remember_rest, self._inbox.inbox.database, sink.receiver(), until)

    async def remember_rests(self) -> None:
        """Leave sinks alone that asked an earlier process for it."""
        rests = await to_thread(rests_in, self._inbox.inbox.database)
        for name, receiver in self._route.receivers().items() if rests else ():
            rest = rests.get(receiver, 0.0) - self._now()
            self._health.leave(name, min(rest, LONGEST_REST))  # the date may have been set back

    async def step_after_asking(self, entry: InboxEntry) -> NextStep | Failed:
        """Return `CONFLICT` if a sink may have the group from an interrupted attempt, else `REVISE`.

        A sink that cannot tell counts as having the group, because two contents of one group must never be in one
        sink. Return `Failed` when a sink cannot be asked now.
        """
        sinks = {sink.name: sink for sink in self._route.sinks}
        for found in doubtful(entry):
            if (sink := sinks.get(sink_of(found.sink))) is None:
                return NextStep.CONFLICT
            seen = self._route.variables_at(sink.name, read_group(entry.raw()), found.sink) if entry.body else None
            has = await self._recalled(entry, sink, found, seen)
            if isinstance(has, Failed):
                return has
            if isinstance(has, Took):
                await self.end(self._ended(entry, found, has))  # the inbox notes what the sink has
            if not isinstance(has, Lacks):
                return NextStep.CONFLICT
        return NextStep.REVISE


def doubtful(entry: InboxEntry) -> tuple[Delivered, ...]:
    """Return the delivery attempts whose result is unknown."""
    return tuple(found for found in entry.deliveries if found.status in DOUBTFUL)


def is_divided_otherwise(entry: InboxEntry, sink: str, keys: Collection[str]) -> bool:
    """Return whether the sink may have this content divided otherwise than into these keys (whole, or by tag).

    That happens when `each: tag` is added or removed while a group is being delivered. The first tag has the key of a
    whole group and is delivered last: if the key was used and the other tags' keys were not, the whole was delivered.
    """
    attempts = {one.sink: one for one in entry.deliveries if one.revision == entry.revision}
    may_have = {key for key, one in attempts.items() if sink_of(key) == sink and one.status in TAKEN | DOUBTFUL}
    parts = set(keys) - {sink}
    return bool(may_have - {sink}) if not parts else sink in may_have and not parts <= attempts.keys()


def _defect(error: Exception) -> Failed:
    """Return the failure of a delivery that ended with an unexpected error."""
    return Failed(TroubleKind.UNKNOWN, NOT_PREPARED, is_sure=False, is_down=False, detail=as_bug(error))


def _ending(answer: Answer, may_have_it: bool) -> dict[str, Any]:
    """Return the answer as the inbox keeps it.

    If an earlier attempt may have reached the sink (`may_have_it`), a failure leaves the delivery in doubt.
    """
    match answer:
        case Took(external_id):
            return {"status": DeliveryStatus.ACCEPTED, "external_id": external_id}
        case Refused(message, detail):  # where an earlier attempt may have reached the sink, that was asked
            return {"status": DeliveryStatus.REFUSED, "message": detail or message}
        case Failed():
            status = DeliveryStatus.TROUBLE if answer.is_sure and not may_have_it else DeliveryStatus.UNKNOWN
            return {"status": status, "message": answer.detail or answer.message}
        case _:
            return {"status": DeliveryStatus.UNKNOWN, "message": "the sink has the group with different content"}
