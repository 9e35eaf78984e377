"""Folders of tests: in memory, and what is made once in a run, for all of its workers, each of which copies it."""

import atexit
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

MEMORY = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
"""A folder in memory, where there is one, for `dir` of the functions of `tempfile`: histories need no disk."""
_SHARED = "SYNCENGINE_TEST_SHARED"
"""The variable that leads the workers, which inherit it, to the folder of the first process."""

if _SHARED not in os.environ:
    os.environ[_SHARED] = tempfile.mkdtemp(prefix="syncengine-shared-")
    Path(os.environ[_SHARED]).chmod(0o755)  # servers that refuse to run as root make their templates as their own user
    atexit.register(shutil.rmtree, os.environ[_SHARED], ignore_errors=True)
_FOLDER = Path(os.environ[_SHARED])


def made_once(name: str, make: Callable[[Path], None]) -> Path:
    """Return the folder of this name, which `make` fills for the first worker that asks; others wait for it."""
    made, half = _FOLDER / name, _FOLDER / f"{name}.half"
    with (_FOLDER / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            shutil.rmtree(half, ignore_errors=True)
            half.mkdir()
            make(half)
            half.rename(made)
    return made


def owned(path: Path, user: Mapping[str, str]) -> Path:
    """Give a path to the `user` and its `group`, if there is one: root, as whom no server of a database runs."""
    if user:
        shutil.chown(path, user["user"], user["group"])
    return path


def database_made_once(name: str, make: Callable[[Path], None], data: Path, user: Mapping[str, str]) -> None:
    """Copy the folder `data` that `make` puts into its folder once, which takes a tenth of the time of making it."""
    shutil.copytree(made_once(name, lambda folder: make(owned(folder, user))) / "data", data)
    for path in (data, *data.rglob("*")):
        owned(path, user)
