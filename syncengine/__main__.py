"""The entry point of `syncengine` and `python -m syncengine`."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress

from syncengine.project.signals import is_interrupt, keep_interrupts


def main() -> None:
    """Run the program. Exit with 130 also when an interrupt arrives during imports."""
    gc.disable()  # it takes a third of an import and 40 % of a plan, which form no cycles (`collect_rarely`)
    codes: list[int] = []
    atexit.register(_leave, codes)  # before all others, so that it is called last
    keep_interrupts()
    try:
        _import_orjson()
        from syncengine.cli import main as program
    except (KeyboardInterrupt, RuntimeError) as error:
        if not is_interrupt(error):
            raise
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # another one would show a traceback
        sys.stderr.write("interrupted\n")
        codes.append(130)
        sys.exit(130)
    try:
        program()
    except SystemExit as ended:
        if isinstance(ended.code, int):
            codes.append(ended.code)
        raise


def _import_orjson() -> None:
    """Import orjson, which crashes when an interrupt arrives meanwhile; raise the interrupt afterwards."""
    interrupts: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: interrupts.append(number))
    import orjson  # noqa: F401 - only so that it is imported, whoever uses it

    signal.signal(signal.SIGINT, before)
    if interrupts and before is signal.default_int_handler:
        raise KeyboardInterrupt


def _leave(codes: Sequence[int]) -> None:
    """End the process with the program's code, without freeing one value after the other."""
    with suppress(OSError):
        for code in codes:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)


if __name__ == "__main__":
    main()
