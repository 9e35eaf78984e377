"""Resolve references in the project file to secrets and places on demand, and judge URLs without quoting them.

A URL may hold a secret. Every command imports this, so it is apart from the `types` of models, which need pydantic.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from syncengine.document.text import either_case
from syncengine.errors import Diagnostic, Problems, Severity
from syncengine.project.git_ref import is_git_ref, located_ref

MISSING = "missing-setting"
"""The diagnostic code of a required setting that is not set."""

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_PASSWORD = "|".join(map(either_case, ("password", "passwd", "pwd")))
_SECRET = "|".join((_PASSWORD, *map(either_case, ("token", "apikey", "api_key"))))
_OF_URL = rf"(?:(?![^:/]*:[0-9]*/)[^:]*:.*@|.*[?&;](?:{_SECRET})=)"
"""The credentials of a URL: before its host, where a colon may also be that of a port, or among its parameters."""
_OF_STRING = rf"(?!{URL.pattern})(?:.*[?&;\s])?(?:{_PASSWORD})\s*="
"""A password in a connection string of another program, such as `Server=…;Password=…`."""
WITH_PASSWORD = rf"(?:git\+ref://|(?!git\+ref://))(?:{URL.pattern}{_OF_URL}|{_OF_STRING})"
"""The beginning of a URL with credentials, or of a connection string with a password. JSON Schemas have it, too."""
_BLANK = re.compile(r"[\s\x00-\x1f\x7f]")
"""Characters that `urlsplit` drops or ignores, and that no request can contain."""


@dataclass(frozen=True, slots=True)
class Reference:
    """The place of a secret, an environment variable or a file. It never contains the secret itself."""

    env: str | None = None
    file: str | None = None


REFERENCE_KEYS = frozenset({"env", "file"})


def split_url(text: str) -> SplitResult | None:
    """Return the parts of a URL, or `None` when it is malformed."""
    try:
        parts = urlsplit(text)
        _ = parts.port, parts.hostname
    except ValueError:
        return None
    return parts


_PORTS = {"http": 80, "https": 443}


def canonical_url(text: str) -> str:
    """Return the form that all spellings of a service's URL share, whatever their case, default port or final slash."""
    parts = split_url(text)
    if parts is None or not parts.hostname:
        return text
    port = f":{parts.port}" if parts.port not in (None, _PORTS.get(parts.scheme)) else ""
    return f"{parts.scheme}://{parts.hostname}{port}{parts.path.rstrip('/')}"


def has_password(text: str) -> bool:
    """Return whether a URL contains credentials, before its host or among its parameters, or a connection string."""
    return re.match(WITH_PASSWORD, text, re.DOTALL) is not None


def base_url_trouble(text: str) -> str | None:
    """Return the problem of a base URL without quoting it, or `None` when the URL is valid."""
    cures = "https://, or `sandbox`", "the key belongs in `apiKey`"
    if trouble := _trouble(text, *cures):
        return trouble
    return "must not have a query or a fragment" if urlsplit(text).query or urlsplit(text).fragment else None


def web_url_trouble(text: str) -> str | None:
    """Return the problem of an HTTP service's URL without quoting it, or `None` when the URL is valid."""
    cures = "http:// or https://", "they belong in a header, as {env: NAME} or {file: PATH}"
    return _trouble(text, *cures) or ("must not have a fragment" if urlsplit(text).fragment else None)


def _trouble(text: str, starts: str, elsewhere: str) -> str | None:
    """Return the problem of any URL of HTTP: how one `starts`, and where credentials belong `elsewhere`."""
    if _BLANK.search(text):
        return "must not contain blanks, line breaks or control characters"
    parts = split_url(text)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        return f"must be a URL that starts with {starts}"
    return f"must not contain credentials; {elsewhere}" if "@" in parts.netloc else None


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
        if (ref := located_ref(text, root)) is None:
            remotes = "a URL (https, ssh or file), a path or the name of a remote (docs/state.md)"
            expected = f"expected git+ref://REMOTE/refs/syncengine/NAME, where REMOTE is {remotes}"
            raise setting_problem("state-url", f"the state's URL is not supported: {expected}")
        return str(ref)
    if "\0" in text or (not KNOWN.match(text) if URL.match(text) else not may_be_path(text)):
        expected = "expected a path, sqlite:///PATH, postgresql://USER@HOST/DATABASE or git+ref://REMOTE/refs/…"
        raise setting_problem("state-url", f"the state's URL is not supported: {expected} (for a file, write ./NAME)")
    return located(text, root)


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
