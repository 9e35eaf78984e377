"""Define the answer to a call, and make text from outside safe to show. Pure."""

from __future__ import annotations

import contextlib
import email.utils
import json
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import orjson

RETRIABLE = frozenset({408, 429, *range(500, 600)})
DIVERTED = frozenset({301, 302, 307, 308, 407, 511})
"""Statuses by which a server on the way says that the service did not get the request: moved, or a login is wanted."""
SHOWN_CHARACTERS = 300
"""The maximum number of characters shown of an answer that could not be understood."""

_BLANKS = re.compile(r"[\x00-\x20\x7f-\x9f]+")
_HEX = rb"[0-9a-fA-F]{2}"
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB]" + _HEX + rb"\\u[dD][c-fC-F]" + _HEX + rb"|(?P<half>u[dD][89a-fA-F]" + _HEX + rb")|.)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one call.

    `status` is `None` when no answer came; `text` is then the reason. `data` is the parsed JSON, `None` for an empty
    body. `understood` is `False` for a body that is not JSON or a bare null; `unread` is that body. `reached`: whether
    an attempt may have reached the service. `retry_after` is in seconds. `timed_out`: the request was sent, and no
    answer came in time. `text` may contain anything: use `summary` where an answer may contain people's time.
    `given_up` is when, on this machine's own clock, the last attempt ended that the service may still execute, if any.
    `diverted`: a server on the way answered, and the service did not get the request; `text` says so as a sentence, and
    `status` is `None`. `too_large`: the answer is longer than `size` bytes and was not read further. `note` is our own
    remark.
    """

    status: int | None
    data: object = field(default=None, repr=False)
    text: str = ""
    understood: bool = True
    reached: bool = True
    retry_after: float | None = None
    timed_out: bool = False
    given_up: float | None = None
    unread: bytes = field(default=b"", repr=False)
    kind: str = ""
    size: int = 0
    too_large: bool = False
    diverted: bool = False
    note: str = ""

    @property
    def summary(self) -> str:
        """The answer's status, content type, length and error message; no other part of the answer."""
        if self.status is None:
            return f"{self.text or 'no message'}{self.note}"
        words = self.data.get("message") if isinstance(self.data, dict) and not self.ok else None
        if isinstance(words, str) and words.strip():
            return f"{self.status}: {tidy(words)}{self.note}"
        size = f"{'more than ' if self.too_large else ''}{self.size} bytes"
        return f"{self.status} ({self.kind or 'no content type'}, {size}){self.note}"

    @property
    def words(self) -> str:
        """The text of the answer with our note, or "no message" for JSON without content, like `{}`."""
        is_empty = self.status is not None and self.understood and not self.data
        return f"{'no message' if is_empty or not self.text else self.text}{self.note}"

    @property
    def explained(self) -> str:
        """The status and text of a failure."""
        return f"{self.status}: {self.words}" if self.status else self.words

    @property
    def ok(self) -> bool:
        return self.status is not None and 200 <= self.status < 300

    @property
    def may_land(self) -> bool:
        """Whether the service, or a server behind a gateway, may still execute the request."""
        if self.status is None:
            return self.reached
        is_unclear = self.status < 400 and not (self.ok and self.understood)
        return self.status >= 500 or self.status == 408 or is_unclear

    @property
    def exhausted(self) -> bool:
        """Whether a retry might have helped, so that the outcome of the call is unknown."""
        return self.status is None or self.status in RETRIABLE


def read_json(content: bytes) -> Any:
    """Parse JSON, also with text cut in the middle of a character. Raise `orjson.JSONDecodeError` when it is not JSON.

    A text that a UTF-16 program cut in the middle of a character ends in half of it (RFC 8259 §8.2). The half becomes
    U+FFFD: one such title must not make all posted time of an answer unreadable.
    """
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        return orjson.loads(_ESCAPE.sub(_whole, content))


def mended(content: bytes) -> bytes:
    """Return JSON as valid UTF-8, with U+FFFD for each half of a surrogate pair (RFC 8259 §8)."""
    return _ESCAPE.sub(_whole, content).decode("utf-8-sig", "replace").encode()


def read_loosely(content: bytes) -> Any:
    """Parse the JSON of posted time leniently. Raise `orjson.JSONDecodeError` when no parser could read it.

    NaN, Infinity and huge numbers become such floats, bytes that are not UTF-8 become U+FFFD (RFC 8259 §6, §8.1).
    """
    try:
        return read_json(content)
    except orjson.JSONDecodeError as error:
        try:
            return json.loads(mended(content), strict=False, parse_int=_whole_number)
        except (ValueError, RecursionError):
            raise error from None


def _whole_number(text: str) -> int | float:
    """Return an integer as orjson would: a float if it is beyond 64 bits."""
    number = float(text)
    return int(text) if abs(number) < 1 << 63 else number


def _whole(escape: re.Match[bytes]) -> bytes:
    return rb"\ufffd" if escape["half"] else escape[0]


def tidy(text: str) -> str:
    """Return text from outside in a form that is safe to show: on one line and cut to a sane length."""
    line = _BLANKS.sub(" ", text[: 4 * SHOWN_CHARACTERS]).strip()
    return line if len(line) <= SHOWN_CHARACTERS else line[:SHOWN_CHARACTERS] + "…"


HIDDEN = "***"


def without(key: str, text: str) -> str:
    """Return text from outside with the key hidden, also in its JSON spelling."""
    for form in _spellings(key):
        text = text.replace(form, HIDDEN)
    return text


@lru_cache(maxsize=8)
def _spellings(key: str) -> tuple[str, ...]:
    encoded = json.dumps(key)[1:-1]
    return tuple(dict.fromkeys((key, encoded, encoded.replace("/", r"\/"))))


def words_without(key: str, data: object, *, is_refusal: bool) -> object:
    """Return an answer's JSON with the key hidden: in all of a refusal, but only in the `errors` of a success."""
    if is_refusal:
        return _without(key, data)
    return {**data, "errors": _without(key, data["errors"])} if isinstance(data, dict) and "errors" in data else data


def _without(key: str, value: object) -> object:
    match value:
        case str():
            return value.replace(key, HIDDEN)
        case list():
            return [_without(key, item) for item in value]
        case dict():
            return {name: _without(key, item) for name, item in value.items()}
        case _:
            return value


def retry_after(header: str | None, now: float) -> float | None:
    """Return the seconds in a Retry-After header, a number or an HTTP date relative to `now` (RFC 9110 §10.2.3)."""
    if header is None:
        return None
    with contextlib.suppress(ValueError):
        return max(0.0, float(header))
    with contextlib.suppress(ValueError, TypeError, OverflowError):
        return max(0.0, email.utils.parsedate_to_datetime(header).timestamp() - now)
    return None
