"""Places in manifests → addresses of their lines at the host of the repository; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote

HOSTS = (
    (("GITHUB_SERVER_URL", "GITHUB_REPOSITORY"), "/blob/{commit}/{file}#L{line}"),
    (("CI_PROJECT_URL",), "/-/blob/{commit}/{file}#L{line}"),
)
"""Variables of CI services that make the address of the repository, and the rest of that of a line."""

COMMITS = ("GITHUB_SHA", "CI_COMMIT_SHA")

PLACES = ("commit", "file", "line")
"""The names in braces that an address may have."""


class Links(NamedTuple):
    """The address of a line, with PLACES in braces; and the commit of what knows of none.

    `before` is the commit at which removed resources stood last, where it is known.
    """

    blob: str = ""
    commit: str = ""
    before: str = ""

    def at(self, commit: str | None, before: str = "") -> Links:
        """The links of this commit, or of the one that CI runs for."""
        return self._replace(commit=commit or self.commit, before=before)

    def of_removed(self) -> Links:
        """The links to lines that are gone at the commit; none where it is unknown at which they stood."""
        return self._replace(commit=self.before) if self.before and "{commit}" in self.blob else NO_LINKS

    def line(self, path: str, line: int) -> str:
        """The address of a line; empty without a host or a commit."""
        if not self.blob or ("{commit}" in self.blob and not self.commit):
            return ""
        values = {"commit": quote(self.commit, safe=""), "file": quote(path), "line": str(line)}
        address = self.blob
        for name in PLACES:
            address = address.replace(f"{{{name}}}", values[name])
        return address


NO_LINKS = Links()


def links_of(blob: str | None, environ: Mapping[str, str]) -> Links:
    """The links that a project sets, else those of the CI service that runs this."""
    commit = next((environ[name] for name in COMMITS if environ.get(name)), "")
    if blob:
        return Links(blob, commit)
    for names, address in HOSTS:
        if all(environ.get(name, "") for name in names) and environ[names[0]].startswith(("https://", "http://")):
            return Links("/".join(environ[name] for name in names) + address, commit)
    return NO_LINKS
