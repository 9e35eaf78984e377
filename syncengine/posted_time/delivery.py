"""Deliver posted time through the inbox to the sinks, and decide a verdict on each group. Writes inbox and sinks.

A group is written to the inbox before anything else happens to it. Refusal rules, lookups, narrative and every sink's
rendering come before the first delivery. A sink that took the group never gets it again, however often it is offered.
"""

from __future__ import annotations

import asyncio
import time
from asyncio import to_thread
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from weakref import WeakValueDictionary

from syncengine.database.errors import sentence
from syncengine.document.json_text import decode_json
from syncengine.posted_time.build_route import BuiltRoute, build
from syncengine.posted_time.events import SinkTrouble, Verdict
from syncengine.posted_time.group import NO_ID, Group, read_group, stored
from syncengine.posted_time.group import digest as content_digest
from syncengine.posted_time.pace import WIDTH, each, side_by_side
from syncengine.posted_time.sink_delivery import NextStep, SinkDelivery, doubtful
from syncengine.posted_time.sink_health import SinkHealth
from syncengine.posted_time.sinks.contract import Differs, Failed, Refused, Took, message
from syncengine.project.model import Project
from syncengine.service.posted_time import Unreadable
from syncengine.state.connector import remember_settings_in, settings_in
from syncengine.state.folder_memory import memory_of
from syncengine.state.inbox import Inbox, InboxTransaction, InboxWriter, Work, open_inbox
from syncengine.state.inbox_model import (
    BETWEEN_TAGS,
    DOUBTFUL,
    FETCH,
    TAKEN,
    Event,
    EventKind,
    InboxEntry,
    Offer,
    PostedTimeStatus,
    sink_of,
)
from syncengine.state.store import refuse_vanished

KEEP = 60 * 86400.0
"""How long (in seconds) the content of delivered groups is kept, unless the project sets `keep`."""
TIDY = 3600.0
"""Seconds between two removals of older content from the inbox."""
HOLD = 240.0
"""Seconds for which a fetched group that meets trouble again gets no verdict, so that only it tries the sink.

The service offers a group again if it gets no status, after an undocumented time: connectors assume 8 minutes.
"""

UNREADABLE = "This time cannot be read, so it was not delivered. Please post it again, or ask your administrator."
UNREADABLE_NOTE = "only the groupId of this group could be read; its content was not stored"
CONFLICT = (
    "This time was posted before with different content, and {sinks} in that form. Nothing was changed there;"
    " please ask your administrator."
)
DIVIDED = (
    "This time was delivered before, divided differently (as a whole or by tag), and {sinks} in that form."
    " Nothing more was delivered; please ask your administrator."
)
TWICE = (
    "This time was delivered before, and {sinks} more than once. Nothing more was delivered; please ask your"
    " administrator."
)
CONFLICT_NOTE = "offered again with different content"
TWICE_NOTE = "`find` finds {copies} entries of this group: remove all but one"
DIVIDED_NOTE = "`each: tag` was added or removed after the group was delivered"


class Delivery:
    """The delivery of posted time to its sinks. An async context manager to enter once; `take` may run concurrently."""

    def __init__(
        self,
        built: BuiltRoute,
        inbox: Inbox,
        *,
        keep: float,
        now: Callable[[], float],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.inbox = inbox
        self.on_group: Callable[[Group], None] = lambda group: None
        """A callback that gets each offered group."""
        self.writer = InboxWriter(inbox)
        self.route = built.route
        self.route.configuration = settings_in(inbox.database)
        self._databases = built.databases
        self._keep = keep
        self._now, self._clock = now, clock
        self._tidied = float("-inf")
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        public_names = {lookup.part: lookup.public_name for lookup in built.route.lookups}
        self._health = SinkHealth(clock, public_names)
        # A target that could not be reached at start is down like any other, and is tried by probes.
        for part, kind, why in built.troubles:
            self._health.failed(part, Failed(kind, sentence(public_names.get(part, part), kind), detail=why))
        self._sink_delivery = SinkDelivery(built.route, self.writer, self._health, now)

    @classmethod
    def of(
        cls,
        project: Project,
        environ: Mapping[str, str],
        *,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> Delivery:
        """Build the delivery of a project, and check every template, table and source.

        Raise `Problems` with every error found. A target that cannot be reached is not an error: see `troubles`.
        """
        built = build(project, environ, now=now)
        keep = (project.posted_time.keep if project.posted_time else None) or KEEP
        try:
            refuse_vanished(project.state, memory_of(project))
            return cls(built, open_inbox(project.state, write=True, now=now), keep=keep, now=now, clock=clock)
        except BaseException:
            built.databases.close()
            raise

    def configure(self, settings: Mapping[str, object] | None) -> None:
        """Set the templates' `connectorConfiguration` to the service's settings from the registration, and store it.

        `None`, for a registration without an answer, keeps the earlier settings.
        """
        if settings is not None:
            self.route.configuration = dict(settings)
            remember_settings_in(self.inbox.database, settings, self._now())

    def inherit(self, before: Delivery) -> None:
        """Take over the troubles from the delivery that this one replaces, but of sinks with another target."""
        here, there = self.route.receivers(), before.route.receivers()
        names = [name for name in self.route.parts() if here.get(name) == there.get(name)]
        self._health.inherit(before._health, names)

    async def take(self, raw: Mapping[str, object], *, mechanism: str) -> Verdict:
        """Store and deliver a group from the service, and return the verdict. `mechanism` is `fetch` or `webhook`.

        Idempotent per group and sink. Raise `LockLost` when the inbox's lease is lost: then no group may be taken.
        """
        group = read_group(raw)
        if not group.groupId:
            return Verdict(PostedTimeStatus.REFUSED, NO_ID)
        async with self._only(group.groupId):
            entry = await self._receive(self._offer(group, raw, mechanism))
            return entry if isinstance(entry, Verdict) else await self._process(entry, group)

    async def store(self, raw: Mapping[str, object] | Unreadable, *, mechanism: str) -> Verdict | None:
        """Store a group with an id in the inbox, to be delivered by `resume`. Return its verdict if it needs none.

        A group of which only the id can be read is refused, unless a sink has it: then it is a conflict.
        """
        if isinstance(raw, Unreadable):
            offer = Offer(raw.id or "", raw.digest, None, mechanism)
        else:
            offer = self._offer(read_group(raw), raw, mechanism)
        async with self._only(offer.group_id):
            entry = await self._receive(offer)
            return entry if isinstance(entry, Verdict) else None

    async def remember_troubles(self) -> None:
        """Note the sinks whose last attempt failed according to the inbox: a restart does not make a sink well."""
        await self._sink_delivery.remember_rests()
        troubles = await to_thread(self.inbox.last_troubles)
        for name in self.route.parts():
            if name in troubles:
                self._health.failed_before(name, self._now() - troubles[name])

    async def resume(self, stop: asyncio.Event, deliver: Callable[[str], Awaitable[object]] | None = None) -> int:
        """Deliver stored groups without a verdict, oldest first, by `again` or `deliver`, and return their number.

        Stop when `stop` is set or a sink is down, and leave further groups for the next call.
        """
        return await side_by_side(self._undecided(), deliver or self.again, lambda: self.width(stop))

    async def _undecided(self) -> AsyncIterator[str]:
        """Yield the ids of groups without a verdict, oldest first, reading `WIDTH` of them at a time."""
        last: tuple[float, str] | None = None
        # Page by page: 20,000 groups may wait, and groups that end meanwhile leave the pages after them as they are.
        while page := await to_thread(self.inbox.undecided, last, WIDTH):
            for last in page:
                yield last[1]

    def width(self, stop: asyncio.Event) -> int:
        """Return how many groups may be delivered at once: none after `stop` or if a sink is down, one if in doubt."""
        return 0 if stop.is_set() or self.troubles else 1 if self.is_cautious else WIDTH

    async def catch_up(self, stop: asyncio.Event, deliver: Callable[[str], Awaitable[object]] | None = None) -> int:
        """Deliver the groups that `time retry` requested, by `again` or `deliver`, and return their number.

        Stop when `stop` is set or a sink is down; further groups remain requested. `serve` calls this between rounds,
        because only the holder of the lease delivers, and other processes can only request it.
        """
        if self._clock() - self._tidied >= TIDY:
            self._tidied = self._clock()
            before = self._now() - self._keep
            await self.writer.write(lambda tx: tx.reduce(before))
        asked = each(await to_thread(self.inbox.redeliveries))
        return await side_by_side(asked, deliver or self.again, lambda: self.width(stop))

    async def again(self, group_id: str) -> Verdict | None:
        """Deliver a group of the inbox to the sinks that lack it. Return the verdict, or `None` when there is none."""
        async with self._only(group_id):
            entry = await self._entry(group_id)
            if entry is None or not entry.body:
                await self.writer.write(lambda tx: tx.finish(group_id))
                return None
            group = read_group(entry.raw())
            if not entry.is_delivered:
                return await self._process(entry, group)
            # The service already has the verdict SUCCESS, so this result is not reported to it.
            result = await self._sink_delivery.deliver(entry, group)
            await self._sink_delivery.end(result)
            await self.writer.write(lambda tx: tx.finish(group_id))
            return None if isinstance(result.answer, Differs) else _verdict(result.answer)

    async def check_sinks(self) -> tuple[SinkTrouble, ...]:
        """Probe every sink and the databases of lookups, and return the troubles to report to users."""
        parts = {name: part for name, part in self.route.parts().items() if not self._health.resting(name)}
        found = await asyncio.gather(*(part.probe() for part in parts.values()))
        for name, trouble in zip(parts, found, strict=True):
            self._health.probed(name, trouble)
        return self.reported

    @property
    def troubles(self) -> tuple[SinkTrouble, ...]:
        """The troubles of sinks that are known to be down. While there are any, nothing may be fetched.

        A sink with a good probe after a failed delivery is left out after a while, so that one group can try it: see
        `is_cautious`.
        """
        return self._health.blocking

    @property
    def reported(self) -> tuple[SinkTrouble, ...]:
        """The troubles that are shown to everyone who posts time. A single failure does not count yet."""
        return self._health.down

    @property
    def is_cautious(self) -> bool:
        """Whether a sink failed and has not been shown to work since, so that groups must be delivered one by one."""
        return self._health.is_in_doubt

    async def __aenter__(self) -> Delivery:
        await self._sink_delivery.remember_rests()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close clients, pools and the inbox."""
        for sink in self.route.sinks:
            await sink.close()
        self._databases.close()
        await self.writer.close()
        await to_thread(self.inbox.close)

    # --- one group

    async def _receive(self, offer: Offer) -> InboxEntry | Verdict:
        """Store an offer, and return the group's entry if it is to be delivered, else its verdict."""
        entry = await self.writer.write(lambda tx: tx.receive(offer))
        step: NextStep | Failed = next_step(entry, offer.digest)
        if step is NextStep.ASK:
            step = await self._sink_delivery.step_after_asking(entry)
        if isinstance(step, Failed):
            return await self._decide(entry, Verdict(PostedTimeStatus.TROUBLE, step.message, detail=step.detail))
        if step is NextStep.CONFLICT and entry.is_delivered:
            # A person may have settled a conflict about this content: then the sinks count as having it.
            body = settled_content(await to_thread(self.inbox.story, entry.group_id))
            if body is not None and content_digest(read_group(decode_json(body))) == offer.digest:
                step = NextStep.ANSWER
        if step is NextStep.CONFLICT:
            return await self._conflict(entry)
        if step is NextStep.ANSWER:
            await self.writer.write(lambda tx: tx.answer_again(entry, waits=entry.mechanism == FETCH))
            return Verdict(PostedTimeStatus.SUCCESS, entry.message, entry.external_id)
        if step is NextStep.REVISE:
            entry = await self.writer.write(lambda tx: tx.revise(offer))
        if offer.body is None:
            return await self._decide(entry, Verdict(PostedTimeStatus.REFUSED, UNREADABLE, detail=UNREADABLE_NOTE))
        return entry

    async def _entry(self, group_id: str) -> InboxEntry | None:
        """Return a group as the inbox has it, read together with the writes of other groups to save a transaction."""
        return await self.writer.write(lambda tx: tx.entry(group_id))

    def _only(self, group_id: str) -> asyncio.Lock:
        """Return the lock of a group, which keeps two calls for it from being handled at the same time."""
        return self._turns.setdefault(group_id, asyncio.Lock())

    async def _conflict(self, entry: InboxEntry, found: Differs | None = None) -> Verdict:
        """Refuse a group as a conflict. The entry is read anew, because this attempt may have changed it."""
        entry = await self._entry(entry.group_id) or entry
        text, why = CONFLICT, CONFLICT_NOTE
        if found is not None and found.divided:
            text, why = DIVIDED, DIVIDED_NOTE
        elif found is not None and found.copies > 1:
            text, why = TWICE, TWICE_NOTE.format(copies=found.copies)
        holders = said_of_holders(entry)
        note = f"{why}; {holders} as revision {entry.revision}"
        verdict = Verdict(PostedTimeStatus.REFUSED, text.format(sinks=holders), detail=note)
        return await self._decide(entry, verdict, kind=EventKind.CONFLICT)

    async def _process(self, entry: InboxEntry, group: Group) -> Verdict:
        """Deliver a group to its sinks, and return the verdict, which is stored unless it is not final."""
        may_wait = entry.mechanism == FETCH and self._health.is_half_open and 0 <= self._now() - entry.offered < HOLD
        result = await self._sink_delivery.deliver(entry, group)
        answer = result.answer
        if isinstance(answer, Differs):
            await self._sink_delivery.end(result)
            return await self._conflict(entry, answer)
        verdict = _verdict(answer)
        if isinstance(answer, Failed) and may_wait and self.troubles:
            await self._sink_delivery.end(result)
            return replace(verdict, is_final=False)
        return await self._decide(entry, verdict, ending=result.ending)

    async def _decide(
        self,
        entry: InboxEntry,
        verdict: Verdict,
        *,
        kind: EventKind = EventKind.VERDICT,
        ending: Work[None] | None = None,
    ) -> Verdict:
        """Store a verdict, in one transaction with the `ending` of the last delivery, and return it."""
        if verdict.message is not None:
            verdict = replace(verdict, message=message(verdict.message))
        answer = (verdict.outcome, verdict.message, verdict.external_id)

        def decide(tx: InboxTransaction) -> None:
            if ending is not None:
                ending(tx)
            tx.decide(entry, *answer, waits=entry.mechanism == FETCH, note=verdict.detail, kind=kind)

        await self.writer.write(decide)
        return verdict

    def _offer(self, group: Group, raw: Mapping[str, object], mechanism: str) -> Offer:
        """Return the offer of a group, after `on_group` has got it."""
        self.on_group(group)
        user = group.user
        names = (user.name, user.email, user.externalId, user.userId) if user else ()
        user_keys = tuple(name for name in names if name)
        return Offer(
            group.groupId or "",
            content_digest(group),
            stored(raw),
            mechanism,
            user_name=user_keys[0] if user_keys else None,
            user_keys=user_keys,
            tag=BETWEEN_TAGS.join(dict.fromkeys(tag.name for tag in group.tags if tag.name)) or None,
        )


def next_step(entry: InboxEntry, digest: str) -> NextStep:
    """Return the next step for an offer of content with this digest. `entry` is the state before the offer."""
    if entry.digest == digest:
        return NextStep.ANSWER if entry.is_delivered else NextStep.DELIVER
    if entry.is_delivered or any(found.status in TAKEN for found in entry.deliveries):
        return NextStep.CONFLICT
    return NextStep.ASK if doubtful(entry) else NextStep.REVISE


def settled_content(story: Sequence[Event]) -> str | None:
    """Return the content (a group as JSON) of the last conflict that a person settled, or `None`."""
    settled = max((place for place, event in enumerate(story) if event.kind is EventKind.SETTLED), default=0)
    offered = (event.detail for event in reversed(story[:settled]) if event.kind is EventKind.OFFERED and event.detail)
    return next(offered, None)


def said_of_holders(entry: InboxEntry) -> str:
    """Return a clause such as `a and b took it`, about the sinks that took the group or, if none did, may have it."""
    for statuses, verb in ((TAKEN, "took it"), (DOUBTFUL, "may have it")):
        sinks = sorted({sink_of(found.sink) for found in entry.deliveries if found.status in statuses})
        if sinks:
            return f"{' and '.join(sinks)} {verb}"
    return "the target took it"


def _verdict(answer: Took | Refused | Failed) -> Verdict:
    match answer:
        case Took(external_id):
            return Verdict(PostedTimeStatus.SUCCESS, None, external_id)
        case Refused(message, detail):
            return Verdict(PostedTimeStatus.REFUSED, message, detail=detail)
        case Failed():
            return Verdict(PostedTimeStatus.TROUBLE, answer.message, detail=answer.detail)
