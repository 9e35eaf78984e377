"""Read files that users name, write files whole, and make the folder `.syncengine`. Never writes through links."""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from syncengine.document.diagnostics import suggestion
from syncengine.errors import SyncengineError, Usage

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
        found = DESCRIPTOR.fullmatch(place.as_posix())
        # Opened again by its name, a file behind a stream would be truncated.
        copy = found and os.dup(int(found["number"] or {"out": 1, "err": 2}[found["name"]]))
        with place.open("wb") if copy is None else os.fdopen(copy, "wb") as file:
            file.writelines(parts)
        return
    refuse_links(path)
    replace_whole(place, parts, mode=mode)


def is_stream(place: Path) -> bool:
    """Return whether an absolute path names an open stream, a pipe or a device."""
    is_named = place.as_posix().startswith(STREAMS)
    return is_named or (not place.is_symlink() and place.exists() and not place.is_file())


def replace_whole(place: Path, parts: Iterable[bytes | memoryview], *, mode: int | None = None) -> None:
    """Write one of our own files, even below a linked folder. Raise `OSError` and change nothing on failure."""
    if mode is None and place.exists():
        mode = place.stat().st_mode & 0o777
    elif mode is None:  # the umask can only be asked for by setting it
        mask = os.umask(0o077)
        os.umask(mask)
        mode = 0o666 & ~mask
    handle, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name[:50]}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(parts)
        Path(name).chmod(mode)
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


OWN_FOLDER = ".syncengine"
"""The folder of state, cache and sandbox data, none of which is committed (docs/manifests.md)."""
HIDING = b"# Created by syncengine: the files in this folder belong to this machine.\n*\n"


def make_folder(folder: Path) -> None:
    """Create `folder` and its parents; give a new `.syncengine` among them a `.gitignore` that hides it from Git."""
    own = next((each for each in (folder, *folder.parents) if each.name == OWN_FOLDER and not each.exists()), None)
    folder.mkdir(parents=True, exist_ok=True)
    if own is not None:
        replace_whole(own / ".gitignore", [HIDING])


def refuse_missing(path: Path, name: str | None = None, cure: str = "") -> None:
    """Raise `Usage` if nothing is at a path that the user named; `name` is the path there, `cure` the message's end."""
    if os.path.lexists(path):
        return
    with suppress(OSError):  # without a folder there is no nearest name
        cure = cure or suggestion(path.name, sorted(each.name for each in path.parent.iterdir()))
    raise Usage(f"{name or path}: no such file or folder{cure}")


def content_of(path: Path, name: str | None = None) -> bytes:
    """Return the content of a file. Raise `SyncengineError` when it is unreadable; `name` is its name there."""
    refuse_missing(path, name)
    if path.is_dir():
        raise Usage(f"{name or path}: is a folder, but a file is expected")
    try:
        return path.read_bytes()
    except OSError as error:
        raise SyncengineError(f"{name or path}: cannot be read: {error.strerror}", code="unreadable-file") from None
