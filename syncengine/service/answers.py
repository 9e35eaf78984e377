"""The answer to a call, which is never an exception, and the JSON in it. Pure."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from syncengine.document.json_text import InvalidJson, decode_json
from syncengine.http.exchange import RETRIABLE, Reply, retry_after, tidy, without

PAGES = frozenset({"text/html", "application/xhtml+xml"})
PORTAL = ": a login page, a proxy or a portal answered instead of the service"
"""The remark on a web page where JSON was expected."""

Decoder = Callable[[bytes], object]
"""A function from the content of a 2xx to its data, or `None` for unexpected content."""

_HEX = rb"[0-9a-fA-F]{2}"
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB]" + _HEX + rb"\\u[dD][c-fC-F]" + _HEX + rb"|(?P<half>u[dD][89a-fA-F]" + _HEX + rb")|.)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one call.

    `status` is `None` when no answer came; `text` is then the reason. `data` is the parsed JSON, `None` for an empty
    body. `understood` is `False` for a body that is not JSON or a bare null. `reached`: whether an attempt may have
    reached the service. `retry_after` is in seconds. `timed_out`: the request was sent, and no answer came in time.
    `text` may contain anything: use `summary` where an answer may contain people's time. `given_up` is when, on this
    machine's own clock, the last attempt ended that the service may still execute, if any. `diverted`: a server on the
    way answered, and the service did not get the request; `text` says so as a sentence, and `status` is `None`.
    `too_large`: the answer is longer than `size` bytes and was not read further. `note` is our own remark.
    """

    status: int | None
    data: object = field(default=None, repr=False)
    text: str = ""
    understood: bool = True
    reached: bool = True
    retry_after: float | None = None
    timed_out: bool = False
    given_up: float | None = None
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


def answer_in(reply: Reply, key: str, largest: int, now: float, decode: Decoder | None) -> Answer:
    """Return the answer in a reply of at most `largest` bytes, received at `now` (seconds since the epoch).

    The key is hidden in messages only: data to deliver or to send back stays unchanged.
    """
    kind = tidy(without(key, reply.headers.get("content-type", "").partition(";")[0]))
    base: dict[str, Any] = {
        "status": reply.status,
        "kind": kind,
        "retry_after": retry_after(reply.headers.get("retry-after"), now),
    }
    if reply.content is None:
        words = f"the answer is larger than {largest // 1024 // 1024} MB"
        return Answer(**base, text=words, understood=False, size=largest, too_large=True)
    base["size"] = len(reply.content)
    note = PORTAL if reply.ok and kind.lower() in PAGES else ""
    if decode is not None and reply.ok:
        data = decode(reply.content)
        return Answer(**base, data=data, understood=data is not None, note=note)
    data = None
    with contextlib.suppress(InvalidJson):
        data = read_json(reply.content)
    understood = data is not None or not reply.content.strip()
    note = "" if understood else note
    text = "a web page" if note else tidy(without(key, reply.content.decode("utf-8", "replace")))
    if not reply.ok:
        data = _hide(key, data)
    elif isinstance(data, dict) and "errors" in data:
        data = {**data, "errors": _hide(key, data["errors"])}
    return Answer(**base, data=data, text=text, note=note, understood=understood)


def read_json(content: bytes) -> Any:
    """Parse JSON, also with text cut in the middle of a character. Raise `InvalidJson` when it is not JSON.

    A text that a UTF-16 program cut in the middle of a character ends in half of it (RFC 8259 §8.2). The half becomes
    U+FFFD: one such title must not make all posted time of an answer unreadable.
    """
    try:
        return decode_json(content)
    except InvalidJson:
        return decode_json(_ESCAPE.sub(_whole, content))


def mended(content: bytes) -> bytes:
    """Return JSON as valid UTF-8, with U+FFFD for each half of a surrogate pair (RFC 8259 §8)."""
    return _ESCAPE.sub(_whole, content).decode("utf-8-sig", "replace").encode()


def _whole(escape: re.Match[bytes]) -> bytes:
    return rb"\ufffd" if escape["half"] else escape[0]


def read_loosely(content: bytes) -> Any:
    """Parse the JSON of posted time leniently. Raise `InvalidJson` when no parser could read it.

    NaN, Infinity and huge numbers become such floats, bytes that are not UTF-8 become U+FFFD (RFC 8259 §6, §8.1).
    """

    def whole_number(text: str) -> int | float:
        try:
            return int(text)
        except ValueError:  # it has more than 4,300 digits
            return float(text)

    try:
        return read_json(content)
    except InvalidJson as error:
        try:
            return json.loads(mended(content), strict=False, parse_int=whole_number)
        except (ValueError, RecursionError):
            raise error from None


def _hide(key: str, value: object) -> object:
    """Return JSON without the key in any of its texts."""
    match value:
        case str():
            return without(key, value)
        case list():
            return [_hide(key, item) for item in value]
        case dict():
            return {name: _hide(key, item) for name, item in value.items()}
        case _:
            return value
