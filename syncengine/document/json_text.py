"""Decode and encode JSON of plain values, for every room. Pure.

A document with a model is decoded by msgspec with its model (`render.documents`, `state`). JSON that has to keep its
fractions exact, or needs a place for each value, is read in `manifest.sources` and `templating`.
"""

from __future__ import annotations

from typing import Any

import msgspec


class InvalidJson(ValueError):
    """Text that is not JSON, or cannot be decoded: not UTF-8, nested too deeply, or with a number beyond all floats."""


_decode = msgspec.json.Decoder().decode


def decode_json(content: bytes | str) -> Any:
    """Return the value of JSON. Raise `InvalidJson`.

    A whole number keeps all its digits, however many. Of two members with one name the last counts (RFC 8259 §4).
    """
    try:
        return _decode(content)
    except (ValueError, RecursionError) as error:  # msgspec's own errors are ValueErrors, like that of UTF-8
        raise InvalidJson("the text is not JSON") from error


encode_json = msgspec.json.Encoder().encode
"""Return a value as JSON in UTF-8, with members in their order; NaN and infinities become null.

Raise `UnicodeEncodeError` for half a surrogate pair, `TypeError` for what has no JSON form, and `RecursionError`.
"""
canonical_json = msgspec.json.Encoder(order="deterministic").encode
"""Return a value as `encode_json` does, with members sorted by name. Digests of what is stored are made of it."""
