"""Places in manifests → URLs of their lines at the host of the repository; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote

HOSTS = (
    (("GITHUB_SERVER_URL", "GITHUB_REPOSITORY"), "/blob/{commit}/{file}#L{line}"),
    (("CI_PROJECT_URL",), "/-/blob/{commit}/{file}#L{line}"),
)
"""For each CI service, the variables that make up the repository's URL, and the pattern of a line's path."""

COMMITS = ("GITHUB_SHA", "CI_COMMIT_SHA")

PLACES = ("commit", "file", "line")
"""The names in braces that the pattern of a URL may contain."""


class Links(NamedTuple):
    """The pattern of a line's URL, with `PLACES` in braces, and the commit to fill in.

    `before` is the last commit that declares the removed resources; empty when it is unknown.
    """

    blob: str = ""
    commit: str = ""
    before: str = ""

    def at(self, commit: str | None, before: str = "") -> Links:
        """Return the links for `commit`, or for the commit of the CI job when it is `None`."""
        return self._replace(commit=commit or self.commit, before=before)

    def of_removed(self) -> Links:
        """Return the links for lines of removed resources; `NO_LINKS` when their commit is unknown."""
        return self._replace(commit=self.before) if self.before and "{commit}" in self.blob else NO_LINKS

    def line(self, path: str, line: int) -> str:
        """Return the URL of a line; empty without a host or a commit."""
        if not self.blob or ("{commit}" in self.blob and not self.commit):
            return ""
        values = {"commit": quote(self.commit, safe=""), "file": quote(path), "line": str(line)}
        address = self.blob
        for name in PLACES:
            address = address.replace(f"{{{name}}}", values[name])
        return address


NO_LINKS = Links()


def links_of(blob: str | None, environ: Mapping[str, str]) -> Links:
    """Return the links that the project file sets as `blob`, or else those of the CI service."""
    commit = next((environ[name] for name in COMMITS if environ.get(name)), "")
    if blob:
        return Links(blob, commit)
    for names, address in HOSTS:
        if all(environ.get(name, "") for name in names) and environ[names[0]].startswith(("https://", "http://")):
            return Links("/".join(environ[name] for name in names) + address, commit)
    return NO_LINKS


def in_repository(file: str, prefix: str) -> str:
    """Return a file of the project's folder relative to the repository's root, with forward slashes."""
    path = file.replace("\\", "/")
    return f"{prefix.rstrip('/')}/{path}" if prefix else path
