"""Find a value in a JSON document by its path. Pure."""

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
