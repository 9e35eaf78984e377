"""Find a value in a JSON document by its path, and name what does not fit into one. Pure."""

from __future__ import annotations

from functools import reduce
from typing import Any

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


def misfit(error: Exception) -> str:
    """Return what does not fit in a JSON document, from the error of msgspec that found it.

    Its words are for programmers; only the place at their end, such as `$.fields.url`, is for people.
    """
    place = str(error).rpartition(" - at `$")[2].rstrip("`").lstrip(".") if " - at `$" in str(error) else ""
    return f"`{place}` has another value than there can be" if place else "it lacks a member, or has an unknown one"
