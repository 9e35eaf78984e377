"""Flags in the environment, such as `CI`; pure."""

from __future__ import annotations

from collections.abc import Mapping

OFF = frozenset({"", "0", "false", "no", "off"})
"""The values, in lower case, by which people turn a flag off."""


def is_on(environ: Mapping[str, str], name: str) -> bool:
    """Return whether a flag is set to anything but a word for off."""
    return environ.get(name, "").strip().lower() not in OFF


def is_ci(environ: Mapping[str, str]) -> bool:
    """Return whether this is the job of a CI service, which all of them say with `CI`."""
    return is_on(environ, "CI")
