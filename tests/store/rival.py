"""Another process that locks the same state: `python rival.py STATE LEASE_SECONDS`, then one command a line.

It prints `held` once it has the lock. `stop` suspends it, `intend` writes an intent, `release` unlocks.
"""

from __future__ import annotations

import os
import signal
import sys
import time

from syncengine.effects import Effect
from syncengine.errors import SyncengineError
from syncengine.project.runner import Holder
from syncengine.resource import Key, Kind
from syncengine.state.history import Run
from syncengine.state.lock import Lease
from syncengine.state.records import Attempt
from syncengine.state.store import State, open_state


def _answer(state: State, lease: Lease, command: str) -> str:
    if command == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
        return f"{lease.remaining():.3f}"
    if command == "release":
        lease.release()
        return "released"
    try:
        state.intend({"rival": Attempt("upsertTags", (Effect(key=Key(Kind.TAG, "rival")),))})
    except SyncengineError as error:
        return error.code
    return "intended"


def _say(answer: str) -> None:
    sys.stdout.write(f"{answer}\n")
    sys.stdout.flush()


def main(url: str, seconds: float) -> None:
    with open_state(url, write=True) as state:
        lease = state.lock(Holder.here("rival", {}), wait=20, request_timeout=0, lease_seconds=seconds)
        state.begin_run(Run("rival", time.time(), "apply", None, "h", "u", None, None, None))
        _say("held")
        for line in sys.stdin:
            _say(_answer(state, lease, line.strip()))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
