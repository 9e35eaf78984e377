"""Waiting for the inbox's lease in a thread, so that a standby can be stopped: one `serve` for each inbox."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress

from syncengine.errors import LockHeld
from syncengine.store.holder import Holder
from syncengine.store.inbox import Inbox, InboxLease


class _Enough(Exception):
    """Nobody waits for the lease any more."""


async def stand_by(inbox: Inbox, holder: Holder, stop: asyncio.Event, say: Callable[[str], None]) -> InboxLease | None:
    """The lease, as soon as nobody else has it; None when `stop` came first."""
    try:
        return await asyncio.to_thread(inbox.lease, holder, wait=0)
    except LockHeld as held:
        say(f"standing by: {held.message}")
    enough = threading.Event()
    waiting = asyncio.ensure_future(asyncio.to_thread(_wait, inbox, holder, enough))
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


def _wait(inbox: Inbox, holder: Holder, enough: threading.Event) -> InboxLease | None:
    def sleep(seconds: float) -> None:
        if enough.wait(seconds):
            raise _Enough

    with suppress(_Enough):
        return inbox.lease(holder, sleep=sleep)
    return None
