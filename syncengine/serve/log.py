"""The log of a running connector: one line per event, as JSON or as text, without secrets; and what it says of time."""

from __future__ import annotations

import logging
import os
import queue
import select
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol, TextIO

from syncengine.document.json_text import encode_json
from syncengine.errors import Problems, SyncengineError
from syncengine.posted_time.events import (
    Acknowledged,
    Answered,
    Event,
    GivenUp,
    Offered,
    RetryLater,
    Taken,
    Tell,
    Unusable,
)
from syncengine.render.diagnostics import where
from syncengine.render.escape import visible
from syncengine.render.words import count_of
from syncengine.serve.probes import Readiness
from syncengine.state.inbox_model import PostedTimeStatus

SHORTEST_SECRET = 4
"""The fewest characters of a secret that is masked. Masking shorter values would destroy ordinary text."""


WAITING_LINES = 10_000
"""The most lines that wait for a reader of the log, a few MB; further ones are dropped."""

COMPANY = 0.02
"""Seconds for which lines wait for others: to wake the thread that writes them costs more than a line."""

LAST_LINES_SECONDS = 1.0
"""How long the end of the process waits until the last lines are read."""

PATIENT = 3
"""The number of failed fetches in a row after which the service counts as unreachable."""


def quiet_libraries() -> None:
    """Keep warnings of libraries off stderr: they are not JSON, and we log any errors that result."""
    logging.getLogger().addHandler(logging.NullHandler())


class LineStream(Protocol):
    """A stream to which lines are written whole. `write` returns 0 for a line that it drops."""

    def write(self, text: str, /) -> int: ...
    def flush(self) -> None: ...


class QueuedStream:
    """A stream whose lines are written by a thread: a reader that has stopped reading keeps nobody waiting."""

    def __init__(self, stream: TextIO, most: int = WAITING_LINES) -> None:
        self._file, self._encoding = stream.fileno(), stream.encoding
        self._most = most
        self._lines = queue.SimpleQueue[str | None]()  # written in C: each group has some lines
        # A daemon: it must not keep the process alive when the pipe is full for good.
        self._writer = threading.Thread(target=self._work, name="log", daemon=True)
        self._writer.start()

    def close(self) -> None:
        """Wait up to `LAST_LINES_SECONDS` for the lines that are left."""
        self._lines.put(None)
        self._writer.join(LAST_LINES_SECONDS)

    def write(self, text: str) -> int:
        if self._lines.qsize() >= self._most:
            return 0
        self._lines.put(text)
        return len(text)

    def flush(self) -> None:
        """Do nothing: lines are written unbuffered."""

    def _work(self) -> None:
        is_over = False
        while not is_over:
            lines = [self._lines.get(), *(self._lines.get() for _ in range(self._lines.qsize()))]
            is_over = None in lines
            for line in filter(None, lines):
                rest = memoryview(line.encode(self._encoding, "backslashreplace"))
                # Line by line: a pipe takes PIPE_BUF bytes whole or not at all, whoever else writes to it.
                with suppress(OSError):  # a reader that went away
                    while rest:
                        try:
                            rest = rest[os.write(self._file, rest) :]
                        except BlockingIOError:  # whoever shares the pipe may have made it non-blocking
                            select.select([], [self._file], [])
            time.sleep(COMPANY)


@dataclass(slots=True)
class Log:
    """A log that masks `secrets`, read again for each line, and what they were before."""

    stream: LineStream
    now: Callable[[], float]
    json: bool = True
    quiet: bool = False
    secrets: list[Callable[[], Iterable[str]]] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    dropped: int = 0
    """The number of lines that the stream has dropped since the last line that it took."""

    def debug(self, event: str, message: str, **facts: object) -> None:
        self._write("debug", event, message, facts)

    def info(self, event: str, message: str, **facts: object) -> None:
        if not self.quiet:
            self._write("info", event, message, facts)

    def warning(self, event: str, message: str, **facts: object) -> None:
        self._write("warning", event, message, facts)

    def error(self, event: str, message: str, **facts: object) -> None:
        self._write("error", event, message, facts)

    def refusal(self, event: str, error: SyncengineError, message: str = "") -> None:
        """Log an error, with `message` before its text. Each diagnostic of `Problems` is a line of its own."""
        if not isinstance(error, Problems):
            return self.error(event, f"{message}{error.message}", code=error.code)
        for diagnostic in error.found:
            self._write(
                diagnostic.severity.value,
                event,
                f"{message}{where(diagnostic)}{diagnostic.message}",
                {"code": diagnostic.code},
            )
        return None

    def _write(self, level: str, event: str, message: str, facts: dict[str, object]) -> None:
        at = datetime.fromtimestamp(self.now(), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        secrets = self._secrets()
        fields = {name: _clean(value, secrets) for name, value in facts.items() if value is not None}
        text = _clean(message, secrets)
        if self.json:
            line = encode_json({"time": at, "level": level, "event": event, "message": text, **fields}).decode()
        else:
            line = f"{at} {level}: {visible(str(text))}"
        with suppress(OSError, ValueError):  # a reader that went away must not end the delivery of time
            if not self.stream.write(line + "\n"):
                self.dropped += 1
                return
            self.stream.flush()
        if self.dropped:
            lines, self.dropped = self.dropped, 0
            self.warning("log", f"{count_of(lines, 'line')} before this were dropped: nobody read the log", lines=lines)

    def _secrets(self) -> set[str]:
        for look in self.secrets:
            with suppress(SyncengineError):
                self.seen.update(secret for secret in look() if len(secret) >= SHORTEST_SECRET)
        return self.seen


def _clean(value: object, secrets: Iterable[str]) -> object:
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, "***")
    return value


def telling(log: Log, readiness: Readiness, on_verdict: Callable[[PostedTimeStatus], None]) -> Tell:
    """Return a listener that logs the events of posted time, and updates metrics and readiness.

    `on_verdict` gets each verdict after that.
    """
    metrics, failed_fetches = readiness.metrics, 0

    def tell(event: Event) -> None:
        nonlocal failed_fetches
        if isinstance(event, Offered | Acknowledged):
            failed_fetches, readiness.service = 0, None
        match event:
            case Offered(groups):
                metrics.fetches.inc()
                if groups:
                    log.info("fetched", f"fetched {count_of(groups, 'group')} of posted time", groups=groups)
            case Taken(group, verdict):
                outcome = verdict.outcome.value
                metrics.groups.labels(outcome).inc()
                words = f": {verdict.message}" if verdict.message else ""
                why = f" [{verdict.detail}]" if verdict.detail else ""
                then = " The service will offer it again." if verdict.outcome is PostedTimeStatus.TROUBLE else ""
                message = f"group {group}: {outcome}{words}{why}{then}"
                say = log.info if verdict.outcome is PostedTimeStatus.SUCCESS else log.warning
                say("taken", message, group=group, outcome=outcome, externalId=verdict.external_id)
                on_verdict(verdict.outcome)
            case Unusable(why):
                log.warning("unusable", why)
            case Acknowledged(group, status):
                metrics.statuses.labels(status).inc()
                message = f"group {group}: the service accepted {status}"
                log.info("acknowledged", message, group=group, status=status)
            case GivenUp(group, why):
                metrics.given_up.inc()
                log.error("given-up", f"group {group}: {why}", group=group)
            case RetryLater(step, why, seconds):
                what = step.partition(" ")[0]
                metrics.troubles.labels(what).inc()
                failed_fetches += what == "fetch"
                if failed_fetches >= PATIENT:
                    readiness.service = f"posted time cannot be fetched: {why}"
                again = f"; retrying in {seconds:.1f} s" if seconds else ""
                log.warning("waiting", f"{step}: {why}{again}", what=what)
            case Answered(status, why):
                metrics.rejected.labels(str(status)).inc()
                log.warning("rejected", f"rejected a webhook call with status {status}: {why}", status=status)

    return tell
