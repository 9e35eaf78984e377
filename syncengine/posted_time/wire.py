"""Convert values to the form in which a target gets them, or refuse them with a message to the user. Pure.

A header's value is sent as UTF-8 (RFC 9110 §5.5 leaves the meaning of bytes beyond ASCII to sender and receiver). A
receiver that reads headers as Latin-1 has to decode them again; for a receiver that accepts only ASCII, a project uses
`{{ user.name | urlencode }}`.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from syncengine.posted_time.group import NOT_TEXT, clean
from syncengine.posted_time.templates import Text, Undeliverable, Variables, plain

MAX_LINE = 8000
"""The most bytes of a header or path: every recipient accepts as many (RFC 9112 §3), and many accept no more."""
MAX_MESSAGE = 1000
"""The maximum number of characters of a message to a user."""
MAX_REFERENCE = 1000
"""The maximum number of characters of a sink's reference, which the service keeps with the group."""

CONTROL = "it contains a line break or another control character where only one line of text can be sent"
TOO_LONG = "something in it is too long to be sent"
TOO_LARGE = "a number in it is too large for a database"
NO_TEXT = "part of it is not valid text"
_SENTENCE = "This time cannot be delivered: {why}. Please post it again without that, or ask your administrator."

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_UNFIT_FOR_PEOPLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]+")


def objection(text: str) -> str | None:
    """Return the reason why a header cannot hold this text, or `None`."""
    if NOT_TEXT.search(text):
        return NO_TEXT
    if _CONTROLS.search(text):
        return CONTROL
    return TOO_LONG if len(text.encode()) > MAX_LINE else None


def line(text: str, name: str) -> str:
    """Return the text, or raise `Undeliverable` if no header or path can hold it. `name` is shown to the operator."""
    why = objection(text)
    if why is not None:
        raise undeliverable(why, name)
    return text


def undeliverable(why: str, name: str) -> Undeliverable:
    return Undeliverable(_SENTENCE.format(why=why), f"{name} cannot be sent: {why}")


def document(value: Any, name: str) -> bytes:
    """Return the value as JSON in UTF-8. Raise `Undeliverable` when it cannot be encoded."""
    try:
        return orjson.dumps(plain(value))
    except (orjson.JSONEncodeError, RecursionError):
        raise undeliverable(NO_TEXT, name) from None


def parameter(text: str) -> str:
    """Return the text, or raise `Undeliverable` when not every database accepts it."""
    if NOT_TEXT.search(text):
        raise undeliverable(NO_TEXT, "a parameter")
    return text


def reference(text: Text | None, variables: Variables) -> str | None:
    """Return a sink's reference, or `None` if it has none. Raise `Undeliverable` if the service would not accept it."""
    value = text.render(variables) if text else ""
    if NOT_TEXT.search(value) or len(value) > MAX_REFERENCE:
        raise undeliverable(NO_TEXT if NOT_TEXT.search(value) else TOO_LONG, "externalId")
    return value or None


def message(text: str | None) -> str | None:
    """Return a message to a user in a form that the service accepts: without control characters, and not too long."""
    if text is None:
        return None
    words = _UNFIT_FOR_PEOPLE.sub(" ", clean(text))
    return words if len(words) <= MAX_MESSAGE else words[: MAX_MESSAGE - 1] + "…"
