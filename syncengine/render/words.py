"""Format numbers, lists, places and times for people. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import overload

from syncengine.instants import instant
from syncengine.plan.diff import Action
from syncengine.render.escape import file_name
from syncengine.render.formats import Place, PlanSummary
from syncengine.resource import Kind, Source

FEW = 5
"""The number of names that a folded line shows."""

_PLURALS = {"category": "categories", "entry": "entries", "metadata entry": "metadata entries", "retry": "retries"}

NOUNS = {Kind.CATEGORY: "category", Kind.ACTIVITY_TYPE: "activity type", Kind.TAG: "tag"}

TO_DO = {action: f"to {action.word}" for action in Action}

_AMONG = (
    ("cascaded_tags", "{} deleted with a category", "tag"),
    ("keyword_adds", "{} added", "keyword"),
    ("keyword_deletes", "{} deleted", "keyword"),
    ("metadata_deletes", "{} deleted", "metadata entry"),
    ("kept", "{} kept", "resource"),
)


@overload
def when(seconds: float) -> str: ...
@overload
def when(seconds: float | None) -> str | None: ...
def when(seconds: float | None) -> str | None:
    """Format seconds since the epoch as an ISO 8601 time in UTC, to the second; `None` stays `None`."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def minute(text: str) -> str:
    """Return `2026-03-01 09:30 UTC` for an instant in ISO 8601; return any other text unchanged."""
    try:
        return f"{datetime.fromisoformat(text).astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    except ValueError:
        return text


def number(count: int) -> str:
    return f"{count:,}"


def plural(noun: str) -> str:
    return _PLURALS.get(noun, f"{noun}s")


def count_of(count: int, noun: str) -> str:
    """Return the count with its noun in the singular or plural: `1 tag`, `2 categories`."""
    return f"{number(count)} {noun if count == 1 else plural(noun)}"


def comma_list(texts: Sequence[str], most: int = FEW, *, count: int | None = None) -> str:
    """Return the first `most` texts and the number of the others, or all texts when only one would be left.

    `count` is the number of all texts where only the first `most + 1` are given.
    """
    total = len(texts) if count is None else count
    if total <= most + 1:
        return ", ".join(texts)
    return f"{', '.join(texts[:most])} … and {number(total - most)} more"


def place(source: Source | Place | None) -> str:
    """Return `manifests/acme.yaml:12`, followed by the data row of a generated resource."""
    if source is None:
        return ""
    return file_name(str(source))


def summary_of(summary: PlanSummary) -> str:
    """Return the counts of a plan in one line, leaving out zeros except for unchanged resources."""
    does = [f"{number(count)} {word}" for action, word in TO_DO.items() if (count := getattr(summary, action.word))]
    return f"{', '.join(does) or 'no changes'}; {number(summary.unchanged)} unchanged; {requests(summary.requests)}"


def among(summary: PlanSummary) -> str:
    """Return a sentence with the counts of changed keywords and metadata, cascades and kept resources, if any."""
    phrases = [form.format(count_of(n, noun)) for name, form, noun in _AMONG if (n := getattr(summary, name))]
    return f"In detail: {', '.join(phrases)}." if phrases else ""


def list_gaps(unreadable: int, hidden: Iterable[int]) -> Iterator[str]:
    """Yield sentences about groups that are missing from the service's list of posted time.

    `hidden` are the instants (milliseconds since the epoch) that fill a whole page of it.
    """
    if unreadable:
        yield f"ignored {count_of(unreadable, 'item')} of the list that cannot be read as a group"
    for at in hidden:
        yield f"500 or more groups were submitted at {instant(at)}, but the service lists at most 500 for one instant"


def requests(count: int) -> str:
    return count_of(count, "request")
