"""Numbers and lists as people write them; pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from syncengine.plan.diff import Action
from syncengine.plan.model import Summary
from syncengine.render.escape import file_name
from syncengine.resource import Kind, Source

FEW = 5
"""Names that a folded line shows."""

_PLURALS = {"category": "categories", "entry": "entries", "metadata entry": "metadata entries", "retry": "retries"}

NOUNS = {Kind.CATEGORY: "category", Kind.ACTIVITY_TYPE: "activity type", Kind.TAG: "tag"}

TO_DO = {action: f"to {action.word}" for action in Action}

_AMONG = (
    ("cascaded_tags", "{} deleted with the category", "tag"),
    ("keyword_adds", "{} added", "keyword"),
    ("keyword_deletes", "{} deleted", "keyword"),
    ("metadata_deletes", "{} deleted", "metadata name"),
    ("kept", "{} kept", "resource"),
)


def when(seconds: float | None) -> str | None:
    """Format seconds since epoch as people and machines read it, to the second, in UTC."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def minute(text: str) -> str:
    """`2026-03-01 09:30 UTC`, of an instant as documents write it; any other text as it stands."""
    try:
        return f"{datetime.fromisoformat(text).astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    except ValueError:
        return text


def number(count: int) -> str:
    return f"{count:,}"


def plural(noun: str) -> str:
    return _PLURALS.get(noun, f"{noun}s")


def count_of(count: int, noun: str) -> str:
    """`1 tag`, `2 categories`."""
    return f"{number(count)} {noun if count == 1 else plural(noun)}"


def comma_list(texts: Sequence[str], most: int = FEW, *, count: int | None = None) -> str:
    """Return the first `most` texts and the number of the others, or all texts when only one would be left.

    `count` is the number of all texts where only the first `most + 1` are given.
    """
    total = len(texts) if count is None else count
    if total <= most + 1:
        return ", ".join(texts)
    return f"{', '.join(texts[:most])} … and {number(total - most)} more"


def place(source: Source | None) -> str:
    """`manifests/acme.yaml:12`, with the data row of a generated resource."""
    if source is None:
        return ""
    return file_name(str(source))


def summary_of(summary: Summary) -> str:
    """The plan in one line, without zeros except for unchanged resources."""
    does = [f"{number(count)} {word}" for action, word in TO_DO.items() if (count := getattr(summary, action.word))]
    return f"{', '.join(does) or 'no changes'}; {number(summary.unchanged)} unchanged; {requests(summary.requests)}"


def among(summary: Summary) -> str:
    """The counts inside those changes, or nothing."""
    phrases = [form.format(count_of(n, noun)) for name, form, noun in _AMONG if (n := getattr(summary, name))]
    return f"Among them: {', '.join(phrases)}." if phrases else ""


def requests(count: int) -> str:
    return count_of(count, "request")
