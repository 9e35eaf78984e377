"""Publication and place → the text of a comment, within the host's size limit; pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from syncengine.publish.documents import Publication
from syncengine.publish.marker import Marker
from syncengine.publish.place import CommentPlace
from syncengine.render.markdown import code
from syncengine.render.style import Look

URL = re.compile(r"https?://[0-9A-Za-z._~:/?#@!$&*+,;=%-]+")
SHORT = 12
CUT = "**Shortened"
"""The beginning of the note that Markdown was cut short. No other text contains it unescaped."""
_ROUNDS = 6
_SPARE = 100


def utf16_units(text: str) -> int:
    """Return the length in UTF-16 units, the largest of the usual counts of characters."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def utf8_bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


class CommentLimit(NamedTuple):
    """The maximum number of characters or bytes of a comment, as counted by `size`."""

    most: int
    size: Callable[[str], int]


LIMITS = {"github": CommentLimit(65_536, utf16_units), "gitlab": CommentLimit(1_000_000, utf8_bytes)}
"""The limits of the hosts. GitHub's unit is undocumented, so it is taken as UTF-16; GitLab's is taken as bytes."""


def comment_of(publication: Publication, place: CommentPlace, marker: Marker, limit: CommentLimit, look: Look) -> str:
    """Return the text of the comment: its hidden marker, the rendering, and its origin."""
    opening, ending, job = f"{marker}\n", _ending(place), _url(place.job)
    elsewhere = f"\n**[The job]({job}) has the whole plan.**\n" if job else ""
    look = replace(look, links=look.links.at(publication.commit or place.head))
    room = limit.most - limit.size(f"{opening}{elsewhere}{ending}")
    text = _fitted(publication.markdown, look, room, limit.size)
    return f"{opening}{text}{elsewhere if CUT in text else ''}{ending}"


def _fitted(render: Callable[[Look, int], str], look: Look, most: int, size: Callable[[str], int]) -> str:
    """Return the rendering in at most `most` units of `size`, which may count a letter outside ASCII as several."""
    room = most
    for _ in range(_ROUNDS):
        text = render(look, room)
        if (units := size(text)) <= most:
            return text
        room = room * most // units - _SPARE
    return _shortened(text, most, size)


def _shortened(text: str, most: int, size: Callable[[str], int]) -> str:
    """Return the first lines that fit, for a text that cannot be rendered shorter."""
    note = f"\n{CUT}**\n"
    lines, room = [], most - size(note) - _SPARE
    for line in text.splitlines(keepends=True):
        room -= size(line)
        if room < 0:
            break
        lines.append(line)
    kept = "".join(lines)
    closing = "\n</details>\n" * (kept.count("<details>") - kept.count("</details>"))
    return f"{kept}{closing}{note}"


def _ending(place: CommentPlace) -> str:
    """Return a line with the commit, run and job that are known, or `""`."""
    commit = f"Commit {code(place.head[:SHORT])}" if place.head else ""
    job = f"[job]({url})" if (url := _url(place.job)) else ""
    run = f"run {place.run.number}" if place.run.number else ""
    words = ", ".join(filter(None, (commit, run, job)))
    return f"\n<sub>{words}</sub>\n" if words else ""


def _url(text: str | None) -> str:
    """Return `text` if it is a URL that is safe in a link, else `""`."""
    return text if text and URL.fullmatch(text) else ""
