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
    opening, ending = f"{marker}\n", _ending(place)
    commit = publication.commit or place.head
    blob = f"{place.blob}/{commit}" if place.blob and commit else ""
    look = replace(look, job=_url(place.job), blob=_url(blob))
    room = limit.most - limit.size(opening) - limit.size(ending)
    return f"{opening}{_fitted(publication.markdown, look, room, limit.size)}{ending}"


def _fitted(render: Callable[[Look], str], look: Look, most: int, size: Callable[[str], int]) -> str:
    """The rendering in at most so many units: letters outside ASCII may count more than one."""
    room = most
    for _ in range(_ROUNDS):
        text = render(replace(look, room=room))
        if (units := size(text)) <= most:
            return text
        room = room * most // units - _SPARE
    return _cut(text, most, size, look.job)


def _cut(text: str, most: int, size: Callable[[str], int], job: str) -> str:
    """The first lines that fit, for a text that cannot be rendered shorter."""
    note = f"\n**Cut here.** {f'The job has the rest: {job}' if job else 'The plan as JSON has the rest.'}\n"
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
