"""The entry point of `syncengine` and `python -m syncengine`."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """Run the program; exit 130 also where an interrupt comes while it is being imported."""
    gc.disable()  # until a command begins: a third of the time of importing one would go into looking for garbage
    try:
        from syncengine.cli import main as program
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    program()


if __name__ == "__main__":
    main()
