"""Resolve references in the project file to secrets and places, and look them up only on demand."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from syncengine.document.urls import URL, Reference
from syncengine.errors import Diagnostic, Problems, Severity
from syncengine.project.git_ref import GitRef, is_git_ref, located_ref

MISSING = "missing-setting"
"""The diagnostic code of a required setting that is not set."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret that is looked up at every `read`, since its file may change. `origin` describes its location."""

    origin: str
    _look: Callable[[], str] = field(repr=False, compare=False)

    def read(self) -> str:
        """Return the secret. Raise `Problems` when it is missing."""
        return self._look()


def secret_at(reference: Reference, root: Path, environ: Mapping[str, str], what: str) -> Secret:
    """Return the secret that a reference points to; `what` describes it in the message when it is missing."""
    if reference.env is not None:
        name = reference.env
        return Secret(f"environment variable {name}", lambda: _from_environment(name, environ, what))
    path = root / (reference.file or "")
    return Secret(f"file {reference.file}", lambda: _from_file(path, what))


def located(text: str, root: Path) -> str:
    """Return a path or URL with relative paths, also in `sqlite:///relative`, resolved against the project's `root`."""
    if (match := re.match(r"(sqlite(?:\+[a-z]+)?:///)(?!/)(?!:memory:)(.+)", text)) is not None:
        return f"{match[1]}{root / match[2]}"
    return text if URL.match(text) else str(root / Path(text).expanduser())


BESIDE = ("", "-journal", "-wal", "-shm")
"""Suffixes of the files that SQLite uses for one database, starting with the database itself."""


def sqlite_file(url: str) -> Path | None:
    """Return the file of a SQLite database, given as a path or URL; `None` for any other URL and for an empty text."""
    scheme, colon, rest = url.partition("://")
    if not colon:
        return Path(url) if url else None
    return Path(rest.removeprefix("/").partition("?")[0]) if scheme.startswith("sqlite") else None


def sqlite_files(database: Path) -> set[Path]:
    """Return the file of a SQLite database and its companion files while it is open."""
    return {Path(f"{database}{suffix}") for suffix in BESIDE}


ALWAYS = frozenset({"SYNCENGINE_API_KEY", "SYNCENGINE_STATE"})
"""Environment variables that always hold secrets, whatever the project file contains."""


class SecretPlaces(NamedTuple):
    """The environment variables and files that hold secrets, and the databases that hold posted time, unresolved."""

    names: frozenset[str] = ALWAYS
    files: frozenset[str] = frozenset()
    databases: frozenset[str | Reference] = frozenset()


_AS_PATH = re.compile(r"(?:/|~|\.{1,2}/)")
_NO_PATH = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:(?!//)|.*[@=]")
KNOWN = re.compile(r"(?:sqlite|postgres(?:ql)?)(?:\+[a-z0-9]+)?://")


def may_be_path(text: str) -> bool:
    """Return whether text that is no URL is a path, and not the connection string of another program."""
    return _AS_PATH.match(text) is not None or not _NO_PATH.match(text)


def state_at(text: str, root: Path) -> str:
    """Return the location of a state. Raise `Problems` for an unsupported URL, without showing its possible password.

    Text that begins like a path is a path.
    """
    if is_git_ref(text):
        return str(_git_ref(text, root))
    if "\0" in text or (not KNOWN.match(text) if URL.match(text) else not may_be_path(text)):
        expected = "expected a path, sqlite:///PATH, postgresql://USER@HOST/DATABASE or git+ref://REMOTE/refs/…"
        raise setting_problem("state-url", f"the state's URL is not supported: {expected} (for a file, write ./NAME)")
    return located(text, root)


def _git_ref(text: str, root: Path) -> GitRef:
    if (ref := located_ref(text, root)) is None:
        expected = (
            "expected git+ref://REMOTE/refs/syncengine/NAME, where REMOTE is a URL (https, ssh or file), a path or"
        )
        message = f"the state's URL is not supported: {expected} the name of a remote (docs/state.md)"
        raise setting_problem("state-url", message)
    return ref


def _from_environment(name: str, environ: Mapping[str, str], what: str) -> str:
    if not (value := environ.get(name, "").strip()):
        raise setting_problem(MISSING, f"{what} is missing: the environment variable {name} is not set")
    return value


def _from_file(path: Path, what: str) -> str:
    try:
        value = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise setting_problem(MISSING, f"{what} is missing: the file {path} cannot be read: {reason}") from None
    if not value:
        raise setting_problem(MISSING, f"{what} is missing: the file {path} is empty")
    return value


def setting_problem(code: str, message: str) -> Problems:
    """Return a problem without a file and line, for a setting that no file contains."""
    return Problems([Diagnostic(severity=Severity.ERROR, code=code, message=message)])
