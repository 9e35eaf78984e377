"""A state in Git: `git+ref://REMOTE/refs/syncengine/NAME` → the remote and the ref. Opens nothing.

REMOTE is a URL (`https://…`, `ssh://…`, `file:///…`), `USER@HOST:PATH`, a path (absolute, or from `./` or `../` on), or
the name of a remote of the project's repository.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

PREFIX = "git+ref://"
NAMESPACE = "/refs/syncengine/"

_LOGIN = r"(?:[^/?#\\\s]*@)?"
_HOST, _HERE = r"(?:[\w.-]+|\[[0-9A-Fa-f:.%]+\])", r"(?:localhost|127\.0\.0\.1|\[::1\])"
_REST = r"(?::\d*)?(?:/[^\s\x00-\x1f]*)?"
_URL = re.compile(rf"file://[^\s\x00-\x1f]+|(?:https|ssh)://{_LOGIN}{_HOST}{_REST}|http://{_LOGIN}{_HERE}{_REST}")
_SCP = re.compile(r"(?:[A-Za-z0-9_][\w.+-]*@)?[A-Za-z0-9][\w.-]*:(?!//)[^\s\x00-\x1f@-][^\s\x00-\x1f@]*")
_NAMED = re.compile(r"[A-Za-z0-9_][\w.-]*")
_PATH = re.compile(r"(?:/|\.{1,2}/)[^\x00-\x1f]+")
_OPTION_HOST = re.compile(r"[a-z]+://(?:[^/@]*@)?-")
_PART = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
_NAME = re.compile(rf"{_PART}(?:/{_PART})*")


@dataclass(frozen=True, slots=True)
class GitRef:
    """A ref of a remote. `folder` is the project's, in which it is remembered, and whose remotes may be named."""

    remote: str
    ref: str
    folder: Path

    @property
    def name(self) -> str:
        """The place as people see it, without a user or a password."""
        return f"{PREFIX}{without_login(self.remote)}/{self.ref}"

    @property
    def is_named(self) -> bool:
        """Whether the remote is one of the project's repository."""
        return _NAMED.fullmatch(self.remote) is not None

    def __str__(self) -> str:
        return f"{PREFIX}{self.remote}/{self.ref}#{quote(str(self.folder))}"


def is_git_ref(text: str) -> bool:
    return text.startswith(PREFIX)


def without_login(text: str) -> str:
    """The text without user and password of URLs in it, whatever characters they are of."""
    return re.sub(r"(?<!file:)(?<!/)//[^/\s]\S*@", "//", text)


def located_ref(text: str, root: Path) -> GitRef | None:
    """Read a setting in the project's folder; None where it names no ref of a remote."""
    remote, separator, name = text.removeprefix(PREFIX).rpartition(NAMESPACE)
    if not separator or not is_git_ref(text) or not _is_remote(remote) or not _is_name(name):
        return None
    path = root / remote if remote.startswith(("./", "../")) else None
    return GitRef(str(path.resolve()) if path else remote, f"{NAMESPACE[1:]}{name}", root)


def read_ref(place: str) -> GitRef:
    """Read a GitRef from the text that `str` made of it."""
    text, _, folder = place.rpartition("#")
    remote, _, name = text.removeprefix(PREFIX).rpartition(NAMESPACE)
    return GitRef(remote, f"{NAMESPACE[1:]}{name}", Path(unquote(folder)))


def is_address(remote: str) -> bool:
    """Whether Git may be called with it: nothing that it would take for an option or a command."""
    if _OPTION_HOST.match(remote):
        return False
    return any(pattern.fullmatch(remote) for pattern in (_URL, _SCP, _PATH))


def _is_remote(text: str) -> bool:
    return is_address(text) or _NAMED.fullmatch(text) is not None


def _is_name(text: str) -> bool:
    parts = text.split("/")
    return _NAME.fullmatch(text) is not None and not any(
        ".." in part or part.endswith((".lock", ".")) for part in parts
    )
