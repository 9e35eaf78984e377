"""The look of a rendering: the terminal's width and abilities, as a value; and the one table of styles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from syncengine.render.links import NO_LINKS, Links

SourceLines = Callable[[str], Sequence[str] | None]
"""A file of the project → its lines, or None where they are not at hand or not to be shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The properties of the place where a text is read.

    `lines` gives the source lines that carets point into; None: no carets. `prefix` is the project's folder relative to
    the repository's root, for formats whose readers expect paths from there. `links` lead to lines at its host.
    """

    width: int = 80
    colour: bool = False
    unicode: bool = True
    verbose: bool = False
    lines: SourceLines | None = None
    prefix: str = ""
    links: Links = NO_LINKS


PLAIN = Look()


class Tone(StrEnum):
    """The meaning of a piece of text for its reader. HTML uses the values as class names."""

    HEADING = "heading"
    REMOVE = "remove"
    CREATE = "create"
    UPDATE = "update"
    NOTE = "note"
    ERROR = "error"
    WARNING = "warning"
    QUIET = "quiet"


STYLES: dict[Tone, str] = {
    Tone.HEADING: "1",
    Tone.REMOVE: "31",
    Tone.CREATE: "32",
    Tone.UPDATE: "33",
    Tone.NOTE: "36",
    Tone.ERROR: "1;31",
    Tone.WARNING: "1;33",
    Tone.QUIET: "2",
}
"""Each tone's SGR parameters."""

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
    """The text in its colour, or as it is where there are no colours."""
    if not (look.colour and tone and text):
        return text
    return f"\x1b[{STYLES[tone]}m{text}\x1b[0m"


def lettered(text: str, look: Look) -> str:
    """The text in letters that the terminal has: ASCII, with escapes for the rest, where it has no other."""
    if look.unicode or text.isascii():
        return text
    return text.translate(_PLAIN_LETTERS).encode("ascii", "backslashreplace").decode("ascii")
