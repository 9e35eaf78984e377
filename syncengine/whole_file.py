"""bytes → a file that is the old one or the new one, whole, at every instant."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def write_whole(path: Path, parts: Iterable[bytes | memoryview], *, mode: int | None = None) -> None:
    """Write `parts` to `path`; OSError if that fails, and then nothing has changed.

    A link is followed. What is no regular file (a pipe, a device) is written to as it is. `mode`: the rights that the
    file gets; None: those that it had.
    """
    place = path.resolve()
    if place.exists() and not place.is_file():
        with place.open("wb") as file:
            file.writelines(parts)
        return
    handle, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name[:50]}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(parts)
        Path(name).chmod(place.stat().st_mode & 0o777 if mode is None else mode)
        Path(name).replace(place)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
