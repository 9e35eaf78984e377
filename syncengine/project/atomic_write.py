"""Atomic writes: a file is the old one or the new one, whole, at every instant; links are not followed."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

STREAMS = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/")
"""Where a path names an open stream, not a file of anybody's; below /dev/shm there are files like others."""
ROOTS = (".git", "syncengine.yaml")
"""Entries that mark a repository or project, in which others may have made links."""
LINKED = "it is a link, or in a folder that is a link, and links are not followed"


def write_whole(path: Path, parts: Iterable[bytes | memoryview], *, mode: int | None = None) -> None:
    """Write `parts` to `path`; OSError if that fails, and then nothing has changed.

    A link is refused, and so is a folder of the project that is one. What is not a regular file (a pipe, a stream) is
    written to as it is. `mode`: the rights that the file gets; None: those that it had, or the usual ones.
    """
    place = _as_written(path)
    if place.as_posix().startswith(STREAMS) or (not place.is_symlink() and place.exists() and not place.is_file()):
        with place.open("wb") as file:
            file.writelines(parts)
        return
    refuse_links(path)
    replace_whole(place, parts, mode=mode)


def replace_whole(place: Path, parts: Iterable[bytes | memoryview], *, mode: int | None = None) -> None:
    """Write a file of our own, wherever its folder leads; OSError as from `write_whole`."""
    handle, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name[:50]}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(parts)
        Path(name).chmod(_rights(place) if mode is None else mode)
        Path(name).replace(place)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise


def refuse_links(path: Path) -> None:
    """OSError if `path` is a link, or below a link in the current folder or in the project that it is in."""
    place, here = _as_written(path), Path.cwd()
    projects = (each for each in place.parents if not each.is_symlink() and any((each / n).exists() for n in ROOTS))
    base = here if place.is_relative_to(here) else next(projects, place.parent)
    if any(each.is_symlink() for each in (place, *place.parents) if each != base and each.is_relative_to(base)):
        raise OSError(errno.ELOOP, LINKED, str(path))


def _as_written(path: Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 - to resolve it would be to follow links


def _rights(place: Path) -> int:
    with suppress(FileNotFoundError):
        return place.stat().st_mode & 0o777
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask
