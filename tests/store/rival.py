"""Another process that locks the same state: `python rival.py STATE LEASE_SECONDS`.

It prints `held` once it has the lock. For each line that it reads, it prints the seconds left of its lease, tries to
write an intent, and prints how that ended.
"""

from __future__ import annotations

import sys
import time

from syncengine.effects import Effect
from syncengine.errors import SyncengineError
from syncengine.project.runner import Holder
from syncengine.resource import Key, Kind
from syncengine.state.history import Run
from syncengine.state.records import Attempt
from syncengine.state.store import open_state


def main(url: str, seconds: float) -> None:
    with open_state(url, write=True) as state:
        lease = state.lock(Holder.here("rival", {}), wait=20, request_timeout=0, lease_seconds=seconds)
        state.begin_run(Run("rival", time.time(), "apply", None, "h", "u", None, None, None))
        sys.stdout.write("held\n")
        sys.stdout.flush()
        for _ in sys.stdin:
            said = f"{lease.remaining():.0f} intended"
            try:
                state.intend({"rival": Attempt("upsertTags", (Effect(key=Key(Kind.TAG, "rival")),))})
            except SyncengineError as error:
                said = f"{lease.remaining():.0f} {error.code}"
            sys.stdout.write(f"{said}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
