"""The style sheet of all pages for people, and the script of a plan's page."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files


@cache
def page_file(name: str) -> str:
    """Return the text of a file of `static`."""
    return files("syncengine.render").joinpath("static", name).read_text(encoding="utf-8")


def digest(text: str) -> str:
    """Return the source of a content security policy that allows exactly this text."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
