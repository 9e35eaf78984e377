"""Split a malformed JSON array into its items, and find the id of an unreadable item. Pure."""

from __future__ import annotations

import re

import orjson

from syncengine.service.answers import read_loosely

_STRING = rb'"(?>(?:[^"\\]|\\.)*)"'
_TOKEN = re.compile(rb'"groupId"\s*+:\s*+(?P<id>' + _STRING + rb")|" + _STRING + rb"|[\[{]|[\]}]|,", re.DOTALL)
_OPENING, _CLOSING = (b"[", b"{"), (b"]", b"}")


def items(content: bytes) -> list[bytes] | None:
    """Return the items of a JSON array as raw bytes, or `None` for anything else."""
    parts: list[bytes] = []
    depth = begin = 0
    for token in _TOKEN.finditer(content):
        if depth == 0 and (token[0] != b"[" or parts or content[: token.start()].strip(b" \t\r\n\xef\xbb\xbf")):
            return None
        depth += (token[0] in _OPENING) - (token[0] in _CLOSING)
        if depth == 1 and token[0] == b"[" and not begin:
            begin = token.end()
        elif (depth == 1 and token[0] == b",") or depth == 0:
            parts.append(content[begin : token.start()])
            begin = token.end()
    return parts if begin and depth == 0 and not content[begin:].strip() else None


def id_in(item: bytes) -> str | None:
    """Return the `groupId` of an object that is not valid JSON, or `None` when it cannot be found."""
    depth = 0
    for token in _TOKEN.finditer(item):
        depth += (token[0] in _OPENING) - (token[0] in _CLOSING)
        if token["id"] is not None and depth == 1:
            try:
                return str(read_loosely(token["id"])) or None
            except orjson.JSONDecodeError:
                return None
    return None
