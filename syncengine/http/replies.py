"""What every reply tells: whether a repeat may help, and when; and text from outside in a form safe to show. Pure."""

from __future__ import annotations

import contextlib
import email.utils
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from html import escape
from urllib.parse import quote

RETRIABLE = frozenset({408, 429, *range(500, 600)})
"""Statuses that a later repeat of the same request may not meet."""
SHOWN_CHARACTERS = 300
"""The maximum number of characters shown of an answer that could not be understood."""
HIDDEN = "***"
"""What is shown instead of the key."""

_BLANKS = re.compile(r"[\x00-\x20\x7f-\x9f]+")


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer. `content` is unpacked; `None` means that it is larger than accepted."""

    status: int
    headers: Mapping[str, str]
    content: bytes | None

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300


def tidy(text: str) -> str:
    """Return text from outside in a form that is safe to show: on one line and cut to a sane length."""
    line = _BLANKS.sub(" ", text[: 4 * SHOWN_CHARACTERS]).strip()
    return line if len(line) <= SHOWN_CHARACTERS else line[:SHOWN_CHARACTERS] + "…"


def without(key: str, text: str) -> str:
    """Return text from outside with the key hidden, also as JSON, a URL or HTML spell it."""
    return _spelled(key).sub(HIDDEN, text)


@cache
def _spelled(key: str) -> re.Pattern[str]:
    """Return the pattern of a key in which each character may be escaped: some services write `+` as `\\u002B`."""

    def spellings(letter: str) -> str:
        in_json = json.dumps(letter)[1:-1]
        number = ord(letter)
        in_html = rf"&\#0*{number};|&\#x0*{number:x};"
        escaped = {in_json, f"\\{letter}", f"\\u{number:04x}", quote(letter, safe=""), f"%{number:02x}", escape(letter)}
        return f"(?:{re.escape(letter)}|(?i:{'|'.join((*map(re.escape, sorted(escaped - {letter})), in_html))}))"

    return re.compile("".join(map(spellings, key)))


def retry_after(header: str | None, now: float) -> float | None:
    """Return the seconds in a Retry-After header, a number or an HTTP date relative to `now` (RFC 9110 §10.2.3)."""
    if header is None:
        return None
    with contextlib.suppress(ValueError):
        return max(0.0, float(header))
    with contextlib.suppress(ValueError, TypeError, OverflowError):
        return max(0.0, email.utils.parsedate_to_datetime(header).timestamp() - now)
    return None
