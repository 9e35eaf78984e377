"""The look of a rendering: width and abilities of the terminal as a value, and the table of styles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from syncengine.render.links import NO_LINKS, Links

SourceLines = Callable[[str], Sequence[str] | None]
"""A function from a project file's name to its lines, or `None` when they cannot or must not be shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The properties of the terminal or host that shows a text.

    `lines` reads the source lines that carets point into; no carets are shown when it is `None`. `prefix` is the
    project's folder relative to the repository's root, for formats with paths from there. `links` lead to its host.
    `plan_file` and `place` complete commands to copy: the file of a saved plan, and the options that name the project.
    `project` is its name in the title of a page, and `project_file` the file of its settings.
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
