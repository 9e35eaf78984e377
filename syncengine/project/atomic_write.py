"""Replace files atomically, so that a reader sees the old or the new content in full. Never follows symbolic links."""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

STREAMS = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/")
"""Prefixes of paths that name an open stream rather than a file. Paths below /dev/shm are ordinary files."""
DESCRIPTOR = re.compile("/dev/std(?P<name>out|err)|/(?:dev|proc/self)/fd/(?P<number>[0-9]+)")
"""The pattern of a path that names an open stream of this process."""
ROOTS = (".git", "syncengine.yaml")
"""Entries that mark the top of a repository or project, below which other people may have created links."""
LINKED = "it is a symbolic link or in a linked folder, and syncengine does not write through links"


def write_whole(path: Path, parts: Iterable[bytes | memoryview], *, mode: int | None = None) -> None:
    """Write `parts` to `path`. Raise `OSError` when that fails; the file is then unchanged.

    Refuse a link, and a path below a linked folder of the project. Write directly to a pipe, stream or device. `mode`
    is the permission bits of the file; `None` keeps the bits of the old file, or applies the umask to a new one.
    """
    place = as_written(path)
    if is_stream(place):
        number = DESCRIPTOR.fullmatch(place.as_posix())
        # Opened again by its name, a file behind a stream would be truncated.
        with place.open("wb") if number is None else os.fdopen(os.dup(_number_of(number)), "wb") as file:
            file.writelines(parts)
        return
    refuse_links(path)
    replace_whole(place, parts, mode=mode)


def is_stream(place: Path) -> bool:
    """Return whether an absolute path names an open stream, a pipe or a device."""
    is_named = place.as_posix().startswith(STREAMS)
    return is_named or (not place.is_symlink() and place.exists() and not place.is_file())


def _number_of(descriptor: re.Match[str]) -> int:
    return int(descriptor["number"]) if descriptor["number"] else 1 + (descriptor["name"] == "err")


def replace_whole(place: Path, parts: Iterable[bytes | memoryview], *, mode: int | None = None) -> None:
    """Write one of our own files, even below a linked folder. Raise `OSError` and change nothing on failure."""
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
    """Raise `OSError` if `path` is a link, or below a linked folder of the current folder or of the file's project."""
    place, here = as_written(path), Path.cwd()
    projects = (each for each in place.parents if not each.is_symlink() and any((each / n).exists() for n in ROOTS))
    base = here if place.is_relative_to(here) else next(projects, place.parent)
    if any(each.is_symlink() for each in (place, *place.parents) if each != base and each.is_relative_to(base)):
        raise OSError(errno.ELOOP, LINKED, str(path))


def as_written(path: Path) -> Path:
    """Return the absolute path of a file to write, without following links."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow links


def _rights(place: Path) -> int:
    with suppress(FileNotFoundError):
        return place.stat().st_mode & 0o777
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask
