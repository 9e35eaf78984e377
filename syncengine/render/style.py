"""The look of a rendering: width and abilities of the terminal as a value, and the table of styles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
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
        values = {"commit": quote(self.commit, safe=""), "file": in_url(path), "line": str(line)}
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


def in_url(path: str) -> str:
    """Return a path as a part of a URL. A file's name need not be text, nor what a document says it is."""
    return quote(path.encode("utf-8", "surrogatepass"))


SourceLines = Callable[[str], Sequence[str] | None]
"""A function from a project file's name to its lines, or `None` when they cannot or must not be shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The properties of the terminal or host that shows a text.

    `lines` reads the source lines that carets point into; no carets are shown when it is `None`. `prefix` is the
    project's folder relative to the repository's root, for formats with paths from there. `links` lead to its host.
    `plan_file` and `place` complete commands to copy: the file of a saved plan, and the options that name the project.
    `project` is its name in the title of a page, and `project_file` the file of its settings. `job` is the URL of the
    CI job that shows everything.
    """

    width: int = 80
    colour: bool = False
    unicode: bool = True
    verbose: bool = False
    lines: SourceLines | None = None
    prefix: str = ""
    links: Links = NO_LINKS
    plan_file: str = ""
    place: str = ""
    project: str = ""
    job: str = ""
    project_file: str = "syncengine.yaml"


PLAIN = Look()


class Tone(StrEnum):
    """The meaning of a piece of text for its reader. HTML uses the values as class names."""

    HEADING = "heading"
    REMOVE = "remove"
    PUBLIC = "public"
    CREATE = "create"
    UPDATE = "update"
    NOTE = "note"
    ERROR = "error"
    WARNING = "warning"
    QUIET = "quiet"


STYLES: dict[Tone, str] = {
    Tone.HEADING: "1",
    Tone.REMOVE: "31",
    Tone.PUBLIC: "31",
    Tone.CREATE: "32",
    Tone.UPDATE: "33",
    Tone.NOTE: "36",
    Tone.ERROR: "1;31",
    Tone.WARNING: "1;33",
    Tone.QUIET: "2",
}
"""The terminal's SGR parameters for each tone."""

_PLAIN_LETTERS = str.maketrans(
    {
        "→": "->",
        "…": "...",
        "–": "-",
        "—": "-",
        "’": "'",
        "·": "*",
        "✔": "+",
        "✘": "x",
        "×": "x",
        "\N{NO-BREAK SPACE}": " ",
    }
)


def painted(text: str, tone: Tone | None, look: Look) -> str:
    """Return the text in the colour of its tone, or unchanged when the look has no colours."""
    if not (look.colour and tone and text):
        return text
    return f"\x1b[{STYLES[tone]}m{text}\x1b[0m"


def lettered(text: str, look: Look) -> str:
    """Return the text in letters that the terminal has; without Unicode, ASCII substitutes or escapes."""
    if look.unicode or text.isascii():
        return text
    return text.translate(_PLAIN_LETTERS).encode("ascii", "backslashreplace").decode("ascii")
