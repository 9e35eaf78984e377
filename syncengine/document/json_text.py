"""Decode and encode JSON of plain values and of models, for every room. Pure.

JSON that has to keep its fractions exact, or needs a place for each value, is read in `manifest` and `templating`.
"""

from __future__ import annotations

from typing import Any

import msgspec


class InvalidJson(ValueError):
    """Text that is not JSON, or cannot be decoded: not UTF-8, nested too deeply, or with a number beyond all floats."""


class UnfitJson(InvalidJson):
    """JSON of another kind than expected. Its text says what does not fit."""


def misfit(error: Exception) -> str:
    """Return what does not fit in a JSON document, from the error of msgspec that found it.

    Its words are for programmers; only the place at their end, such as `$.fields.url`, is for people.
    """
    place = str(error).rpartition(" - at `$")[2].rstrip("`").lstrip(".") if " - at `$" in str(error) else ""
    return f"`{place}` has another value than there can be" if place else "it lacks a member, or has an unknown one"


def decode_json(content: bytes | str | msgspec.Raw, kind: Any = Any) -> Any:
    """Return the value of JSON, of a type that msgspec knows. Raise `InvalidJson`, or `UnfitJson` for another kind.

    A whole number keeps all its digits, however many. Of two members with one name the last counts (RFC 8259 §4).
    """
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.ValidationError as error:
        raise UnfitJson(misfit(error)) from error
    except (ValueError, RecursionError) as error:  # msgspec's own errors are ValueErrors, like that of UTF-8
        raise InvalidJson("the text is not JSON") from error


encode_json = msgspec.json.Encoder().encode
"""Return a value as JSON in UTF-8, with members in their order; NaN and infinities become null.

Raise `UnicodeEncodeError` for half a surrogate pair, `TypeError` for what has no JSON form, and `RecursionError`.
"""
canonical_json = msgspec.json.Encoder(order="deterministic").encode
"""Return a value as `encode_json` does, with members sorted by name. Digests of what is stored are made of it."""
