"""References to secrets, and judgements of URLs that do not quote them, since they may hold one. Pure.

Every command imports this, so it is apart from the models' types, which need pydantic.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_SECRET_PARAMETER = re.compile(r"[?&;](?:password|passwd|pwd|token|api_?key)=", re.IGNORECASE)
_SECRET_PAIR = re.compile(r"(?:^|[?&;\s])(?:password|passwd|pwd)\s*=", re.IGNORECASE)
"""A password in a connection string of another program, such as `Server=…;Password=…`."""
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
    if not URL.match(text := text.removeprefix("git+ref://")):
        return _SECRET_PAIR.search(text) is not None
    userinfo = text.split("://", 1)[1].rpartition("@")[0]
    is_port = re.match(r"[^:/]*:[0-9]*/", userinfo)
    return (":" in userinfo and not is_port) or _SECRET_PARAMETER.search(text) is not None


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
