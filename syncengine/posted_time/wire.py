"""The bytes of a value for a target, or the reason why it can never be sent. Pure.

A header's value is sent as UTF-8 (RFC 9110 §5.5 leaves bytes beyond ASCII to those who talk to each other): a receiver
that reads headers as Latin-1 has to decode them again, and for one that takes ASCII alone the project writes
`{{ user.name | urlencode }}`. A value that no line of a request can hold, or no text, is refused with a sentence for
who posted.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from syncengine.posted_time.group import NOT_TEXT, clean
from syncengine.posted_time.templates import Text, Undeliverable, Variables, plain

MAX_LINE = 8000
"""Bytes of a header or of a path: every recipient takes as many (RFC 9112 §3), and many take no more."""
MAX_MESSAGE = 1000
"""Characters of what a user is told."""
MAX_REFERENCE = 1000
"""Characters of a sink's reference, which the service keeps with the group."""

CONTROL = "it contains a line break or another control character where only one line of text can be sent"
TOO_LONG = "something in it is too long to be sent"
TOO_LARGE = "a number in it is too large for a database"
NO_TEXT = "part of it is not valid text"
_SENTENCE = "This time cannot be delivered: {why}. Please post it again without that, or ask your administrator."

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_UNFIT_FOR_PEOPLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]+")


def objection(text: str) -> str | None:
    """Return the reason why a header cannot hold this text."""
    if NOT_TEXT.search(text):
        return NO_TEXT
    if _CONTROLS.search(text):
        return CONTROL
    return TOO_LONG if len(text.encode()) > MAX_LINE else None


def line(text: str, name: str) -> str:
    """Return text that a header or path can hold; Undeliverable otherwise. `name` names it for the operator."""
    why = objection(text)
    if why is not None:
        raise undeliverable(why, name)
    return text


def undeliverable(why: str, name: str) -> Undeliverable:
    return Undeliverable(_SENTENCE.format(why=why), f"{name} cannot be sent: {why}")


def document(value: Any, name: str) -> bytes:
    """JSON in UTF-8; Undeliverable."""
    try:
        return orjson.dumps(plain(value))
    except (orjson.JSONEncodeError, RecursionError):
        raise undeliverable(NO_TEXT, name) from None


def parameter(text: str) -> str:
    """Text that every database takes; Undeliverable."""
    if NOT_TEXT.search(text):
        raise undeliverable(NO_TEXT, "a parameter")
    return text


def reference(text: Text | None, variables: Variables) -> str | None:
    """A sink's reference, if the project makes one; Undeliverable for one that the service would never accept."""
    value = text.render(variables) if text else ""
    if NOT_TEXT.search(value) or len(value) > MAX_REFERENCE:
        raise undeliverable(NO_TEXT if NOT_TEXT.search(value) else TOO_LONG, "externalId")
    return value or None


def message(text: str | None) -> str | None:
    """The message to a user, as the service can be expected to take it: text of a limited length."""
    if text is None:
        return None
    words = _UNFIT_FOR_PEOPLE.sub(" ", clean(text))
    return words if len(words) <= MAX_MESSAGE else words[: MAX_MESSAGE - 1] + "…"
