"""Turn the argument of `--install` (requirement, path or URL) into variables for CI files. Pure."""

from __future__ import annotations

import json
import re
from typing import NamedTuple
from urllib.parse import urlsplit

from syncengine import DISTRIBUTION, __version__

EXTRA = "postgresql"
"""The extra that installs the driver for a shared PostgreSQL state."""
STRANGER = "syncengine"
"""The name of an unrelated library on the package index, for file synchronization."""

_TEXT = re.compile(r"[A-Za-z0-9._/][A-Za-z0-9._/:@+=<>!~,\[\]#%&?*^ -]*")
"""Text that is safe in quoted YAML, a quoted shell word and the expressions of CI servers, and is not an option."""
_URL = re.compile(r"[a-z+]+://")
_ARCHIVE = re.compile(r".+\.(whl|tar\.gz|zip)(\[[\w, .-]*\])?")
_VCS = re.compile(r"(git|hg|svn|bzr)\+(https|ssh)")


class Installation(NamedTuple):
    """The argument of `pip install`, and the package index to use instead of pip's default, if any."""

    package: str
    mirror: str | None = None

    def variables(self, indent: str) -> str:
        """Return lines of YAML: environment variables, with each value in double quotes."""
        values = {"SYNCENGINE_PACKAGE": self.package, **({"PIP_INDEX_URL": self.mirror} if self.mirror else {})}
        return "".join(f"{indent}{name}: {json.dumps(value)}\n" for name, value in values.items())


PINNED = f"{DISTRIBUTION}[{EXTRA}]=={__version__}"
DEFAULT = Installation(PINNED)


def installation_of(text: str) -> Installation:
    """Parse a requirement, the path of a wheel, or the URL of an archive, a repository or a package index.

    Raise `ValueError`, with a message, for text that pip would reject or that must not be committed.
    """
    if not _TEXT.fullmatch(text):
        raise ValueError("expected a requirement, a path or a URL, without quotes, `$`, `;` or a leading `-`")
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
        raise ValueError(f"expected the path of a wheel, a URL or a requirement: {sentence}") from None
    if requirement.url:
        _checked(requirement.url)
    elif canonicalize_name(requirement.name) == STRANGER:
        raise ValueError(f"`{STRANGER}` is another project's library on the package index: use `{DISTRIBUTION}`")
    elif canonicalize_name(requirement.name) == DISTRIBUTION:
        requirement.specifier = requirement.specifier or SpecifierSet(f"=={__version__}")
    requirement.extras.add(EXTRA)
    return str(requirement)


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ValueError("the URL is invalid") from None
    if parts.password or (parts.username and not parts.scheme.endswith("ssh")):
        raise ValueError("a password or token in the URL would be committed: keep it in a secret, like pip's .netrc")
    if parts.scheme != "https" and not _VCS.fullmatch(parts.scheme):
        raise ValueError(f"the URL starts with {parts.scheme}: https is expected, or a repository like git+https")
    return url
