"""Run the process: handle signals, answer probes, and run one shift after another, each with a valid configuration.

A changed project file is loaded and checked completely while the old configuration is in use. A valid one replaces it;
the errors of an invalid one are logged, and the old configuration stays in use.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from syncengine.content import compare, sha256_of, sha256_of_parts
from syncengine.document.diagnostics import Collector
from syncengine.document.nodes import Mapping as MappingNode
from syncengine.document.nodes import Node, Scalar
from syncengine.document.nodes import Sequence as SequenceNode
from syncengine.document.reader import read
from syncengine.errors import SyncengineError
from syncengine.plan.inputs import is_as_loaded
from syncengine.posted_time.build_route import warnings_of_sinks
from syncengine.posted_time.delivery import Delivery
from syncengine.posted_time.events import message_of
from syncengine.posted_time.mechanism import CallerKey, callback_of
from syncengine.posted_time.pace import PACE, BackOff, Pace, slept
from syncengine.project.delivery_schema import Mode
from syncengine.project.model import Project
from syncengine.project.signals import not_ignored
from syncengine.serve.log import Log
from syncengine.serve.probes import Readiness, Server, probes
from syncengine.serve.shift import Shift
from syncengine.state.database import LockLost, StateReplaced

ENDS_WITHIN = 8.0
"""The seconds from a signal to the end of the process. Docker gives it 10 before SIGKILL; the log takes one."""
LOOK_SECONDS = 2.0
"""The seconds between two looks at the files of the configuration."""
SHOWN_CHANGES = 10
"""The most changed settings that a line of the log names."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """A valid project and its delivery. `fingerprint` is the digest of the files that they were loaded from.

    `settings` are the project file's settings, to report changes at a reload. `before` is the project to return to if
    the service does not accept this one.
    """

    project: Project
    delivery: Delivery | None
    fingerprint: str
    settings: Mapping[str, str]
    before: Project | None = None


@dataclass(slots=True)
class Process:
    """The process of `serve`. `load` reads the project anew; `serving` makes its service reachable at the base URL.

    `listen` overrides the probes' address in the project file. `caller_key` outlives a shift, because the service calls
    with the key until another one is registered.
    """

    load: Callable[[], Project]
    serving: Callable[[Project], AbstractContextManager[str]]
    environ: Mapping[str, str]
    log: Log
    listen: tuple[str, int] | None = None
    pace: Pace = PACE
    readiness: Readiness = field(default_factory=Readiness)
    caller_key: CallerKey = field(default_factory=CallerKey)
    _stop: asyncio.Event = field(default_factory=asyncio.Event)
    _look: asyncio.Event = field(default_factory=asyncio.Event)
    _next: Configuration | None = None
    _is_start: bool = True
    _at_work: list[Callable[[], Iterable[str]]] = field(default_factory=list)
    """Readers of the secrets of the project at work."""

    def run(self, leave: Callable[[], object], ends_within: float = ENDS_WITHIN) -> None:
        """Run until SIGTERM or SIGINT. `leave` must end the process without waiting for any of its threads.

        It is called at a second signal, and when the process has not ended so many seconds after the first: a sink may
        take longer, and a thread that waits for a frozen database cannot be ended at all. It leaves what SIGKILL would,
        and the next start converges.
        Raise `SyncengineError` for an error that a retry would not fix.
        """
        runner = asyncio.Runner()
        loop = runner.get_loop()
        # The signals are handled until the loop is closed, because that waits for the threads of its executor, and the
        # last line is written, because that reads the secrets.
        with self._handling_signals(loop, leave, ends_within):
            with runner:
                runner.run(self._run())
            self.log.info("stopped", "stopped")

    @contextmanager
    def _handling_signals(
        self, loop: asyncio.AbstractEventLoop, leave: Callable[[], object], ends_within: float
    ) -> Iterator[None]:
        """Stop the process at the first SIGTERM or SIGINT, and leave it at the second. SIGHUP reloads."""

        def give_up(why: str) -> None:
            self.log.secrets.clear()  # to mask them each line reads them anew, from a disk that may be what hangs
            self.log.error("left", f"{why}: what is still under way is left to the next start")
            leave()

        # A thread, because the loop may itself be waiting for the threads of its executor by then.
        deadline = threading.Timer(ends_within, give_up, [f"not stopped within {ends_within:g} s"])
        deadline.daemon = True
        is_ending = False

        def tell(act: Callable[[], object]) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(act)

        def end(*_: object) -> None:
            nonlocal is_ending
            if is_ending:  # not `deadline.is_alive()`: the second signal may arrive while the thread starts
                give_up("stopped by a second signal")
            is_ending = True
            deadline.start()
            tell(self.stop)

        handlers: dict[signal.Signals, Callable[..., object]] = {
            **dict.fromkeys(not_ignored((signal.SIGTERM, signal.SIGINT)), end),
            signal.SIGHUP: lambda *_: tell(self._look.set),  # even under `nohup`, which ignores it
        }
        before = {number: signal.getsignal(number) for number in handlers}
        # Not by `add_signal_handler`: the loop runs nothing while a template is rendered, nor once it is being closed.
        for number, handler in handlers.items():
            signal.signal(number, handler)
        try:
            yield
        finally:
            for number, former in before.items():
                signal.signal(number, former)
            deadline.cancel()

    async def _run(self) -> None:
        """Answer probes and work until `stop` is set."""
        first = self.load_configuration()
        # Whoever asks the probes keeps to their address: another one counts from the next start.
        self.listen = self.listen or first.project.serve.listen
        setting = "`serve.listen` or `--listen`"
        server = Server(probes(self.readiness), self.listen, setting=setting, patience=1)
        self.log.info("listening", f"serving /healthz, /readyz and /metrics at {await server.start()}")

        async def unexpose() -> None:
            await self._stop.wait()
            await server.stop()

        unexposing = asyncio.create_task(unexpose())  # as soon as it is to end: it is not ready for more
        try:
            await self.work(first)
        finally:
            self._stop.set()
            await unexposing

    async def work(self, first: Configuration) -> None:
        """Run one shift after another until `stop` is called, without handling signals or answering probes."""
        now: Configuration | None = first
        while now is not None and not self._stop.is_set():
            then = await self._shift(now)
            if now.delivery is not None and then is not None and then.delivery is not None:
                then.delivery.inherit(now.delivery)  # a reload does not make a sink well
            now = then
            gc.collect()  # a delivery has many reference cycles, and automatic collections are rare

    def stop(self) -> None:
        self._stop.set()

    async def _shift(self, now: Configuration) -> Configuration | None:
        """Run a shift until it ends by itself, or is stopped by a new configuration or the end of the process.

        Return the next configuration, or `None` to stop the process.
        """
        self._next = None
        is_start, self._is_start = self._is_start, False
        self._at_work = self._secrets(now.project)
        for warning in (*now.project.warnings, *warnings_of_sinks(now.project)):
            if self.readiness.is_first(warning.code, warning.message):
                self.log.warning("remark", warning.message, code=warning.code)
        try:
            with self.serving(now.project) as base_url:
                shift = Shift(self, now, base_url, must_listen=is_start or now.before is not None)
                working = asyncio.create_task(shift.run())
                ending = asyncio.create_task(self._until_change(now))
                try:
                    await asyncio.wait([working, ending], return_when=asyncio.FIRST_COMPLETED)
                    shift.stop()
                    await working
                finally:
                    ending.cancel()
                if ending.done() and not ending.cancelled():
                    ending.result()
        except StateReplaced:
            raise
        except LockLost as lost:
            self.log.warning("lock-lost", f"{lost.message}; standing by")
            return await self._wait_for_targets(now.project, now.fingerprint)
        except SyncengineError as error:
            if now.before is None or self.readiness.phase is None:
                raise
            self._report_invalid(error, now.before)
            return await self._wait_for_targets(now.before, fingerprint(now.before))
        return self._next

    async def _wait_for_targets(self, project: Project, fingerprint: str) -> Configuration | None:
        """Return a configuration of the project as soon as its inbox and targets can be opened, or `None` to stop."""
        back_off = BackOff(self.pace)
        while not self._stop.is_set():
            await slept(back_off.after(), self._stop)
            try:
                return await asyncio.to_thread(self._open, project, fingerprint)
            except SyncengineError as error:
                self.log.refusal("trouble", error, "standing by, retrying: ")
        return None

    def load_configuration(self, before: Project | None = None) -> Configuration:
        """Load the project and check everything. Raise `Problems` with every error found."""
        project = self.load()
        content = fingerprint(project)
        # A file that changed before its fingerprint was taken is loaded at the next look.
        return replace(self._open(project, content if is_as_loaded(project) else ""), before=before)

    def _open(self, project: Project, fingerprint: str) -> Configuration:
        project.base_url()  # which raises for settings without which nothing works, as does the key
        project.api_key()
        # The secrets of this project are masked in the log, besides those of the one at work.
        self.log.secrets[:] = [*self._at_work, *self._secrets(project)]
        section, delivery = project.posted_time, None
        if section is not None and section.mode is not Mode.OFF:
            if section.mode is Mode.WEBHOOK:
                callback_of(project, self.environ).key.read()
            delivery = Delivery.of(project, self.environ, now=self.log.now)
        return Configuration(project, delivery, fingerprint, settings_in(project.config))

    def _secrets(self, project: Project) -> list[Callable[[], Iterable[str]]]:
        """Return readers of the secrets of a project."""
        readers = list[Callable[[], Iterable[str]]]()
        if not project.is_sandbox:
            readers.append(lambda: [project.api_key()])
        if project.posted_time and project.posted_time.webhook and project.posted_time.webhook.caller_key:
            readers.append(lambda: [callback_of(project, self.environ).key.read()])
        return readers

    async def _until_change(self, now: Configuration) -> None:
        """Wait until the process is stopped or there is another valid configuration."""
        tried = now.fingerprint
        while not self._stop.is_set():
            await slept(LOOK_SECONDS, self._stop, self._look)
            is_asked = self._look.is_set()
            self._look.clear()
            current = await asyncio.to_thread(fingerprint, now.project)
            if self._stop.is_set() or (current == tried and not is_asked):
                continue
            tried = current
            try:
                self._next = await asyncio.to_thread(self.load_configuration, now.project)
            except Exception as error:  # a defect while loading must not end the working configuration
                if not isinstance(error, SyncengineError):
                    error = SyncengineError(message_of(error), code="defect")
                self._report_invalid(error, now.project)
                continue
            self.readiness.configuration = None
            changes = changes_between(now.settings, self._next.settings)
            self.log.info("configuration", f"the project file was reloaded: {changes}")
            if self._next.project.serve.listen != now.project.serve.listen:
                self.log.warning("address", "the changed `serve.listen` counts from the next start")
            return

    def _report_invalid(self, error: SyncengineError, project: Project) -> None:
        then = "" if is_as_loaded(project) else " for posted time, and manifests are not applied until it is valid"
        self.readiness.configuration = error.message
        self.log.refusal(
            "configuration", error, f"the new configuration is invalid, so the old one stays in use{then}: "
        )


def fingerprint(project: Project) -> str:
    """Return a digest of all files that a reload would read. A missing or unreadable file also counts."""
    files, section = [Path(path) for path in project.digests], project.posted_time
    if section is not None and section.narrative is not None and section.narrative.template is not None:
        files.append(project.root / section.narrative.template.text)
    webhook = section.webhook if section else None
    if webhook is not None and webhook.caller_key is not None and webhook.caller_key.file is not None:
        files.append(project.root / webhook.caller_key.file)
    parts = list[bytes]()
    for path in files:
        try:
            content = path.read_bytes()
        except OSError as error:
            content = f"errno {error.errno}".encode()
        parts.append(str(path).encode() + b"\0" + content)
    return sha256_of_parts(parts)


def settings_in(config: Path | None) -> Mapping[str, str]:
    """Return a digest of each setting of a project file by its name, such as `serve.every`. Empty without a file."""
    try:
        roots = read(config.read_bytes(), Collector(config.name)).roots if config is not None else ()
    except OSError:
        return {}
    return {name: digest for root in roots for name, digest in _leaves(root, "")}


def _leaves(node: Node, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, MappingNode):
        for key, value in zip(node.keys, node.values, strict=True):
            yield from _leaves(value, f"{name}.{key.text}" if name else key.text)
    elif isinstance(node, SequenceNode):
        for number, item in enumerate(node.items):
            yield from _leaves(item, f"{name}[{number}]")
    elif isinstance(node, Scalar):
        yield name, sha256_of(node.text)


def changes_between(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Return the settings that a reload changed, as a clause for the log."""
    compared = compare(before, after)
    names = (
        *(f"{name} was added" for name in compared.new),
        *(f"{name} was removed" for name in compared.gone),
        *(f"{name} was changed" for name in compared.different),
    )
    more = f", and {len(names) - SHOWN_CHANGES} more" if len(names) > SHOWN_CHANGES else ""
    return f"{', '.join(names[:SHOWN_CHANGES])}{more}" if names else "no setting was changed"
