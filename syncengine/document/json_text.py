"""Decode and encode JSON of plain values and of models, and find a value in it by a path, for every room. Pure.

JSON that has to keep its fractions exact, or needs a place for each value, is read in `manifest` and `templating`.
"""

from __future__ import annotations

from functools import reduce
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
    return f"`{place}` has another value than there can be" if place else "a member is missing, unknown or of no use"


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


Steps = tuple[str, ...]
"""The path of a value in a document, as the names of the objects that hold it."""


def keys_to(value: Any, steps: Steps) -> Steps | None:
    """Return the names on the path to a value, each as its object has it, or `None` if there is no such value.

    A name in the path may contain dots, as in `@odata.nextLink`.
    """
    if not steps:
        return ()
    for count in range(len(steps), 0, -1) if isinstance(value, dict) else ():
        if (name := ".".join(steps[:count])) in value:
            rest = keys_to(value[name], steps[count:])
            return None if rest is None else (name, *rest)
    return None


def value_at(value: Any, steps: Steps, missing: Any) -> Any:
    """Return the value at a path, or `missing`."""
    keys = keys_to(value, steps)
    return missing if keys is None else reduce(lambda inner, key: inner[key], keys, value)


def steps_of(text: str | None) -> Steps:
    """Return the steps of a path as written, such as `data.items`."""
    return tuple(step for step in (text or "").split(".") if step)
