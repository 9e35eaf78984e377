"""Publication + place → the text of a comment, within the host's limit as the host counts it; pure."""

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
CUT = "**Cut here"
"""The beginning of what Markdown says of lines that it has no room for; no other text has it unescaped."""
_ROUNDS = 6
_SPARE = 100


def utf16_units(text: str) -> int:
    """The length as a browser counts it, which no other count of characters exceeds."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def utf8_bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


class CommentLimit(NamedTuple):
    """The most that a comment may hold, in the units of `size`."""

    most: int
    size: Callable[[str], int]


LIMITS = {"github": CommentLimit(65_536, utf16_units), "gitlab": CommentLimit(1_000_000, utf8_bytes)}
"""GitHub counts characters, and documents do not say which; GitLab's count is exceeded by none of bytes."""


def comment_of(publication: Publication, place: CommentPlace, marker: Marker, limit: CommentLimit, look: Look) -> str:
    """The comment: the hidden marker, the rendering, and where it comes from."""
    opening, ending, job = f"{marker}\n", _ending(place), _url(place.job)
    elsewhere = f"\n**[The job]({job}) has the whole plan.**\n" if job else ""
    look = replace(look, links=look.links.at(publication.commit or place.head))
    room = limit.most - limit.size(f"{opening}{elsewhere}{ending}")
    text = _fitted(publication.markdown, look, room, limit.size)
    return f"{opening}{text}{elsewhere if CUT in text else ''}{ending}"


def _fitted(render: Callable[[Look, int], str], look: Look, most: int, size: Callable[[str], int]) -> str:
    """The rendering in at most so many units: letters outside ASCII may count more than one."""
    room = most
    for _ in range(_ROUNDS):
        text = render(look, room)
        if (units := size(text)) <= most:
            return text
        room = room * most // units - _SPARE
    return _shortened(text, most, size)


def _shortened(text: str, most: int, size: Callable[[str], int]) -> str:
    """The first lines that fit, for a text that cannot be rendered shorter."""
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
    """The commit and the job, as far as they are known."""
    commit = f"Commit {code(place.head[:SHORT])}" if place.head else ""
    job = f"[job]({url})" if (url := _url(place.job)) else ""
    run = f"run {place.run.number}" if place.run.number else ""
    words = ", ".join(filter(None, (commit, run, job)))
    return f"\n<sub>{words}</sub>\n" if words else ""


def _url(text: str | None) -> str:
    """An address that can stand in a link; nothing for any other text."""
    return text if text and URL.fullmatch(text) else ""
