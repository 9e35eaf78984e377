"""One comment of a pull request for each key, with the text of the newest run, even if several jobs write at once.

The hosts have no conditional write. So every write is preceded and followed by a look at all of our comments with the
key. One of them survives, by a rule that all jobs share, and the others are deleted.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from typing import NamedTuple

from syncengine.errors import SyncengineError
from syncengine.publish.api import NotAllowed, NotThere
from syncengine.publish.documents import Publication
from syncengine.publish.hosts import Host
from syncengine.publish.place import CommentPlace, PullState, RunOrder, as_number
from syncengine.render.markdown import code
from syncengine.render.style import Look

KEY = re.compile(r"[0-9A-Za-z](?:[0-9A-Za-z._]|-(?!-)){0,99}")
"""The pattern of a key, which cannot end an HTML comment."""
_PARTS = re.compile(r" (\w+)=([0-9a-f]+)(?= )")
URL = re.compile(r"https?://[0-9A-Za-z._~:/?#@!$&*+,;=%-]+")
SHORT = 12
LOOKS = 12
"""The largest number of looks at the comments. Two are usual; as many jobs as write at once may need one more each."""

SETTLING_SECONDS = 1.0
"""The time that a job of an older run may take from its look to its write, which overwrites ours."""


# --- the hidden marker, with key, commit and CI run


class Marker(NamedTuple):
    """The hidden marker of one comment."""

    key: str
    head: str
    run: RunOrder

    @property
    def prefix(self) -> str:
        """The text with which exactly the comments with this key begin."""
        return f"<!-- syncengine:{self.key} "

    def __str__(self) -> str:
        run = f"run={self.run.number} id={self.run.id} attempt={self.run.attempt}"
        return f"{self.prefix}{f'head={self.head} ' if self.head else ''}{run} -->"


def run_of(body: str) -> RunOrder:
    """Return the CI run that wrote a comment of ours. An unreadable marker counts as the oldest run."""
    parts = dict(_PARTS.findall(body.partition("-->")[0]))
    return RunOrder(*(as_number(parts.get(name, "")) for name in ("id", "run", "attempt")))


# --- its text, within the host's limit


class CommentLimit(NamedTuple):
    """The maximum number of characters or bytes of a comment, as counted by `size`."""

    most: int
    size: Callable[[str], int]


LIMITS = {
    "github": CommentLimit(65_536, lambda text: len(text.encode("utf-16-le", "surrogatepass")) // 2),
    "gitlab": CommentLimit(1_000_000, lambda text: len(text.encode("utf-8", "surrogatepass"))),
}
"""The limits of the hosts. GitHub's unit is undocumented, so it is taken as UTF-16; GitLab's is taken as bytes."""


def comment_of(publication: Publication, place: CommentPlace, marker: Marker, limit: CommentLimit, look: Look) -> str:
    """Return the text of the comment: its hidden marker, the rendering, and its origin."""
    url = place.job if place.job and URL.fullmatch(place.job) else ""
    commit = f"Commit {code(place.head[:SHORT])}" if place.head else ""
    run = f"run {place.run.number}" if place.run.number else ""
    words = ", ".join(filter(None, (commit, run, f"[job]({url})" if url else "")))
    opening, ending = f"{marker}\n", f"\n<sub>{words}</sub>\n" if words else ""
    look = replace(look, links=look.links.at(publication.commit or place.head), job=url)
    room = limit.most - limit.size(opening + ending)
    return f"{opening}{publication.markdown(look, room, limit.size)}{ending}"


# --- its place


class Published(StrEnum):
    """The outcomes of a publication."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    OLDER = "older"
    SUMMARY = "summary"


class Publishing(NamedTuple):
    """The outcome of a publication, with the URL of the comment, or the reason why there is none."""

    outcome: Published
    url: str = ""
    reason: str = ""


def publish(kind: type[Host], place: CommentPlace, marker: Marker, text: str) -> Publishing:
    """Write the comment. The outcome is `SUMMARY` when this job cannot, and the text must be shown elsewhere."""
    if place.token is None and place.is_fork:
        return Publishing(Published.SUMMARY, reason="the job of a fork has no token")
    with kind.at(place, kind.needs) as host:
        try:
            number = place.number
            if number is None and (pull := host.pull_of_commit()) is not None:
                if pull.is_foreign and pull.state is PullState.MERGED:  # its authors see no report of our branch
                    reason = f"{kind.request} {pull.number} came from another repository"
                    return Publishing(Published.SUMMARY, reason=reason)
                number = pull.number
            if number is None:
                return Publishing(Published.SUMMARY, reason=f"this job belongs to no {kind.request}")
            return _write(host, number, marker, text)
        except NotAllowed as refusal:
            cure = "" if place.is_fork else f"; it needs {kind.needs}"
            return Publishing(Published.SUMMARY, reason=f"the token may not write comments ({refusal}){cure}")
        except NotThere as refusal:
            cure = f"check that {place.project} and the {kind.request} exist, and that the token may read them"
            raise SyncengineError(
                f"{kind.title} did not find the {kind.request} ({refusal}): {cure}", code="publish-place"
            ) from None


def _write(host: Host, number: int, marker: Marker, text: str) -> Publishing:
    """Look at our comments and take the next step, until a look finds nothing left to do."""
    author, created, outcome, is_last_look = host.author(), None, Published.UNCHANGED, False

    def step() -> Publishing | None:
        nonlocal author, created, outcome, is_last_look
        ours = [c for c in host.comments(number) if c.author == author and c.body.startswith(marker.prefix)]
        if created is not None and all(each.id != created.id for each in ours):
            ours.append(created)  # a list may be older than our last write
        if not ours:
            created, outcome = host.create(number, text), Published.CREATED
            author = created.author if created is not None and created.author else author  # it may have been a guess
            return None
        # By this rule, which all jobs share, one of several comments survives: the first one of the newest run.
        keeper = max(ours, key=lambda comment: (run_of(comment.body), -comment.id))
        for comment in ours:
            if comment.id != keeper.id:
                host.delete(number, comment.id)
        run = run_of(keeper.body)
        if run > marker.run:
            return Publishing(Published.OLDER, keeper.url, f"run {run.number or run.id} is newer")
        # Hosts change line ends and outer blanks.
        is_same = keeper.body.replace("\r\n", "\n").strip() == text.replace("\r\n", "\n").strip()
        if is_same or (outcome is not Published.UNCHANGED and run == marker.run):
            if outcome is not Published.UPDATED or is_last_look:
                return Publishing(outcome, keeper.url)
            is_last_look = True  # an older run may have looked before our update, and overwrite it
            time.sleep(SETTLING_SECONDS)
            return None
        try:
            host.update(number, keeper.id, text)
        except NotThere:  # another job has deleted it since: look again
            created = None
            return None
        outcome = Published.CREATED if outcome is Published.CREATED else Published.UPDATED
        is_last_look = False
        return None

    for _ in range(LOOKS):
        # A write that failed may have been executed, so that the step begins with a look again.
        if (end := host.api.persist(step)) is not None:
            return end
    raise SyncengineError("another job keeps writing the same comment: repeat when it has ended", code="publish-race")
