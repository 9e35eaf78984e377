"""The entry point of `syncengine` and `python -m syncengine`."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """Run the program. Exit with 130 also when an interrupt arrives during imports."""
    gc.disable()  # until a command begins: collection would take a third of the import time
    try:
        from syncengine.cli import main as program
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    program()


if __name__ == "__main__":
    main()
