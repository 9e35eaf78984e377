"""Run one configuration for as long as it holds the inbox's lease: registration, mechanism, and the loops.

A shift ends when it is stopped, when the lease is lost, or on an error that a retry cannot fix, such as a mechanism
that the service does not allow. Every other error is logged and retried after a pause.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from starlette.types import ASGIApp

from syncengine.connector.connection import client_of, prove_team
from syncengine.connector.registration import NOT_REGISTERED, HealthReporter, Registered, register, renewal
from syncengine.errors import AuthFailed, Problems, SyncengineError, Unreachable, WrongTeam
from syncengine.posted_time import webhook
from syncengine.posted_time.delivery import Delivery, PostedTimeStatus
from syncengine.posted_time.drift import DriftKind
from syncengine.posted_time.drift_reading import TagWatch
from syncengine.posted_time.events import SinkTrouble, message_of
from syncengine.posted_time.loops import Acknowledging, Fetching, WebhookRegistered
from syncengine.posted_time.mechanism import CallerKey, MechanismTaken, Registrar, callback_of
from syncengine.posted_time.pace import PACE, BackOff, Pace, slept
from syncengine.project.delivery_schema import BIND, Mode
from syncengine.project.model import Project
from syncengine.serve.log import Log, telling
from syncengine.serve.probes import AddressTaken, bound_at
from syncengine.serve.readiness import STANDBY, STARTING, Readiness
from syncengine.serve.receiver import SETTING, InHand, exposed
from syncengine.serve.reconcile import Reconciling
from syncengine.service.client import Client, Conduct
from syncengine.state.holder import Holder
from syncengine.state.inbox import Inbox
from syncengine.state.lock import Lease, LockLost
from syncengine.state.store import open_state

LAST_WORDS = 10.0
"""The maximum number of seconds for the last status updates of a shift; unsent ones wait in the inbox."""

LOOK_AT_LEASE = 1.0  # a process whose lease was taken over delivers for at most so many seconds more
LOOK_AT_CLOCK = 60.0  # a clock that is set while we sleep is noticed after so many seconds
LOOK_AT_DATABASE = 1.0  # a standby takes over soon after the database is back, and asks it nothing else meanwhile

ENDING = (LockLost, WebhookRegistered, MechanismTaken, AuthFailed, WrongTeam, Problems)
"""The errors that end a shift. After any other error, a loop is restarted."""


@dataclass(slots=True)
class Shift:
    """A configuration at work. Without `delivery`, only manifests are reconciled, and no lease is needed.

    `mount`, where another server listens, gets the webhook receiver, and `None` when it ends. `caller_key` outlives a
    shift, because the service calls with the key until another one is registered.
    """

    project: Project
    delivery: Delivery | None
    base_url: str
    environ: Mapping[str, str]
    log: Log
    readiness: Readiness
    pace: Pace = PACE
    registered: Callable[[Registered], None] = lambda registered: None
    mount: Callable[[ASGIApp | None], None] | None = None
    caller_key: CallerKey = field(default_factory=CallerKey)
    must_listen: bool = False
    """Whether the shift ends if the webhook's address is in use: at the start, and at a reload, which goes back to the
    old configuration. Else it waits for the address, as after standing by for the process that listens there."""
    _stop: asyncio.Event = field(default_factory=asyncio.Event)

    def stop(self) -> None:
        """Make the shift end once all groups in hand are finished."""
        self._stop.set()

    async def run(self) -> None:
        """Run until the shift is stopped. Raise one of the errors in `ENDING` when it ends the shift."""
        self.readiness.phase = STARTING
        self.readiness.has_posted_time = self.delivery is not None
        reconciling = Reconciling(
            self.project, self.base_url, self.environ, log=self.log, readiness=self.readiness, stop=self._stop
        )
        if self.delivery is None:
            self.readiness.phase = None
            return await self._run_all({"reconcile": reconciling.run, "idle": self._stop.wait})
        async with self.delivery:
            self.readiness.counts = self.delivery.inbox.counts
            self.readiness.drift = self._drift(self.delivery)
            self.readiness.phase = STANDBY
            holder = Holder.here("serve", self.environ)
            lease = await stand_by(self.delivery.inbox, holder, self._stop, self._standing_by)
            if lease is None:
                return None
            try:
                self.readiness.metrics.leads.set(1)
                self.readiness.phase = STARTING
                self.log.info("leading", "this process holds the inbox")
                await self._deliver(self.delivery, lease, reconciling)
            finally:
                self.readiness.metrics.leads.set(0)
                await asyncio.to_thread(lease.release)
        return None

    def _standing_by(self, text: str) -> None:
        self.must_listen = False
        self.log.info("standby", text)

    def _drift(self, delivery: Delivery) -> Callable[[], Mapping[DriftKind, int]]:
        """Watch the tags of groups delivered from now on, and return a function that counts drifting tags."""
        watch = TagWatch()
        delivery.on_group = watch.observe

        def counts() -> Mapping[DriftKind, int]:
            with open_state(self.project.state, write=False) as state:
                return watch.counts(state)

        return counts

    async def _deliver(self, delivery: Delivery, lease: Lease, reconciling: Reconciling) -> None:
        service = self.project.service
        conduct = Conduct(timeout=service.timeout, concurrency=max(4, service.concurrency), attempts=1, breaks=False)
        async with client_of(self.project, self.base_url, conduct) as client:
            loops = {"lease": lambda: self._watch_lease(lease), "reconcile": reconciling.run}
            await _Delivering(self, client, delivery).run(loops)

    async def _watch_lease(self, lease: Lease) -> None:
        """Raise `LockLost` as soon as the lease of the inbox is lost, even while no groups arrive."""
        while not self._stop.is_set():
            lease.refuse_lost("another process took over the inbox, or its database was unreachable for too long")
            await slept(LOOK_AT_LEASE, self._stop)

    async def _run_all(self, loops: Mapping[str, Callable[[], Awaitable[object]]]) -> None:
        """Run all loops until they are stopped, or until an error in one of them ends all."""
        tasks = [asyncio.create_task(self._kept(name, loop)) for name, loop in loops.items()]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            self._stop.set()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        for error in ended:
            if isinstance(error, BaseException):
                raise error

    async def _kept(self, name: str, loop: Callable[[], Awaitable[object]]) -> None:
        """Run a loop, and restart it after any error but those that end all loops."""
        back_off = BackOff(self.pace)
        while True:
            try:
                await loop()
                return
            except Exception as error:  # a defect in one loop must not end the others
                if isinstance(error, ENDING) or (self.must_listen and isinstance(error, AddressTaken)):
                    self._stop.set()
                    raise
                seconds = back_off.after()
                self.log.error("trouble", f"{name}: {message_of(error)}; retrying in {seconds:.1f} s")
                await slept(seconds, self._stop)
                if self._stop.is_set():
                    return


class _Delivering:
    """The loops of a shift that has the lease of the inbox."""

    def __init__(self, shift: Shift, client: Client, delivery: Delivery) -> None:
        self._shift = shift
        self._client = client
        self._delivery = delivery
        self._project = shift.project
        section = shift.project.posted_time
        assert section is not None
        self._section = section
        self._has_webhook = section.mode is Mode.WEBHOOK
        self._bind = (section.webhook.bind if section.webhook else None) or BIND
        self._bound: socket.socket | None = None
        self._ready = asyncio.Event()
        self._renew_at = float("inf")
        self._last_words = asyncio.Event()
        self._telling = telling(shift.log, shift.readiness, self._heard)
        self._acknowledging = Acknowledging(
            client, delivery.writer, self._telling, self._last_words, self._has_webhook, shift.pace
        )
        self._reporter = HealthReporter(client, delivery.inbox.database, shift.log.now)
        self._a_sink_failed = asyncio.Event()

    async def run(self, others: Mapping[str, Callable[[], Awaitable[object]]]) -> None:
        """Run the loops of posted time and `others`. At their end, send open verdicts to the service once more.

        An address of the webhook that the start must have is taken first: without it, nothing is registered or applied.
        """
        if self._has_webhook and self._shift.must_listen and self._shift.mount is None:
            self._bound = bound_at(*self._bind, SETTING)
        try:
            await self._run(others)
        finally:
            if self._bound is not None:
                self._bound.close()

    async def _run(self, others: Mapping[str, Callable[[], Awaitable[object]]]) -> None:
        with suppress(SyncengineError):  # the loops wait for an unreachable database
            await self._delivery.remember_troubles()
        acknowledging = asyncio.create_task(self._shift._kept("acknowledge", self._acknowledging.run))
        try:
            loops: dict[str, Callable[[], Awaitable[object]]] = {
                "posted time": self._posted_time,
                "health": self._check_sinks,
                "again": self._again,
                "registration": self._renewing,
            }
            await self._shift._run_all({**loops, **others})
        finally:
            self._last_words.set()
            with suppress(TimeoutError):
                await asyncio.wait_for(acknowledging, LAST_WORDS)

    def _heard(self, outcome: PostedTimeStatus) -> None:
        self._acknowledging.ring()
        if outcome is PostedTimeStatus.TROUBLE or self._delivery.is_cautious:
            self._a_sink_failed.set()

    async def _posted_time(self) -> None:
        """Register the connector and the mechanism, and take posted time."""
        if not self._ready.is_set():  # else this loop was restarted after trouble
            await self._introduced()
            if await self._delivery.resume(self._shift._stop):
                self._acknowledging.ring()
            self._ready.set()
        if self._has_webhook:
            await self._receive()
        else:
            await self._registrar().fetch()
            self._shift.readiness.phase = None
            await self._fetching().run()

    async def _introduced(self) -> None:
        await prove_team(self._client, self._project)
        try:
            await self._register()
        except (AuthFailed, Unreachable):
            raise
        except SyncengineError as error:
            self._not_registered(error)

    async def _register(self) -> None:
        now = self._shift.log.now()
        registered = await register(self._client, now, self._project.service.connector_type)
        self._delivery.configure(registered.configuration)
        self._shift.registered(registered)
        self._renew_at = renewal(registered, now, self._shift.pace.renew)

    def _not_registered(self, error: SyncengineError) -> None:
        self._renew_at = self._shift.log.now() + self._shift.pace.renew
        if self._shift.readiness.is_first("registration", error.message):
            self._shift.log.warning("registration", f"{NOT_REGISTERED}: {error.message}; retrying")

    async def _renewing(self) -> None:
        """Renew the registration before it expires (docs/interface.md 2.6), or after it failed."""
        await slept(float("inf"), self._ready, self._shift._stop)
        while not self._shift._stop.is_set():
            remaining = self._renew_at - self._shift.log.now()
            if remaining > 0:
                await slept(min(remaining, LOOK_AT_CLOCK), self._shift._stop)  # the clock may be corrected meanwhile
                continue
            try:
                await self._register()
            except SyncengineError as error:
                self._not_registered(error)

    def _registrar(self) -> Registrar:
        return Registrar(
            self._client,
            self._project.state,
            self._project.base_url(),
            lambda text: self._shift.log.info("mechanism", text),
            before_leaving_fetch=self._acknowledging.round,
            caller_key=self._shift.caller_key,
        )

    def _fetching(self) -> Fetching:
        limit = self._section.fetch_limit
        return Fetching(
            self._client,
            self._delivery,
            lambda: 1 if self._delivery.is_cautious else limit,
            tell=self._telling,
            stop=self._shift._stop,
            call_seconds=self._project.service.timeout,
            pace=self._shift.pace,
        )

    async def _receive(self) -> None:
        """Listen, then register the webhook, since the service may call at once, or still call by an earlier one."""
        section = self._section.webhook
        callback = callback_of(self._project, self._shift.environ)
        in_hand = InHand(self._delivery)
        receiver = webhook.application(
            in_hand,
            self._shift.caller_key.read,
            path=unquote(urlsplit(callback.url).path),
            max_body=(section.max_body if section else None) or webhook.MAX_BODY,
            tell=self._telling,
        )
        bound, self._bound = self._bound, None
        async with exposed(receiver, in_hand, self._bind, self._shift.log, self._shift.mount, bound):
            self._shift.must_listen = False
            await self._shift._kept("webhook", lambda: self._registrar().webhook(callback))
            if not self._shift._stop.is_set():
                self._shift.readiness.phase = None
            await self._shift._stop.wait()

    async def _again(self) -> None:
        """Deliver the groups whose delivery was requested, after the registration, whose answer templates may need."""
        await slept(float("inf"), self._ready, self._shift._stop)
        while not self._shift._stop.is_set():
            if await self._delivery.catch_up(self._shift._stop):
                self._acknowledging.ring()
            await slept(self._shift.pace.down, self._shift._stop)

    async def _check_sinks(self) -> None:
        """Check the sinks every minute, and at once when one fails, so that users hear of it (docs/service.md §2)."""
        while not self._shift._stop.is_set():
            self._a_sink_failed.clear()
            troubles = await self._delivery.check_sinks()
            self._show(troubles)
            in_doubt, is_accepted = self._delivery.is_cautious, True
            if (troubles or not in_doubt) and await self._reporter.is_news(troubles):
                is_accepted = await self._report(troubles)
            pace = self._shift.pace
            seconds = pace.down if in_doubt or not is_accepted else pace.well
            await slept(seconds, self._shift._stop, self._a_sink_failed)

    def _show(self, troubles: Sequence[SinkTrouble]) -> None:
        """Log what has changed since the last check, and set the gauges."""
        log, readiness = self._shift.log, self._shift.readiness
        down = {trouble.sink for trouble in troubles}
        for trouble in troubles:
            if trouble not in readiness.troubles:
                detail = f" [{trouble.detail}]" if trouble.detail else ""
                then = f"Posted time waits until the sink has recovered; checking again in {self._shift.pace.down:g} s."
                message = f"sink {trouble.sink}: {trouble.message}{detail} {then}"
                log.error("sink-down", message, sink=trouble.sink, kind=trouble.kind.value)
        for sink in sorted({trouble.sink for trouble in readiness.troubles} - down):
            log.info("sink-up", f"sink {sink} has recovered", sink=sink)
        for sink in {*(sink.name.text for sink in self._section.deliver or ()), *down}:
            readiness.metrics.sinks.labels(sink).set(sink not in down)
        readiness.note_sinks(troubles)

    async def _report(self, troubles: Sequence[SinkTrouble]) -> bool:
        """Report the trouble, or that there is none any more, and return whether the service accepted it."""
        answer = await self._reporter.tell(troubles)
        if answer.ok:
            state = "a health failure" if troubles else "all sinks are up"
            self._shift.log.info("health", f"reported to the service: {state}")
        else:
            message = f"the service did not accept the health report: {answer.summary}; retrying"
            self._shift.log.warning("health", message)
        return answer.ok


class _Stopped(Exception):
    """Raised in the thread that waits for the lease, to end the wait."""


async def stand_by(inbox: Inbox, holder: Holder, stop: asyncio.Event, say: Callable[[str], None]) -> Lease | None:
    """Wait for the lease and return it, or `None` if `stop` is set first. Wait for an unreachable database too."""
    try:
        return await asyncio.to_thread(inbox.lease, holder, wait=0)
    except SyncengineError as error:
        say(f"standing by: {error.message}")
    enough, is_away = threading.Event(), False

    def nap(seconds: float) -> None:
        if enough.wait(seconds):
            raise _Stopped

    def nap_beside_holder(seconds: float) -> None:
        nonlocal is_away
        is_away = False  # the database answered that another process has the lease
        nap(seconds)

    def wait() -> Lease | None:
        nonlocal is_away
        with suppress(_Stopped):
            while True:
                try:
                    return inbox.lease(holder, sleep=nap_beside_holder)
                except SyncengineError as error:
                    if not is_away:
                        say(f"standing by: {error.message}; retrying")
                    is_away = True
                    nap(LOOK_AT_DATABASE)
        return None

    # In a thread, so that a process that stands by can be stopped at any time.
    waiting = asyncio.ensure_future(asyncio.to_thread(wait))
    stopped = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait([waiting, stopped], return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopped.cancel()
        enough.set()
    lease = await waiting
    if lease is not None and stop.is_set():
        await asyncio.to_thread(lease.release)
        return None
    return lease
