"""Parse `git+ref://REMOTE/refs/syncengine/NAME`, the place of a state in Git, into remote and ref. Opens nothing.

REMOTE is a URL (`https://…`, `ssh://…`, `file:///…`), `USER@HOST:PATH`, a path (absolute, or starting with `./` or
`../`), or the name of a remote of the project's repository.
"""

from __future__ import annotations

import os
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
    """A ref of a remote. The project's `folder` keeps its last known commit, and has the remotes that may be named."""

    remote: str
    ref: str
    folder: Path

    @property
    def name(self) -> str:
        """The ref's location for display, without user and password."""
        return f"{PREFIX}{without_login(self.remote)}/{self.ref}"

    @property
    def is_named(self) -> bool:
        """Whether `remote` is the name of a remote of the project's repository."""
        return _NAMED.fullmatch(self.remote) is not None

    def __str__(self) -> str:
        return f"{PREFIX}{self.remote}/{self.ref}#{quote(os.fsencode(self.folder))}"


def is_git_ref(text: str) -> bool:
    return text.startswith(PREFIX)


def without_login(text: str) -> str:
    """Return the text with user and password removed from its URLs, whatever characters they contain."""
    return re.sub(r"(?<!file:)(?<!/)//[^/\s]\S*@", "//", text)


def located_ref(text: str, root: Path) -> GitRef | None:
    """Return the ref that a setting of the project in `root` names, or `None` when it is not a ref of a remote."""
    remote, separator, name = text.removeprefix(PREFIX).rpartition(NAMESPACE)
    is_remote = is_address(remote) or _NAMED.fullmatch(remote) is not None
    is_name = _NAME.fullmatch(name) is not None and not any(
        ".." in part or part.endswith((".lock", ".")) for part in name.split("/")
    )
    if not (separator and is_git_ref(text) and is_remote and is_name):
        return None
    path = root / remote if remote.startswith(("./", "../")) else None
    return GitRef(str(path.resolve()) if path else remote, f"{NAMESPACE[1:]}{name}", root)


def read_ref(place: str) -> GitRef:
    """Return the `GitRef` that `str()` turned into `place`."""
    text, _, folder = place.rpartition("#")
    remote, _, name = text.removeprefix(PREFIX).rpartition(NAMESPACE)
    return GitRef(remote, f"{NAMESPACE[1:]}{name}", Path(unquote(folder, errors="surrogateescape")))


def is_address(remote: str) -> bool:
    """Return whether `remote` is safe as a Git argument: a URL, `HOST:PATH` or path that cannot pass for an option."""
    if _OPTION_HOST.match(remote):
        return False
    return any(pattern.fullmatch(remote) for pattern in (_URL, _SCP, _PATH))
