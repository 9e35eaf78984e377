"""Wait for the inbox's lease in a thread, so that a standby process can be stopped at any time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress

from syncengine.errors import SyncengineError
from syncengine.state.holder import Holder
from syncengine.state.inbox import Inbox
from syncengine.state.lock import Lease

AGAIN_SECONDS = 1.0
"""Seconds between two attempts to reach an unreachable database."""


class _Enough(Exception):
    """Raised in the thread that waits for the lease, to end the wait."""


async def stand_by(inbox: Inbox, holder: Holder, stop: asyncio.Event, say: Callable[[str], None]) -> Lease | None:
    """Wait for the lease and return it, or `None` if `stop` is set first. Wait for an unreachable database too."""
    try:
        return await asyncio.to_thread(inbox.lease, holder, wait=0)
    except SyncengineError as error:
        say(f"standing by: {error.message}")
    waiter = _Waiter(inbox, holder, say)
    waiting = asyncio.ensure_future(asyncio.to_thread(waiter.wait))
    stopped = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait([waiting, stopped], return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopped.cancel()
        waiter.enough.set()
    lease = await waiting
    if lease is not None and stop.is_set():
        await asyncio.to_thread(lease.release)
        return None
    return lease


class _Waiter:
    """A wait for the lease in a thread, until `enough` is set. Each outage of the database is reported once."""

    def __init__(self, inbox: Inbox, holder: Holder, say: Callable[[str], None]) -> None:
        self.enough = threading.Event()
        self._inbox = inbox
        self._holder = holder
        self._say = say
        self._is_away = False

    def wait(self) -> Lease | None:
        with suppress(_Enough):
            while True:
                try:
                    return self._inbox.lease(self._holder, sleep=self._looked)
                except SyncengineError as error:
                    if not self._is_away:
                        self._say(f"standing by: {error.message}; retrying")
                    self._is_away = True
                    self._sleep(AGAIN_SECONDS)
        return None

    def _looked(self, seconds: float) -> None:
        """Note that the database answered (another process has the lease), and sleep."""
        self._is_away = False
        self._sleep(seconds)

    def _sleep(self, seconds: float) -> None:
        if self.enough.wait(seconds):
            raise _Enough
