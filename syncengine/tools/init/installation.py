"""Turn the argument of `--install` (requirement, wheel or URL) into variables for CI files. Pure."""

from __future__ import annotations

import json
import re
from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from syncengine import DISTRIBUTION, __version__
from syncengine.document.text import CONTROL

EXTRA = "postgresql"
"""The extra that installs the driver for a shared PostgreSQL state."""
STRANGER = "syncengine"
"""The name of an unrelated library on the package index, for file synchronization."""
_WHEEL = f"{DISTRIBUTION.replace('-', '_')}-{__version__}-py3-none-any.whl"
GIT_WAY = "A Git repository with the commit"
WAYS = {
    "A name that your team owns on a package index, with the version": f"firm-syncengine=={__version__}",
    GIT_WAY: f"git+https://git.example.com/tools/{STRANGER}.git@COMMIT",
    "A wheel in your repository, or at a URL": f"vendor/{_WHEEL}",
}
"""The ways to say what is installed, each with an example. No public index has this program."""

PLACEHOLDER = "REQUIREMENT"
"""The word for the argument in help and documents, which somebody may paste."""
_TEXT = re.compile(r"[A-Za-z0-9._/][A-Za-z0-9._/:@+=<>!~,\[\]#%&?*^ -]*")
"""Text that is safe in quoted YAML, a quoted shell word and the expressions of CI servers, and is not an option."""
_URL = re.compile(r"[a-z+]+://")
_ARCHIVE = re.compile(r".+\.(whl|tar\.gz|zip)(\[[\w, .-]*\])?")
_GIT = re.compile(r"git\+(https|ssh)")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class Installation(NamedTuple):
    """The argument of `pip install`, empty if nobody has chosen one, and the index to use instead of pip's default."""

    package: str
    mirror: str | None = None

    def variables(self) -> str:
        """Return lines of YAML: environment variables, with each value in double quotes."""
        values = {"SYNCENGINE_PACKAGE": self.package, **({"PIP_INDEX_URL": self.mirror} if self.mirror else {})}
        return "\n".join(f"{name}: {json.dumps(value)}" for name, value in values.items())


PINNED = f"{DISTRIBUTION}[{EXTRA}]=={__version__}"
UNCHOSEN = Installation("")


def installation_of(text: str) -> Installation:
    """Parse a requirement, the path of a wheel, or the URL of an archive, a Git commit or a package index.

    Raise `ValueError`, with a message, for text that pip would reject, that must not be committed, or that may install
    something else tomorrow.
    """
    if text == PLACEHOLDER:
        raise ValueError("write what the jobs install in its place; without --install, the ways to say it are printed")
    if not _TEXT.fullmatch(text):
        raise ValueError("expected a requirement, a path or a URL, without quotes, `$`, `;` or a leading `-`")
    if _URL.match(text):
        return _at(_checked(text))
    return Installation(_in_repository(text) if _ARCHIVE.fullmatch(text) and "://" not in text else _required(text))


def _at(url: str) -> Installation:
    parts = urlsplit(url)
    if _GIT.fullmatch(parts.scheme) or _ARCHIVE.fullmatch(parts.path):
        return Installation(f"{DISTRIBUTION}[{EXTRA}] @ {url}")
    return Installation(PINNED, url)


def _in_repository(path: str) -> str:
    place = PurePosixPath(path)
    if place.is_absolute() or ".." in place.parts:
        raise ValueError("jobs find a wheel only in the repository: commit it, and give its path from the root")
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
    requirement.extras.add(EXTRA)
    if requirement.url:
        _checked(requirement.url)
        return str(requirement)
    if canonicalize_name(requirement.name) == STRANGER:
        raise ValueError(f"`{STRANGER}` is another project's library on the package index")
    if canonicalize_name(requirement.name) == DISTRIBUTION:
        requirement.specifier = requirement.specifier or SpecifierSet(f"=={__version__}")
    if [(each.operator, each.version[-2:] == ".*") for each in requirement.specifier] != [("==", False)]:
        raise ValueError(f"jobs would install another version tomorrow: write {requirement.name}==VERSION")
    return str(requirement)


def _checked(url: str) -> str:
    if " " in url or CONTROL.search(unquote(url)):
        raise ValueError("the URL contains a blank or a control character, perhaps as %0A: remove it")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ValueError("the URL is invalid") from None
    if parts.password or (parts.username and not parts.scheme.endswith("ssh")):
        raise ValueError("a password or token in the URL would be committed: keep it in a secret, like pip's .netrc")
    if parts.query:
        raise ValueError("the part after `?` may be a token, and would be committed: give a URL without it")
    if _GIT.fullmatch(parts.scheme):
        if not _COMMIT.fullmatch(parts.path.rpartition("@")[2]):
            raise ValueError("a branch or tag may be another commit tomorrow: end the URL in @COMMIT, its whole id")
    elif parts.scheme != "https":
        raise ValueError(f"the URL starts with {parts.scheme}: https is expected, or a repository like git+https")
    return url
