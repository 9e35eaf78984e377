"""A process that stops during a write while it holds the inbox: `python frozen.py STATE LEASE_SECONDS`."""

from __future__ import annotations

import os
import signal
import sys

from syncengine.state.holder import Holder
from syncengine.state.inbox import open_inbox


def main(url: str, seconds: float) -> None:
    with open_inbox(url, write=True) as inbox:
        inbox.lease(Holder.here("serve", {}), seconds=seconds)
        with inbox.database.alone():
            sys.stdout.write("writing\n")
            sys.stdout.flush()
            os.kill(os.getpid(), signal.SIGSTOP)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
