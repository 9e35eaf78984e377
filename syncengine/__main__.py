"""The entry point of `syncengine` and `python -m syncengine`."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress


def main() -> None:
    """Run the program. Exit with 130 also when an interrupt arrives during imports."""
    codes: list[int] = []
    atexit.register(_leave, codes)  # before all others, so that it is called last
    # Interrupts wait for the imports, which would show a traceback. SIGHUP waits until it is known whether the command
    # is `serve`, which it must not end (`Program.get_command`).
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    gc.disable()  # it takes a third of an import and 40 % of a plan, which form no cycles (`collect_rarely`)
    from syncengine.cli import main as program
    from syncengine.project.signals import keep_interrupts, raise_interrupts

    keep_interrupts()
    raise_interrupts()
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask | {signal.SIGHUP})
        program()
    except KeyboardInterrupt:  # one that has waited
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # another one would show a traceback
        sys.stderr.write("interrupted\n")
        codes.append(130)
        sys.exit(130)
    except SystemExit as ended:
        if isinstance(ended.code, int):
            codes.append(ended.code)
        raise


def _leave(codes: Sequence[int]) -> None:
    """End the process with the program's code, without freeing one value after the other."""
    with suppress(OSError):
        for code in codes:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)


if __name__ == "__main__":
    main()
