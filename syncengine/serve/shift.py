"""Run one configuration for as long as it holds the inbox's lease: registration, mechanism, and the loops.

A shift ends when it is stopped, when the lease is lost, or on an error that a retry cannot fix, such as a mechanism
that the service does not allow. Every other error is logged and retried after a pause.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from syncengine.connector.connection import client_of, prove_team
from syncengine.connector.registration import NOT_REGISTERED, HealthReporter, register, renewal
from syncengine.errors import AuthFailed, Problems, SyncengineError, Unreachable, WrongTeam
from syncengine.posted_time import webhook
from syncengine.posted_time.delivery import Delivery
from syncengine.posted_time.drift import DriftKind
from syncengine.posted_time.drift_reading import TagWatch
from syncengine.posted_time.events import SinkTrouble, Verdict, message_of
from syncengine.posted_time.loops import Acknowledging, Fetching, WebhookRegistered, deliver_and_tell
from syncengine.posted_time.mechanism import MechanismTaken, Registrar, callback_of
from syncengine.posted_time.pace import BackOff, slept
from syncengine.project.delivery_schema import BIND, Mode
from syncengine.project.runner import Holder
from syncengine.serve.log import telling
from syncengine.serve.probes import STANDBY, STARTING, AddressTaken, Server, bound_at
from syncengine.serve.reconcile import Reconciling
from syncengine.service.client import Client, Conduct
from syncengine.service.posted_time import Group
from syncengine.state.database import LockLost
from syncengine.state.inbox import Inbox
from syncengine.state.inbox_model import WEBHOOK, PostedTimeStatus
from syncengine.state.lock import Lease
from syncengine.state.store import open_state

if TYPE_CHECKING:
    from syncengine.serve.process import Configuration, Process

LAST_WORDS = 3.0  # with LAST_ANSWERS less than ENDS_WITHIN, so that the lease is released
"""The maximum number of seconds for the last status updates of a shift; unsent ones wait in the inbox."""

LAST_ANSWERS = 3.0
"""The maximum number of seconds for sending the receiver's answers, once everything is delivered."""

LOOK_AT_LEASE = 1.0  # a process whose lease was taken over delivers for at most so many seconds more
LOOK_AT_CLOCK = 60.0  # a clock that is set while we sleep is noticed after so many seconds
LOOK_AT_DATABASE = 1.0  # a standby takes over soon after the database is back, and asks it nothing else meanwhile

ENDING = (LockLost, WebhookRegistered, MechanismTaken, AuthFailed, WrongTeam, Problems)
"""The errors that end a shift. After any other error, a loop is restarted."""

Loop = Callable[[], Awaitable[object]]


class Shift:
    """A configuration at work. Without a delivery, only manifests are reconciled, and no lease is needed.

    `must_listen`: the shift ends if the webhook's address is in use, as at the start, and at a reload, which goes back
    to the old configuration. Else it waits for the address, as after standing by for the process that listens there.
    """

    _client: Client
    _delivery: Delivery
    """The client and the delivery, while the shift has the lease."""
    _acknowledging: Acknowledging

    def __init__(self, process: Process, now: Configuration, base_url: str, *, must_listen: bool) -> None:
        self._process, self._log = process, process.log
        self._readiness, self._pace = process.readiness, process.pace
        self._project, self._base_url = now.project, base_url
        self._given = now.delivery
        self._must_listen = must_listen
        self._renew_at = float("inf")
        self._stop, self._ready, self._a_sink_failed = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._bound: socket.socket | None = None
        self._reconciling = Reconciling(
            now.project, base_url, process.environ, log=process.log, readiness=process.readiness, stop=self._stop
        )

    def stop(self) -> None:
        """Make the shift end once all groups in hand are finished."""
        self._stop.set()

    async def run(self) -> None:
        """Run until the shift is stopped. Raise one of the errors in `ENDING` when it ends the shift."""
        readiness, delivery = self._readiness, self._given
        readiness.phase, readiness.has_posted_time = STARTING, delivery is not None
        if delivery is None:
            readiness.phase = None
            return await self._run_all({"reconcile": self._reconciling.run, "idle": self._stop.wait})

        watch, url = TagWatch(), self._project.state
        delivery.on_group = watch.observe

        def drift() -> Mapping[DriftKind, int]:
            with open_state(url, write=False) as state:  # not by `self`: the readiness outlives this shift
                return watch.counts(state)

        def standing_by(text: str) -> None:
            self._must_listen = False
            self._log.info("standby", text)

        async with delivery:
            readiness.counts, readiness.drift = delivery.inbox.counts, drift
            readiness.phase = STANDBY
            holder = Holder.here("serve", self._process.environ)
            lease = await stand_by(delivery.inbox, holder, self._stop, standing_by)
            if lease is None:
                return None
            try:
                readiness.metrics.leads.set(1)
                readiness.phase = STARTING
                self._log.info("leading", "this process holds the inbox")
                service = self._project.service
                concurrency = max(4, service.concurrency)  # a status must not wait for a fetch and a registration
                conduct = Conduct(timeout=service.timeout, concurrency=concurrency, attempts=1, breaks=False)
                async with client_of(self._project, self._base_url, conduct) as client:
                    self._client, self._delivery = client, delivery
                    await self._deliver(lease)
            finally:
                readiness.metrics.leads.set(0)
                await asyncio.to_thread(lease.release)
        return None

    async def _run_all(self, loops: Mapping[str, Loop]) -> None:
        """Run all loops until they are stopped, or until an error in one of them ends all."""
        tasks = [asyncio.create_task(self._supervise(name, loop)) for name, loop in loops.items()]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            self._stop.set()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        for error in ended:
            if isinstance(error, BaseException):
                raise error

    async def _supervise(self, name: str, loop: Loop) -> None:
        """Run a loop, and restart it after any error but those that end all loops."""
        back_off = BackOff(self._pace)
        while True:
            try:
                await loop()
                return
            except Exception as error:  # a defect in one loop must not end the others
                if isinstance(error, ENDING) or (self._must_listen and isinstance(error, AddressTaken)):
                    self._stop.set()
                    raise
                seconds = back_off.after()
                self._log.error("trouble", f"{name}: {message_of(error)}; retrying in {seconds:.1f} s")
                await slept(seconds, self._stop)
                if self._stop.is_set():
                    return

    # --- the loops of posted time

    async def _deliver(self, lease: Lease) -> None:
        """Run the loops of posted time and of reconciling. At their end, send open verdicts to the service once more.

        An address of the webhook that the start must have is taken first: without it, nothing is registered or applied.
        """
        section, last_words = self._project.posted_time, asyncio.Event()
        assert section is not None, "a project with a delivery has a section for it"
        self._has_webhook = section.mode is Mode.WEBHOOK
        self._section = section
        self._tell = telling(self._log, self._readiness, self._note_verdict)
        writer = self._delivery.writer
        self._acknowledging = Acknowledging(self._client, writer, self._tell, last_words, self._has_webhook, self._pace)
        with ExitStack() as leaving:
            if self._has_webhook and self._must_listen:
                self._bound = leaving.enter_context(bound_at(*self._bind(), webhook.SETTING))
            with suppress(SyncengineError):  # the loops wait for an unreachable database
                await self._delivery.remember_troubles()
            acknowledging = asyncio.create_task(self._supervise("acknowledge", self._acknowledging.run))
            try:
                await self._run_all(
                    {
                        "posted time": self._posted_time,
                        "health": self._check_sinks,
                        "again": self._redeliver,
                        "registration": self._renew,
                        "lease": lambda: self._watch_lease(lease),
                        "reconcile": self._reconciling.run,
                    }
                )
            finally:
                last_words.set()
                with suppress(TimeoutError):
                    await asyncio.wait_for(acknowledging, LAST_WORDS)

    def _bind(self) -> tuple[str, int]:
        return (self._section.webhook.bind if self._section.webhook else None) or BIND

    async def _deliver_stored(self, id: str) -> None:
        await deliver_and_tell(self._delivery, id, self._tell)

    def _note_verdict(self, outcome: PostedTimeStatus) -> None:
        """Have a new verdict sent, and the sinks checked if one has failed and not been shown to work since."""
        self._acknowledging.ring()
        if outcome is PostedTimeStatus.TROUBLE or self._delivery.is_cautious:
            self._a_sink_failed.set()

    async def _watch_lease(self, lease: Lease) -> None:
        """Raise `LockLost` as soon as the lease of the inbox is lost, even while no groups arrive."""
        while not self._stop.is_set():
            lease.refuse_lost("another process took over the inbox, or its database was unreachable for too long")
            await slept(LOOK_AT_LEASE, self._stop)

    async def _posted_time(self) -> None:
        """Register the connector and the mechanism, and take posted time."""
        if not self._ready.is_set():  # else this loop was restarted after trouble
            await prove_team(self._client, self._project)
            await self._register()
            await self._delivery.resume(self._stop, self._deliver_stored)
            self._ready.set()
        registrar = Registrar(
            self._client,
            self._project.state,
            self._project.base_url(),
            lambda text: self._log.info("mechanism", text),
            before_leaving_fetch=self._acknowledging.round,
            caller_key=self._process.caller_key,
        )
        if self._has_webhook:
            return await self._receive(registrar)
        await registrar.fetch()
        self._readiness.phase = None
        most, seconds = self._section.fetch_limit, self._project.service.timeout
        await Fetching(
            self._client,
            self._delivery,
            lambda: 1 if self._delivery.is_cautious else most,
            self._tell,
            self._stop,
            seconds,
            self._pace,
        ).run()
        return None

    async def _register(self) -> None:
        """Register the connector. A failure is logged and repeated, as time is delivered all the same.

        At the start, raise the errors of the key and of the connection, with which nothing else would work either.
        """
        now = self._log.now()
        try:
            registered = await register(self._client, now, self._project.service.connector_type)
        except SyncengineError as error:
            if not self._ready.is_set() and isinstance(error, AuthFailed | Unreachable):
                raise
            self._renew_at = self._log.now() + self._pace.renew
            if self._readiness.is_first("registration", error.message):
                self._log.warning("registration", f"{NOT_REGISTERED}: {error.message}; retrying")
            return
        self._delivery.configure(registered.configuration)
        facts = {"serviceId": registered.service_id, "settings": len(registered.configuration)}
        self._log.info("registered", f"registered with {registered.group or 'the service'}", **facts)
        self._renew_at = renewal(registered, now, self._pace.renew)

    async def _renew(self) -> None:
        """Renew the registration before it expires (docs/interface.md 2.6), or after it failed."""
        await slept(float("inf"), self._ready, self._stop)
        while not self._stop.is_set():
            remaining = self._renew_at - self._log.now()
            if remaining > 0:
                await slept(min(remaining, LOOK_AT_CLOCK), self._stop)  # the clock may be corrected meanwhile
            else:
                await self._register()

    async def _receive(self, registrar: Registrar) -> None:
        """Listen, then register the webhook, since the service may call at once, or still call by an earlier one."""
        section, callback = self._section.webhook, callback_of(self._project, self._process.environ)
        in_hand = _InHand(self._delivery)
        receiver = webhook.application(
            in_hand.take,
            self._process.caller_key.read,
            path=unquote(urlsplit(callback.url).path),
            max_body=(section.max_body if section else None) or webhook.MAX_BODY,
            tell=self._tell,
        )
        bound, self._bound = self._bound, None
        server = Server(receiver, self._bind(), setting=webhook.SETTING, patience=LAST_ANSWERS, bound=bound)
        self._log.info("receiving", f"the webhook receiver listens on {await server.start()}")
        try:
            self._must_listen = False
            await self._supervise("webhook", lambda: registrar.webhook(callback))
            if not self._stop.is_set():
                self._readiness.phase = None
            await self._stop.wait()
        finally:
            await in_hand.finish()
            await server.stop()

    async def _redeliver(self) -> None:
        """Deliver the groups whose delivery was requested, after the registration, whose answer templates may need."""
        await slept(float("inf"), self._ready, self._stop)
        while not self._stop.is_set():
            await self._delivery.catch_up(self._stop, self._deliver_stored)
            await slept(self._pace.down, self._stop)

    async def _check_sinks(self) -> None:
        """Check the sinks every minute, and at once when one fails, so that users hear of it (docs/service.md §2)."""
        reporter = HealthReporter(self._client, self._delivery.inbox.database, self._log.now)
        while not self._stop.is_set():
            self._a_sink_failed.clear()
            troubles = await self._delivery.check_sinks()
            self._show(troubles)
            in_doubt, is_accepted = self._delivery.is_cautious, True
            if (troubles or not in_doubt) and await reporter.is_news(troubles):
                answer = await reporter.tell(troubles)
                is_accepted = answer.ok
                if is_accepted:
                    told = "a health failure" if troubles else "all sinks are up"
                    self._log.info("health", f"reported to the service: {told}")
                else:
                    why = f"the service did not accept the health report: {answer.summary}; retrying"
                    self._log.warning("health", why)
            seconds = self._pace.down if in_doubt or not is_accepted else self._pace.well
            await slept(seconds, self._stop, self._a_sink_failed)

    def _show(self, troubles: Sequence[SinkTrouble]) -> None:
        """Log what has changed since the last check, and set the gauges."""
        readiness, down = self._readiness, {trouble.sink for trouble in troubles}
        for trouble in troubles:
            if trouble not in readiness.troubles:
                detail = f" [{trouble.detail}]" if trouble.detail else ""
                then = f"Posted time waits until the sink has recovered; checking again in {self._pace.down:g} s."
                message = f"sink {trouble.sink}: {trouble.message}{detail} {then}"
                self._log.error("sink-down", message, sink=trouble.sink, kind=trouble.kind.value)
        for sink in sorted({trouble.sink for trouble in readiness.troubles} - down):
            self._log.info("sink-up", f"sink {sink} has recovered", sink=sink)
        for sink in {*(sink.name.text for sink in self._section.deliver or ()), *down}:
            readiness.metrics.sinks.labels(sink).set(sink not in down)
        readiness.note_sinks(troubles)


class _InHand:
    """The groups of webhook calls that are being delivered, so that all can be finished before the receiver ends."""

    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery
        self._count = 0
        self._is_closing = False
        self._idle = asyncio.Event()
        self._idle.set()

    async def take(self, raw: Group) -> Verdict:
        if self._is_closing:
            raise SyncengineError("this receiver is stopping", code="closing")
        self._count += 1
        self._idle.clear()
        try:
            return await self._delivery.take(raw, mechanism=WEBHOOK)
        finally:
            self._count -= 1
            if not self._count:
                self._idle.set()

    async def finish(self) -> None:
        """Take no further calls, and wait for those in hand, which the sinks' timeouts limit."""
        self._is_closing = True
        await self._idle.wait()


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
