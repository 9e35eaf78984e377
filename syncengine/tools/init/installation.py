"""Requirement, path or URL of `--install` → the package that CI jobs install, as the variables of their files. Pure."""

from __future__ import annotations

import json
import re
from typing import NamedTuple
from urllib.parse import urlsplit

from syncengine import DISTRIBUTION, __version__

EXTRA = "postgresql"
"""Brings the driver of a state that runners share."""
STRANGER = "syncengine"
"""On the package index, a library for the synchronization of files."""

_TEXT = re.compile(r"[A-Za-z0-9._/][A-Za-z0-9._/:@+=<>!~,\[\]#%&?*^ -]*")
"""Nothing that YAML in quotes, a shell in quotes or a CI server's own expressions would take for theirs; no option."""
_URL = re.compile(r"[a-z+]+://")
_ARCHIVE = re.compile(r".+\.(whl|tar\.gz|zip)(\[[\w, .-]*\])?")
_VCS = re.compile(r"(git|hg|svn|bzr)\+(https|ssh)")


class Installation(NamedTuple):
    """The one argument of `pip install`, and the package index that it comes from, where that is not pip's own."""

    package: str
    mirror: str | None = None

    def variables(self, indent: str) -> str:
        """Return lines of YAML: environment variables, with each value in double quotes."""
        values = {"SYNCENGINE_PACKAGE": self.package, **({"PIP_INDEX_URL": self.mirror} if self.mirror else {})}
        return "".join(f"{indent}{name}: {json.dumps(value)}\n" for name, value in values.items())


PINNED = f"{DISTRIBUTION}[{EXTRA}]=={__version__}"
DEFAULT = Installation(PINNED)


def installation_of(text: str) -> Installation:
    """A requirement, a wheel's path, the URL of an archive or a repository, or that of a package index.

    ValueError, with a sentence: what pip would not take, or what a file that is committed must not hold.
    """
    if not _TEXT.fullmatch(text):
        raise ValueError("a requirement, a path or a URL is expected, without quotes, `$`, `;`, or a `-` before it")
    if _URL.match(text):
        return _at(_checked(text))
    return Installation(_with_extra(text) if _ARCHIVE.fullmatch(text) and "://" not in text else _required(text))


def _at(url: str) -> Installation:
    parts = urlsplit(url)
    if _VCS.fullmatch(parts.scheme) or _ARCHIVE.fullmatch(parts.path):
        return Installation(f"{DISTRIBUTION}[{EXTRA}] @ {url}")
    return Installation(PINNED, url)


def _with_extra(path: str) -> str:
    return path if path.endswith("]") else f"{path}[{EXTRA}]"


def _required(text: str) -> str:
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.specifiers import SpecifierSet
    from packaging.utils import canonicalize_name

    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        sentence = str(error).partition("\n")[0]
        raise ValueError(f"not the path of a wheel, a URL or a requirement: {sentence}") from None
    if requirement.url:
        _checked(requirement.url)
    elif canonicalize_name(requirement.name) == STRANGER:
        raise ValueError(f"`{STRANGER}` is another project's library on the package index; ours is `{DISTRIBUTION}`")
    elif canonicalize_name(requirement.name) == DISTRIBUTION:
        requirement.specifier = requirement.specifier or SpecifierSet(f"=={__version__}")
    requirement.extras.add(EXTRA)
    return str(requirement)


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ValueError("that is not a URL") from None
    if parts.password or (parts.username and not parts.scheme.endswith("ssh")):
        raise ValueError("a password or a token in a URL would be committed: keep it in a secret, as a .netrc for pip")
    if parts.scheme != "https" and not _VCS.fullmatch(parts.scheme):
        raise ValueError(f"{parts.scheme}: https is expected, or a repository as in git+https")
    return url
