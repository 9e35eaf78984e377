"""References in the project file → the secrets and places that they point to, looked up only on demand."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from syncengine.document.setting_types import URL, Reference
from syncengine.errors import Diagnostic, Problems, Severity
from syncengine.project.git_ref import GitRef, is_git_ref, located_ref

MISSING = "missing-setting"
"""The code of what is not set."""


@dataclass(frozen=True, slots=True)
class Secret:
    """The place of a secret, `origin` in words. `read` looks it up every time, so that a file may change."""

    origin: str
    _look: Callable[[], str] = field(repr=False, compare=False)

    def read(self) -> str:
        """The secret; Problems when it is not there."""
        return self._look()


def secret_at(reference: Reference, root: Path, environ: Mapping[str, str], what: str) -> Secret:
    """The secret of a reference; `what` names it in the message when it is missing."""
    if reference.env is not None:
        name = reference.env
        return Secret(f"environment variable {name}", lambda: _from_environment(name, environ, what))
    path = root / (reference.file or "")
    return Secret(f"file {reference.file}", lambda: _from_file(path, what))


def located(text: str, root: Path) -> str:
    """Relative paths are relative to the project, in `sqlite:///relative` too."""
    if (match := re.match(r"(sqlite(?:\+[a-z]+)?:///)(?!/)(?!:memory:)(.+)", text)) is not None:
        return f"{match[1]}{root / match[2]}"
    return text if URL.match(text) else str(root / Path(text).expanduser())


BESIDE = ("", "-journal", "-wal", "-shm")
"""What SQLite reads with a database, and the database."""


def sqlite_file(url: str) -> Path | None:
    """Return the file of a SQLite database, which a plain path is; None for another URL, and for no text at all."""
    scheme, colon, rest = url.partition("://")
    if not colon:
        return Path(url) if url else None
    return Path(rest.removeprefix("/").partition("?")[0]) if scheme.startswith("sqlite") else None


_AS_PATH = re.compile(r"(?:/|~|\.{1,2}/)")
_NO_PATH = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:(?!//)|.*[@=]")
KNOWN = re.compile(r"(?:sqlite|postgres(?:ql)?)(?:\+[a-z0-9]+)?://")


def state_at(text: str, root: Path) -> str:
    """The place of a state. Problems, without its text, for a URL that is none: it may hold a password.

    Text that begins like a path is one.
    """
    if is_git_ref(text):
        return str(_git_ref(text, root))
    is_url = URL.match(text) is not None
    if "\0" in text or (not KNOWN.match(text) if is_url else not _AS_PATH.match(text) and _NO_PATH.match(text)):
        expected = "a path, sqlite:///PATH, postgresql://USER@HOST/DATABASE or git+ref://REMOTE/refs/… is expected"
        raise setting_problem("state-url", f"the URL of the state is not supported: {expected} (./NAME for a file)")
    return located(text, root)


def _git_ref(text: str, root: Path) -> GitRef:
    if (ref := located_ref(text, root)) is None:
        expected = "git+ref://REMOTE/refs/syncengine/NAME is expected, REMOTE a URL (https, ssh, file), a path, or the"
        message = f"the URL of the state is not supported: {expected} name of a remote (docs/git-state.md)"
        raise setting_problem("state-url", message)
    return ref


def _from_environment(name: str, environ: Mapping[str, str], what: str) -> str:
    if not (value := environ.get(name, "").strip()):
        raise setting_problem(MISSING, f"{what} is expected in the environment variable {name}, which is not set")
    return value


def _from_file(path: Path, what: str) -> str:
    try:
        value = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise setting_problem(MISSING, f"{what} is expected in the file {path}: {reason}") from None
    if not value:
        raise setting_problem(MISSING, f"{what} is expected in the file {path}, which is empty")
    return value


def setting_problem(code: str, message: str) -> Problems:
    """Return a problem without a place: that of a setting which no file contains."""
    return Problems([Diagnostic(severity=Severity.ERROR, code=code, message=message)])
